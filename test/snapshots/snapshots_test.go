// Package snapshots shows what each kind renders: for every <case>.cr.yaml the objects in <case>.manifest.yaml, which are
// reviewed like code. `make generate` refreshes them.
package snapshots_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
	"github.com/example/memcached-operator/reconciler/render"
)

var update = flag.Bool("update", false, "write the snapshots instead of comparing with them")

func TestSnapshots(t *testing.T) {
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := filepath.Glob("*/*.cr.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("found no cases: %v", err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(file, ".cr.yaml"), func(t *testing.T) {
			got := manifest(t, kinds, file)
			if again := manifest(t, kinds, file); !bytes.Equal(got, again) {
				t.Errorf("renders differently the second time:\n%s", cmp.Diff(string(got), string(again)))
			}
			snapshot := strings.TrimSuffix(file, ".cr.yaml") + ".manifest.yaml"
			if *update {
				if err := os.WriteFile(snapshot, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(snapshot)
			if err != nil {
				t.Fatalf("%v: run make generate", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s is not what the kind renders: run make generate and review the change (-snapshot +rendered):\n%s", snapshot, diff)
			}
		})
	}
}

func manifest(t *testing.T, kinds []*kind.Kind, file string) []byte {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	objects, err := render.Decode(in)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%s: want one object, got %d, %v", file, len(objects), err)
	}
	cr := objects[0]
	k := kind.Find(kinds, cr.GroupVersionKind())
	if k == nil {
		t.Fatalf("%s: no kind %s", file, cr.GroupVersionKind())
	}
	m, _, err := plan.Make(k, cr, "v1.36.0")
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
