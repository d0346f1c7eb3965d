package reconciler

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/ownership"
)

// life is the way of an operator to the API server. It counts writes, and can end at one of them.
type life struct {
	next http.RoundTripper

	mu     sync.Mutex
	writes int  // so far
	last   int  // the write at which it ends; 0 is never
	isDone bool // whether the API server gets that write, of which the operator hears nothing
	ended  bool
}

var errDead = errors.New("the operator is dead")

// RoundTrip implements http.RoundTripper.
func (l *life) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, errDead
	}
	if r.Method == http.MethodGet {
		return l.next.RoundTrip(r)
	}
	l.writes++
	if l.writes != l.last {
		return l.next.RoundTrip(r)
	}
	l.ended = true
	if l.isDone {
		if answer, err := l.next.RoundTrip(r); err == nil {
			_ = answer.Body.Close()
		}
	}
	return nil, errDead
}

// restartWith replaces the reconciler by a new one, whose life this is.
func (w *world) restartWith(l *life) {
	w.t.Helper()
	config := rest.CopyConfig(api.Admin())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		l.next = next
		return l
	})
	w.restart(config)
}

// step is what a user does to a Bundle.
type step struct {
	name string
	do   func(w *world, cr *unstructured.Unstructured)
}

// steps are the life of a Bundle: objects in two namespaces come, change and go.
var steps = []step{
	{"create", func(w *world, cr *unstructured.Unstructured) {
		cr.Object["spec"] = map[string]any{"objects": w.parse(`
stays: {apiVersion: v1, kind: ConfigMap, metadata: {name: stays}, data: {k: "1"}}
goes: {apiVersion: v1, kind: ConfigMap, metadata: {name: goes}}
elsewhere: {apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: ` + w.namespace + `-2}}
`)}
		w.create(cr)
	}},
	{"change", func(w *world, cr *unstructured.Unstructured) {
		w.change(cr, `
stays: {data: {k: "2"}}
goes: null
comes: {apiVersion: v1, kind: ConfigMap, metadata: {name: comes, namespace: NAMESPACE-2}}
`)
	}},
	{"delete", func(w *world, cr *unstructured.Unstructured) { w.remove(cr) }},
}

// snapshot returns what the world holds of a Bundle, in YAML, but for what differs from one run to the next. What the garbage
// collector is about to delete is left out.
func (w *world) snapshot(cr *unstructured.Unstructured) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	var uid string
	add := func(o *unstructured.Unstructured) {
		if owners := ownersOf(o); len(owners) > 0 && string(owners[0]) != uid {
			return
		}
		annotations := o.GetAnnotations()
		delete(annotations, ownership.DigestAnnotation) // which is of the UID, too
		kept := map[string]any{
			"labels": o.GetLabels(), "annotations": annotations, "owners": o.GetOwnerReferences(), "finalizers": o.GetFinalizers(),
			"data": o.Object["data"], "status": o.Object["status"],
		}
		if conditions, found, _ := unstructured.NestedSlice(o.Object, "status", "conditions"); found {
			slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
			_ = unstructured.SetNestedSlice(o.Object, conditions, "status", "conditions")
		}
		text, err := yaml.Marshal(kept)
		if err != nil {
			w.t.Fatal(err)
		}
		varying := strings.NewReplacer(w.namespace, "NAMESPACE", uid, "UID")
		out[varying.Replace(o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())] = varying.Replace(times.ReplaceAllString(string(text), "TIME"))
	}
	now := prototype(bundle)
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(cr), now)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err == nil {
		uid = string(now.GetUID())
		add(now)
	}
	for _, namespace := range []string{w.namespace, w.namespace + "-2"} {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
		if err := w.client.List(w.t.Context(), &list, client.InNamespace(namespace)); err != nil {
			w.t.Fatal(err)
		}
		for i := range list.Items {
			add(&list.Items[i])
		}
	}
	return out
}

// typeOf returns the type of a condition.
func typeOf(condition any) string {
	c, _ := condition.(map[string]any)
	return fmt.Sprint(c["type"])
}

var times = regexp.MustCompile(`"?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"?`)

// settle reconciles until there is nothing left to do. If the operator dies, meanwhile happens, and a new one takes over.
func (w *world) settle(cr *unstructured.Unstructured, l *life, meanwhile func()) *life {
	w.t.Helper()
	for range 10 {
		result, err := w.Reconcile(w.t.Context(), requestFor(cr))
		switch {
		case l.ended:
			meanwhile()
			l = &life{}
			w.restartWith(l)
		case err != nil:
			w.t.Fatal(err)
		case result.RequeueAfter != freshTime:
			return l
		}
	}
	w.t.Fatal("does not settle")
	return nil
}

