package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
)

// finish looks at what runs and writes the status, whatever became of the spec, so that the status also follows the pods of a
// custom resource that is invalid or cannot be applied.
func (r *Reconciler) finish(ctx context.Context, req Request, owner apply.Owner, status *status) error {
	if status.ended {
		return nil
	}
	err := errors.Join(r.report(ctx, req, owner, status), r.write(ctx, owner, status))
	r.metrics.of(req.GroupKind).observe(req.NamespacedName, status.conditions, len(status.inventory))
	return err
}

// report makes the status tell of what the cluster holds.
func (r *Reconciler) report(ctx context.Context, req Request, owner apply.Owner, status *status) error {
	if status.isFrozen {
		return nil
	}
	if status.result == nil { // nothing was applied: the watches are not sure to run
		if _, err := r.watch(ctx, req, owner, status.inventory); err != nil {
			return status.applyFailed(err)
		}
	}
	world, complete, err := r.gather(ctx, owner, status)
	if err != nil {
		return err
	}
	observed, err := observe.Observe(world)
	if err != nil {
		return err
	}
	fields, err := r.reports.of(req, owner, observed)
	if err != nil {
		return status.invalid(err)
	}
	status.report(fields)
	if complete {
		status.health(observe.Judge(observed))
	}
	return nil
}

// gather reads what the cluster holds of a custom resource. complete is false if it is not known how the objects fare: some
// could not be applied, or the cache lags behind what was.
func (r *Reconciler) gather(ctx context.Context, owner apply.Owner, status *status) (_ observe.World, complete bool, err error) {
	var world observe.World
	var objects []client.Object
	if status.result != nil && len(status.result.Live) == len(status.inventory) {
		objects, complete = status.result.Live, true
	} else {
		if objects, err = r.cached(ctx, status.inventory); err != nil {
			return world, false, err
		}
		complete = len(objects) > 0 && len(objects) == len(status.inventory) && (status.result == nil || status.result.Behind == 0)
	}
	for _, o := range objects {
		u, err := apply.Unstructured(r.client.Scheme(), o)
		if err != nil {
			return world, false, err
		}
		world.Objects = append(world.Objects, u)
	}
	for _, name := range owner.Kind.Observe {
		switch name {
		case kind.ObservePods:
			var pods corev1.PodList
			err = r.list(ctx, owner, &pods)
			world.Pods = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return isOthers(owner, &p) })
		case kind.ObserveJobs:
			var jobs batchv1.JobList
			err = r.list(ctx, owner, &jobs)
			world.Jobs = slices.DeleteFunc(jobs.Items, func(j batchv1.Job) bool { return isOthers(owner, &j) })
		}
		if err != nil {
			return world, false, fmt.Errorf("listing %ss: %w", name, err)
		}
	}
	return world, complete, nil
}

// list fills list with the objects that bear the custom resource's owner label. They are the cache's own.
func (r *Reconciler) list(ctx context.Context, owner apply.Owner, list client.ObjectList) error {
	options := []client.ListOption{client.MatchingFields{ownerIndex: owner.Kind.OwnerLabel() + "=" + owner.GetName()}, client.UnsafeDisableDeepCopy}
	if owner.Kind.Policies.Placement == kind.PlacementNamespace {
		options = append(options, client.InNamespace(owner.GetNamespace()))
	}
	return r.client.List(ctx, list, options...)
}

// isOthers tells whether o, which bears the owner's name, belongs to its namesake in another namespace.
func isOthers(owner apply.Owner, o client.Object) bool {
	whose, ok := o.GetAnnotations()[kind.OwnerAnnotation]
	return ok && whose != owner.GetNamespace()+"/"+owner.GetName()
}

// cached returns the objects of an inventory that the cache holds. They are the cache's own.
func (r *Reconciler) cached(ctx context.Context, inventory apply.Inventory) ([]client.Object, error) {
	var out []client.Object
	for _, e := range inventory {
		o := apply.NewObject(r.client.Scheme(), e.GVK())
		err := r.client.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, o, client.UnsafeDisableDeepCopy)
		switch {
		case err == nil:
			out = append(out, o)
		case client.IgnoreNotFound(err) != nil && !isNotWatched(err):
			return nil, fmt.Errorf("getting %s: %w", e, err)
		}
	}
	return out, nil
}

// isNotWatched tells whether err says that the cache does not hold such objects: their kind is not installed.
func isNotWatched(err error) bool {
	_, ok := errors.AsType[*cache.ErrResourceNotCached](err)
	return ok || meta.IsNoMatchError(err)
}

// blocked returns an error that names the objects which are deleted and held by a finalizer, nil if there are none.
func (r *Reconciler) blocked(ctx context.Context, inventory apply.Inventory) (blocked, err error) {
	objects, err := r.cached(ctx, inventory)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, o := range objects {
		finalizers := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), isGarbageCollectors)
		if o.GetDeletionTimestamp() == nil || len(finalizers) == 0 {
			continue
		}
		u, err := apply.Unstructured(r.client.Scheme(), o)
		if err != nil {
			return nil, err
		}
		errs = append(errs, apply.Blocked(kind.Describe(u), finalizers))
	}
	return errors.Join(errs...), nil
}

// isGarbageCollectors tells whether a finalizer is the garbage collector's own, which it removes by itself.
func isGarbageCollectors(finalizer string) bool {
	return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}

// write writes the status and tells of what changed in it.
func (r *Reconciler) write(ctx context.Context, owner apply.Owner, status *status) error {
	before, after, err := r.writer.write(ctx, owner.Unstructured, status)
	if err != nil {
		return err
	}
	r.metrics.of(owner.Kind.GroupKind()).transitioned(owner.GetCreationTimestamp(), before, after)
	for _, t := range transitions(before, after) {
		r.events.transition(owner.Unstructured, t)
		logf.FromContext(ctx).Info("Changed condition", "condition", t.Type, "status", t.Status, "reason", t.Reason, "message", t.Message)
	}
	return nil
}
