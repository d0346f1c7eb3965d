package reconciler

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
)

// Reconciler makes the cluster what custom resources say, and their status what the cluster says.
type Reconciler struct {
	kinds    kinds
	client   client.Client
	planner  *planner // validates and renders
	applier  *apply.Applier
	watches  watcher
	statuses *statusWriter
	events   *recorder
}

// Reconcile brings one custom resource and its objects together. It returns a terminal error where only a change of the
// custom resource or of its kind can help, and any other error to be called again after a back-off.
func (r *Reconciler) Reconcile(ctx context.Context, req Request) (_ reconcile.Result, err error) {
	k := r.kinds[req.GroupKind]
	cr, err := r.get(ctx, k, req)
	if err != nil || cr == nil {
		return reconcile.Result{}, err
	}
	status := newStatus(cr)
	defer func() { err = errors.Join(err, r.finish(ctx, cr, status)) }()

	if err := r.report(ctx, k, cr, status); err != nil {
		return reconcile.Result{}, err
	}
	manifest, err := r.planner.plan(k, cr, status)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.watches.watch(ctx, manifest.Objects); err != nil {
		return reconcile.Result{}, status.applyFailed(err)
	}
	result, err := r.applier.Apply(ctx, cr, manifest.Objects)
	r.events.applied(cr, result)
	if err != nil {
		return reconcile.Result{}, status.applyFailed(err)
	}
	status.applied()

	observed, err := r.observe(ctx, k, cr, result.Live)
	if err != nil {
		return reconcile.Result{}, err
	}
	status.health(observe.Judge(observed))
	return reconcile.Result{}, nil
}

// get returns the custom resource, or nil if there is nothing to do for it: it is gone or going, and the garbage collector
// takes its objects along.
func (r *Reconciler) get(ctx context.Context, k *kind.Kind, req Request) (*unstructured.Unstructured, error) {
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(k.GVK())
	err := r.client.Get(ctx, req.NamespacedName, cr)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting %s %s: %w", k.Names.Kind, req.NamespacedName, err)
	}
	if err != nil || cr.GetDeletionTimestamp() != nil {
		r.applier.Forget(req.GroupKind, req.NamespacedName)
		r.statuses.forget(req)
		return nil, nil
	}
	return r.statuses.newest(req, cr), nil
}

// report looks at the pods and writes what the kind makes of them into the status. It comes first, so that the status also
// follows the pods of a custom resource that is invalid or cannot be applied.
func (r *Reconciler) report(ctx context.Context, k *kind.Kind, cr *unstructured.Unstructured, status *status) error {
	if err := r.watches.watchPods(ctx); err != nil {
		return status.applyFailed(err)
	}
	observed, err := r.observe(ctx, k, cr, nil)
	if err != nil {
		return err
	}
	report, err := observe.Report(k, cr.GetNamespace(), cr.GetName(), observed)
	if err != nil {
		return status.invalid(err)
	}
	status.report(report)
	return nil
}

// observe lists the pods of cr and sums them up together with its objects.
func (r *Reconciler) observe(ctx context.Context, k *kind.Kind, cr *unstructured.Unstructured, objects []*unstructured.Unstructured) (observe.Observation, error) {
	var pods corev1.PodList
	mine := client.MatchingLabels{k.OwnerLabel(): cr.GetName()}
	if err := r.client.List(ctx, &pods, client.InNamespace(cr.GetNamespace()), mine, client.UnsafeDisableDeepCopy); err != nil {
		return observe.Observation{}, fmt.Errorf("listing pods: %w", err)
	}
	return observe.Observe(observe.World{Objects: objects, Pods: pods.Items})
}

// finish writes the status and tells of what changed in it.
func (r *Reconciler) finish(ctx context.Context, cr *unstructured.Unstructured, status *status) error {
	before, after, err := r.statuses.write(ctx, cr, status)
	if err != nil {
		return err
	}
	for _, t := range transitions(before, after) {
		r.events.transition(cr, t)
		logf.FromContext(ctx).Info("Changed condition", "condition", t.Type, "status", t.Status, "reason", t.Reason, "message", t.Message)
	}
	return nil
}
