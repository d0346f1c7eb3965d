package reconciler

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// installKind installs a kind of its own for this test, and returns it once its objects can be created.
func (w *world) installKind(name string) schema.GroupVersionKind {
	w.t.Helper()
	w.createYAML(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.late.example.com}
spec:
  group: late.example.com
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]ss, singular: %[1]s}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, name, title(name)))
	gvk := schema.GroupVersionKind{Group: "late.example.com", Version: "v1", Kind: title(name)}
	for w.t.Context().Err() == nil {
		probe := prototype(gvk)
		probe.SetNamespace(w.namespace)
		probe.SetName("probe")
		if w.client.Create(w.t.Context(), probe) == nil {
			w.remove(probe)
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return gvk
}

// TestAKindThatIsNotInstalled yet: the rest is applied, and it follows once it can.
func TestAKindThatIsNotInstalled(t *testing.T) {
	for name, c := range map[string]struct {
		policy, applied string
		isOptional      bool
	}{
		"needed": {
			"", "False KindNotInstalled Needed x: the cluster does not know late.example.com/v1: it will be applied once that is installed", false,
		},
		"optional": {
			`optional: ["Optional.late.example.com"]`, "True ObjectsApplied Optional x (late.example.com/v1) is left out, as the cluster does not know its kind", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBundles(t, c.policy)
			cr := w.createBundle("one", twoConfigMaps)
			w.mustReconcile(cr)
			w.change(cr, fmt.Sprintf(`
b: null
c: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
x: {apiVersion: late.example.com/v1, kind: %s, metadata: {name: x}}
`, title(name)))
			for range 2 {
				if c.isOptional {
					w.mustReconcile(cr)
				} else {
					w.mustFail(cr)
				}
				w.wantCondition(cr, conditionApplied, c.applied)
			}
			l := &life{}
			w.restartWith(l)
			_ = w.reconcile(cr)
			_ = w.reconcile(cr)
			if l.writes > 0 {
				t.Errorf("reconciling again wrote %d times", l.writes)
			}
			if c.isOptional {
				w.wantConfigMaps("a", "c")
				w.wantInventory(cr, "ConfigMap a", "ConfigMap c")
			} else {
				w.wantConfigMaps("a", "b", "c") // nothing is pruned while something is missing
				w.wantInventory(cr, "ConfigMap a", "ConfigMap b", "ConfigMap c")
			}

			late := w.installKind(name)
			w.applier.Forget(bundle.GroupKind(), requestFor(cr).NamespacedName) // as the watches do
			w.mustReconcile(cr)
			w.wantCondition(cr, conditionApplied, "True ObjectsApplied")
			w.wantConfigMaps("a", "c")
			w.wantInventory(cr, "ConfigMap a", "ConfigMap c", title(name)+" x")
			x := prototype(late)
			w.get(x, "x")
			if len(ownersOf(x)) != 1 {
				t.Error("it has no owner")
			}
			w.change(cr, "x: null")
			w.mustReconcile(cr)
			if !w.isGone(x) {
				t.Error("it is still there")
			}
		})
	}
}
