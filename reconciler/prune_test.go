package reconciler

import (
	"strings"
	"testing"

	"github.com/example/memcached-operator/reconciler/kind"
)

const twoConfigMaps = `
a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}
b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {k: v}}
`

func TestWhatIsNoLongerRenderedIsDeleted(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", twoConfigMaps)
	w.mustReconcile(cr)
	w.wantInventory(cr, "ConfigMap a", "ConfigMap b")
	a := w.configMap("a")
	w.wantEvents("Normal Applied created ConfigMap a, ConfigMap b")

	w.change(cr, "b: null")
	w.mustReconcile(cr)
	w.wantConfigMaps("a")
	w.wantInventory(cr, "ConfigMap a")
	w.wantEvents("Normal Pruned deleted ConfigMap b")
	if w.configMap("a").ResourceVersion != a.ResourceVersion {
		t.Error("the other object was touched")
	}
}

// TestANewChartPrunes: the same spec, and a new version of the kind that no longer renders an object.
func TestANewChartPrunes(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", twoConfigMaps)
	w.mustReconcile(cr)

	dir := bundleFolder(t)
	edit(t, dir, "charts/bundle/templates/objects.yaml", "range .Values.objects", `range omit .Values.objects "b"`)
	w.kinds.Library = w.openLibrary(dir)
	w.mustReconcile(cr)
	w.wantConfigMaps("a")
	w.wantInventory(cr, "ConfigMap a")
}

// TestNothingIsPrunedWhileAnApplyFails: a mistake in one object must not take away another.
func TestNothingIsPrunedWhileAnApplyFails(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", twoConfigMaps)
	w.mustReconcile(cr)
	w.change(cr, `{b: null, c: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {"no key": v}}}`)
	w.mustFail(cr)
	if got := w.condition(cr, conditionApplied); !strings.HasPrefix(got, "False Invalid ConfigMap c: ") {
		t.Errorf("Applied is %s", got)
	}
	w.wantConfigMaps("a", "b")
	w.wantInventory(cr, "ConfigMap a", "ConfigMap b", "ConfigMap c")

	w.change(cr, "{c: {data: null}}")
	w.mustReconcile(cr)
	w.wantConfigMaps("a", "c")
	w.wantInventory(cr, "ConfigMap a", "ConfigMap c")
}

// TestAHeldObjectStaysInTheInventory until whoever holds it lets it go.
func TestAHeldObjectStaysInTheInventory(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", twoConfigMaps)
	w.mustReconcile(cr)
	b := w.configMap("b")
	w.hold(b)

	w.change(cr, "b: null")
	for range 2 {
		w.mustFail(cr)
		w.wantCondition(cr, conditionApplied, "False PruneBlocked ConfigMap b: is being deleted and waits for its finalizers example.com/hold: whoever set them must remove them")
		w.wantInventory(cr, "ConfigMap a", "ConfigMap b")
	}
	w.wantEvents("Normal Applied created ConfigMap a, ConfigMap b",
		"Normal Pruned deleted ConfigMap b",
		"Warning PruneBlocked ConfigMap b: is being deleted and waits for its finalizers example.com/hold: whoever set them must remove them")
	w.release(b)
	w.mustReconcile(cr)
	w.wantInventory(cr, "ConfigMap a")
	w.wantCondition(cr, conditionApplied, "True ObjectsApplied")
}

// TestWantedAgainWhileItGoes: an object that is on its way out when the spec wants it back is made anew once it is gone.
func TestWantedAgainWhileItGoes(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", twoConfigMaps)
	w.mustReconcile(cr)
	b := w.configMap("b")
	w.hold(b)
	w.change(cr, "b: null")
	w.mustFail(cr)
	w.change(cr, twoConfigMaps)
	w.mustFail(cr)
	w.wantCondition(cr, conditionApplied, "False Terminating ConfigMap b: is being deleted; it will be applied again once it is gone")
	w.release(b)
	w.mustReconcile(cr)
	if again := w.configMap("b"); again.UID == b.UID || again.DeletionTimestamp != nil {
		t.Error("ConfigMap b is not a new one")
	}
	w.wantInventory(cr, "ConfigMap a", "ConfigMap b")
}

