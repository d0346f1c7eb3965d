package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/version"
)

// finalizer keeps a custom resource until the objects are deleted that the garbage collector cannot delete with it.
const finalizer = version.Domain + "/finalizer"

// writer is the one writer of custom resources: of their status and our finalizer.
type writer struct {
	client client.Client
	crs    client.Reader // cached

	mu sync.Mutex
	// written holds custom resources as our last write left them, until the cache has caught up: a status computed from an
	// older one would undo or miss a change.
	written map[Request]*unstructured.Unstructured
}

func newWriter(c client.Client, crs client.Reader) *writer {
	return &writer{client: c, crs: crs, written: map[Request]*unstructured.Unstructured{}}
}

// newest returns the newer of cached and what was last written. Neither is to be changed.
func (w *writer) newest(req Request, cached *unstructured.Unstructured) *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	written := w.written[req]
	if written == nil {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.GetResourceVersion())
	if err != nil || order >= 0 || cached.GetUID() != written.GetUID() {
		delete(w.written, req)
		return cached
	}
	return &unstructured.Unstructured{Object: written.Object}
}

// seen drops what was last written if the cache, which shows cr now, has caught up.
func (w *writer) seen(req Request, cr *unstructured.Unstructured) { w.newest(req, cr) }

func (w *writer) forget(req Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, req)
}

// write patches the status of cr to s unless it is so already, and returns the conditions before and after. cr becomes what was
// written; a custom resource that is gone needs no status.
func (w *writer) write(ctx context.Context, cr *unstructured.Unstructured, s *status) (before, after []metav1.Condition, err error) {
	content, err := s.content()
	if err != nil {
		return nil, nil, err
	}
	old, _ := cr.Object["status"].(map[string]any)
	change := changes(old, content)
	if len(change) == 0 {
		return nil, nil, nil
	}
	before = conditionsOf(cr)
	if err := w.patch(ctx, cr, change, "status"); err != nil {
		return nil, nil, fmt.Errorf("patching status: %w", err)
	}
	return before, s.conditions, nil
}

// changes returns what a merge patch must say of the fields of old for them to become those of wanted.
func changes(old, wanted map[string]any) map[string]any {
	out := map[string]any{}
	for field, value := range wanted {
		if !equality.Semantic.DeepEqual(old[field], value) {
			out[field] = replacing(old[field], value)
		}
	}
	for field := range old {
		if _, ok := wanted[field]; !ok {
			out[field] = nil
		}
	}
	return out
}

// replacing returns value such that a merge patch puts it in the place of old, rather than into it.
func replacing(old, value any) any {
	oldMap, ok := old.(map[string]any)
	newMap, ok2 := value.(map[string]any)
	if ok && ok2 {
		return changes(oldMap, newMap)
	}
	return value
}

func hasFinalizer(cr *unstructured.Unstructured) bool {
	return slices.Contains(cr.GetFinalizers(), finalizer)
}

// setFinalizer adds our finalizer to cr, or removes it, unless that is done.
func (w *writer) setFinalizer(ctx context.Context, cr *unstructured.Unstructured, present bool) error {
	if hasFinalizer(cr) == present {
		return nil
	}
	finalizers := slices.DeleteFunc(slices.Clone(cr.GetFinalizers()), func(f string) bool { return f == finalizer })
	if present {
		finalizers = append(finalizers, finalizer)
	}
	// The resource version makes the API server refuse this if someone else changed the list meanwhile.
	metadata := map[string]any{"finalizers": finalizers, "resourceVersion": cr.GetResourceVersion()}
	if err := w.patch(ctx, cr, metadata, "metadata"); err != nil {
		return fmt.Errorf("patching finalizers: %w", err)
	}
	return nil
}

// patch sends a merge patch of cr, or of its status, and makes cr what became of it. Of the answer only the metadata is asked for:
// the rest was just sent.
func (w *writer) patch(ctx context.Context, cr *unstructured.Unstructured, change map[string]any, field string) error {
	data, err := json.Marshal(map[string]any{field: change})
	if err != nil {
		return err
	}
	answer := &metav1.PartialObjectMetadata{}
	answer.SetGroupVersionKind(cr.GroupVersionKind())
	answer.SetNamespace(cr.GetNamespace())
	answer.SetName(cr.GetName())
	patch := client.RawPatch(types.MergePatchType, data)
	if field == "status" {
		err = w.client.Status().Patch(ctx, answer, patch, client.FieldOwner(kind.Manager))
	} else {
		err = w.client.Patch(ctx, answer, patch, client.FieldOwner(kind.Manager))
	}
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	w.wrote(ctx, cr, change, field, answer)
	return nil
}

// wrote makes cr what it is after a change, and remembers that until the cache shows it.
func (w *writer) wrote(ctx context.Context, cr *unstructured.Unstructured, change map[string]any, field string, answer client.Object) {
	object := maps.Clone(cr.Object) // the cache has the other, and all below it
	if field == "status" {
		object[field] = merged(object[field], change)
	}
	metadata, _ := object["metadata"].(map[string]any)
	object["metadata"] = maps.Clone(metadata)
	cr.Object = object
	cr.SetResourceVersion(answer.GetResourceVersion())
	cr.SetFinalizers(answer.GetFinalizers())

	req := requestFor(cr)
	w.mu.Lock()
	w.written[req] = &unstructured.Unstructured{Object: cr.Object}
	w.mu.Unlock()
	// The event of the write may have come before its answer.
	cached := prototype(cr.GroupVersionKind())
	if err := w.crs.Get(ctx, req.NamespacedName, cached, client.UnsafeDisableDeepCopy); err == nil {
		w.seen(req, cached)
	}
}

// merged returns what a merge patch makes of old. Neither is changed.
func merged(old any, change map[string]any) map[string]any {
	fields, _ := old.(map[string]any)
	out := maps.Clone(fields)
	if out == nil {
		out = map[string]any{}
	}
	for field, value := range change {
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, field)
		case isMap:
			out[field] = merged(out[field], inner)
		default:
			out[field] = value
		}
	}
	return out
}
