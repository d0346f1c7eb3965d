package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
)

// missingPeriod is how often the API server is asked for a kind that is needed and not installed.
const missingPeriod = 10 * time.Second

// ownerIndex finds pods and jobs by the owner label, as "<label>=<custom resource>".
const ownerIndex = "owner"

// observedKinds are what a kind may observe beside its objects.
var observedKinds = map[string]schema.GroupVersionKind{
	kind.ObservePods: corev1.SchemeGroupVersion.WithKind("Pod"),
	kind.ObserveJobs: batchv1.SchemeGroupVersion.WithKind("Job"),
}

// watcher is what a reconciliation needs of the watches.
type watcher interface {
	// use makes the changes of objects of gvks bring the custom resource req back, and no longer those of others. It returns
	// those that the cluster does not know; their appearance brings req back, too.
	use(ctx context.Context, req Request, gvks []schema.GroupVersionKind) (missing []schema.GroupVersionKind, err error)
	// recheck says that the cluster seems to know some of gvks no more.
	recheck(ctx context.Context, gvks []schema.GroupVersionKind)
	// drop says that req is gone.
	drop(req Request)
}

// watches has the watches: of custom resources for as long as their kind is served, of objects for as long as a custom
// resource may have some.
type watches struct {
	kinds      *library
	objects    cache.Cache
	crs        cache.Cache
	live       client.Reader
	mapper     meta.RESTMapper
	client     client.Client // for its scheme
	namespaces []string
	log        logr.Logger
	queue      workqueue.TypedRateLimitingInterface[Request]
	running    chan struct{}                             // closed once there is a queue
	seen       func(Request, *unstructured.Unstructured) // told of every version of a custom resource that the cache shows
	afresh     func(Request)                             // told to forget that everything was applied

	mu      sync.Mutex
	uses    map[Request][]schema.GroupVersionKind // sorted
	started map[schema.GroupVersionKind]*watch
	missing map[schema.GroupVersionKind]bool
	served  map[schema.GroupKind]*watch // of custom resources
}

// watch is a running watch.
type watch struct {
	gvk      schema.GroupVersionKind
	informer cache.Informer
	handler  toolscache.ResourceEventHandlerRegistration
	users    int
}

// start is a source of the controller: it learns the queue, and watches the custom resources of the kinds that are served.
func (w *watches) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
	w.queue = queue
	close(w.running)
	for _, k := range w.kinds.Kinds() {
		if err := w.serve(ctx, k); err != nil {
			return err
		}
	}
	go w.lookForMissing(ctx)
	return nil
}

// serve watches the custom resources of k: their creation and deletion, and changes of spec, annotations and finalizers. A
// change of status is our own.
func (w *watches) serve(ctx context.Context, k *kind.Kind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	gk := k.GroupKind()
	if running := w.served[gk]; running != nil {
		if running.gvk == k.GVK() {
			return nil
		}
		w.end(ctx, w.crs, running)
		delete(w.served, gk)
	}
	informer, err := w.crs.GetInformer(ctx, prototype(k.GVK()), cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		w.log.Info("Waiting for the CustomResourceDefinition", "kind", gk.String(), "version", k.Names.Version)
		w.missing[k.GVK()] = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("watching %s: %w", k.Names.Plural, err)
	}
	registration, err := informer.AddEventHandler(w.handleCustomResources(gk))
	if err != nil {
		return fmt.Errorf("watching %s: %w", k.Names.Plural, err)
	}
	w.served[gk] = &watch{gvk: k.GVK(), informer: informer, handler: registration}
	return nil
}

// bringBack brings all custom resources of a kind back.
func (w *watches) bringBack(ctx context.Context, k *kind.Kind) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GVK())
	if err := w.crs.List(ctx, list, client.UnsafeDisableDeepCopy); isNotWatched(err) {
		return nil // not installed: there are none
	} else if err != nil {
		return err
	}
	for i := range list.Items {
		w.enqueue(0, handler.LowPriority, Request{k.GroupKind(), client.ObjectKeyFromObject(&list.Items[i])})
	}
	return nil
}

