package reconciler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
	"github.com/example/memcached-operator/test/cluster"
)

// These tests call Reconcile by hand on a real API server without controllers: nothing moves but what they move.

var api *cluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		api, err = cluster.Start(context.Background(), cluster.Options{CRDs: []string{"../config/crd/bases", "testdata/crds.yaml"}, Progress: os.Stderr})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = api.Stop() }()
		return m.Run()
	}())
}

// watchesNothing stands for the watches: these tests say themselves when to reconcile. It only knows which kinds are missing.
type watchesNothing struct{ meta.RESTMapper }

func (w watchesNothing) use(_ context.Context, _ Request, gvks []schema.GroupVersionKind) (missing []schema.GroupVersionKind, err error) {
	for _, gvk := range gvks {
		if _, err := w.RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
			missing = append(missing, gvk)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

func (watchesNothing) recheck(context.Context, []schema.GroupVersionKind) {}
func (watchesNothing) drop(Request)                                       {}

// uncached reads from the API server what the reconciler reads from the cache.
type uncached struct{ client.Client }

func (c uncached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	if o.FieldSelector != nil { // the cache's index of owners
		owner, err := labels.Parse(o.FieldSelector.Requirements()[0].Value)
		if err != nil {
			return err
		}
		o.FieldSelector, o.LabelSelector = nil, owner
	}
	return c.Client.List(ctx, list, o)
}

// world is one test's namespace, with a reconciler for it.
type world struct {
	t         *testing.T
	client    client.Client // the tests' own hands, which may do anything
	namespace string
	library   *kind.Library
	*Reconciler
	recorded *record.FakeRecorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := client.New(api.Admin(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, namespace: namespaceOf(t)}
	w.library = w.openLibrary("")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.restart(api.Admin())
	return w
}

// namespaceOf returns a test's own namespace.
func namespaceOf(t *testing.T) string {
	return strings.NewReplacer("/", "-", "_", "-", ",", "", "'", "").Replace(strings.ToLower(t.Name()))
}

// openLibrary returns the kinds of a folder, beside the embedded ones.
func (w *world) openLibrary(dir string) *kind.Library {
	w.t.Helper()
	library, err := kind.OpenLibrary(kind.LibraryOptions{Dir: dir})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(library.Broken()) > 0 {
		w.t.Fatal(library.Broken())
	}
	return library
}

// restart replaces the reconciler by a new one, which remembers nothing and acts with the rights of config.
func (w *world) restart(config *rest.Config) {
	w.t.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		w.t.Fatal(err)
	}
	w.recorded = record.NewFakeRecorder(100)
	w.Reconciler = &Reconciler{
		kinds:       newLibrary(w.library),
		crs:         c,
		client:      uncached{c},
		applier:     apply.New(c, c),
		watches:     watchesNothing{c.RESTMapper()},
		writer:      newWriter(c, c),
		reports:     newReports(),
		events:      &recorder{w.recorded},
		metrics:     newMetrics(prometheus.NewRegistry()),
		kubeVersion: "v1.36.3",
		resync:      time.Hour,
	}
}

func memcached(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     spec,
	}}
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) createMemcached(name string, spec map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	cr := memcached(w.namespace, name, spec)
	w.create(cr)
	return cr
}

// patch merges a JSON patch into an object.
func (w *world) patch(o client.Object, patch string) {
	w.t.Helper()
	if err := w.client.Patch(w.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) reconcile(cr *unstructured.Unstructured) error {
	_, err := w.Reconcile(w.t.Context(), requestFor(cr))
	return err
}

// mustReconcile reconciles, and once more if something was written of which the status is to tell.
func (w *world) mustReconcile(cr *unstructured.Unstructured) {
	w.t.Helper()
	for range 2 {
		result, err := w.Reconcile(w.t.Context(), requestFor(cr))
		if err != nil {
			w.t.Fatal(err)
		}
		if result.RequeueAfter != freshTime {
			return
		}
	}
	w.t.Fatal("still writes objects the second time")
}

func (w *world) get(o client.Object, name string) {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deployment(name string) *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.get(d, name)
	return d
}

// condition returns a condition as "status reason message", "" if it is not there.
func (w *world) condition(cr *unstructured.Unstructured, condition string) string {
	w.t.Helper()
	w.get(cr, cr.GetName())
	c := meta.FindStatusCondition(conditionsOf(cr), condition)
	if c == nil {
		return ""
	}
	if c.ObservedGeneration != cr.GetGeneration() {
		w.t.Errorf("condition %s is of generation %d, the custom resource of %d", condition, c.ObservedGeneration, cr.GetGeneration())
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
}

func (w *world) wantCondition(cr *unstructured.Unstructured, condition, want string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.condition(cr, condition)); diff != "" {
		w.t.Errorf("condition %s (-want +got):\n%s", condition, diff)
	}
}

// takeEvents returns the events since the last call.
func (w *world) takeEvents() (events []string) {
	for len(w.recorded.Events) > 0 {
		events = append(events, <-w.recorded.Events)
	}
	return events
}

// wantEvents compares the events since the last call.
func (w *world) wantEvents(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.takeEvents()); diff != "" {
		w.t.Errorf("events (-want +got):\n%s", diff)
	}
}

