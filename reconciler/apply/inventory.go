package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Inventory lists the objects that a custom resource has or may have. It is kept in the status, sorted, each object once.
type Inventory []Entry

// Entry names an object. Its JSON form is an element of status.inventory.
type Entry struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// GVK returns the object's group, version and kind.
func (e Entry) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)
}

func (e Entry) id() objectID {
	return objectID{e.GVK().GroupKind(), types.NamespacedName{Namespace: e.Namespace, Name: e.Name}}
}

// String returns "Deployment cache".
func (e Entry) String() string { return e.Kind + " " + e.Name }

// NewInventory returns the inventory of objects.
func NewInventory(objects []*unstructured.Unstructured) Inventory {
	var out Inventory
	for _, o := range objects {
		out = append(out, Entry{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	return out.sorted()
}

func (i Inventory) sorted() Inventory {
	slices.SortFunc(i, compareEntries)
	return slices.CompactFunc(i, sameObject)
}

func compareEntries(a, b Entry) int {
	return cmp.Or(
		cmp.Compare(a.GVK().Group, b.GVK().Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion),
	)
}

// sameObject tells whether a and b are one object, be it in two versions of its API.
func sameObject(a, b Entry) bool {
	return a.GVK().GroupKind() == b.GVK().GroupKind() && a.Namespace == b.Namespace && a.Name == b.Name
}

// Union returns the objects of both.
func (i Inventory) Union(other Inventory) Inventory {
	return append(slices.Clone(other), i...).sorted()
}

// Without returns the objects of i that other lacks.
func (i Inventory) Without(other Inventory) Inventory {
	return slices.DeleteFunc(slices.Clone(i), func(e Entry) bool {
		return slices.ContainsFunc(other, func(o Entry) bool { return sameObject(e, o) })
	})
}

// GVKs returns the kinds of the objects.
func (i Inventory) GVKs() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, e := range i {
		out = append(out, e.GVK())
	}
	return out
}

// Unstructured returns the inventory as it stands in the status.
func (i Inventory) Unstructured() []any {
	out := make([]any, 0, len(i))
	for _, e := range i {
		entry := map[string]any{"apiVersion": e.APIVersion, "kind": e.Kind, "name": e.Name}
		if e.Namespace != "" {
			entry["namespace"] = e.Namespace
		}
		out = append(out, entry)
	}
	return out
}

// Prune deletes the objects that entries name, as far as they are the custom resource's: their owner label and the UID in
// their owner reference or annotation must both say so. It returns the names of those that it deleted, and the entries whose
// objects are still there, each with an *Error in err that says what holds it. What is not the custom resource's, or never
// was, is not touched and no longer listed.
func (a *Applier) Prune(ctx context.Context, owner Owner, entries Inventory) (pruned []string, left Inventory, err error) {
	var errs []error
	for _, e := range slices.Backward(entries) {
		deleted, err := a.pruneOne(ctx, owner, e)
		if deleted {
			pruned = append(pruned, e.String())
			logf.FromContext(ctx).Info("Pruned object", "object", e.String())
		}
		if err != nil {
			left = append(left, e)
			errs = append(errs, NewError(e.String(), err))
			continue
		}
		a.forget(owner, e.id())
	}
	return pruned, left.sorted(), errors.Join(errs...)
}

// pruneOne returns no error once the object is gone for sure, or is not ours to delete.
func (a *Applier) pruneOne(ctx context.Context, owner Owner, e Entry) (deleted bool, err error) {
	live, err := a.look(ctx, e)
	if err != nil || live == nil || !isProven(owner, live) {
		return false, err
	}
	if live.GetDeletionTimestamp() == nil {
		uid := live.GetUID()
		err := a.client.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		deleted = true
		if live, err = a.look(ctx, e); err != nil || live == nil || live.GetUID() != uid {
			return deleted, err
		}
	}
	return deleted, &blockedError{live.GetFinalizers()}
}

// look returns an object's metadata from the API server, nil if neither the object nor its kind is there.
func (a *Applier) look(ctx context.Context, e Entry) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(e.GVK())
	err := a.live.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, live)
	if client.IgnoreNotFound(err) == nil && err != nil || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return live, err
}

// isProven tells whether label and UID agree that live is the custom resource's.
func isProven(owner Owner, live client.Object) bool {
	return live.GetLabels()[owner.Kind.OwnerLabel()] == owner.GetName() && owner.relationTo(live) == ours
}

// blockedError says that an object is deleted, and not gone.
type blockedError struct{ finalizers []string }

func (e *blockedError) Error() string {
	if len(e.finalizers) == 0 {
		return "is being deleted"
	}
	return fmt.Sprintf("is being deleted and waits for its finalizers %s: whoever set them must remove them", kind.Shorten(strings.Join(e.finalizers, ", "), 200))
}
