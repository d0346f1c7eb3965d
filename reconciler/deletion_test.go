package reconciler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
)

// These tests have no garbage collector: what it deletes is what has an owner reference.

// TestDeletion tells what becomes of the objects of a custom resource that is deleted: one in its own namespace, one without.
func TestDeletion(t *testing.T) {
	const orphan, remove = `deletion: "Orphan"`, `deletion: "Delete"`
	for name, c := range map[string]struct {
		policy, annotation string
		reason             string
		finalizer, stay    bool
	}{
		"default":              {"", "", "the garbage collector does it, but not for what has no namespace", true, false},
		"policy":               {orphan, "", "nothing has to wait for us", false, true},
		"annotation":           {"", "Orphan", "the annotation overrides the policy", false, true},
		"annotation to delete": {orphan, "Delete", "the annotation overrides the policy", true, false},
		"explicit":             {remove, "", "as by default", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBundles(t, anywhere, c.policy)
			cr := w.createBundle("one", oneConfigMap+"\nrole: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}")
			w.mustReconcile(cr)
			if c.annotation != "" {
				w.patch(cr, `{"metadata": {"annotations": {"`+ownership.DeletionPolicyAnnotation+`": "`+c.annotation+`"}}}`)
				w.mustReconcile(cr)
			}
			w.get(cr, "one")
			if hasFinalizer(cr) != c.finalizer {
				t.Errorf("%s: finalizers are %v", c.reason, cr.GetFinalizers())
			}
			if owned := len(w.configMap("a").OwnerReferences) > 0; owned == c.stay {
				t.Errorf("%s: the garbage collector collects the ConfigMap: %t", c.reason, owned)
			}
			if len(w.clusterRole(w.namespace).OwnerReferences) > 0 {
				t.Error("what has no namespace cannot be owned by what has one")
			}
			role := w.clusterRole(w.namespace)
			w.remove(cr)
			w.mustReconcile(cr)
			if !w.isGone(cr) {
				t.Error("the custom resource is still there")
			}
			role.SetGroupVersionKind(clusterRoles)
			if w.isGone(role) == c.stay {
				t.Errorf("%s: the ClusterRole is gone: %t", c.reason, !c.stay)
			}
		})
	}
}

// TestOrphanedAtTheLastMoment: the annotation comes with the deletion, while our finalizer is still there.
func TestOrphanedAtTheLastMoment(t *testing.T) {
	w := newBundles(t, anywhere)
	cr := w.createBundle("one", `{role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}}`)
	w.mustReconcile(cr)
	w.annotate(cr, ownership.DeletionPolicyAnnotation, "Orphan")
	w.remove(cr)
	w.mustReconcile(cr)
	if !w.isGone(cr) {
		t.Error("the custom resource is still there")
	}
	w.clusterRole(w.namespace)
}

// TestNoFinalizerWithoutNeed: where the garbage collector does it all, nothing has to wait for the operator.
func TestNoFinalizerWithoutNeed(t *testing.T) {
	for name, policy := range map[string]string{"namespace": "", "anywhere": anywhere} {
		t.Run(name, func(t *testing.T) {
			w := newBundles(t, policy)
			cr := w.createBundle("one", oneConfigMap)
			w.mustReconcile(cr)
			w.get(cr, "one")
			if hasFinalizer(cr) {
				t.Error("there is a finalizer")
			}
		})
	}
}

// TestAFinalizerThatIsTakenAway comes back: without it, objects would be left behind.
func TestAFinalizerThatIsTakenAway(t *testing.T) {
	w := newBundles(t, anywhere)
	cr := w.createBundle("one", `role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}`)
	w.mustReconcile(cr)
	w.release(cr)
	w.mustReconcile(cr)
	w.get(cr, "one")
	if !hasFinalizer(cr) {
		t.Error("the finalizer is gone")
	}
}

// TestCustomObjectsWithoutNamespace: that their kind has none is known to the API server alone.
func TestCustomObjectsWithoutNamespace(t *testing.T) {
	w := newBundles(t, anywhere)
	cr := w.createBundle("one", `widget: {apiVersion: test.example.com/v1, kind: Widget, metadata: {name: NAMESPACE}}`)
	w.mustReconcile(cr)
	w.get(cr, "one")
	widget := prototype(bundle.GroupVersion().WithKind("Widget"))
	widget.SetName(w.namespace)
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(widget), widget); err != nil {
		t.Fatal(err)
	}
	if owners := widget.GetOwnerReferences(); len(owners) > 0 || !hasFinalizer(cr) {
		t.Errorf("nobody would delete it: it has the owners %v, and the custom resource the finalizers %v", owners, cr.GetFinalizers())
	}
	w.wantInventory(cr, "Widget "+w.namespace)
	if e := ownFields(cr).Inventory[0]; e.Namespace != "" {
		t.Errorf("the inventory has it in namespace %s", e.Namespace)
	}
	l := &life{}
	w.restartWith(l)
	w.mustReconcile(cr)
	w.mustReconcile(cr)
	if l.writes > 0 {
		t.Errorf("reconciling again wrote %d times", l.writes)
	}
	w.remove(cr)
	w.mustReconcile(cr)
	if !w.isGone(widget) {
		t.Error("the Widget is still there")
	}
}

