package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
)

// world is what the cluster holds of a custom resource, as far as it may be read.
type world struct {
	objects map[ownership.Entry]*unstructured.Unstructured // nil for one that is missing
	failed  map[ownership.Entry]error                      // those that could not be read
	pods    []corev1.Pod
	jobs    []batchv1.Job
	events  []corev1.Event
	unknown []string // what could not be listed, and why
}

// look reads all that there is to say of cr. What cannot be read is no error, but is said to be unknown.
func (c *cluster) look(ctx context.Context, k *kind.Kind, cr *unstructured.Unstructured) *world {
	w := &world{objects: map[ownership.Entry]*unstructured.Unstructured{}, failed: map[ownership.Entry]error{}}
	namespaces := []string{cmp.Or(cr.GetNamespace(), metav1.NamespaceDefault)} // where events of cluster-scoped objects are
	for _, e := range statusOf(cr).Inventory {
		o, err := c.get(ctx, e.GVK(), e.Namespace, e.Name)
		if err != nil && !notInstalled(err) {
			w.failed[e] = err
		}
		w.objects[e] = o
		if e.Namespace != "" && !slices.Contains(namespaces, e.Namespace) {
			namespaces = append(namespaces, e.Namespace)
		}
	}
	place := cr.GetNamespace()
	if k.Policies.Placement == kind.PlacementAnywhere {
		place = metav1.NamespaceAll
	}
	own := metav1.ListOptions{LabelSelector: k.OwnerLabel() + "=" + cr.GetName()}
	isCronJob := func(e ownership.Entry) bool {
		return e.GVK().GroupKind() == batchv1.SchemeGroupVersion.WithKind("CronJob").GroupKind()
	}
	var err error
	if w.pods, err = list[corev1.Pod](ctx, c, corev1.SchemeGroupVersion.WithKind("Pod"), place, own); err != nil {
		w.unknown = append(w.unknown, fmt.Sprintf("pods: %v", err))
	}
	if slices.ContainsFunc(statusOf(cr).Inventory, isCronJob) {
		if w.jobs, err = list[batchv1.Job](ctx, c, batchv1.SchemeGroupVersion.WithKind("Job"), place, own); err != nil {
			w.unknown = append(w.unknown, fmt.Sprintf("jobs: %v", err))
		}
	}
	// The owner label names no namespace.
	w.pods = slices.DeleteFunc(w.pods, func(p corev1.Pod) bool { return isNamesakes(cr, &p) })
	w.jobs = slices.DeleteFunc(w.jobs, func(j batchv1.Job) bool { return isNamesakes(cr, &j) })
	for _, namespace := range namespaces {
		events, err := list[corev1.Event](ctx, c, corev1.SchemeGroupVersion.WithKind("Event"), namespace, metav1.ListOptions{})
		if err != nil {
			w.unknown = append(w.unknown, fmt.Sprintf("events: %v", err))
		}
		w.events = append(w.events, events...)
	}
	return w
}

// isNamesakes tells whether o, which bears cr's name, belongs to its namesake in another namespace.
func isNamesakes(cr *unstructured.Unstructured, o metav1.Object) bool {
	whose, found := o.GetAnnotations()[kind.OwnerAnnotation]
	return found && whose != cr.GetNamespace()+"/"+cr.GetName()
}

// pageSize is how many objects a list asks for at a time.
const pageSize = 500

// list returns the objects of a kind in a namespace, in all of them if it is "".
func list[T any](ctx context.Context, c *cluster, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions) ([]T, error) {
	objects, _, err := c.in(gvk, namespace)
	if err != nil {
		return nil, err
	}
	var out []T
	options.Limit = pageSize
	for {
		page, err := objects.List(ctx, options)
		if err != nil {
			return out, err
		}
		for i := range page.Items {
			var typed T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(page.Items[i].Object, &typed); err != nil {
				return out, fmt.Errorf("reading %s: %w", kind.Describe(&page.Items[i]), err)
			}
			out = append(out, typed)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}
