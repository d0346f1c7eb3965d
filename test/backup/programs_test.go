package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// The one account of the server.
const accessKey, secretKey = "backup", "only-for-tests"

// programs returns the folder that holds rclone and versitygw: ../../.cache/backup/<key>, whose key stands for their sources
// and versions, the Go release and the platform. They are compiled if it is not complete, which takes about two CPU-minutes
// with an empty Go build cache.
var programs = sync.OnceValues(func() (string, error) {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, runtime.Version(), runtime.GOOS, runtime.GOARCH) // a hash takes everything
	err := filepath.WalkDir("binaries", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		_, _ = fmt.Fprintf(hash, "%s %d %s", path, len(content), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the sources of rclone and versitygw: %w", err)
	}
	dir, err := filepath.Abs(fmt.Sprintf("../../.cache/backup/%x", hash.Sum(nil)[:6]))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(dir, ".lock")).Lock() // other test runs wait, rather than compile as well
	if err != nil {
		return "", err
	}
	defer unlock()
	complete := filepath.Join(dir, ".complete")
	if _, err := os.Stat(complete); err == nil {
		return dir, nil
	}
	fmt.Fprintln(os.Stderr, "Building rclone and versitygw: first time only, about 2 CPU-minutes")
	cmd := exec.Command("go", "build", "-C", "binaries", "-trimpath", "-ldflags", "-s -w", "-o", dir+string(filepath.Separator), "./rclone", "./versitygw")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building rclone and versitygw: %w:\n%s", err, out)
	}
	return dir, os.WriteFile(complete, nil, 0o644)
})

// server is a running S3 server. Its buckets are the folders below root.
type server struct {
	url, root string
}

// startServer starts an S3 server on the loopback interface. It ends with the test, or with the test's process: its standard
// input closes then.
func startServer(t *testing.T) *server {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{root: t.TempDir()}
	cmd := exec.Command(filepath.Join(dir, "versitygw"), "-root", s.root, "-attributes", t.TempDir(), "-accounts", t.TempDir())
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey)
	var log bytes.Buffer
	cmd.Stderr = &log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	t.Cleanup(func() {
		_ = stdin.Close() // it may have ended by itself, which Wait tells
		if err := cmd.Wait(); err != nil {
			t.Errorf("versitygw: %v:\n%s", err, log.String())
		}
	})
	if err != nil {
		t.Fatal(errors.Join(errors.New("versitygw printed no address"), err))
	}
	s.url = strings.TrimSpace(url)
	return s
}
