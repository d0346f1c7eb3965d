package plan_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
	"github.com/example/memcached-operator/reconciler/validate"
)

const kubeVersion = "v1.36.0"

// thing returns a kind that lets as much as possible through to its chart, which writes it into a ConfigMap.
func thing(t testing.TB) *kind.Kind {
	t.Helper()
	schemas := fstest.MapFS{"thing/thing.cue": {Data: []byte(`package thing

import "github.com/example/memcached-operator/schemas/kind"

kind.#Kind & {
	names: {group: "test.example.com", version: "v1", kind: "Thing", plural: "things"}
	chart:  "thing"
	object: #Thing
	values: {#object: #Thing, spec: #object.spec}
	report: {...}
	samples: x: {}
}
#Thing: kind.#Object & {
	apiVersion: "test.example.com/v1"
	kind:       "Thing"
	spec: {
		labels: {[string]: string}
		items: [...{name: =~"^[a-z0-9]*$", value: string, n: *1 | int}]
		any: _ | *{}
	}
}
`)}}
	charts := fstest.MapFS{
		"thing/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: thing\nversion: 0.1.0\n")},
		"thing/templates/x.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  labels:\n    {{- toYaml .Values.spec.labels | nindent 4 }}\n  all: {{ .Values.spec | toYaml | quote }}\n")},
	}
	kinds, err := kind.LoadAll(schemas, charts)
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

func embedded(t testing.TB) *kind.Kind {
	t.Helper()
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return kind.Find(kinds, schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"})
}

func resource(k *kind.Kind, spec any) *unstructured.Unstructured {
	cr := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	cr.SetGroupVersionKind(k.GVK())
	cr.SetName("x")
	cr.SetNamespace("default")
	return cr
}

func entries(n int, entry func(i int) any) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = entry(i)
	}
	return list
}

func fields(n int, value any) map[string]any {
	m := make(map[string]any, n)
	for i := range n {
		m[fmt.Sprintf("key-%d", i)] = value
	}
	return m
}

func nested(depth int) any {
	v := any("x")
	for range depth {
		v = map[string]any{"a": v}
	}
	return v
}

// TestHostileSpecs plans specs of an attacker, beyond the bounds and just within them, and logs what each costs.
func TestHostileSpecs(t *testing.T) {
	open, memcached := thing(t), embedded(t)
	const hog = "{{ range until 5000 }}{{ tpl .Values.x . }}{{ end }}\n---\nkind: Secret\n"
	for name, c := range map[string]struct {
		kind *kind.Kind
		spec any
		want string // of the InvalidError; a plan if empty
	}{
		"50,000 fields":        {open, map[string]any{"labels": fields(50000, "v")}, "spec.labels: has 50000 fields, 1000 are allowed"},
		"40,000 entries":       {open, map[string]any{"items": entries(40000, func(int) any { return "v" })}, "spec.items: has 40000 entries, 1000 are allowed"},
		"9,000 levels":         {open, map[string]any{"any": nested(9000)}, "spec.any" + strings.Repeat(".a", 31) + ".a: is nested deeper than 32 levels"},
		"1 MB string":          {open, map[string]any{"labels": map[string]any{"a": strings.Repeat("x", 1<<20)}}, "spec.labels.a: has 1048576 bytes, 65536 are allowed"},
		"1 MB name":            {open, map[string]any{"labels": map[string]any{strings.Repeat("x", 1<<20): "v"}}, "spec.labels: has a field whose name has 1048576 bytes, 512 are allowed: " + strings.Repeat("x", 60) + "…"},
		"many long strings":    {open, map[string]any{"labels": fields(10, strings.Repeat("x", 60000))}, "spec: has more than 262144 bytes of names and strings in all"},
		"lists of lists":       {open, map[string]any{"any": entries(900, func(int) any { return entries(900, func(int) any { return int64(1) }) })}, "spec: has more than 2000 fields and list entries in all"},
		"entry of a list":      {open, map[string]any{"any": []any{"a", strings.Repeat("x", 1<<17)}}, "spec.any[1]: has 131072 bytes, 65536 are allowed"},
		"no struct":            {open, "x", `spec: invalid value "x": must be of type struct`},
		"name with dots":       {open, map[string]any{"labels": map[string]any{"example.com/a": int64(3)}}, `spec.labels["example.com/a"]: invalid value 3: must be of type string`},
		"most fields":          {open, map[string]any{"labels": fields(990, "v")}, ""},
		"most open fields":     {open, map[string]any{"any": map[string]any{"a": fields(980, "v"), "b": fields(980, "v")}}, ""},
		"most entries":         {open, map[string]any{"any": entries(2, func(int) any { return entries(990, func(i int) any { return int64(i) }) })}, ""},
		"most structs":         {open, map[string]any{"items": entries(660, func(int) any { return map[string]any{"name": "n", "value": "v"} })}, ""},
		"most levels":          {open, map[string]any{"any": nested(31)}, ""},
		"longest strings":      {open, map[string]any{"labels": fields(3, strings.Repeat("\"{{\n", 16<<10))}, ""},
		"templates and YAML":   {open, map[string]any{"labels": map[string]any{"a": hog, hog[:50]: "\"}\n- &a [*a, *a]\n"}}, ""},
		"most pull secrets":    {memcached, map[string]any{"image": map[string]any{"pullSecrets": entries(16, func(i int) any { return map[string]any{"name": fmt.Sprint("registry-", i)} })}}, ""},
		"most unknown fields":  {memcached, fields(990, "v"), "spec.key-0: field not allowed; spec.key-1: field not allowed; spec.key-10: field not allowed; spec.key-100: field not allowed; spec.key-101: field not allowed; and 985 more"},
		"template in an image": {memcached, map[string]any{"image": map[string]any{"tag": "{{ tpl }}"}}, "spec.image.tag: invalid value \"{{ tpl }}\": must be an image tag, such as 1.6.45"},
	} {
		t.Run(name, func(t *testing.T) {
			cr := resource(c.kind, c.spec)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			m, _, err := plan.Make(c.kind, cr, kubeVersion)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 10
			t.Logf("%d KiB in %s", allocated, took)
			// Time is the machine's; what is allocated is not.
			if allocated > 64<<10 {
				t.Errorf("allocated %d KiB", allocated)
			}
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want == "" && len(m.Objects) == 1 && m.Objects[0].GetKind() != "ConfigMap":
				t.Errorf("rendered %s", kind.Describe(m.Objects[0]))
			case c.want != "" && (!validate.IsInvalid(err) || err.Error() != c.want):
				t.Errorf("want an InvalidError %q, got %v", c.want, err)
			}
		})
	}
}

// TestAUsersStringsStayData follows strings that look like templates and YAML into the rendered object.
func TestAUsersStringsStayData(t *testing.T) {
	k := thing(t)
	labels := map[string]any{"a": "{{ fail `no` }}", "b": "x\n---\nkind: Secret", "c": "*a", "d": "yes", "e": "!!binary x", "f: g": "#"}
	m, _, err := plan.Make(k, resource(k, map[string]any{"labels": labels}), kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedMap(m.Objects[0].Object, "data", "labels")
	if fmt.Sprint(got) != fmt.Sprint(labels) || len(m.Objects) != 1 {
		t.Errorf("want %v, got %v among %d objects", labels, got, len(m.Objects))
	}
}
