package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/memcached-operator/reconciler/validate"
)

func TestStepsTakeAPathApart(t *testing.T) {
	for path, want := range map[string][]string{
		"":                          nil,
		"spec":                      {"spec"},
		"spec.image.pullSecrets[0]": {"spec", "image", "pullSecrets", "0"},
		"spec.a[0][12].b":           {"spec", "a", "0", "12", "b"},
		"spec.h/i-j_k":              {"spec", "h/i-j_k"},
		"spec[0":                    {"spec", "0"}, // no such path is written, but it must end
	} {
		if diff := cmp.Diff(want, steps(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	for _, key := range []string{"app.kubernetes.io/name", "", `"]["`, `a\b`, "ü", "a b", "[0]", "."} {
		path := validate.FieldPath(validate.FieldPath("spec", key), "x")
		if diff := cmp.Diff([]string{"spec", key, "x"}, steps(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestFindKnowsLongNames(t *testing.T) {
	long := strings.Repeat("long", 50)
	root, err := parse("spec:\n  short: 1\n  " + long + ": 2\n")
	if err != nil {
		t.Fatal(err)
	}
	if n := find(root, validate.FieldPath("spec", long), true); n.Value != long {
		t.Errorf("got %q in line %d", n.Value, n.Line)
	}
}
