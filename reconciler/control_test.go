package reconciler

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/ownership"
)

// annotate sets an annotation of a custom resource, or removes it.
func (w *world) annotate(cr *unstructured.Unstructured, key, value string) {
	w.t.Helper()
	text := `"` + value + `"`
	if value == "" {
		text = "null"
	}
	w.patch(cr, `{"metadata": {"annotations": {"`+key+`": `+text+`}}}`)
}

// TestAPausedCustomResource is left alone, and says so once.
func TestAPausedCustomResource(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", twoConfigMaps)
	w.mustReconcile(cr)
	ready := w.condition(cr, conditionReady)
	w.takeEvents()

	w.annotate(cr, ownership.PausedAnnotation, "true")
	w.mustReconcile(cr)
	const message = "nothing is validated, applied or reported until the annotation memcached-operator.example.com/paused goes"
	w.wantCondition(cr, conditionPaused, "True PausedByAnnotation "+message)
	w.wantCondition(cr, conditionReady, ready)
	w.wantEvents("Normal PausedByAnnotation " + message)

	w.patch(w.configMap("a"), `{"data": {"k": "drift"}}`)
	w.annotate(cr, reconcileAnnotation, "now")
	a := w.configMap("a")
	l := &life{}
	w.restartWith(l)
	w.mustReconcile(cr)
	w.mustReconcile(cr)
	if l.writes > 0 || w.configMap("a").ResourceVersion != a.ResourceVersion {
		t.Errorf("wrote %d times", l.writes)
	}
	w.wantEvents()
	w.change(cr, "b: null")
	w.mustReconcile(cr)
	w.wantConfigMaps("a", "b")
	w.get(cr, "one")
	if observed := ownFields(cr).Observed; observed != 1 {
		t.Errorf("the status tells of generation %d, which nobody looked at", observed)
	}

	w.annotate(cr, ownership.PausedAnnotation, "")
	w.mustReconcile(cr)
	w.wantCondition(cr, conditionPaused, "")
	w.wantCondition(cr, conditionReady, ready)
	w.wantConfigMaps("a")
	if got := w.configMap("a").Data["k"]; got != "v" {
		t.Errorf("the drift is still there: %s", got)
	}
	w.get(cr, "one")
	if got := ownFields(cr); got.Handled != "now" || got.Observed != 2 {
		t.Errorf("handled %q, observed generation %d", got.Handled, got.Observed)
	}
}

// TestAPausedCustomResourceCanBeDeleted, or its namespace could not be.
func TestAPausedCustomResourceCanBeDeleted(t *testing.T) {
	w := newBundles(t, anywhere)
	cr := w.createBundle("one", `{role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}}`)
	w.mustReconcile(cr)
	role := w.clusterRole(w.namespace)
	role.SetGroupVersionKind(clusterRoles)
	w.annotate(cr, ownership.PausedAnnotation, "true")
	w.mustReconcile(cr)
	w.remove(cr)
	w.mustReconcile(cr)
	if !w.isGone(cr) || !w.isGone(role) {
		t.Errorf("gone: the custom resource %t, its object %t", w.isGone(cr), w.isGone(role))
	}
}

// TestReconcileNow drops all that is remembered, once for each value of the annotation.
func TestReconcileNow(t *testing.T) {
	w := newBundles(t, yieldReplicas)
	cr := w.createBundle("one", web)
	w.mustReconcile(cr)
	w.scaleAs("kube-controller-manager", 7)
	w.mustReconcile(cr)
	l := &life{}
	w.restartWith(l)
	w.mustReconcile(cr) // asks whose the field is

	for _, now := range []string{"1", "2"} {
		w.annotate(cr, reconcileAnnotation, now)
		l.writes = 0
		w.mustReconcile(cr)
		if l.writes != 2 {
			t.Errorf("%d writes, want the question whose the field is, and the status", l.writes)
		}
		w.get(cr, "one")
		if got := ownFields(cr).Handled; got != now {
			t.Errorf("handled %q, want %q", got, now)
		}
		l.writes = 0
		w.mustReconcile(cr)
		if l.writes > 0 {
			t.Errorf("reconciling again wrote %d times", l.writes)
		}
	}
}

// TestAStatusThatSomebodySpoils comes back as it was.
func TestAStatusThatSomebodySpoils(t *testing.T) {
	w := newBundles(t, anywhere)
	cr := w.createBundle("one", twoConfigMaps+`role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}`)
	w.mustReconcile(cr)
	want := w.snapshot(cr)
	for name, patch := range map[string]string{
		"all erased":             `{"status": null}`,
		"inventory erased":       `{"status": {"inventory": null}}`,
		"inventory shortened":    `{"status": {"inventory": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "NAMESPACE", "name": "b"}]}}`,
		"inventory doubled":      `{"status": {"inventory": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "NAMESPACE", "name": "b"}, {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "NAMESPACE", "name": "b"}, {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "NAMESPACE", "name": "b"}]}}`,
		"inventory invented":     `{"status": {"inventory": [{"apiVersion": "nowhere.example.com/v1", "kind": "Nothing", "name": "x"}]}}`,
		"inventory nonsense":     `{"status": {"inventory": "none"}}`,
		"conditions erased":      `{"status": {"conditions": null}}`,
		"condition lies":         `{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Lie", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}}`,
		"conditions nonsense":    `{"status": {"conditions": {"Ready": "yes"}}}`,
		"kind's field":           `{"status": {"objects": 77}}`,
		"a field of nobody's":    `{"status": {"more": {"a": 1}}}`,
		"generation of tomorrow": `{"status": {"observedGeneration": 77}}`,
		"handled":                `{"status": {"lastHandledReconcileAt": "never"}}`,
	} {
		for _, how := range []string{"running", "restarted"} {
			w.get(cr, "one")
			if err := w.client.Status().Patch(t.Context(), cr, mergePatch(strings.ReplaceAll(patch, "NAMESPACE", w.namespace))); err != nil {
				t.Fatal(err)
			}
			if how == "restarted" {
				w.restart(api.Admin())
			}
			w.mustReconcile(cr)
			if diff := cmp.Diff(want, w.snapshot(cr)); diff != "" {
				t.Errorf("%s, %s (-before +after):\n%s", name, how, diff)
			}
		}
	}
	w.change(cr, "b: null")
	w.mustReconcile(cr)
	w.wantConfigMaps("a")
}
