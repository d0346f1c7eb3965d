// Package validate checks a custom resource against its kind's CUE schema and computes the chart's values from it. It is pure:
// it knows no cluster and no clock.
package validate

import (
	"errors"
	"fmt"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Spec checks the spec of the custom resource called name, in JSON's types with whole numbers as int64, and returns the
// chart's values: defaults filled in, settings derived. A null counts as absent, and so does a spec that is nil. spec is
// neither changed nor copied before it is known to be of reasonable size.
//
// A spec that breaks the schema gives an *InvalidError; any other error is a fault of the kind itself.
func Spec(k *kind.Kind, name string, spec any) (kind.Values, error) {
	if err := checkSize(spec); err != nil {
		return nil, err
	}
	return kind.Evaluate(k, "the schema", func(p *kind.Program) (kind.Values, error) { return evaluate(k, p, name, spec) })
}

func evaluate(k *kind.Kind, p *kind.Program, name string, spec any) (kind.Values, error) {
	input := map[string]any{
		"apiVersion": k.GVK().GroupVersion().String(),
		"kind":       k.Names.Kind,
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{},
	}
	if spec != nil {
		input["spec"] = withoutNulls(spec)
	}
	// A context of its own for each input: what is encoded into a shared one is never freed.
	object := p.Object.Unify(cuecontext.New().Encode(input))
	if err := object.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return nil, newInvalidError(input, len(p.Object.Path().Selectors()), err)
	}
	result := p.Values.FillPath(cue.MakePath(cue.Def("object")), object)
	if err := result.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return nil, fmt.Errorf("computing the chart's values of %s: %s", k.Names.Kind, cueerrors.Details(err, nil))
	}
	var values kind.Values
	if err := result.Decode(&values); err != nil {
		return nil, fmt.Errorf("decoding the chart's values of %s: %w", k.Names.Kind, err)
	}
	return values, nil
}

// IsInvalid tells whether err says that a spec breaks its schema.
func IsInvalid(err error) bool {
	_, ok := errors.AsType[*InvalidError](err)
	return ok
}

// withoutNulls returns a copy of v without null fields at any depth.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if value != nil {
				out[key] = withoutNulls(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutNulls(v[i])
		}
		return out
	}
	return v
}
