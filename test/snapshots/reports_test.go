package snapshots_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
)

// TestReports shows what each kind adds to the status: for <kind>/reports.yaml, each case's observation and its status.
func TestReports(t *testing.T) {
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*/reports.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no cases: %v", err)
	}
	for _, file := range files {
		var cases map[string]struct {
			Observed json.RawMessage `json:"observed"`
			Status   map[string]any  `json:"status"`
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(data, &cases); err != nil {
			t.Fatal(err)
		}
		for name, c := range cases {
			t.Run(filepath.Dir(file)+"/"+name, func(t *testing.T) {
				for _, k := range kinds {
					if strings.EqualFold(k.Names.Kind, filepath.Dir(file)) {
						if diff := cmp.Diff(c.Status, report(t, k, c.Observed)); diff != "" {
							t.Errorf("status (-want +got):\n%s", diff)
						}
						return
					}
				}
				t.Fatalf("there is no kind %s", filepath.Dir(file))
			})
		}
	}
}

// report returns the status of the custom resource "example" as JSON's types.
func report(t *testing.T, k *kind.Kind, observed json.RawMessage) map[string]any {
	t.Helper()
	status, err := kind.Evaluate("the report of "+k.Names.Kind, func() (map[string]any, error) {
		ctx := cuecontext.New()
		v := k.Report.
			FillPath(cue.MakePath(cue.Def("metadata")), ctx.Encode(map[string]any{"name": "example", "namespace": "default"})).
			FillPath(cue.MakePath(cue.Def("observed")), ctx.CompileBytes(observed))
		data, err := v.MarshalJSON()
		if err != nil {
			return nil, err
		}
		var status map[string]any
		err = json.Unmarshal(data, &status)
		return status, err
	})
	if err != nil {
		t.Fatal(cueerrors.Details(err, nil))
	}
	return status
}
