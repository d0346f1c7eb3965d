package reconciler

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/validate"
)

// planner validates and renders. Both are pure, so that the same plan gives the same manifest.
type planner struct {
	kubeVersion string
}

// planOf names what a custom resource wants: whatever decides over its objects.
func planOf(owner apply.Owner) string {
	return fmt.Sprintf("%s/%s/%d/%t", owner.Kind.Digest, owner.GetUID(), owner.GetGeneration(), owner.Orphans())
}

// plan returns what the custom resource wants to exist.
func (p planner) plan(owner apply.Owner, status *status) (*render.Manifest, error) {
	spec, _, err := unstructured.NestedFieldNoCopy(owner.Object, "spec")
	if err != nil {
		return nil, status.invalid(fmt.Errorf("reading spec: %w", err))
	}
	fields, _ := spec.(map[string]any)
	values, err := validate.Spec(owner.Kind, owner.GetName(), fields)
	if err != nil {
		return nil, status.invalid(err)
	}
	status.valid()
	target := render.Target{Name: owner.GetName(), Namespace: owner.GetNamespace(), KubeVersion: p.kubeVersion}
	manifest, err := render.Render(owner.Kind, values, target)
	if err != nil {
		return nil, status.renderFailed(err)
	}
	return manifest, nil
}