// TestWhatIsNotProvenOursIsNotDeleted: label and UID must both say that an object is the custom resource's.
func TestWhatIsNotProvenOursIsNotDeleted(t *testing.T) {
	w := newBundles(t)
	for name, patch := range map[string]string{
		"label-gone":     `{"metadata": {"labels": {"test.example.com/bundle": null}}}`,
		"label-anothers": `{"metadata": {"labels": {"test.example.com/bundle": "other"}}}`,
		"owner-gone":     `{"metadata": {"ownerReferences": null}}`,
		"owner-anothers": `{"metadata": {"ownerReferences": [{"apiVersion": "test.example.com/v1", "kind": "Bundle", "name": "` + "owner-anothers" + `", "uid": "other", "controller": true}]}}`,
	} {
		cr := w.createBundle(name, `{o: {apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`}}}`)
		w.mustReconcile(cr)
		w.patch(w.configMap(name), patch)
		w.change(cr, "o: null")
		w.mustReconcile(cr)
		w.configMap(name) // is still there
		w.wantInventory(cr)
	}
	w.wantConfigMaps("label-anothers", "label-gone", "owner-anothers", "owner-gone")
}

// TestAnotherObjectOfTheSameNameIsNotDeleted: ours was deleted, and somebody made another.
func TestAnotherObjectOfTheSameNameIsNotDeleted(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", twoConfigMaps)
	w.mustReconcile(cr)
	w.remove(w.configMap("b"))
	theirs := w.createYAML(`{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}`)
	w.change(cr, "b: null")
	w.mustReconcile(cr)
	w.wantInventory(cr, "ConfigMap a")
	if w.configMap("b").UID != theirs.GetUID() {
		t.Error("another's object was deleted")
	}
}

// TestAnInventoryCannotBeTurnedAgainstOthers: whoever may write the status cannot have the operator delete what is not the
// custom resource's.
func TestAnInventoryCannotBeTurnedAgainstOthers(t *testing.T) {
	w := newBundles(t, anywhere)
	victim := w.createYAML(`{apiVersion: v1, kind: Secret, metadata: {name: victim}}`)
	first := w.createBundle("first", `{a: {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}}`)
	w.mustReconcile(first)
	cr := w.createBundle("one", twoConfigMaps)
	w.mustReconcile(cr)
	cr = cr.DeepCopy()
	if err := w.client.Status().Patch(t.Context(), cr, mergePatch(`{"status": {"inventory": [
		{"apiVersion": "v1", "kind": "Secret", "namespace": "`+w.namespace+`", "name": "victim"},
		{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "`+w.namespace+`", "name": "first"}]}}`)); err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(cr)
	w.wantInventory(cr, "ConfigMap a", "ConfigMap b")
	w.wantConfigMaps("a", "b", "first")
	if w.isGone(victim) {
		t.Error("the Secret was deleted")
	}
}

// TestTheFirstKeepsAName that two custom resources render.
func TestTheFirstKeepsAName(t *testing.T) {
	w := newBundles(t)
	first, second := w.createBundle("first", twoConfigMaps), w.createBundle("second", twoConfigMaps)
	w.mustReconcile(first)
	a := w.configMap("a")
	w.mustFail(second)
	w.wantCondition(second, conditionApplied, "False Conflict ConfigMap a: exists already and belongs to Bundle first: delete or rename it, or rename the custom resource; "+
		"ConfigMap b: exists already and belongs to Bundle first: delete or rename it, or rename the custom resource")

	w.change(second, "b: null")
	w.mustFail(second)
	w.change(second, "a: null")
	w.mustReconcile(second)
	w.wantInventory(second)
	w.change(second, twoConfigMaps)
	w.mustFail(second)
	w.remove(second)
	w.mustReconcile(second)
	w.wantConfigMaps("a", "b")
	w.mustReconcile(first)
	if got := w.configMap("a"); got.ResourceVersion != a.ResourceVersion {
		t.Error("the first one's object was touched")
	}
}

// TestNamesakesInTwoNamespaces: what is in no namespace stays with the first, though labels cannot tell the two apart.
func TestNamesakesInTwoNamespaces(t *testing.T) {
	w := newBundles(t, anywhere)
	const role = `{role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}}`
	first := w.createBundle("same", role)
	w.mustReconcile(first)

	namespace := w.namespace
	w.createYAML(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + namespace + `-2}}`)
	second := prototype(bundle)
	second.SetNamespace(namespace + "-2")
	second.SetName("same")
	second.Object["spec"] = w.parse(`{objects: ` + strings.ReplaceAll(role, "NAMESPACE", namespace) + `}`)
	w.create(second)
	w.mustFail(second)
	w.mustReconcile(first)
	w.wantEvents("Normal Applied created ClusterRole "+namespace,
		"Warning Conflict ClusterRole "+namespace+": exists already and belongs to "+namespace+"/same: delete or rename it, or rename the custom resource")

	w.remove(second)
	w.mustReconcile(second)
	if role := w.clusterRole(namespace); role.Annotations[kind.OwnerAnnotation] != namespace+"/same" {
		t.Errorf("the ClusterRole belongs to %s", role.Annotations[kind.OwnerAnnotation])
	}
	shared := w.clusterRole(namespace)
	shared.SetGroupVersionKind(clusterRoles)
	w.remove(first)
	w.mustReconcile(first)
	if !w.isGone(first) || !w.isGone(shared) {
		t.Error("the first one's ClusterRole is still there")
	}
}

// TestObjectsOfManyKindsAndNamespaces go when they are no longer rendered, wherever they are.
func TestObjectsOfManyKindsAndNamespaces(t *testing.T) {
	w := newBundles(t, anywhere)
	w.createYAML(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + w.namespace + `-2}}`)
	cr := w.createBundle("one", `
a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
elsewhere: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NAMESPACE-2}}
service: {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}
role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NAMESPACE}}
`)
	w.mustReconcile(cr)
	w.wantInventory(cr, "ConfigMap a", "ConfigMap a", "Service a", "ClusterRole "+w.namespace)
	if !hasFinalizer(cr) {
		t.Error("want a finalizer: the garbage collector collects nothing across namespaces")
	}
	w.change(cr, "elsewhere: null")
	w.mustReconcile(cr)
	w.wantInventory(cr, "ConfigMap a", "Service a", "ClusterRole "+w.namespace)
	w.wantConfigMaps("a")
	w.change(cr, "{service: null, role: null}")
	w.mustReconcile(cr)
	w.wantInventory(cr, "ConfigMap a")
	w.wantEvents("Normal Applied created ClusterRole "+w.namespace+", ConfigMap a, ConfigMap a, Service a",
		"Normal Pruned deleted ConfigMap a", "Normal Pruned deleted ClusterRole "+w.namespace+", Service a")
	if hasFinalizer(cr) {
		t.Error("the finalizer is still there")
	}
}
