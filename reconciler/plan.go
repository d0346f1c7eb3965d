package reconciler

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/validate"
)

// maxPlans bounds the plans that are kept, a few dozen KiB each. A custom resource is reconciled several times while its pods
// start; the bound is on how many do so at a time without planning again.
const maxPlans = 256

// planner validates and renders. Both are pure, so that the same generation of a custom resource gives the same manifest.
type planner struct {
	kubeVersion string
	plans       *lru.Cache // of *render.Manifest by planID
}

type planID struct {
	kindDigest string
	uid        types.UID
	generation int64
}

func newPlanner(kubeVersion string) *planner {
	return &planner{kubeVersion: kubeVersion, plans: lru.New(maxPlans)}
}

// plan returns what cr wants to exist. The manifest is shared: it is not to be changed.
func (p *planner) plan(k *kind.Kind, cr *unstructured.Unstructured, status *status) (*render.Manifest, error) {
	id := planID{k.Digest, cr.GetUID(), cr.GetGeneration()}
	if known, ok := p.plans.Get(id); ok {
		status.valid()
		return known.(*render.Manifest), nil
	}
	spec, _, err := unstructured.NestedMap(cr.Object, "spec")
	if err != nil {
		return nil, status.invalid(fmt.Errorf("reading spec: %w", err))
	}
	values, err := validate.Spec(k, cr.GetName(), spec)
	if err != nil {
		return nil, status.invalid(err)
	}
	status.valid()
	manifest, err := render.Render(k, values, render.Target{Name: cr.GetName(), Namespace: cr.GetNamespace(), KubeVersion: p.kubeVersion})
	if err != nil {
		return nil, status.renderFailed(err)
	}
	p.plans.Add(id, manifest)
	return manifest, nil
}