// use implements watcher.
func (w *watches) use(ctx context.Context, req Request, gvks []schema.GroupVersionKind) (missing []schema.GroupVersionKind, err error) {
	gvks = slices.Clone(gvks)
	slices.SortFunc(gvks, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	gvks = slices.Compact(gvks)
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.uses[req]
	if !slices.Equal(before, gvks) {
		w.uses[req] = gvks
		w.count(gvks, 1)
		w.count(before, -1)
	}
	for _, gvk := range gvks {
		if w.missing[gvk] {
			missing = append(missing, gvk)
			continue
		}
		if w.started[gvk] != nil {
			continue
		}
		found, err := w.begin(ctx, gvk)
		if err != nil {
			return missing, apply.NewError(gvk.Kind+"s", err)
		}
		if !found {
			w.missing[gvk] = true
			missing = append(missing, gvk)
		}
	}
	w.release(ctx)
	return missing, nil
}

// recheck implements watcher. The mapper never forgets a kind: only the API server knows that it was uninstalled.
func (w *watches) recheck(ctx context.Context, gvks []schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, gvk := range gvks {
		if running := w.started[gvk]; running != nil && isGone(w.probe(ctx, gvk)) {
			w.log.Info("Lost a kind", "watched", gvk.String())
			w.end(ctx, w.objects, running)
			delete(w.started, gvk)
			w.missing[gvk] = true
		}
	}
}

// isGone tells whether err, a list's, says that there is no such kind.
func isGone(err error) bool { return apierrors.IsNotFound(err) }

// drop implements watcher.
func (w *watches) drop(req Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count(w.uses[req], -1)
	delete(w.uses, req)
	w.release(context.Background())
}

func (w *watches) count(gvks []schema.GroupVersionKind, by int) {
	for _, gvk := range gvks {
		if running := w.started[gvk]; running != nil {
			running.users += by
		}
	}
}

// release ends the watches that nobody uses any more.
func (w *watches) release(ctx context.Context) {
	for gvk, running := range w.started {
		if running.users <= 0 {
			w.end(ctx, w.objects, running)
			delete(w.started, gvk)
			w.log.Info("Ended watch", "watched", gvk.String())
		}
	}
}

func (w *watches) end(ctx context.Context, from cache.Cache, running *watch) {
	if err := running.informer.RemoveEventHandler(running.handler); err != nil {
		w.log.Error(err, "Could not remove an event handler", "watched", running.gvk.String())
	}
	if err := from.RemoveInformer(ctx, apply.NewObject(w.client.Scheme(), running.gvk)); err != nil {
		w.log.Error(err, "Could not end a watch", "watched", running.gvk.String())
	}
}

// begin watches objects of one kind. It returns false if the cluster does not know it.
func (w *watches) begin(ctx context.Context, gvk schema.GroupVersionKind) (found bool, err error) {
	if _, err := w.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	// A watch that may not list would be retried in the dark for ever, and every read of the cache would wait for it.
	// Asking first turns that into an error that says what is missing.
	if err := w.probe(ctx, gvk); isGone(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	object := apply.NewObject(w.client.Scheme(), gvk)
	if isObserved(gvk) {
		if err := w.objects.IndexField(ctx, object, ownerIndex, ownerLabels); err != nil {
			return false, fmt.Errorf("indexing %s: %w", gvk.Kind, err)
		}
	}
	informer, err := w.objects.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return false, fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	registration, err := informer.AddEventHandler(w.handleObjects())
	if err != nil {
		return false, fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	running := &watch{gvk: gvk, informer: informer, handler: registration}
	for _, used := range w.uses {
		if slices.Contains(used, gvk) {
			running.users++
		}
	}
	w.started[gvk] = running // even if the cache fills too slowly now
	w.log.Info("Began watch", "watched", gvk.String())
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return false, fmt.Errorf("filling the cache of %s: %w", gvk.Kind, context.Cause(ctx))
	}
	return true, nil
}

func isObserved(gvk schema.GroupVersionKind) bool {
	return slices.Contains(slices.Collect(maps.Values(observedKinds)), gvk)
}

// ownerLabels returns the labels of o that may be owner labels. Which of them are is not known here: kinds come and go, and an
// index is for good.
func ownerLabels(o client.Object) []string {
	var out []string
	for key, value := range o.GetLabels() {
		if kind.MayBeOwnerLabel(key) {
			out = append(out, key+"="+value)
		}
	}
	return out
}

// probe lists at most one object in each namespace.
func (w *watches) probe(ctx context.Context, gvk schema.GroupVersionKind) error {
	namespaces := w.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, ns := range namespaces {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := w.live.List(ctx, list, client.InNamespace(ns), client.Limit(1)); err != nil {
			return err
		}
	}
	return nil
}

// lookForMissing asks for the kinds that were needed and not installed, until they are. A watch of CustomResourceDefinitions
// would tell sooner, and need a right in the whole cluster.
func (w *watches) lookForMissing(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(missingPeriod):
		}
		for _, gvk := range w.wantedKinds() {
			if _, err := w.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && !isGone(w.probe(ctx, gvk)) {
				w.appeared(ctx, gvk)
			}
		}
	}
}

// wantedKinds returns the kinds that are missing, and forgets those that nobody wants any more.
func (w *watches) wantedKinds() []schema.GroupVersionKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.missing, func(gvk schema.GroupVersionKind, _ bool) bool {
		k := w.kinds.Get(gvk.GroupKind())
		return (k == nil || k.GVK() != gvk) && len(w.users(gvk)) == 0
	})
	return slices.Collect(maps.Keys(w.missing))
}

func (w *watches) users(gvk schema.GroupVersionKind) []Request {
	var out []Request
	for req, used := range w.uses {
		if slices.Contains(used, gvk) {
			out = append(out, req)
		}
	}
	return out
}

// appeared serves a kind, or brings back the custom resources that wait for it.
func (w *watches) appeared(ctx context.Context, gvk schema.GroupVersionKind) {
	w.mu.Lock()
	delete(w.missing, gvk)
	users := w.users(gvk)
	w.mu.Unlock()
	w.log.Info("Found a kind that was missing", "watched", gvk.String())
	for _, req := range users {
		w.afresh(req)
	}
	if k := w.kinds.Get(gvk.GroupKind()); k != nil && k.GVK() == gvk {
		if err := w.serve(ctx, k); err != nil {
			w.log.Error(err, "Could not watch custom resources", "kind", gvk.GroupKind().String())
		}
	}
	w.enqueue(0, 0, users...)
}
