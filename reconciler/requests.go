package reconciler

import (
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Request names a custom resource. All kinds share one queue.
type Request struct {
	schema.GroupKind
	types.NamespacedName
}

// String returns "Kind.group namespace/name".
func (r Request) String() string { return r.GroupKind.String() + " " + r.NamespacedName.String() }

func requestFor(cr client.Object) Request {
	return Request{cr.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(cr)}
}

func prototype(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// settleTime is how long a change of a pod or of an object's status waits for others to come: a rollout brings many at a time.
const settleTime = 300 * time.Millisecond

func (w *watches) handleCustomResources(gk schema.GroupKind) toolscache.ResourceEventHandler {
	request := func(o client.Object) Request { return Request{gk, client.ObjectKeyFromObject(o)} }
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if cr, ok := o.(client.Object); ok {
				w.enqueue(0, priorityOf(initial), request(cr))
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(client.Object)
			cr, ok2 := after.(*unstructured.Unstructured)
			if ok2 {
				w.seen(request(cr), cr)
			}
			if ok && ok2 && (old.GetGeneration() != cr.GetGeneration() || old.GetUID() != cr.GetUID() ||
				!maps.Equal(old.GetAnnotations(), cr.GetAnnotations()) ||
				!slices.Equal(old.GetFinalizers(), cr.GetFinalizers()) ||
				old.GetDeletionTimestamp().IsZero() != cr.GetDeletionTimestamp().IsZero()) {
				w.enqueue(0, 0, request(cr))
			}
		},
		DeleteFunc: func(o any) {
			if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = tombstone.Obj
			}
			if cr, ok := o.(client.Object); ok {
				w.enqueue(0, 0, request(cr))
			}
		},
	}
}

// priorityOf lets the changes of a running cluster go before the crowd of a start.
func priorityOf(initial bool) int {
	if initial {
		return handler.LowPriority
	}
	return 0
}

// handleObjects brings back the custom resources of the objects that change. Those that are there at the start bring nobody:
// whoever started the watch is at work, and looks at them.
func (w *watches) handleObjects() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if object, ok := o.(client.Object); ok && !initial {
				w.enqueue(settleTime, 0, w.owners(object)...)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(client.Object)
			object, ok2 := after.(client.Object)
			if !ok || !ok2 || old.GetResourceVersion() == object.GetResourceVersion() {
				return
			}
			w.enqueue(patience(old, object), 0, w.owners(object)...)
			if !maps.Equal(old.GetLabels(), object.GetLabels()) {
				w.enqueue(0, 0, w.owners(old)...)
			}
		},
		DeleteFunc: func(o any) {
			if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = tombstone.Obj
			}
			if object, ok := o.(client.Object); ok {
				w.enqueue(patience(nil, object), 0, w.owners(object)...)
			}
		},
	}
}

// patience returns how long the change of an object may wait: no time if it may have been changed or deleted by somebody else,
// settleTime if it is a pod, a job, or only the object's status is news.
func patience(old, object client.Object) time.Duration {
	switch object.(type) {
	case *corev1.Pod, *batchv1.Job:
		return settleTime
	}
	if old != nil && object.GetGeneration() > 0 && old.GetGeneration() == object.GetGeneration() &&
		maps.Equal(old.GetLabels(), object.GetLabels()) && old.GetDeletionTimestamp().IsZero() == object.GetDeletionTimestamp().IsZero() {
		return settleTime
	}
	return 0
}

func (w *watches) enqueue(after time.Duration, priority int, requests ...Request) {
	if queue, ok := w.queue.(priorityqueue.PriorityQueue[Request]); ok {
		queue.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, requests...)
		return
	}
	for _, req := range requests {
		w.queue.AddAfter(req, after)
	}
}

// owners returns the custom resource whose owner label o bears. The label rather than the owner reference says it, so that an
// object that lost its reference is found, too. The annotation says the namespace of a custom resource with objects elsewhere.
func (w *watches) owners(o client.Object) []Request {
	var out []Request
	objectLabels := o.GetLabels()
	for _, k := range w.kinds.Kinds() {
		name := objectLabels[k.OwnerLabel()]
		if name == "" {
			continue
		}
		req := Request{k.GroupKind(), types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}
		if owner, found := o.GetAnnotations()[kind.OwnerAnnotation]; found {
			req.Namespace, _, _ = strings.Cut(owner, "/")
		}
		if k.Scope == kind.ScopeCluster {
			req.Namespace = ""
		}
		out = append(out, req)
	}
	return out
}
