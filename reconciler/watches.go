package reconciler

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
)

// Request names a custom resource. All kinds share one queue.
type Request struct {
	schema.GroupKind
	types.NamespacedName
}

// String returns "Memcached.cache.example.com namespace/name".
func (r Request) String() string { return r.GroupKind.String() + " " + r.NamespacedName.String() }

func requestFor(cr client.Object) Request {
	return Request{cr.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(cr)}
}

// kinds are the served kinds.
type kinds map[schema.GroupKind]*kind.Kind

// owners returns the custom resource whose owner label o bears. The label rather than the owner reference says it, so that an
// object that lost its reference is found, too.
func (ks kinds) owners(_ context.Context, o client.Object) []Request {
	var out []Request
	for gk, k := range ks {
		if name := o.GetLabels()[k.OwnerLabel()]; name != "" {
			out = append(out, Request{gk, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
		}
	}
	return out
}

// CacheOptions returns what the manager's cache must hold for kinds, in namespaces (all if there are none): their custom
// resources, and of everything else only what bears our label, without managed fields and pods without what is not looked at.
func CacheOptions(served []*kind.Kind, namespaces []string) cache.Options {
	options := cache.Options{
		DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{kind.ManagedByLabel: kind.Manager}),
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
		ByObject:                    map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: observe.StripPod}},
	}
	for _, k := range served {
		options.ByObject[prototype(k.GVK())] = cache.ByObject{Label: labels.Everything()}
	}
	for _, ns := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[ns] = cache.Config{}
	}
	return options
}

func prototype(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// watcher starts watches.
type watcher interface {
	// watch makes the changes of objects of these kinds bring their custom resources back.
	watch(ctx context.Context, objects []*unstructured.Unstructured) error
	// watchPods does so for pods.
	watchPods(ctx context.Context) error
}

// dynamicWatcher watches a kind from the moment when the first custom resource has an object of it.
type dynamicWatcher struct {
	controller controller.TypedController[Request]
	kinds      kinds
	cache      cache.Cache
	live       client.Reader
	scheme     *runtime.Scheme
	namespaces []string

	mu      sync.Mutex
	started map[schema.GroupVersionKind]bool
}

func (w *dynamicWatcher) watch(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := w.start(ctx, o.GroupVersionKind()); err != nil {
			return err
		}
	}
	return nil
}

func (w *dynamicWatcher) watchPods(ctx context.Context) error {
	return w.start(ctx, corev1.SchemeGroupVersion.WithKind("Pod"))
}

func (w *dynamicWatcher) start(ctx context.Context, gvk schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started[gvk] {
		return nil
	}
	// A watch that may not list would be retried in the dark for ever, and every read of the cache would wait for it.
	// Asking first turns that into an error that says what is missing.
	if err := w.probe(ctx, gvk); err != nil {
		return apply.NewError(gvk.Kind+"s", err)
	}
	object := apply.NewObject(w.scheme, gvk)
	changed := predicate.ResourceVersionChangedPredicate{}
	if err := w.controller.Watch(source.TypedKind(w.cache, object, enqueueOwners(w.kinds), predicate.Predicate(changed))); err != nil {
		return fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	w.started[gvk] = true // even if the cache fills too slowly now: a second Watch would add a second handler
	if _, err := w.cache.GetInformer(ctx, object, cache.BlockUntilSynced(true)); err != nil {
		return fmt.Errorf("filling the cache of %s: %w", gvk.Kind, err)
	}
	return nil
}

func enqueueOwners(ks kinds) handler.TypedEventHandler[client.Object, Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(ks.owners)
}

// probe lists at most one object in each namespace.
func (w *dynamicWatcher) probe(ctx context.Context, gvk schema.GroupVersionKind) error {
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

// watchKind watches the custom resources of k: their creation and deletion, and changes of spec and annotations. A change of
// status is our own.
func watchKind(c controller.TypedController[Request], ca cache.Cache, k *kind.Kind) error {
	gk := k.GVK().GroupKind()
	enqueue := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []Request {
		return []Request{{gk, client.ObjectKeyFromObject(o)}}
	})
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return c.Watch(source.TypedKind[client.Object](ca, prototype(k.GVK()), enqueue, changed))
}
