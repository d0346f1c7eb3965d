package reconciler

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const web = `
web:
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web:1}]}}
`

// What the policies say about the replicas of a Deployment.
const (
	yieldReplicas     = `fields: [{kind: "Deployment.apps", path: "spec.replicas", conflict: "Yield"}]`
	reportReplicas    = `fields: [{kind: "Deployment.apps", path: "spec.replicas", conflict: "Report"}]`
	yieldToAutoscaler = `fields: [{kind: "Deployment.apps", path: "spec.replicas", conflict: "Yield", managers: ["kube-controller-manager"]}]`
)

// scaleAs scales the Deployment web under another manager's name, as a HorizontalPodAutoscaler or kubectl scale does.
func (w *world) scaleAs(manager string, replicas int) {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.get(d, "web")
	patch := mergePatch(fmt.Sprintf(`{"spec": {"replicas": %d}}`, replicas))
	if err := w.client.SubResource("scale").Patch(w.t.Context(), d, patch, client.FieldOwner(manager)); err != nil {
		w.t.Fatal(err)
	}
}

// conflicts returns what the metrics tell of Bundles: how many fields were forced, yielded or reported, and how many objects had
// drifted.
func (w *world) conflicts() map[string]int {
	w.t.Helper()
	k := w.metrics.of(bundle.GroupKind())
	counts := map[string]int{"drift": int(testutil.ToFloat64(k.drift)), "loops": int(testutil.ToFloat64(k.loops))}
	for _, r := range resolutions {
		counts[string(r)] = int(testutil.ToFloat64(k.solutions[r]))
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

func (w *world) wantConflicts(want map[string]int) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.conflicts()); diff != "" {
		w.t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// TestWhoseAFieldIs: another manager scales a Deployment whose replicas we have set to 2.
func TestWhoseAFieldIs(t *testing.T) {
	const (
		created  = "Normal Applied created Deployment web"
		reported = "Deployment web: other managers have set fields that are not to be taken from them: spec.replicas "
	)
	for name, c := range map[string]struct {
		policy, manager string
		replicas        int32
		applied         string
		metrics         map[string]int
		events          []string
	}{
		"forced by default": {
			"", "kubectl-edit", 2, "True ObjectsApplied", map[string]int{"forced": 1, "drift": 1},
			[]string{created, "Normal Applied updated Deployment web; took spec.replicas of Deployment web back from kubectl-edit"},
		},
		"yield": {
			yieldReplicas, "kube-controller-manager", 7,
			"True ObjectsApplied spec.replicas of Deployment web is left to kube-controller-manager", map[string]int{"yielded": 1}, []string{created},
		},
		"yield to some, this one": {
			yieldToAutoscaler, "kube-controller-manager", 7,
			"True ObjectsApplied spec.replicas of Deployment web is left to kube-controller-manager", map[string]int{"yielded": 1}, []string{created},
		},
		"yield to some, another": {
			yieldToAutoscaler, "kubectl", 2, "True ObjectsApplied", map[string]int{"forced": 1, "drift": 1},
			[]string{created, "Normal Applied updated Deployment web; took spec.replicas of Deployment web back from kubectl"},
		},
		"report": {
			reportReplicas, "kubectl", 7, "False Conflict " + reported + "(kubectl)", map[string]int{"reported": 1},
			[]string{created, "Warning Conflict " + reported + "(kubectl)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBundles(t, c.policy)
			cr := w.createBundle("one", web)
			w.mustReconcile(cr)
			w.scaleAs(c.manager, 7)
			_ = w.reconcile(cr)
			_ = w.reconcile(cr)
			if got := *w.deployment("web").Spec.Replicas; got != c.replicas {
				t.Errorf("the Deployment has %d replicas, want %d", got, c.replicas)
			}
			w.wantCondition(cr, conditionApplied, c.applied)
			w.wantConflicts(c.metrics)
			w.wantEvents(c.events...)
			w.wantSilence(cr)
			w.wantConflicts(c.metrics)

			// What else the spec says is applied all the same.
			w.change(cr, `{web: {spec: {replicas: 3, template: {spec: {containers: [{name: web, image: "web:2"}]}}}}}`)
			_ = w.reconcile(cr)
			_ = w.reconcile(cr)
			d := w.deployment("web")
			if got := d.Spec.Template.Spec.Containers[0].Image; got != "web:2" {
				t.Errorf("the image is %s", got)
			}
			if got := *d.Spec.Replicas; got != c.replicas && got != 3 {
				t.Errorf("the Deployment has %d replicas", got)
			}
			w.wantCondition(cr, conditionApplied, c.applied)
			w.wantEvents("Normal Applied updated Deployment web")
			w.wantSilence(cr)
		})
	}
}

// TestAnEditIsUndone, and the event names each field and who had set it.
func TestAnEditIsUndone(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", web+oneConfigMap)
	w.mustReconcile(cr)
	w.takeEvents()
	w.patchAs("kubectl-edit", w.deployment("web"), `{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "mine"}]}}}}`)
	w.patchAs("kubectl-patch", w.configMap("a"), `{"data": {"k": "mine", "theirs": "stays"}}`)
	w.mustReconcile(cr)
	w.wantEvents(`Normal Applied updated ConfigMap a, Deployment web; took data.k of ConfigMap a back from kubectl-patch; ` +
		`took spec.template.spec.containers[name="web"].image of Deployment web back from kubectl-edit`)
	w.wantConflicts(map[string]int{"forced": 2, "drift": 2})
	if got := w.deployment("web").Spec.Template.Spec.Containers[0].Image; got != "web:1" {
		t.Errorf("the image is %s", got)
	}
	if diff := cmp.Diff(map[string]string{"k": "ours", "theirs": "stays"}, w.configMap("a").Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	w.wantSilence(cr)
}

// wantSilence reconciles without a write. The first time after a restart one request may be refused: it tells what is another's.
func (w *world) wantSilence(cr *unstructured.Unstructured) {
	w.t.Helper()
	version := w.deployment("web").ResourceVersion
	_ = w.reconcile(cr)
	w.wantEvents()
	metrics, l := w.metrics, &life{}
	w.restartWith(l)
	for range 3 {
		_ = w.reconcile(cr)
	}
	if l.writes > 1 {
		w.t.Errorf("%d requests to write after a restart", l.writes)
	}
	w.wantEvents()
	w.metrics = metrics
	if w.deployment("web").ResourceVersion != version {
		w.t.Error("the Deployment was written")
	}
}

// TestAFieldThatIsGivenBack is nobody's conflict any more.
func TestAFieldThatIsGivenBack(t *testing.T) {
	for name, policy := range map[string]string{"report": reportReplicas, "yield": yieldReplicas} {
		t.Run(name, func(t *testing.T) {
			w := newBundles(t, policy)
			cr := w.createBundle("one", web)
			w.mustReconcile(cr)
			w.scaleAs("kubectl", 7)
			_ = w.reconcile(cr)
			if got := w.condition(cr, conditionApplied); got == "True ObjectsApplied" {
				t.Error("want the conflict to be told")
			}
			w.scaleAs("kubectl", 2)
			w.mustReconcile(cr)
			w.wantCondition(cr, conditionApplied, "True ObjectsApplied")
		})
	}
}

// TestAnAutoscalerMayScaleOften: what is left to it is no quarrel, however often it changes.
func TestAnAutoscalerMayScaleOften(t *testing.T) {
	w := newBundles(t, yieldReplicas)
	cr := w.createBundle("one", web)
	w.mustReconcile(cr)
	for n := range 15 {
		w.scaleAs("kube-controller-manager", 5+n)
		w.mustReconcile(cr)
	}
	w.wantConflicts(map[string]int{"yielded": 15})
	w.wantCondition(cr, conditionApplied, "True ObjectsApplied spec.replicas of Deployment web is left to kube-controller-manager")
}

// TestAQuarrelEnds: somebody undoes every apply, until the operator leaves the object alone.
func TestAQuarrelEnds(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", web)
	w.mustReconcile(cr)
	for range 10 {
		w.scaleAs("rival", 9)
		w.mustReconcile(cr)
		if got := *w.deployment("web").Spec.Replicas; got != 2 {
			t.Fatalf("the Deployment has %d replicas", got)
		}
	}
	w.takeEvents()
	w.scaleAs("rival", 9)
	version := w.deployment("web").ResourceVersion
	for range 2 {
		w.mustFail(cr)
	}
	const message = "Deployment web: was mended 10 times within 5m0s and is changed back each time; it is left alone for that long: spec.replicas (rival)"
	w.wantCondition(cr, conditionApplied, "False ApplyLoop "+message)
	w.wantEvents("Warning ApplyLoop " + message)
	w.wantConflicts(map[string]int{"forced": 10, "drift": 10, "loops": 1})
	if w.deployment("web").ResourceVersion != version {
		t.Error("the quarrel goes on")
	}

	// Who asks for it gets another try.
	w.patch(cr, `{"metadata": {"annotations": {"`+reconcileAnnotation+`": "now"}}}`)
	w.mustReconcile(cr)
	w.wantCondition(cr, conditionApplied, "True ObjectsApplied")
	if got := *w.deployment("web").Spec.Replicas; got != 2 {
		t.Errorf("the Deployment has %d replicas", got)
	}
}

// TestANewSpecEndsAQuarrel, since it may be what the rival wants.
func TestANewSpecEndsAQuarrel(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", web)
	w.mustReconcile(cr)
	for range 10 {
		w.scaleAs("rival", 9)
		w.mustReconcile(cr)
	}
	w.scaleAs("rival", 9)
	w.mustFail(cr)
	w.change(cr, `{web: {spec: {replicas: 9}}}`)
	w.mustReconcile(cr)
	w.wantCondition(cr, conditionApplied, "True ObjectsApplied")
}
