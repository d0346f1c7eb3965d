package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
)

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
		a.forget(owner, idOfEntry(e))
	}
	return pruned, left.Sorted(), errors.Join(errs...)
}

// pruneOne returns no error once the object is gone for sure, or is not ours to delete.
func (a *Applier) pruneOne(ctx context.Context, owner Owner, e ownership.Entry) (deleted bool, err error) {
	live, err := a.look(ctx, e)
	if err != nil || live == nil || !owner.IsProven(live) {
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
func (a *Applier) look(ctx context.Context, e ownership.Entry) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(e.GVK())
	err := a.live.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, live)
	if client.IgnoreNotFound(err) == nil && err != nil || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return live, err
}

// blockedError says that an object is deleted, and not gone.
type blockedError struct{ finalizers []string }

func (e *blockedError) Error() string {
	if len(e.finalizers) == 0 {
		return "is being deleted"
	}
	return fmt.Sprintf("is being deleted and waits for its finalizers %s: whoever set them must remove them", kind.Shorten(strings.Join(e.finalizers, ", "), 200))
}
