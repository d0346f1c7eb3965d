package kind

import (
	"fmt"
	"sync"
)

// evaluation is held while CUE evaluates anything. The evaluator completes shared values when they are first looked at, and
// does so without a lock (cuelang.org/go v0.17.1, found by the race detector); see docs/adr/0003.
var evaluation sync.Mutex

// Evaluate calls f, which evaluates CUE values of a kind, while no other call of Evaluate runs. A panic becomes an error about
// what is evaluated, such as "the schema of Memcached".
func Evaluate[T any](what string, f func() (T, error)) (result T, err error) {
	evaluation.Lock()
	defer evaluation.Unlock()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("evaluating %s: %v", what, r)
		}
	}()
	return f()
}