// versions returns the resource versions of all that a Memcached has, itself included.
func (w *world) versions(cr *unstructured.Unstructured) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, o := range []client.Object{memcached("", "", nil), &appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}} {
		w.get(o, cr.GetName())
		out[fmt.Sprintf("%T", o)] = o.GetResourceVersion()
	}
	return out
}

func TestReconcilingTwiceWritesNothing(t *testing.T) {
	w := newWorld(t)
	cr := w.createMemcached("cache", map[string]any{"size": int64(3)})
	w.mustReconcile(cr)
	w.wantEvents("Normal Applied created ServiceAccount cache, Service cache, Deployment cache")
	w.wantCondition(cr, conditionValid, "True SpecValid")
	w.wantCondition(cr, conditionApplied, "True ObjectsApplied")
	w.wantCondition(cr, conditionAvailable, "False Progressing Deployment cache: Replicas: 0/3")
	w.wantCondition(cr, conditionReconciling, "True Progressing Deployment cache: Replicas: 0/3")
	w.wantCondition(cr, conditionReady, "False Progressing Deployment cache: Replicas: 0/3")
	w.wantCondition(cr, conditionStalled, "")
	d := w.deployment("cache")
	if !metav1.IsControlledBy(d, cr) || *d.Spec.Replicas != 3 {
		t.Errorf("the Deployment has %d replicas and the owners %v", *d.Spec.Replicas, d.OwnerReferences)
	}

	before := w.versions(cr)
	w.mustReconcile(cr)
	if diff := cmp.Diff(before, w.versions(cr)); diff != "" {
		t.Errorf("the second time wrote (-before +after):\n%s", diff)
	}
	w.restart(api.Admin())
	w.mustReconcile(cr)
	if diff := cmp.Diff(before, w.versions(cr)); diff != "" {
		t.Errorf("a restart wrote (-before +after):\n%s", diff)
	}
	w.wantEvents()
}

func TestDriftIsMendedAndNothingElse(t *testing.T) {
	w := newWorld(t)
	cr := w.createMemcached("cache", map[string]any{"size": int64(3)})
	w.mustReconcile(cr)
	want := w.deployment("cache")
	for field, patch := range map[string]string{
		"replicas":         `{"spec": {"replicas": 9}}`,
		"image":            `{"spec": {"template": {"spec": {"containers": [{"name": "memcached", "image": "other"}]}}}}`,
		"label":            `{"metadata": {"labels": {"app": null}}}`,
		"owner label":      `{"metadata": {"labels": {"cache.example.com/memcached": "other"}}}`,
		"digest":           `{"metadata": {"annotations": {"` + ownership.DigestAnnotation + `": null}}}`,
		"container gone":   `{"spec": {"template": {"spec": {"containers": [{"name": "other", "image": "other"}]}}}}`,
		"argument added":   `{"spec": {"template": {"spec": {"containers": [{"name": "memcached", "image": "x", "args": ["-m", "200", "-vv"]}]}}}}`,
		"security relaxed": `{"spec": {"template": {"spec": {"securityContext": null}}}}`,
	} {
		w.patch(w.deployment("cache"), patch)
		w.mustReconcile(cr)
		after := w.deployment("cache")
		if *after.Spec.Replicas != 3 {
			t.Errorf("%s: the Deployment has %d replicas", field, *after.Spec.Replicas)
		}
		if diff := cmp.Diff(want.Labels, after.Labels); diff != "" {
			t.Errorf("%s: labels (-want +got):\n%s", field, diff)
		}
		if diff := cmp.Diff(want.Annotations, after.Annotations); diff != "" {
			t.Errorf("%s: annotations (-want +got):\n%s", field, diff)
		}
		containers := after.Spec.Template.Spec.Containers
		ours := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "memcached" })
		if diff := cmp.Diff(want.Spec.Template.Spec.Containers[0], containers[ours]); diff != "" {
			t.Errorf("%s: the container (-want +got):\n%s", field, diff)
		}
		if diff := cmp.Diff(want.Spec.Template.Spec.SecurityContext, after.Spec.Template.Spec.SecurityContext); diff != "" {
			t.Errorf("%s: the security context (-want +got):\n%s", field, diff)
		}
	}

	w.patch(w.deployment("cache"), `{"metadata": {"annotations": {"note": "mine"}}, "spec": {"revisionHistoryLimit": 2}}`)
	version := w.deployment("cache").ResourceVersion
	w.mustReconcile(cr)
	if got := w.deployment("cache"); got.ResourceVersion != version {
		t.Errorf("fields that are not ours were taken for drift")
	}
}

