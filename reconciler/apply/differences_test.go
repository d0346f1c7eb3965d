package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
)

func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		reason     string
		want, have string
		found      []string
	}{
		"alike":            {"nothing to do", `{"a": {"b": 1}}`, `{"a": {"b": 1}}`, nil},
		"others' fields":   {"defaults and other managers' fields are theirs", `{"a": {"b": 1}}`, `{"a": {"b": 1, "c": 2}, "d": 3}`, nil},
		"changed":          {"a field that we set", `{"spec": {"replicas": 3}}`, `{"spec": {"replicas": 7}}`, []string{"spec.replicas: 7"}},
		"removed":          {"a field that we set", `{"labels": {"app": "x"}}`, `{"labels": {}}`, []string{"labels.app: <nil>"}},
		"struct removed":   {"with all its fields", `{"labels": {"app": "x"}}`, `{}`, []string{"labels: <nil>"}},
		"other type":       {"a struct where we set a list", `{"a": [1]}`, `{"a": {"b": 1}}`, []string{"a: map[b:1]"}},
		"empty and absent": {"the API server drops what is empty", `{"a": {}, "b": [], "c": null}`, `{}`, nil},
		"false and absent": {"false is a value: absent may mean true", `{"a": false}`, `{}`, []string{"a: <nil>"}},
		"named elements": {"are matched by name, in any order, others left to their makers",
			`{"c": [{"name": "a", "v": 1}, {"name": "b", "v": 2}]}`, `{"c": [{"name": "x"}, {"name": "b", "v": 2}, {"name": "a", "v": 1, "w": 1}]}`, nil},
		"named element changed": {"", `{"c": [{"name": "a", "v": 1}]}`, `{"c": [{"name": "a", "v": 2}]}`, []string{"c[a].v: 2"}},
		"named element removed": {"", `{"c": [{"name": "a"}]}`, `{"c": [{"name": "b"}]}`, []string{"c[a]: missing"}},
		"plain list":            {"is one value", `{"args": ["-m", "64"]}`, `{"args": ["-m", "64", "-v"]}`, []string{"args: [-m 64 -v]"}},
		"plain list element":    {"is named by its index", `{"args": ["-m", "64"]}`, `{"args": ["-m", "65"]}`, []string{"args[1]: 65"}},
		"quantities":            {"the API server writes them its way", `{"limits": {"cpu": "1000m", "memory": 1024}}`, `{"limits": {"cpu": "1", "memory": "1Ki"}}`, nil},
		"changed quantity":      {"", `{"limits": {"cpu": "1000m"}}`, `{"limits": {"cpu": "2"}}`, []string{"limits.cpu: 2"}},
		"label like a quantity": {"is a string", `{"labels": {"v": "1.0"}}`, `{"labels": {"v": "1"}}`, []string{"labels.v: 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.found, differences(object(t, c.want), object(t, c.have))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
