// Package validate checks a custom resource against its kind's CUE schema and computes the chart's values from it. It is pure:
// it knows no cluster and no clock.
package validate

import (
	"errors"
	"fmt"
	"math"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Spec checks the spec of the custom resource called name, in JSON's types with whole numbers as int64, and returns the
// chart's values: defaults filled in, settings derived. What the API server would store is what counts: a null is an absent field,
// unless the schema allows null or does not know the field, 1.0 is 1, and a spec that is nil is empty. spec is neither changed nor
// copied before it is known to be of reasonable size.
//
// A spec that breaks the schema gives an *InvalidError; any other error is a fault of the kind itself.
func Spec(k *kind.Kind, name string, spec any) (kind.Values, error) {
	if err := checkSize(spec); err != nil {
		return nil, err
	}
	return kind.Evaluate(k, "the schema", func(p *kind.Program) (kind.Values, error) { return evaluate(k, p, name, spec) })
}

// Status checks that status, computed by the kind's report, is what the kind declares as the status of its custom resources.
func Status(k *kind.Kind, cr *unstructured.Unstructured, status map[string]any) error {
	_, err := kind.Evaluate(k, "the status", func(p *kind.Program) (any, error) {
		input := object(k, p, cr.GetName(), cr.Object["spec"])
		input["status"] = status
		err := p.Object.Unify(cuecontext.New().Encode(input)).Validate(cue.Concrete(true), cue.Final())
		if err != nil {
			return nil, fmt.Errorf("the report is not the status that the kind declares: %w", newInvalidError(input, len(p.Object.Path().Selectors()), err))
		}
		return nil, nil
	})
	return err
}

func evaluate(k *kind.Kind, p *kind.Program, name string, spec any) (kind.Values, error) {
	input := object(k, p, name, spec)
	// A context of its own for each input: what is encoded into a shared one is never freed.
	result := p.Plan.FillPath(cue.MakePath(cue.Def("object")), cuecontext.New().Encode(input))
	if err := result.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return nil, explain(k, p, input, err)
	}
	var values kind.Values
	if err := result.Decode(&values); err != nil {
		return nil, fmt.Errorf("decoding the chart's values of %s: %w", k.Names.Kind, err)
	}
	return values, nil
}

// explain tells the faults of the input from those of the kind's calculations, in which err may be, too: it looks at the input
// by itself.
func explain(k *kind.Kind, p *kind.Program, input map[string]any, err error) error {
	checked := p.Object.Unify(cuecontext.New().Encode(input))
	if invalid := checked.Validate(cue.Concrete(true), cue.Final()); invalid != nil {
		return newInvalidError(input, len(p.Object.Path().Selectors()), invalid)
	}
	return fmt.Errorf("computing the chart's values of %s: %s", k.Names.Kind, kind.Explain(err))
}

// object returns the custom resource as CUE sees it.
func object(k *kind.Kind, p *kind.Program, name string, spec any) map[string]any {
	o := map[string]any{
		"apiVersion": k.GVK().GroupVersion().String(),
		"kind":       k.Names.Kind,
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{},
	}
	if spec != nil {
		o["spec"] = stored(spec, func() cue.Value { return p.Object.LookupPath(cue.MakePath(cue.Str("spec"))) })
	}
	return o
}

// IsInvalid tells whether err says that a spec breaks its schema.
func IsInvalid(err error) bool {
	_, ok := errors.AsType[*InvalidError](err)
	return ok
}

// mostWhole is up to where the API server takes a number such as 3.0 for an integer.
const mostWhole = 1<<53 - 1

// stored returns a copy of v as the API server would store it. schema returns what CUE says of v; it is called only where it
// matters, since it costs more than the copy.
func stored(v any, schema func() cue.Value) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			field := func() cue.Value { return fieldOf(schema(), key) }
			if value != nil || !isAbsent(field()) {
				out[key] = stored(value, field)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = stored(v[i], func() cue.Value { return elementOf(schema()) })
		}
		return out
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= mostWhole {
			return int64(v)
		}
	}
	return v
}

// fieldOf returns what a struct declares as a field; of a map, what it says of all values, be the key as it may.
func fieldOf(v cue.Value, key string) (pattern cue.Value) {
	if !v.Exists() {
		return v
	}
	fields, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	for err == nil && fields.Next() {
		switch s := fields.Selector(); {
		case s.ConstraintType() == cue.PatternConstraint:
			pattern = fields.Value()
		case s.Unquoted() == key:
			return fields.Value()
		}
	}
	return pattern
}

// elementOf returns what a list says of its entries. One that must not be empty says it only in a part of its conjunction.
func elementOf(v cue.Value) (none cue.Value) {
	if !v.Exists() {
		return v
	}
	if element := v.LookupPath(cue.MakePath(cue.AnyIndex)); element.Exists() {
		return element
	}
	if op, parts := v.Expr(); op == cue.AndOp {
		for _, part := range parts {
			if element := elementOf(part); element.Exists() {
				return element
			}
		}
	}
	return none
}

// isAbsent tells whether a null counts as absent.
func isAbsent(field cue.Value) bool {
	if !field.Exists() {
		return false
	}
	types := field.IncompleteKind()
	return types == cue.TopKind || types&cue.NullKind == 0
}
