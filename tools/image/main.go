// Command image builds the operator's image without a container engine: a base image, the manager, and how to start it.
// The same input yields the same digest. See Dockerfile for the same image made with an engine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run builds the image that args describe, writes or pushes it, and prints tag@digest to stdout.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	var (
		c           contents
		tag, output string
		push        bool
	)
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&c.Binary, "binary", "", "The manager: a static executable for linux.")
	flags.StringVar(&c.Arch, "arch", runtime.GOARCH, "The image's architecture, by its Go name.")
	flags.StringVar(&c.Base, "base", "gcr.io/distroless/static:nonroot", "The base image; scratch is an empty one, which needs no registry.")
	flags.StringVar(&c.Version, "version", "", "The label org.opencontainers.image.version.")
	flags.StringVar(&c.Revision, "revision", "", "The label org.opencontainers.image.revision.")
	flags.StringVar(&tag, "tag", "controller:latest", "The image's name.")
	flags.StringVar(&output, "output", "", "Write the image to this file, for `docker load` and its like.")
	flags.BoolVar(&push, "push", false, "Push the image to the registry that its name begins with, with docker's credentials.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: there are flags only", flags.Arg(0))
	case c.Binary == "":
		return errors.New("the flag -binary is missing: it names the manager, such as dist/manager")
	case output == "" && !push:
		return errors.New("nowhere to put the image: give -output FILE.tar, -push, or both")
	}
	ref, err := name.NewTag(tag)
	if err != nil {
		return fmt.Errorf("reading -tag: %w", err)
	}
	if c.Created, err = created(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}

	img, err := build(ctx, c)
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("computing the digest: %w", err)
	}
	if output != "" {
		if err := write(output, ref, img); err != nil {
			return fmt.Errorf("writing the image: %w", err)
		}
	}
	if push {
		if err := remote.Write(ref, img, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("pushing %s: %w", ref, err)
		}
	}
	_, err = fmt.Fprintf(stdout, "%s@%s\n", ref, digest)
	return err
}

// created returns the time of SOURCE_DATE_EPOCH, which is in seconds since 1970; 1970 itself without it.
func created(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// write writes img to a file. No half-written one stays.
func write(path string, ref name.Reference, img v1.Image) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(tarball.Write(ref, img, f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
