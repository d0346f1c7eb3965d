package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example/memcached-operator/test/cluster"
)

// marker is the file that tells a sandbox's folder from any other, so that no other is ever emptied. While a sandbox runs it
// holds a lock on it, which ends with the process, however that ends.
const marker = ".memcached-operator-sandbox"

// folder is the folder of a running sandbox.
type folder struct {
	dir  string
	lock *os.File
}

// openFolder creates the folder, or empties the one that an earlier sandbox left. It refuses one in which a sandbox runs,
// and one that holds anything else.
func openFolder(dir string) (*folder, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{dir: abs}
	entries, err := os.ReadDir(abs)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("opening the sandbox's folder: %w", err)
	}
	if _, err := os.Stat(f.path(marker)); len(entries) > 0 && err != nil {
		return nil, fmt.Errorf("%s holds other files than a sandbox's: choose another folder, as in make sandbox SANDBOX_DIR=.sandbox-2", dir)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("creating the sandbox's folder: %w", err)
	}
	if f.lock, err = os.OpenFile(f.path(marker), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("locking the sandbox's folder: %w", err)
	}
	if err := unix.Flock(int(f.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("a sandbox runs in %s already: end it, or choose another folder, as in make sandbox SANDBOX_DIR=.sandbox-2", dir)
	}
	for _, e := range entries {
		if e.Name() == marker {
			continue
		}
		if err := os.RemoveAll(f.path(e.Name())); err != nil {
			return nil, fmt.Errorf("emptying the sandbox's folder: %w", err)
		}
	}
	return f, nil
}

func (f *folder) close() { _ = f.lock.Close() }

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// publish puts kubeconfig and bin/kubectl where the README says they are.
func (f *folder) publish(c *cluster.Cluster) error {
	if err := os.Mkdir(f.path("bin"), 0o755); err != nil {
		return fmt.Errorf("creating bin: %w", err)
	}
	if err := os.Symlink(c.KubectlPath(), f.path("bin/kubectl")); err != nil {
		return fmt.Errorf("linking kubectl: %w", err)
	}
	if err := os.Symlink(c.KubeconfigPath(), f.path("kubeconfig")); err != nil {
		return fmt.Errorf("linking the kubeconfig: %w", err)
	}
	return nil
}

// whatNext returns the commands to try next, as typed from the folder where the sandbox was started.
func (f *folder) whatNext() string {
	dir := f.dir
	if here, err := os.Getwd(); err == nil {
		if below, err := filepath.Rel(here, f.dir); err == nil && filepath.IsLocal(below) {
			dir = "$PWD/" + below
		}
	}
	return fmt.Sprintf(`
Try next, in another terminal (Ctrl-C here ends the sandbox):

  export KUBECONFIG=%[1]s/kubeconfig PATH=%[1]s/bin:$PATH
  kubectl scale memcached/memcached-sample --replicas=5

`, dir)
}

// steps prints what is done, each with the time that it took.
type steps struct {
	out   *os.File
	start time.Time
}

func newSteps(out *os.File) *steps { return &steps{out: out, start: time.Now()} }

func (s *steps) done(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, "%5.1fs  %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
	s.start = time.Now()
}