// TestDeletionNeedsNoKind: a custom resource goes although its kind is broken, or not served any more.
func TestDeletionNeedsNoKind(t *testing.T) {
	for name, spoil := range map[string]func(w *world, cr *unstructured.Unstructured){
		"spec invalid": func(w *world, cr *unstructured.Unstructured) { w.patch(cr, `{"spec": {"objects": 7}}`) },
		"chart broken": func(w *world, _ *unstructured.Unstructured) {
			dir := bundleFolder(w.t, anywhere)
			edit(w.t, dir, "charts/bundle/templates/objects.yaml", "toYaml .", `fail "broken"`)
			w.kinds.Library = w.openLibrary(dir)
		},
		"kind retired": func(w *world, _ *unstructured.Unstructured) {
			w.kinds.retire(w.kinds.Get(bundle.GroupKind()))
			w.kinds.Library = w.openLibrary("")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBundles(t, anywhere)
			cr := w.createBundle("one", `{role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}}`)
			w.mustReconcile(cr)
			spoil(w, cr)
			_ = w.reconcile(cr)
			role := w.clusterRole(w.namespace) // still there
			w.remove(cr)
			w.mustReconcile(cr)
			role.SetGroupVersionKind(clusterRoles)
			if !w.isGone(cr) || !w.isGone(role) {
				t.Errorf("gone: the custom resource %t, its object %t", w.isGone(cr), w.isGone(role))
			}
		})
	}
}

// TestABlockedDeletionIsNamed: the custom resource waits for an object that we delete and somebody holds.
func TestABlockedDeletionIsNamed(t *testing.T) {
	w := newBundles(t, anywhere)
	cr := w.createBundle("one", twoConfigMaps+`role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}`)
	w.mustReconcile(cr)
	role := w.clusterRole(w.namespace)
	w.hold(role)
	w.remove(cr)
	for range 2 {
		w.mustFail(cr)
		w.wantCondition(cr, conditionReconciling, "True DeletionBlocked ClusterRole "+w.namespace+": is being deleted and waits for its finalizers example.com/hold: whoever set them must remove them")
		w.wantInventory(cr, "ClusterRole "+w.namespace)
	}
	w.wantConfigMaps()
	w.release(role)
	w.mustReconcile(cr)
	if !w.isGone(cr) {
		t.Error("the custom resource is still there")
	}
}

// TestABlockedForegroundDeletionIsNamed: the garbage collector waits for an object that somebody holds.
func TestABlockedForegroundDeletionIsNamed(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", twoConfigMaps)
	w.mustReconcile(cr)
	b := w.configMap("b")
	w.hold(b)
	w.remove(cr, client.PropagationPolicy(metav1.DeletePropagationForeground))
	w.remove(w.configMap("a")) // the garbage collector's part
	w.remove(b)
	l := &life{}
	w.restartWith(l)
	w.mustReconcile(cr)
	w.wantCondition(cr, conditionReconciling, "True DeletionBlocked ConfigMap b: is being deleted and waits for its finalizers example.com/hold: whoever set them must remove them")
	w.mustReconcile(cr)
	if l.writes != 1 {
		t.Errorf("wrote %d times, want the status once", l.writes)
	}
	w.wantConfigMaps("b")
}

// TestDeletionTouchesNothingOfOthers: what the inventory names and is not proven ours stays.
func TestDeletionTouchesNothingOfOthers(t *testing.T) {
	w := newBundles(t, anywhere)
	w.createYAML(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	cr := w.createBundle("one", twoConfigMaps+`role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}`)
	w.mustFail(cr)
	w.patch(w.configMap("b"), `{"metadata": {"labels": {"`+"test.example.com/bundle"+`": null}}}`)
	role := w.clusterRole(w.namespace)
	w.patch(role, `{"metadata": {"annotations": {"`+ownership.OwnerUIDAnnotation+`": "other", "`+kind.OwnerAnnotation+`": "other/one"}}}`)
	w.remove(cr)
	w.mustReconcile(cr)
	if !w.isGone(cr) {
		t.Error("the custom resource is still there")
	}
	w.wantConfigMaps("a", "b")
	w.clusterRole(w.namespace)
}
