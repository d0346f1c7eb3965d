package reconciler

import (
	"fmt"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/plan"
	"github.com/example/memcached-operator/reconciler/render"
)

// planOf names what a custom resource wants: whatever decides over its objects.
func planOf(owner apply.Owner) string {
	return fmt.Sprintf("%s/%s/%d/%t", owner.Kind.Digest, owner.GetUID(), owner.GetGeneration(), owner.Orphans())
}

// plan returns what the custom resource wants to exist.
func (r *Reconciler) plan(owner apply.Owner, status *status) (*render.Manifest, error) {
	manifest, took, err := plan.Make(owner.Kind, owner.Unstructured, r.kubeVersion)
	r.metrics.of(owner.Kind.GroupKind()).planned(took)
	switch {
	case plan.IsRenderError(err):
		status.valid()
		return nil, status.renderFailed(err)
	case err != nil:
		return nil, status.invalid(err)
	}
	status.valid()
	return manifest, nil
}
