package generate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/memcached-operator/reconciler/generate"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/schema"
	"github.com/example/memcached-operator/reconciler/validate"
)

func embedded(t *testing.T) []*kind.Kind {
	t.Helper()
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// TestFilesAreCurrent fails when a schema or a chart was changed without `make generate`.
func TestFilesAreCurrent(t *testing.T) {
	files, err := generate.Files(embedded(t))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Errorf("%v: run make generate", err)
			continue
		}
		if diff := cmp.Diff(string(got), string(want)); diff != "" {
			t.Errorf("%s is not what follows from the kinds: run make generate (-present +generated):\n%s", path, diff)
		}
	}
}

// TestSamplesAreValid uncomments nothing: what a generated sample sets is the usual sample.
func TestSamplesAreValid(t *testing.T) {
	for _, k := range embedded(t) {
		text, err := generate.Sample(k)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := render.Decode(strings.NewReader(string(text)))
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s: want one object, got %d, %v", k.Names.Kind, len(objects), err)
		}
		cr := objects[0]
		if _, err := validate.Spec(k, cr.GetName(), cr.Object["spec"]); err != nil || cr.GroupVersionKind() != k.GVK() {
			t.Errorf("%s: %v\n%s", k.Names.Kind, err, text)
		}
		if diff := cmp.Diff(map[string]any(k.Samples[k.Listed[0].Name]), cr.Object["spec"]); diff != "" {
			t.Errorf("%s (-sample +file):\n%s", k.Names.Kind, diff)
		}
	}
}

// TestEveryFieldIsDocumented keeps the reference, kubectl explain and opctl explain from being silent.
func TestEveryFieldIsDocumented(t *testing.T) {
	var check func(path string, p *schema.Props)
	check = func(path string, p *schema.Props) {
		for name, field := range p.Properties {
			if field.Description == "" {
				t.Errorf("%s.%s has no comment", path, name)
			}
			check(path+"."+name, &field)
		}
		if p.Items != nil && p.Items.Schema != nil {
			check(path+"[]", p.Items.Schema)
		}
	}
	for _, k := range embedded(t) {
		root, err := schema.Of(k)
		if err != nil {
			t.Fatal(err)
		}
		spec, status := root.Properties["spec"], root.Properties["status"]
		check(k.Names.Kind+".spec", &spec)
		check(k.Names.Kind+".status", &status)
	}
}
