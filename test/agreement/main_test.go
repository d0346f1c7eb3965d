package agreement_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/test/cluster"
)

var (
	specs = flag.Int("specs", defaultSpecs, "how many specs to make of each kind")
	seed  = flag.Uint64("seed", 1, "the specs to make")
)

// These are the same for all tests, which only read them.
var (
	env   *cluster.Cluster
	kinds []*kind.Kind
	opctl string // the program
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const garbage = 400

func run(m *testing.M) (code int, err error) {
	if kinds, err = kind.Embedded(); err != nil {
		return 0, err
	}
	// Memory for time, here and in the API server: both make much garbage and keep little.
	debug.SetGCPercent(garbage)
	if err := os.Setenv("GOGC", strconv.Itoa(garbage)); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "agreement-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	opctl = filepath.Join(dir, "opctl")
	if out, err := exec.Command("go", "build", "-o", opctl, "../../cmd/opctl").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building opctl: %w\n%s", err, out)
	}
	env, err = cluster.Start(context.Background(), cluster.Options{CRDs: []string{"../../config/crd/bases"}, Progress: os.Stderr})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	return m.Run(), nil
}