func TestWhatTheSpecNoLongerSaysIsRemoved(t *testing.T) {
	w := newWorld(t)
	cr := w.createMemcached("cache", map[string]any{"image": map[string]any{"pullSecrets": []any{map[string]any{"name": "registry"}}}})
	w.mustReconcile(cr)
	if got := w.deployment("cache").Spec.Template.Spec.ImagePullSecrets; len(got) != 1 {
		t.Fatalf("pull secrets are %v", got)
	}
	w.patch(cr, `{"spec": {"image": {"pullSecrets": null}}}`)
	w.mustReconcile(cr)
	if got := w.deployment("cache").Spec.Template.Spec.ImagePullSecrets; len(got) != 0 {
		t.Errorf("pull secrets are still %v", got)
	}
}

// TestInvalidSpecTouchesNothing has an operator whose schema is narrower than the CustomResourceDefinition, as after an upgrade
// that left the definitions alone. Otherwise the API server refuses what is invalid.
func TestInvalidSpecTouchesNothing(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	for _, folder := range []string{"schemas/memcached", "charts/memcached"} {
		if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS("../"+folder)); err != nil {
			t.Fatal(err)
		}
	}
	edit(t, dir, "schemas/memcached/memcached.cue", "size: int & >=0 & <=1000", "size: int & >=0 & <=8")
	w.library = w.openLibrary(dir)
	w.restart(api.Admin())
	cr := w.createMemcached("cache", map[string]any{"size": int64(3)})
	w.mustReconcile(cr)
	w.wantEvents("Normal Applied created ServiceAccount cache, Service cache, Deployment cache")
	version := w.deployment("cache").ResourceVersion

	w.patch(cr, `{"spec": {"size": 9}}`)
	const message = "spec.size: invalid value 9 (out of bound <=8)"
	for range 2 {
		if err := w.reconcile(cr); !isTerminal(err) {
			t.Errorf("want a terminal error, which is not retried, got %v", err)
		}
	}
	w.wantCondition(cr, conditionValid, "False InvalidSpec "+message)
	w.wantCondition(cr, conditionStalled, "True InvalidSpec "+message)
	w.wantCondition(cr, conditionReady, "False InvalidSpec "+message)
	w.wantCondition(cr, conditionReconciling, "")
	w.wantEvents("Warning InvalidSpec " + message)
	if got := w.deployment("cache").ResourceVersion; got != version {
		t.Error("the Deployment was touched")
	}

	w.patch(cr, `{"spec": {"size": 5}}`)
	w.mustReconcile(cr)
	w.wantCondition(cr, conditionValid, "True SpecValid")
	w.wantCondition(cr, conditionStalled, "")
	if got := *w.deployment("cache").Spec.Replicas; got != 5 {
		t.Errorf("the Deployment has %d replicas", got)
	}
}

func isTerminal(err error) bool {
	return errors.Is(err, reconcile.TerminalError(nil))
}

