package render_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/charts"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/schemas"
)

var target = render.Target{Name: "cache", Namespace: "caches", KubeVersion: "v1.36.3"}

// definitions returns the schema of the Memcached kind.
func definitions(t testing.TB) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(schemas.FS, "memcached/*.cue")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(schemas.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	return files
}

// withTemplate returns the Memcached kind with the templates of its chart replaced by one.
func withTemplate(t testing.TB, template string) *kind.Kind {
	t.Helper()
	files := fstest.MapFS{"memcached/templates/x.yaml": {Data: []byte(template)}}
	for _, name := range []string{"memcached/Chart.yaml", "memcached/values.yaml"} {
		data, err := fs.ReadFile(charts.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	kinds, err := kind.LoadAll(definitions(t), files)
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

func TestObjectsComeInApplyOrderUnderOurLabels(t *testing.T) {
	k := withTemplate(t, `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec: {jobTemplate: {spec: {template: {metadata: {labels: {own: label}}, spec: {}}}}}
---
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
# only a comment
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: account}}
`)
	m, err := render.Render(k, nil, target)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	labels := map[string]any{kind.ManagedByLabel: kind.Manager, "cache.example.com/memcached": "cache"}
	for _, o := range m.Objects {
		names = append(names, kind.Describe(o))
		got, _, _ := unstructured.NestedMap(o.Object, "metadata", "labels")
		if diff := cmp.Diff(labels, got); diff != "" || o.GetNamespace() != "caches" {
			t.Errorf("%s in namespace %s, labels (-want +got):\n%s", kind.Describe(o), o.GetNamespace(), diff)
		}
	}
	if diff := cmp.Diff([]string{"ServiceAccount account", "ConfigMap a", "ConfigMap b", "CronJob nightly"}, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	labels["own"] = "label"
	got, _, _ := unstructured.NestedMap(m.Objects[3].Object, "spec", "jobTemplate", "spec", "template", "metadata", "labels")
	if diff := cmp.Diff(labels, got); diff != "" {
		t.Errorf("labels of the job's pods (-want +got):\n%s", diff)
	}
}

// TestPlacementAnywhere renders for a kind that may place objects anywhere, once of scope Namespaced and once of scope Cluster.
func TestPlacementAnywhere(t *testing.T) {
	k := withTemplate(t, `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: other}, spec: {template: {spec: {}}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: other}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}
`)
	k.Policies.Placement = kind.PlacementAnywhere
	for _, target := range []render.Target{target, {Name: "cache", KubeVersion: "v1.36.3"}} {
		m, err := render.Render(k, nil, target)
		if err != nil {
			t.Fatal(err)
		}
		owner := target.Namespace + "/cache"
		var got []string
		for _, o := range m.Objects {
			got = append(got, kind.Describe(o)+" in "+o.GetNamespace())
			if is := o.GetAnnotations()[kind.OwnerAnnotation]; is != owner {
				t.Errorf("%s says it is owned by %q, not %q", kind.Describe(o), is, owner)
			}
			pod, hasPods, _ := unstructured.NestedString(o.Object, "spec", "template", "metadata", "annotations", kind.OwnerAnnotation)
			if hasPods != (o.GetKind() == "Deployment") || hasPods && pod != owner {
				t.Errorf("the pods of %s say they are owned by %q, not %q", kind.Describe(o), pod, owner)
			}
		}
		want := []string{
			"CustomResourceDefinition a in ", "Namespace other in ", "ClusterRole a in ", "Deployment a in " + target.Namespace,
			"Deployment a in other", "ValidatingWebhookConfiguration a in ",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestWholeNumbersArePrintedAsWholeNumbers(t *testing.T) {
	k := withTemplate(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {count: "{{ .Values.count }}"}}`)
	m, err := render.Render(k, kind.Values{"count": int64(1000000)}, target)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(m.Objects[0].Object, "data", "count"); got != "1000000" {
		t.Errorf("1000000 became %s", got)
	}
}

func TestBrokenTemplatesSayWhatAndWhere(t *testing.T) {
	for name, c := range map[string]struct{ template, want string }{
		"fails":             {"a: b\nc: {{ fail \"no\" }}", "memcached/templates/x.yaml:2"},
		"does not parse":    {"a: {{ if }}", "memcached/templates/x.yaml:1"},
		"no YAML":           {"a: b: c", "reading what memcached/templates/x.yaml rendered: document 1"},
		"no object":         {"- a", "document 1 is not an object"},
		"no name":           {"{apiVersion: v1, kind: ConfigMap}", "has no apiVersion, kind or metadata.name"},
		"twice the same":    {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "ConfigMap a is rendered twice"},
		"key twice":         {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b, a: c}", `key "a" already set`},
		"other's namespace": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}", `ConfigMap a is in namespace "kube-system": the kind's policies.placement, Namespace, allows`},
		"no namespace":      {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}", "ClusterRole a belongs to no namespace: the kind's policies.placement, Namespace, allows"},
		"hook":              {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: pre-install}}}", "ConfigMap a is a Helm hook"},
		"a user's template": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: {{ .Values.nothing.here }}}}", "memcached/templates/x.yaml:1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render.Render(withTemplate(t, c.template), nil, target)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with %q, got %v", c.want, err)
			}
		})
	}
}

// TestAUsersStringIsData renders values that look like templates and like YAML.
func TestAUsersStringIsData(t *testing.T) {
	k := withTemplate(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: {{ .Values.x | quote }} }}`)
	for _, x := range []string{"{{ .Release.Name }}", "a: b", "\"}\n---\nkind: Secret", "# gone", "'", "\x00"} {
		m, err := render.Render(k, kind.Values{"x": x}, target)
		if err != nil {
			continue // refused is fine, too
		}
		got, _, _ := unstructured.NestedString(m.Objects[0].Object, "data", "x")
		if len(m.Objects) != 1 || got != x {
			t.Errorf("%q became %q among %d objects", x, got, len(m.Objects))
		}
	}
}

func BenchmarkRender(b *testing.B) {
	kinds, err := kind.Embedded()
	if err != nil {
		b.Fatal(err)
	}
	selected, err := kind.Select(kinds, []string{"Memcached"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := render.Render(selected[0], kind.Values{"size": int64(3)}, target); err != nil {
			b.Fatal(err)
		}
	}
}
