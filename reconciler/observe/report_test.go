package observe

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/schemas"
)

// everything has something of everything in it.
var everything = Observation{
	Objects: []Object{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "cache", Status: "Failed", Message: "no", Reason: "x", Serving: true}},
	Pods: []Pod{
		{Name: "cache-a", Phase: "Running", Ready: true, Restarts: 1 << 40, Workload: Workload{"Deployment", "cache"}},
		{Name: "cache-b", Phase: "Pending", Terminating: true, Reason: "Bad", Message: "\\(#metadata.name) \"quoted\" \"\"\" '''\n\ttab \x00 ☃ #\"raw\"#"},
	},
	Jobs:     []Job{{Name: "j", Owner: "c", Phase: "Failed", StartTime: "s", CompletionTime: "e", Reason: "r", Message: "m"}},
	CronJobs: []CronJob{{Name: "c", Suspended: true, Active: -1, LastScheduleTime: "l", LastSuccessfulTime: "s", NextScheduleTime: "n"}},
}

// mirror is a kind whose report is what it was given.
func mirror(t *testing.T) *kind.Kind {
	t.Helper()
	contract, err := schemas.FS.ReadFile("kind/kind.cue")
	if err != nil {
		t.Fatal(err)
	}
	types, err := schemas.FS.ReadFile("kind/types.cue")
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := kind.LoadAll(fstest.MapFS{
		"kind/kind.cue":  {Data: contract},
		"kind/types.cue": {Data: types},
		"mirror/mirror.cue": {Data: []byte(`package mirror
import "github.com/example/memcached-operator/schemas/kind"
kind.#Kind
names: {group: "example.com", version: "v1", kind: "Mirror", plural: "mirrors"}
chart: "mirror"
object: {...}
values: {#object: {...}}
samples: one: {}
report: {#metadata: kind.#Metadata, #observed: kind.#Observation, metadata: #metadata, observed: #observed}
`)},
	}, fstest.MapFS{"mirror/Chart.yaml": {Data: []byte("apiVersion: v2\nname: mirror\nversion: 1.0.0\n")}})
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

func TestAKindSeesTheObservationAsItIs(t *testing.T) {
	data, err := json.Marshal(everything)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := utiljson.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	got, err := Report(mirror(t), "default", "cache", everything)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"metadata": map[string]any{"namespace": "default", "name": "cache"}, "observed": want}, got); diff != "" {
		t.Errorf("the CUE form is the JSON form, whatever the strings (-want +got):\n%s", diff)
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&everything)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, converted); diff != "" {
		t.Errorf("so is the unstructured form (-want +got):\n%s", diff)
	}
}

func TestTheEmptyObservationIsReported(t *testing.T) {
	o, err := Observe(World{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Report(mirror(t), "", "cache", o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"namespace": "", "name": "cache"},
		"observed": map[string]any{"objects": []any{}, "pods": []any{}, "jobs": []any{}, "cronJobs": []any{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReportOfMemcached(t *testing.T) {
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	observed := Observation{Pods: []Pod{
		{Name: "cache-a", Phase: "Running", Ready: true},
		{Name: "cache-b", Phase: "Pending"},
		{Name: "cache-c", Phase: "Running", Ready: true, Terminating: true},
		{Name: "cache-d", Phase: "Failed", Reason: "Evicted"},
	}}
	got, err := Report(kind.Find(kinds, schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"}), "default", "cache", observed)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"nodes": []any{"cache-a", "cache-b"}, "replicas": int64(2), "readyReplicas": int64(1), "selector": "app=memcached,memcached_cr=cache"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the pods that are there or coming are counted (-want +got):\n%s", diff)
	}
}
