package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/dynamic"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
)

// everything asks the API server to do all but to write.
var everything = []string{metav1.DryRunAll}

// defaultManager is the field manager in whose name custom resources are applied that nobody has applied yet.
const defaultManager = "kubectl"

// dryRunResource returns what cr would be once its user applies it over live, which may be nil: with what kubectl apply would
// keep of live, and without what it would remove.
func (c *cluster) dryRunResource(ctx context.Context, live, cr *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	objects, _, err := c.in(cr.GroupVersionKind(), cr.GetNamespace())
	if err != nil {
		return nil, err
	}
	wanted := cr.DeepCopy()
	removeServers(wanted) // a file may come from the API server
	if live != nil {
		if last := live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; last != "" { // kubectl apply without --server-side
			patch, err := threeWay(last, wanted, live)
			if err != nil {
				return nil, err
			}
			return objects.Patch(ctx, cr.GetName(), types.MergePatchType, patch, metav1.PatchOptions{DryRun: everything})
		}
	}
	return objects.Apply(ctx, cr.GetName(), wanted, metav1.ApplyOptions{DryRun: everything, Force: true, FieldManager: applierOf(live)})
}

// threeWay returns the patch that kubectl apply sends for a custom resource: what wanted changes in live, and what last had and
// wanted has no more.
func threeWay(last string, wanted, live *unstructured.Unstructured) ([]byte, error) {
	if wanted.GetAnnotations() == nil { // kubectl puts its own there; without any, those of others would go, too
		wanted = wanted.DeepCopy()
		wanted.SetAnnotations(map[string]string{})
	}
	modified, err := wanted.MarshalJSON()
	if err != nil {
		return nil, err
	}
	current, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(last), modified, current)
	if err != nil {
		return nil, fmt.Errorf("comparing with what was last applied: %w", err)
	}
	return patch, nil
}

// applierOf returns the field manager that applies live.
func applierOf(live *unstructured.Unstructured) string {
	if live != nil {
		for _, f := range live.GetManagedFields() {
			if f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" && f.Manager != kind.Manager {
				return f.Manager
			}
		}
	}
	return defaultManager
}

// dryRun has the API server try what the operator would do for a custom resource.
type dryRun struct {
	cluster *cluster
	owner   ownership.Owner
	objects []*unstructured.Unstructured // all that it renders
	note    func(format string, args ...any)
}

// locate returns where o would be applied, and o without a namespace if its kind has none. It returns nothing for an object that
// would be left out.
func (r *dryRun) locate(o *unstructured.Unstructured) (*unstructured.Unstructured, dynamic.ResourceInterface, error) {
	objects, namespaced, err := r.cluster.in(o.GroupVersionKind(), o.GetNamespace())
	switch {
	case notInstalled(err) && r.owner.Kind.Policies.IsOptional(o.GroupVersionKind().GroupKind()):
		r.note("%s (%s) is left out, as the cluster does not know its kind", kind.Describe(o), o.GetAPIVersion())
		return nil, nil, nil
	case notInstalled(err):
		return o, nil, fmt.Errorf("the cluster does not know %s: it will be applied once that is installed", o.GetAPIVersion())
	case err != nil || namespaced:
		return o, objects, err
	}
	o = o.DeepCopy()
	o.SetNamespace("") // rendering cannot know it of every kind
	return o, objects, r.owner.RefuseClusterScoped(o)
}

// apply returns an object as it is, nil if it is not there, and as it would be.
func (r *dryRun) apply(ctx context.Context, objects dynamic.ResourceInterface, o *unstructured.Unstructured) (before, after *unstructured.Unstructured, err error) {
	claimed, _, err := r.owner.Claim(o)
	if err != nil {
		return nil, nil, err
	}
	before, err = getFrom(ctx, objects, o.GetName())
	switch {
	case err != nil:
	case before == nil:
		after, err = send(ctx, objects, claimed, true)
		if r.makesNamespaceOf(claimed, err) {
			return nil, claimed, nil
		}
	default:
		if err = r.owner.Objection(before); err == nil {
			after, err = r.update(ctx, objects, claimed, before)
		}
	}
	return before, after, discreet(o, err)
}

// update returns what live would be. As the operator does, it asks first and forces later, and forces nothing that is left to
// others.
func (r *dryRun) update(ctx context.Context, objects dynamic.ResourceInterface, claimed, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	after, err := send(ctx, objects, claimed, false)
	if conflicts := ownership.ConflictsIn(claimed, err); len(conflicts) > 0 {
		end := r.owner.Settle(claimed, conflicts)
		for _, c := range slices.Concat(end.Yielded, end.Reported) {
			r.note("%s of %s is left to %s", c.Field, c.Object, c.Manager)
		}
		for _, c := range end.Forced {
			r.note("%s of %s is taken back from %s", c.Field, c.Object, c.Manager)
		}
		after, err = send(ctx, objects, claimed, true)
	}
	if !ownership.IsImmutable(err) {
		return after, err
	}
	if !r.owner.MayRecreate(live.GroupVersionKind().GroupKind(), live) {
		return nil, fmt.Errorf("cannot be changed: undo the change, or allow the object to be deleted and created anew with the annotation %s=true: %w",
			ownership.RecreateAnnotation, err)
	}
	r.note("%s is deleted and created anew, as the change is refused", kind.Describe(live))
	return recreate(ctx, objects, claimed)
}

// recreate returns what an object would be if there were none of its name: the API server tries it under another one.
func recreate(ctx context.Context, objects dynamic.ResourceInterface, claimed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name := claimed.GetName()
	o := claimed.DeepCopy()
	o.SetName("")
	o.SetGenerateName(name + "-")
	o, err := objects.Create(ctx, o, metav1.CreateOptions{DryRun: everything, FieldManager: kind.Manager})
	if err != nil {
		return nil, err
	}
	o.SetGenerateName("")
	o.SetName(name)
	return o, nil
}

// prune returns an object of the inventory that the custom resource no longer wants, nil if it would not be deleted: it is gone, or
// is not the custom resource's.
func (r *dryRun) prune(ctx context.Context, e ownership.Entry) (*unstructured.Unstructured, error) {
	live, err := r.cluster.get(ctx, e.GVK(), e.Namespace, e.Name)
	if notInstalled(err) || live == nil || !r.owner.IsProven(live) {
		if notInstalled(err) {
			err = nil
		}
		return nil, err
	}
	return live, nil
}

// makesNamespaceOf tells whether err says that the namespace of o is missing, and the custom resource makes it.
func (r *dryRun) makesNamespaceOf(o *unstructured.Unstructured, err error) bool {
	return apierrors.IsNotFound(err) && slices.ContainsFunc(r.objects, func(other *unstructured.Unstructured) bool {
		return other.GetKind() == "Namespace" && other.GroupVersionKind().Group == "" && other.GetName() == o.GetNamespace()
	})
}

// send applies o in the operator's name and returns what would become of it.
func send(ctx context.Context, objects dynamic.ResourceInterface, o *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	return objects.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{DryRun: everything, Force: force, FieldManager: kind.Manager})
}

// discreet returns err without the API server's words if these may hold a Secret's values.
func discreet(o *unstructured.Unstructured, err error) error {
	if !isSecret(o) || !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsInternalError(err) {
		return err
	}
	var fields []string
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	return fmt.Errorf("the API server refuses it: %s %s", apierrors.ReasonForError(err), strings.Join(slices.Compact(fields), ", "))
}
