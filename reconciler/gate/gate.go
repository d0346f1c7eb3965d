// Package gate tries a kind out before it is served: its names, its policies, its templates, and all of its samples from
// validation to the report. It knows no cluster.
//
// It does not use Helm's own lint, which wants the chart in a folder on disk and brings half of Helm into the binary.
package gate

import (
	"errors"
	"slices"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
)

// Check returns everything for which k is not to be served, one line each, with file and line where they are known; nil if
// there is nothing.
func Check(k *kind.Kind) error {
	problems := slices.Concat(names(k), definitions(k), templates(k))
	root, err := schema.Of(k)
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		problems = append(problems, all.Unwrap()...)
	} else if err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 { // a sample is of no use before
		problems = samples(k, root)
	}
	return errors.Join(problems...)
}
