package reconciler

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/validate"
)

// TestAKindServesManyAtATime is for the race detector: workers share a kind, and with it its CUE values and its chart.
func TestAKindServesManyAtATime(t *testing.T) {
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	k := kind.Find(kinds, schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"})
	var workers errgroup.Group
	for w := range 8 {
		workers.Go(func() error {
			for i := range 100 {
				name := fmt.Sprintf("cache-%d", w)
				values, err := validate.Spec(k, name, map[string]any{"size": int64(i)})
				if err != nil {
					return err
				}
				if _, err := validate.Spec(k, name, map[string]any{"size": int64(-1 - i)}); !validate.IsInvalid(err) {
					return fmt.Errorf("size %d: %w", -1-i, err)
				}
				if _, err := render.Render(k, values, render.Target{Name: name, Namespace: "caches", KubeVersion: "v1.36.3"}); err != nil {
					return err
				}
				if _, err := observe.Report(k, "caches", name, observe.Observation{Pods: []observe.Pod{{Name: name}}}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		t.Fatal(err)
	}
}
