package agreement_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/generate"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/test/cluster"
)

var (
	specs = flag.Int("specs", 10000, "how many specs to make of each kind")
	seed  = flag.Uint64("seed", 1, "the specs to make")
)

// These are the same for all tests, which only read them.
var (
	env *cluster.Cluster
	// kinds are the embedded ones, the one in docs/kinds.md, and that in testdata, which has what the others do not.
	kinds    []*kind.Kind
	embedded []*kind.Kind
	kindsDir string // where the kinds are that are not embedded
	opctl    string // the program
)

// definitions is the folder of the embedded kinds' CustomResourceDefinitions.
const definitions = "../../config/crd/bases"

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// garbage is memory for time, here and in the API server: both make much garbage and keep little.
const garbage = 400

func run(m *testing.M) (code int, err error) {
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
	kindsDir = filepath.Join(dir, "kinds")
	others, err := loadKinds()
	if err != nil {
		return 0, err
	}
	crds := []string{definitions}
	for _, k := range others {
		file := filepath.Join(dir, k.Names.Plural+".yaml")
		if err := writeDefinition(file, k); err != nil {
			return 0, err
		}
		crds = append(crds, file)
	}
	env, err = cluster.Start(context.Background(), cluster.Options{CRDs: crds, Progress: os.Stderr})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	return m.Run(), nil
}

// docsFile finds a file in docs/kinds.md: its path in backquotes, and a block of code.
var docsFile = regexp.MustCompile("(?ms)`((?:schemas|charts)/[a-zA-Z/.-]+)`:\n\n```[a-z]+\n(.*?)^```$")

// loadKinds fills kindsDir, and returns its kinds.
func loadKinds() (others []*kind.Kind, err error) {
	if embedded, err = kind.Embedded(); err != nil {
		return nil, err
	}
	if err := os.CopyFS(kindsDir, os.DirFS("testdata/kinds")); err != nil {
		return nil, err
	}
	docs, err := os.ReadFile("../../docs/kinds.md")
	if err != nil {
		return nil, err
	}
	for _, found := range docsFile.FindAllStringSubmatch(string(docs), -1) {
		path := filepath.Join(kindsDir, found[1])
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(found[2]), 0o600); err != nil {
			return nil, err
		}
	}
	loaded, err := kind.LoadFolder(os.DirFS(kindsDir))
	if err != nil {
		return nil, err
	}
	for _, l := range loaded {
		if l.Err != nil {
			return nil, l.Err
		}
		others = append(others, l.Kind)
	}
	kinds = slices.Concat(embedded, others)
	return others, nil
}

func writeDefinition(file string, k *kind.Kind) error {
	definition, err := generate.CRD(k)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(definition)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
