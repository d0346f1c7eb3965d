package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
	"github.com/example/memcached-operator/reconciler/render"
)

// Reconciler makes the cluster what custom resources say, and their status what the cluster says.
type Reconciler struct {
	kinds       *library
	crs         client.Reader // custom resources, cached
	client      client.Client // everything else: reads from the cache, and all writes
	applier     *apply.Applier
	watches     watcher
	writer      *writer
	reports     *reports
	events      *recorder
	metrics     *metrics
	kubeVersion string // which charts see, such as v1.36.3
	resync      time.Duration
}

// Reconcile brings one custom resource and its objects together. It returns a terminal error where only a change of the
// custom resource or of its kind can help, and any other error to be called again after a back-off.
func (r *Reconciler) Reconcile(ctx context.Context, req Request) (_ reconcile.Result, err error) {
	owner, err := r.get(ctx, req)
	if err != nil || owner.Unstructured == nil {
		return reconcile.Result{}, err
	}
	status := newStatus(owner.Unstructured)
	defer func() {
		err = errors.Join(err, r.finish(ctx, req, owner, status))
		r.metrics.of(req.GroupKind).reconciled(status.outcome(err))
	}()

	switch {
	case owner.GetDeletionTimestamp() != nil:
		return reconcile.Result{}, r.delete(ctx, req, owner, status)
	case status.pausedBy(owner):
		return reconcile.Result{}, nil
	case status.askedFor(owner): // by the annotation: nothing that is remembered counts
		r.applier.Forget(req.GroupKind, req.NamespacedName)
	}
	if err := r.deliver(ctx, req, owner, status); err != nil {
		return reconcile.Result{}, err
	}
	if status.isFresh() { // what was written has no effect to tell of yet
		status.ended = true
		return reconcile.Result{RequeueAfter: freshTime}, nil
	}
	return reconcile.Result{RequeueAfter: wait.Jitter(r.resync, 0.2)}, nil
}

// freshTime is how long objects that were written have until the status tells of them, unless they change before.
const freshTime = time.Second

// deliver makes the objects what the custom resource says: plan, apply, prune. It does nothing if it did so before and nothing
// has changed since.
func (r *Reconciler) deliver(ctx context.Context, req Request, owner apply.Owner, status *status) error {
	plan := planOf(owner)
	if result, current := r.applier.Recheck(ctx, owner, plan, status.inventory); current && owner.NeedsFinalizer(status.inventory) == hasFinalizer(owner.Unstructured) {
		r.metrics.of(req.GroupKind).applied(result)
		status.valid()
		status.applied(result)
		return nil
	}
	manifest, err := r.plan(owner, status)
	if err != nil {
		return err
	}
	objects, missing, err := r.prepare(ctx, req, owner, manifest, status)
	if err != nil {
		return status.applyFailed(err)
	}
	result, err := r.applier.Apply(ctx, owner, objects)
	status.live(result)
	r.events.applied(owner.Unstructured, result)
	r.metrics.of(req.GroupKind).applied(result)
	if apply.IsKindNotInstalled(err) {
		r.watches.recheck(ctx, ownership.NewInventory(objects).GVKs())
	}
	if err = errors.Join(err, missing.err(owner)); err != nil {
		return status.applyFailed(err)
	}
	wanted := ownership.NewInventory(objects)
	if err := r.prune(ctx, owner, status, wanted); err != nil {
		return status.applyFailed(err)
	}
	result.Skipped = missing.names()
	r.applier.Settle(owner, plan, wanted, result.Skipped)
	status.applied(result)
	return nil
}

// get returns the custom resource and its kind, or nothing if there is nothing to do: it is gone, or its kind is.
func (r *Reconciler) get(ctx context.Context, req Request) (apply.Owner, error) {
	k, served := r.kinds.get(req.GroupKind)
	if k == nil {
		r.forget(req)
		return apply.Owner{}, nil
	}
	cr := prototype(k.GVK())
	err := r.crs.Get(ctx, req.NamespacedName, cr, client.UnsafeDisableDeepCopy) // nobody changes it
	if client.IgnoreNotFound(err) != nil {
		return apply.Owner{}, fmt.Errorf("getting %s %s: %w", k.Names.Kind, req.NamespacedName, err)
	}
	if err != nil {
		r.forget(req)
		return apply.Owner{}, nil
	}
	if !served && cr.GetDeletionTimestamp() == nil {
		return apply.Owner{}, nil
	}
	return apply.Owner{Unstructured: r.writer.newest(req, cr), Kind: k}, nil
}

// forget drops all that is remembered of a custom resource.
func (r *Reconciler) forget(req Request) {
	r.applier.Forget(req.GroupKind, req.NamespacedName)
	r.writer.forget(req)
	r.reports.forget(req)
	r.watches.drop(req)
	r.metrics.of(req.GroupKind).forget(req.NamespacedName)
}

