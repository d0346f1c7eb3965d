// Package plan turns a custom resource into the objects that it wants: validate, then render. It is pure: the same custom
// resource, kind and Kubernetes version give the same manifest.
package plan

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/validate"
)

// Took is how long the steps of a plan took; 0 for a step that was not reached.
type Took struct {
	Validate, Render time.Duration
}

// RenderError says that the chart failed although the custom resource is valid.
type RenderError struct{ Err error }

func (e *RenderError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RenderError) Unwrap() error { return e.Err }

// IsRenderError tells whether err says that the chart failed.
func IsRenderError(err error) bool {
	_, ok := errors.AsType[*RenderError](err)
	return ok
}

// Make returns what cr, a custom resource of kind k, wants to exist in a cluster of kubeVersion, such as v1.36.3. cr is not
// changed.
//
// A cr that breaks the schema gives a *validate.InvalidError, a chart that fails a *RenderError. Any other error is a fault of
// the kind's CUE, such as a *kind.RunawayError.
func Make(k *kind.Kind, cr *unstructured.Unstructured, kubeVersion string) (*render.Manifest, Took, error) {
	return makePlan(k, cr, render.Target{KubeVersion: kubeVersion})
}

// MakeStrict is Make, but a template that asks for a value that is not there is an error: for trying a kind out.
func MakeStrict(k *kind.Kind, cr *unstructured.Unstructured, kubeVersion string) (*render.Manifest, Took, error) {
	return makePlan(k, cr, render.Target{KubeVersion: kubeVersion, Strict: true})
}

func makePlan(k *kind.Kind, cr *unstructured.Unstructured, target render.Target) (*render.Manifest, Took, error) {
	var took Took
	start := time.Now()
	values, err := validate.Spec(k, cr.GetName(), cr.Object["spec"])
	took.Validate = time.Since(start)
	if err != nil {
		return nil, took, err
	}
	start = time.Now()
	target.Name, target.Namespace = cr.GetName(), cr.GetNamespace()
	manifest, err := render.Render(k, values, target)
	took.Render = time.Since(start)
	if err != nil {
		return nil, took, &RenderError{err}
	}
	return manifest, took, nil
}

// Samples are rendered for this namespace and this version of Kubernetes.
const (
	SampleNamespace   = "default"
	SampleKubeVersion = "v1.36.0"
)

// Sample returns a custom resource with one of the samples of k.
func Sample(k *kind.Kind, name, namespace string) *unstructured.Unstructured {
	cr := &unstructured.Unstructured{Object: map[string]any{"spec": k.Samples[name]}}
	cr.SetGroupVersionKind(k.GVK())
	cr.SetName(name)
	if k.Scope == kind.ScopeNamespaced {
		cr.SetNamespace(namespace)
	}
	return cr
}
