package reconciler

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
)

// registry holds the kinds that are served. They come and go.
type registry struct {
	mu     sync.RWMutex
	kinds  map[schema.GroupKind]*kind.Kind
	listed []*kind.Kind // the same, in no order; never changed, but replaced
}

func newRegistry(kinds ...*kind.Kind) *registry {
	r := &registry{kinds: map[schema.GroupKind]*kind.Kind{}}
	for _, k := range kinds {
		r.set(k)
	}
	return r
}

// get returns the kind, nil if it is not served.
func (r *registry) get(gk schema.GroupKind) *kind.Kind {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.kinds[gk]
}

// all returns all kinds. The slice is shared.
func (r *registry) all() []*kind.Kind {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.listed
}

// set serves k, instead of another of its group and kind if there is one.
func (r *registry) set(k *kind.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds[k.GVK().GroupKind()] = k
	r.listed = slices.Collect(maps.Values(r.kinds))
}

// remove no longer serves the kind.
func (r *registry) remove(gk schema.GroupKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kinds, gk)
	r.listed = slices.Collect(maps.Values(r.kinds))
}
