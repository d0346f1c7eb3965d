package matrix

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
)

// maxChoices is up to how many values each value of an enumeration is to occur. One with more lists names, such as those of
// providers, rather than different ways to go.
const maxChoices = 8

// What stands for a name in the path of what is in a list or a map.
const (
	anyElement = "[]"
	anyValue   = "*"
)

// values are those that a field has in all samples: as they are given, and with the defaults filled in.
type values struct {
	given, completed []any
}

// fieldGap is what no sample does to a field.
type fieldGap struct {
	path []string
	what string
}

// String names the field as people write it: spec.tolerations[].key.
func (g fieldGap) String() string {
	return strings.ReplaceAll(strings.Join(g.path, "."), "."+anyElement, anyElement) + ": " + g.what
}

// fieldGaps walks the structural schema of a spec, and tells which fields no sample sets, and which values of enumerations and
// booleans no sample has, be it by default. count is the number of fields.
func fieldGaps(spec *apiextensionsv1.JSONSchemaProps, all values) (count int, gaps []fieldGap) {
	w := fieldWalker{}
	w.object([]string{"spec"}, spec, all, true)
	return w.count, w.gaps
}

type fieldWalker struct {
	count int
	gaps  []fieldGap
}

func (w *fieldWalker) add(path []string, format string, args ...any) {
	w.gaps = append(w.gaps, fieldGap{slices.Clone(path), fmt.Sprintf(format, args...)})
}

// object walks the fields of a struct, the elements of a list, the values of a map. told is whether to tell of gaps: what is
// below a field that no sample sets is only counted.
func (w *fieldWalker) object(path []string, props *apiextensionsv1.JSONSchemaProps, all values, told bool) {
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		field, at := props.Properties[name], append(slices.Clone(path), name)
		inside := values{pick(all.given, name), pick(all.completed, name)}
		w.count++
		isSet := len(inside.given) > 0
		if told && !isSet {
			w.add(at, "no sample sets it")
		}
		if told && isSet {
			w.choices(at, &field, inside.completed)
		}
		w.object(at, &field, inside, told && isSet)
	}
	if props.Items != nil && props.Items.Schema != nil {
		w.inner(append(slices.Clone(path), anyElement), props.Items.Schema, values{elements(all.given), elements(all.completed)}, told)
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		w.inner(append(slices.Clone(path), anyValue), props.AdditionalProperties.Schema, values{entries(all.given), entries(all.completed)}, told)
	}
}

// inner walks what is in a list or a map, which has no name of its own.
func (w *fieldWalker) inner(path []string, props *apiextensionsv1.JSONSchemaProps, all values, told bool) {
	filled := len(all.given) > 0
	if told && !filled {
		w.add(path[:len(path)-1], "is empty in all samples")
	}
	if told && filled {
		w.choices(path, props, all.completed)
	}
	w.object(path, props, all, told && filled)
}

// choices wants each value of an enumeration and of a boolean.
func (w *fieldWalker) choices(path []string, props *apiextensionsv1.JSONSchemaProps, completed []any) {
	var wanted []string
	for _, v := range props.Enum {
		wanted = append(wanted, string(v.Raw))
	}
	if props.Type == "boolean" && len(wanted) == 0 {
		wanted = []string{"true", "false"}
	}
	if len(wanted) > maxChoices {
		return
	}
	for _, want := range wanted {
		if !slices.ContainsFunc(completed, func(v any) bool { text, err := json.Marshal(v); return err == nil && string(text) == want }) {
			w.add(path, "is %s in no sample", want)
		}
	}
}

// pick returns the field of each of the structs that have it.
func pick(structs []any, name string) (found []any) {
	for _, s := range structs {
		if fields, ok := s.(map[string]any); ok && fields[name] != nil {
			found = append(found, fields[name])
		}
	}
	return found
}

// elements returns those of all lists.
func elements(lists []any) (found []any) {
	for _, l := range lists {
		if list, ok := l.([]any); ok {
			found = append(found, list...)
		}
	}
	return found
}

// entries returns the values of all maps.
func entries(all []any) (found []any) {
	for _, m := range all {
		if fields, ok := m.(map[string]any); ok {
			found = slices.AppendSeq(found, maps.Values(fields))
		}
	}
	return found
}

// specs returns the specs of all samples.
func specs(k *kind.Kind) (all values, err error) {
	for _, name := range slices.Sorted(maps.Keys(k.Samples)) {
		sample := plan.Sample(k, name, plan.SampleNamespace)
		completed, err := kind.Evaluate(k, "the defaults", func(p *kind.Program) (map[string]any, error) {
			var object struct{ Spec map[string]any }
			err := p.Object.Unify(cuecontext.New().Encode(sample.Object)).Decode(&object)
			return object.Spec, err
		})
		if err != nil {
			return values{}, fmt.Errorf("schemas/%s: sample %s: %w", k.Folder, name, err)
		}
		all.given = append(all.given, sample.Object["spec"])
		all.completed = append(all.completed, completed)
	}
	return all, nil
}

// own returns the schema of a spec without what the contract declares within its fields, such as the parts of an affinity: they
// are Kubernetes' own, and the chart hands them on.
func own(k *kind.Kind, spec *apiextensionsv1.JSONSchemaProps) (*apiextensionsv1.JSONSchemaProps, error) {
	return kind.Evaluate(k, "the schema", func(p *kind.Program) (*apiextensionsv1.JSONSchemaProps, error) {
		kept := spec.DeepCopy()
		for name, field := range kept.Properties {
			leaveOut(below(below(p.Object, "spec"), name), &field)
			kept.Properties[name] = field
		}
		return kept, nil
	})
}

// leaveOut removes the fields below v that the contract declares.
func leaveOut(v cue.Value, props *apiextensionsv1.JSONSchemaProps) {
	for name, field := range props.Properties {
		inside := below(v, name)
		if strings.HasPrefix(inside.Pos().Filename(), "/schemas/kind/") {
			delete(props.Properties, name)
			continue
		}
		leaveOut(inside, &field)
		props.Properties[name] = field
	}
	if props.Items != nil && props.Items.Schema != nil {
		leaveOut(below(v, anyElement), props.Items.Schema)
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		leaveOut(below(v, anyValue), props.AdditionalProperties.Schema)
	}
}

// places returns where the CUE declares the fields of gaps, file:line each, or else the kind's folder.
func places(k *kind.Kind, gaps []fieldGap) ([]string, error) {
	return kind.Evaluate(k, "the schema", func(p *kind.Program) (found []string, err error) {
		for _, gap := range gaps {
			where, v := "schemas/"+k.Folder, p.Object
			for _, name := range gap.path {
				if v = below(v, name); v.Pos().IsValid() {
					where = fmt.Sprintf("%s:%d", strings.TrimPrefix(v.Pos().Filename(), "/"), v.Pos().Line())
				}
			}
			found = append(found, where)
		}
		return found, nil
	})
}

// below returns a field of v, or what v says of the elements of a list or the values of a map.
func below(v cue.Value, name string) cue.Value {
	switch name {
	case anyElement:
		return v.LookupPath(cue.MakePath(cue.AnyIndex))
	case anyValue:
		return v.LookupPath(cue.MakePath(cue.AnyString))
	}
	return v.LookupPath(cue.MakePath(cue.Str(name).Optional()))
}
