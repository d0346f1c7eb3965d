package reconciler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
)

const oneConfigMap = `a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: ours}}`

// TestWhatMayBeAdopted: an object is there before its custom resource, one, is.
func TestWhatMayBeAdopted(t *testing.T) {
	const (
		adoptUnowned = `adopt: "Unowned"`
		nobody       = "False Conflict ConfigMap a: exists already and belongs to nobody: delete or rename it, rename the custom resource, " +
			"or annotate the object with memcached-operator.example.com/adopt=<name of the custom resource>"
		adopt = ownership.AdoptAnnotation
		label = kind.ManagedByLabel + ": " + kind.Manager + ", test.example.com/bundle"
	)
	for name, c := range map[string]struct {
		reason, policy, metadata string
		conflict                 string // "" if it is adopted
	}{
		"unowned":    {"is not taken over silently", "", "", nobody},
		"policy":     {"allows it in general", adoptUnowned, "", ""},
		"annotation": {"allows it for one object", "", "annotations: {" + adopt + ": one}", ""},
		"annotated for another": {
			"is not for us", "", "annotations: {" + adopt + ": two}", nobody,
		},
		"controlled": {
			"is another controller's, whatever the policy and the annotation say", adoptUnowned,
			"annotations: {" + adopt + ": one}, ownerReferences: [{apiVersion: v1, kind: Other, name: boss, uid: x, controller: true}]",
			"False Conflict ConfigMap a: exists already and belongs to Other boss: delete or rename it, or rename the custom resource",
		},
		"another custom resource's": {
			"has no owner reference where the garbage collector could not follow it", adoptUnowned,
			"annotations: {" + ownership.OwnerUIDAnnotation + ": x, " + kind.OwnerAnnotation + ": there/two}",
			"False Conflict ConfigMap a: exists already and belongs to there/two: delete or rename it, or rename the custom resource",
		},
		"owned, not controlled":       {"an owner that is no controller does not mind", adoptUnowned, "ownerReferences: [{apiVersion: v1, kind: Other, name: x, uid: x}]", ""},
		"left by a namesake":          {"such as by kubectl delete --cascade=orphan: our label tells", "", "labels: {" + label + ": one}", ""},
		"left by a namesake, by name": {"by deletion policy Orphan", "", "labels: {" + label + ": one}, annotations: {" + ownership.OwnerUIDAnnotation + ": x}", ""},
		"left by another":             {"is not for us", "", "labels: {" + label + ": two}", nobody},
		"left by another kind":        {"is not for us", "", "labels: {" + kind.ManagedByLabel + ": " + kind.Manager + ", cache.example.com/memcached: one}", nobody},
		"a deleted namesake's": {
			"goes soon, by the garbage collector", adoptUnowned,
			"labels: {" + label + ": one}, ownerReferences: [{apiVersion: test.example.com/v1, kind: Bundle, name: one, uid: x, controller: true}]",
			"False Terminating ConfigMap a: is being deleted; it will be applied again once it is gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBundles(t, c.policy)
			before := w.createYAML(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ` + c.metadata + `}, data: {k: theirs, l: more}}`)
			cr := w.createBundle("one", oneConfigMap)
			if c.conflict != "" {
				for range 2 {
					w.mustFail(cr)
				}
				w.wantCondition(cr, conditionApplied, c.conflict)
				if w.configMap("a").ResourceVersion != before.GetResourceVersion() {
					t.Errorf("%s: it was touched", c.reason)
				}
				w.remove(cr)
				w.mustReconcile(cr)
				w.wantConfigMaps("a")
				return
			}
			w.mustReconcile(cr)
			w.wantCondition(cr, conditionApplied, "True ObjectsApplied")
			w.wantEvents("Normal Applied adopted ConfigMap a; took data.k of ConfigMap a back from somebody")
			a := w.configMap("a")
			if !metav1.IsControlledBy(a, cr) || a.Labels["test.example.com/bundle"] != "one" || a.Data["k"] != "ours" || a.Data["l"] != "more" {
				t.Errorf("%s: it is %v", c.reason, a)
			}
			w.change(cr, "a: null")
			w.mustReconcile(cr)
			w.wantConfigMaps() // it is like any other of ours
		})
	}
}

// TestOrphansAreTakenUp: a custom resource goes and leaves its objects, and comes back.
func TestOrphansAreTakenUp(t *testing.T) {
	for name, leave := range map[string]struct {
		policy, annotation string
		ownersAreRemoved   bool // by the garbage collector, on kubectl delete --cascade=orphan
	}{
		"policy":     {policy: `deletion: "Orphan"`},
		"annotation": {annotation: "Orphan"},
		"kubectl":    {ownersAreRemoved: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBundles(t, leave.policy)
			cr := w.createBundle("one", oneConfigMap)
			w.mustReconcile(cr)
			if leave.annotation != "" {
				w.patch(cr, `{"metadata": {"annotations": {"`+ownership.DeletionPolicyAnnotation+`": "`+leave.annotation+`"}}}`)
				w.mustReconcile(cr)
			}
			if leave.ownersAreRemoved {
				w.patch(w.configMap("a"), `{"metadata": {"ownerReferences": null}}`)
			}
			w.remove(cr)
			w.mustReconcile(cr)
			a := w.configMap("a")
			if len(a.OwnerReferences) > 0 {
				t.Fatalf("the garbage collector deletes what has the owners %v", a.OwnerReferences)
			}
			w.takeEvents()
			again := w.createBundle("one", oneConfigMap)
			w.mustReconcile(again)
			w.wantCondition(again, conditionApplied, "True ObjectsApplied")
			w.wantEvents("Normal Applied adopted ConfigMap a")
			after := w.configMap("a")
			owner := types.UID(after.Annotations[ownership.OwnerUIDAnnotation])
			if owners := ownersOf(after); len(owners) > 0 {
				owner = owners[0]
			}
			if after.UID != a.UID || owner != again.GetUID() {
				t.Errorf("the ConfigMap belongs to %s, the Bundle is %s", owner, again.GetUID())
			}
		})
	}
}

// TestALeftoverWaits: the objects of a deleted namesake go, and are made anew.
func TestALeftoverWaits(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", oneConfigMap)
	w.mustReconcile(cr)
	w.remove(cr) // the garbage collector has not come yet
	again := w.createBundle("one", oneConfigMap)
	w.mustFail(again)
	w.wantCondition(again, conditionApplied, "False Terminating ConfigMap a: is being deleted; it will be applied again once it is gone")
	w.remove(w.configMap("a"))
	w.mustReconcile(again)
	if a := w.configMap("a"); !metav1.IsControlledBy(a, again) {
		t.Errorf("the ConfigMap has the owners %v", a.OwnerReferences)
	}
}