// prepare does what must come before the first write: it watches the objects, leaves out those whose kind is not installed, and
// writes down what there will be, so that no object is ever forgotten.
func (r *Reconciler) prepare(ctx context.Context, req Request, owner apply.Owner, manifest *render.Manifest, status *status) ([]*unstructured.Unstructured, missing, error) {
	wanted := ownership.NewInventory(manifest.Objects)
	notInstalled, err := r.watch(ctx, req, owner, wanted.Union(status.inventory))
	if err != nil {
		return nil, nil, err
	}
	objects, missing := split(manifest.Objects, notInstalled)
	if err := r.unplace(owner, objects); err != nil {
		return nil, nil, err
	}
	inventory := ownership.NewInventory(objects).Union(status.inventory)
	if !slices.Equal(inventory, status.inventory) {
		status.inventory = inventory
		status.begun()
		if err := r.write(ctx, owner, status); err != nil {
			return nil, nil, err
		}
	}
	if owner.NeedsFinalizer(inventory) {
		return objects, missing, r.writer.setFinalizer(ctx, owner.Unstructured, true)
	}
	return objects, missing, nil
}

// unplace takes the namespace from objects whose kind has none, which rendering cannot know of every kind.
func (r *Reconciler) unplace(owner apply.Owner, objects []*unstructured.Unstructured) error {
	if owner.Kind.Policies.Placement != kind.PlacementAnywhere {
		return nil // such objects are refused
	}
	for _, o := range objects {
		namespaced, err := r.client.IsObjectNamespaced(o)
		if err != nil {
			return apply.NewError(kind.Describe(o), err)
		}
		if !namespaced {
			o.SetNamespace("")
		}
	}
	return nil
}

// watch watches what the custom resource has or wants, and what its kind observes. It returns the kinds that the cluster does
// not know.
func (r *Reconciler) watch(ctx context.Context, req Request, owner apply.Owner, inventory apply.Inventory) ([]schema.GroupVersionKind, error) {
	var gvks []schema.GroupVersionKind
	for _, name := range owner.Kind.Observe {
		gvks = append(gvks, observedKinds[name])
	}
	return r.watches.use(ctx, req, append(gvks, inventory.GVKs()...))
}

// prune deletes the objects that the custom resource has and no longer wants. It comes after all others are applied, so that a
// mistake never takes away more than it gives.
func (r *Reconciler) prune(ctx context.Context, owner apply.Owner, status *status, wanted apply.Inventory) error {
	left, err := r.pruneAll(ctx, owner, status.inventory.Without(wanted))
	status.inventory = wanted.Union(left)
	if err == nil && !owner.NeedsFinalizer(status.inventory) {
		err = r.writer.setFinalizer(ctx, owner.Unstructured, false)
	}
	return err
}

// pruneAll deletes the objects of entries, and tells of it. It returns those that are still there.
func (r *Reconciler) pruneAll(ctx context.Context, owner apply.Owner, entries apply.Inventory) (left apply.Inventory, err error) {
	pruned, left, err := r.applier.Prune(ctx, owner, entries)
	r.events.pruned(owner.Unstructured, pruned)
	r.metrics.of(owner.Kind.GroupKind()).did(actionPruned, len(pruned))
	return left, err
}

// delete deletes what Kubernetes' garbage collector cannot, and lets the custom resource go. It needs neither the spec nor the
// chart. What the garbage collector deletes is only looked at, in order to name what holds it.
func (r *Reconciler) delete(ctx context.Context, req Request, owner apply.Owner, status *status) error {
	if !hasFinalizer(owner.Unstructured) {
		return r.nameBlocked(ctx, req, owner, status)
	}
	if !owner.Orphans() {
		left, err := r.pruneAll(ctx, owner, status.inventory)
		status.inventory = left
		if err != nil {
			return status.deletionBlocked(err)
		}
	}
	status.done()
	return r.writer.setFinalizer(ctx, owner.Unstructured, false)
}

// nameBlocked says which objects hold up a deletion that waits for its dependents.
func (r *Reconciler) nameBlocked(ctx context.Context, req Request, owner apply.Owner, status *status) error {
	if _, err := r.watch(ctx, req, owner, status.inventory); err != nil {
		return err
	}
	blocked, err := r.blocked(ctx, status.inventory)
	if err != nil || blocked == nil {
		status.done()
		return err
	}
	_ = status.deletionBlocked(blocked) // an event tells when it goes
	return nil
}

// missing are objects whose kind the cluster does not know.
type missing []*unstructured.Unstructured

// split tells the objects of kinds that are installed from the others.
func split(objects []*unstructured.Unstructured, notInstalled []schema.GroupVersionKind) (installed []*unstructured.Unstructured, rest missing) {
	for _, o := range objects {
		if slices.Contains(notInstalled, o.GroupVersionKind()) {
			rest = append(rest, o)
		} else {
			installed = append(installed, o)
		}
	}
	return installed, rest
}

// names returns "ServiceMonitor cache (monitoring.coreos.com/v1)" of each.
func (m missing) names() []string {
	var out []string
	for _, o := range m {
		out = append(out, fmt.Sprintf("%s (%s)", kind.Describe(o), o.GetAPIVersion()))
	}
	return out
}

// err returns an *apply.Error for each object that the kind does not allow to be left out.
func (m missing) err(owner apply.Owner) error {
	var errs []error
	for _, o := range m {
		if !owner.Kind.Policies.IsOptional(o.GroupVersionKind().GroupKind()) {
			errs = append(errs, apply.NotInstalled(kind.Describe(o), o.GetAPIVersion()))
		}
	}
	return errors.Join(errs...)
}