// wantQuiet reconciles once more, and again after a restart, neither of which may write.
func (w *world) wantQuiet(cr *unstructured.Unstructured, l *life) {
	w.t.Helper()
	before := l.writes
	w.mustReconcile(cr)
	if l.writes != before {
		w.t.Errorf("the same world made the operator write %d times", l.writes-before)
	}
	l = &life{}
	w.restartWith(l)
	w.mustReconcile(cr)
	if l.writes != 0 {
		w.t.Errorf("a restart made the operator write %d times", l.writes)
	}
}

// death is where and how an operator dies.
type death struct {
	step, write int
	isDone      bool // whether the write takes place
	isLate      bool // whether the user takes the next step before another operator takes over
}

func (d death) String() string {
	name := fmt.Sprintf("%s-%d", steps[d.step].name, d.write)
	if d.isDone {
		name += "-done"
	}
	if d.isLate {
		name += "-late"
	}
	return name
}

// live lets a Bundle live through all steps and an operator die in one of them. It returns what there is after each step, nil
// where the next one came too early, and how many writes each took.
func (w *world) live(d death) (after []map[string]string, writes []int) {
	w.t.Helper()
	w.createYAML(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + w.namespace + `-2}}`)
	cr := prototype(bundle)
	cr.SetNamespace(w.namespace)
	cr.SetName("one")
	l, taken := &life{}, -1
	w.restartWith(l)
	for n, s := range steps {
		if n > taken {
			s.do(w, cr)
		}
		if n == d.step {
			l.last, l.isDone = l.writes+d.write, d.isDone
		}
		before := l.writes
		l = w.settle(cr, l, func() {
			if d.isLate {
				taken = n + 1
				steps[taken].do(w, cr)
			}
		})
		writes = append(writes, l.writes-before)
		if taken > n {
			after = append(after, nil)
			continue
		}
		after = append(after, w.snapshot(cr))
		if n >= d.step {
			w.wantQuiet(cr, l)
			l = &life{}
			w.restartWith(l)
		}
	}
	return after, writes
}

// TestAnOperatorMayDieAtAnyWrite: whenever it dies, and whether or not its last write takes place, the next one brings about
// what would have been without its death. Nothing is left behind, nothing else deleted.
func TestAnOperatorMayDieAtAnyWrite(t *testing.T) {
	w := newBundles(t, anywhere)
	want, writes := w.live(death{step: len(steps)})
	if len(want[0]) != 4 || len(want[1]) != 4 || len(want[2]) != 0 || slices.Min(writes) == 0 {
		t.Fatalf("without a death there is after %d writes: %v", writes, want)
	}
	for step := range steps {
		for write := range writes[step] {
			for _, isDone := range []bool{false, true} {
				for _, isLate := range []bool{false, true}[:min(2, len(steps)-step)] {
					d := death{step, write + 1, isDone, isLate}
					t.Run(d.String(), func(t *testing.T) {
						after, _ := w.another(t).live(d)
						for n := range steps {
							if diff := cmp.Diff(want[n], after[n]); diff != "" && after[n] != nil {
								t.Errorf("after %s (-without a death +with it):\n%s", steps[n].name, diff)
							}
						}
					})
				}
			}
		}
	}
}

// TestASpoiltInventoryIsMendedFirst: what somebody wrote into it must not hide that a new object is missing there, should the
// operator die at its first write.
func TestASpoiltInventoryIsMendedFirst(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", oneConfigMap)
	w.mustReconcile(cr)
	a := `{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "` + w.namespace + `", "name": "a"}`
	if err := w.client.Status().Patch(t.Context(), cr, mergePatch(`{"status": {"inventory": [`+a+`, `+a+`]}}`)); err != nil {
		t.Fatal(err)
	}
	w.change(cr, "b: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}")
	l := &life{last: 1, isDone: true}
	w.restartWith(l)
	w.settle(cr, l, func() { w.change(cr, "b: null") })
	w.wantConfigMaps("a")
	w.wantInventory(cr, "ConfigMap a")
}

// another returns a world like w, in a namespace of its own.
func (w *world) another(t *testing.T) *world {
	t.Helper()
	other := &world{t: t, client: w.client, library: w.library, namespace: namespaceOf(t)}
	other.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.namespace}})
	return other
}
