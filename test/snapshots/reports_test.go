package snapshots_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
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
			Observed observe.Observation `json:"observed"`
			Status   map[string]any      `json:"status"`
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
func report(t *testing.T, k *kind.Kind, observed observe.Observation) map[string]any {
	t.Helper()
	status, err := observe.Report(k, "default", "example", observed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