func TestForeignObjectsStayForeign(t *testing.T) {
	w := newWorld(t)
	cr := w.createMemcached("cache", map[string]any{})
	for _, owner := range []string{"", "Other boss"} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cache"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		belongs, advice := "nobody", "rename the custom resource, or annotate the object with memcached-operator.example.com/adopt=<name of the custom resource>"
		if owner != "" {
			isController := true
			service.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "boss", UID: "1", Controller: &isController}}
			belongs, advice = owner, "or rename the custom resource"
		}
		w.create(service)
		if err := w.reconcile(cr); err == nil || isTerminal(err) {
			t.Errorf("want an error that is retried, got %v", err)
		}
		w.wantCondition(cr, conditionApplied, "False Conflict Service cache: exists already and belongs to "+belongs+": delete or rename it, "+advice)
		after := &corev1.Service{}
		w.get(after, "cache")
		if after.ResourceVersion != service.ResourceVersion {
			t.Error("the Service was touched")
		}
		w.deployment("cache") // what can be applied is
		if err := w.client.Delete(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		w.mustReconcile(cr)
		w.wantCondition(cr, conditionApplied, "True ObjectsApplied")
		if err := w.client.Delete(t.Context(), after); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMissingRightsAreNamed(t *testing.T) {
	w := newWorld(t)
	config, err := api.ServiceAccount("system", "operator")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"cache.example.com"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"pods", "services", "serviceaccounts"}, Verbs: []string{"*"}},
	}}
	w.create(role)
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "system", Name: "operator"}},
	})
	w.restart(config)
	cr := w.createMemcached("cache", map[string]any{})
	if err := w.reconcile(cr); err == nil || isTerminal(err) {
		t.Errorf("want an error that is retried, got %v", err)
	}
	if got := w.condition(cr, conditionApplied); !strings.HasPrefix(got, "False Forbidden Deployment cache: ") || !strings.Contains(got, `"system:serviceaccount:system:operator" cannot get resource "deployments"`) {
		t.Errorf("Applied is %s", got)
	}
}

func TestDeletedMemcachedIsNotBroughtBack(t *testing.T) {
	w := newWorld(t)
	cr := w.createMemcached("cache", map[string]any{})
	w.mustReconcile(cr)
	if err := w.client.Delete(t.Context(), cr, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), w.deployment("cache")); err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(cr)
	err := w.client.Get(t.Context(), client.ObjectKeyFromObject(cr), &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment is back: %v", err)
	}
	w.patch(cr, `{"metadata": {"finalizers": null}}`) // the garbage collector's part
	w.mustReconcile(cr)
}

func TestStatusTellsOfPods(t *testing.T) {
	w := newWorld(t)
	cr := w.createMemcached("cache", map[string]any{"size": int64(2)})
	w.mustReconcile(cr)
	isController := true
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cache-1", UID: "1", Controller: &isController}
	pod := func(name string, owners ...metav1.OwnerReference) *corev1.Pod {
		d := w.deployment("cache")
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: d.Spec.Template.Labels, OwnerReferences: owners},
			Spec:       *d.Spec.Template.Spec.DeepCopy(),
		}
		w.create(p)
		return p
	}
	b, _ := pod("cache-b", owner), pod("cache-a", owner)
	pod("made-by-hand")
	b.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "memcached", Image: "memcached:x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}},
	}}}
	if err := w.client.Status().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(cr)
	w.wantCondition(cr, conditionAvailable, `False ImagePullBackOff Pod cache-b: container memcached: image "memcached:x" cannot be pulled`)
	status, _, err := unstructured.NestedMap(cr.Object, "status")
	if err != nil {
		t.Fatal(err)
	}
	delete(status, "conditions")
	delete(status, "inventory")
	want := map[string]any{
		"nodes": []any{"cache-a", "cache-b"}, "replicas": int64(2), "readyReplicas": int64(0),
		"selector": "app=memcached,memcached_cr=cache", "observedGeneration": int64(1),
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// frozen is a cache that has seen one version of a custom resource.
type frozen struct {
	client.Reader
	cr *unstructured.Unstructured
}

func (f frozen) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	f.cr.DeepCopyInto(into.(*unstructured.Unstructured))
	return nil
}

// TestStatusBuildsOnItsOwnLastWrite: a cache that has not yet seen the last status must not make the next one go wrong.
func TestStatusBuildsOnItsOwnLastWrite(t *testing.T) {
	w := newWorld(t)
	cr := w.createMemcached("cache", map[string]any{})
	w.get(cr, "cache")
	stale := cr.DeepCopy()
	w.crs, w.writer.crs = frozen{cr: stale}, frozen{cr: stale}
	w.mustReconcile(cr)
	w.get(cr, "cache")
	if got := w.writer.newest(requestFor(cr), stale); got.GetResourceVersion() != cr.GetResourceVersion() {
		t.Errorf("took the stale custom resource %s, wrote %s", got.GetResourceVersion(), cr.GetResourceVersion())
	}
	if got := w.writer.newest(requestFor(cr), cr); got != cr || len(w.writer.written) != 0 {
		t.Errorf("remembers %d custom resources after the cache has caught up", len(w.writer.written))
	}
}
