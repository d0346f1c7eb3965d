package reconciler

import (
	"hash/fnv"
	"sync"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/observe"
)

// reports remembers the last report of each custom resource: most reconciliations observe what the one before did, and CUE takes
// longer than all else that is done then.
type reports struct {
	mu   sync.Mutex
	last map[Request]report
}

// report is what a kind makes of an observation.
type report struct {
	digest string // of the kind
	input  uint64 // hash of the observation
	fields map[string]any
}

func newReports() *reports { return &reports{last: map[Request]report{}} }

// of returns the kind's part of the status. It is shared: it is not to be changed.
func (r *reports) of(req Request, owner apply.Owner, observed observe.Observation) (map[string]any, error) {
	data, err := json.Marshal(observed)
	if err != nil {
		return nil, err
	}
	hash := fnv.New64a()
	_, _ = hash.Write(data) // a hash takes everything
	now := report{digest: owner.Kind.Digest, input: hash.Sum64()}
	r.mu.Lock()
	last := r.last[req]
	r.mu.Unlock()
	if last.fields != nil && last.digest == now.digest && last.input == now.input {
		return last.fields, nil
	}
	if now.fields, err = observe.Report(owner.Kind, owner.GetNamespace(), owner.GetName(), observed); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[req] = now
	return now.fields, nil
}

func (r *reports) forget(req Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, req)
}
