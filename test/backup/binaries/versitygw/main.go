// Command versitygw is an S3 server over a folder, for tests: each folder below it is a bucket. It listens on the loopback
// interface, on a port that the kernel chooses, prints its URL, and ends when its standard input does, so that it cannot
// outlive the test that started it. Its account is that of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

func main() {
	root := flag.String("root", "", "folder of the buckets")
	attributes := flag.String("attributes", "", "folder for the objects' metadata, not below root")
	accounts := flag.String("accounts", "", "folder for accounts, which may be empty")
	flag.Parse()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // whatever ends it
		os.Exit(0)
	}()
	if err := serve(*root, *attributes, *accounts); err != nil {
		fmt.Fprintln(os.Stderr, "versitygw:", err)
		os.Exit(1)
	}
}

func serve(root, attributes, accounts string) error {
	// The library prints, too.
	stdout := os.Stdout
	os.Stdout = os.Stderr
	// Not in extended attributes, which a temporary folder may lack.
	store, err := meta.NewSideCar(attributes)
	if err != nil {
		return err
	}
	opts := posix.PosixOpts{SideCarDir: attributes, Concurrency: 64, CopyObjectThreshold: 1 << 30}
	opts.SetNewDirPerm(0o755)
	opts.SetNewFilePerm(0o644)
	backend, err := posix.New(root, store, opts)
	if err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), backend, &embedgw.Config{
		RootUserAccess:    os.Getenv("AWS_ACCESS_KEY_ID"),
		RootUserSecret:    os.Getenv("AWS_SECRET_ACCESS_KEY"),
		Region:            "us-east-1",
		Ports:             []string{address},
		MaxConnections:    256,
		MaxRequests:       128,
		MultipartMaxParts: 10000,
		Quiet:             true,
		IAMDir:            accounts, // without it an unknown access key is answered by 404 rather than 403
		S3Options:         []s3api.Option{s3api.WithOnListen(func() { _, _ = fmt.Fprintln(stdout, "http://"+address) })},
	})
}

// freeAddress returns an address that was free a moment ago; the server cannot be given a listener.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
