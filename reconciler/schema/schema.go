// Package schema reads a kind's CUE as the structural schema that the API server wants in a CustomResourceDefinition. All that
// is generated for people and other programs follows from that one form. It is pure.
//
// No library does this. CUE's own encoders to OpenAPI and JSON Schema lose bounds beside defaults, write what is not
// structural, and know no rules in CEL.
package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/token"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Props is a schema of the API server.
type Props = apiextensionsv1.JSONSchemaProps

// Of returns the schema of the custom resources of k: properties.spec, properties.status, and the rules over the name. The
// error names file, line and field of everything that the API server could not check, or would silently prune.
func Of(k *kind.Kind) (*Props, error) {
	return kind.Evaluate(k, "the schema", func(p *kind.Program) (*Props, error) {
		r := newReader(k, false)
		root := r.root(p.Object)
		return root, r.problem()
	})
}

// Values returns the schema of the chart's values, as far as CUE knows it without a custom resource: what it computes may be
// of any type.
func Values(k *kind.Kind) (*Props, error) {
	return kind.Evaluate(k, "the chart's values", func(p *kind.Program) (*Props, error) {
		r := newReader(k, true)
		return r.field("", []cue.Value{p.Values}), r.problem()
	})
}

// Widen lets the schema of a chart's values take value, too: fields that are there under a condition only are not known without
// a custom resource. They may be of any type.
func Widen(values *Props, value map[string]any) {
	if len(values.Properties) == 0 {
		return // takes anything
	}
	for key, inner := range value {
		field, found := values.Properties[key]
		if !found {
			field = Props{XPreserveUnknownFields: new(true)}
		} else if fields, ok := inner.(map[string]any); ok {
			Widen(&field, fields)
		}
		values.Properties[key] = field
	}
}

// Gap is a rule that the operator checks and the API server does not.
type Gap struct {
	// Path is the field's: spec.size.
	Path string
	// Rule says what is checked.
	Rule string
}

// Gaps returns what only the operator checks of a custom resource of k, sorted by field.
func Gaps(k *kind.Kind) ([]Gap, error) {
	return kind.Evaluate(k, "the schema", func(p *kind.Program) ([]Gap, error) {
		r := newReader(k, false)
		r.root(p.Object)
		slices.SortStableFunc(r.gaps, func(a, b Gap) int { return cmp.Compare(a.Path, b.Path) })
		return r.gaps, r.problem()
	})
}

// reader walks the CUE of one kind.
type reader struct {
	folder string
	// lenient takes what has no type for anything.
	lenient  bool
	problems []error
	gaps     []Gap
	// positions are where fields are declared, by their paths.
	positions map[string]token.Pos
}

func newReader(k *kind.Kind, lenient bool) *reader {
	return &reader{folder: k.Folder, lenient: lenient, positions: map[string]token.Pos{}}
}

// problem returns all problems, each once: a definition that is used twice is read twice.
func (r *reader) problem() error {
	var distinct []error
	for _, p := range r.problems {
		if !slices.ContainsFunc(distinct, func(d error) bool { return d.Error() == p.Error() }) {
			distinct = append(distinct, p)
		}
	}
	return errors.Join(distinct...)
}

// refuse notes a problem with the field at path, at the first of positions that is known.
func (r *reader) refuse(path string, at token.Pos, format string, args ...any) {
	if r.lenient {
		return
	}
	where := "schemas/" + r.folder
	if at.IsValid() {
		where = fmt.Sprintf("%s:%d", strings.TrimLeft(at.Filename(), "./"), at.Line())
	}
	r.problems = append(r.problems, fmt.Errorf("%s: %s: %s", where, path, fmt.Sprintf(format, args...)))
}

// field reads the schema of the field at path from its conjuncts.
func (r *reader) field(path string, conjuncts []cue.Value) *Props {
	atoms := r.flatten(path, conjuncts...)
	types := cue.TopKind
	for _, a := range atoms {
		types &= a.kind()
	}
	props := &Props{}
	if types&cue.NullKind != 0 && types != cue.TopKind {
		props.Nullable = true
		types &^= cue.NullKind
	}
	switch {
	case types == cue.StructKind:
		r.object(props, path, atoms)
	case types == cue.ListKind:
		r.array(props, path, atoms)
	case types == cue.TopKind:
		props.XPreserveUnknownFields = new(true)
	case types == cue.IntKind|cue.StringKind:
		props.XIntOrString = true
		r.scalar(props, path, atoms)
	case typeNames[types] != "":
		props.Type = typeNames[types]
		switch types {
		case cue.IntKind:
			props.Format = "int64"
		case cue.FloatKind:
			r.refuse(path, position(conjuncts), "write number for float: what a user writes as 1.0 is stored as 1, which is no float")
		}
		r.scalar(props, path, atoms)
	default:
		props.XPreserveUnknownFields = new(true)
		if types == cue.BottomKind {
			r.refuse(path, position(conjuncts), "no value can be of this type")
		} else {
			r.refuse(path, position(conjuncts), "the API server knows no field that may be %s: choose one, or int | string", types)
		}
	}
	return props
}

var typeNames = map[cue.Kind]string{
	cue.StringKind: "string", cue.BytesKind: "string", cue.IntKind: "integer", cue.BoolKind: "boolean",
	cue.NumberKind: "number", cue.FloatKind: "number",
}

// array reads a list.
func (r *reader) array(props *Props, path string, atoms []atom) {
	props.Type = "array"
	var elements []cue.Value
	unique := false
	for _, a := range atoms {
		switch {
		case a.call == "MinItems":
			props.MinItems = a.count()
		case a.call == "MaxItems":
			props.MaxItems = a.count()
		case a.call == "UniqueItems":
			unique = true
		case a.call != "":
			r.gap(path, a)
		default:
			if e := a.value.LookupPath(cue.MakePath(cue.AnyIndex)); e.Exists() {
				elements = append(elements, e)
			}
		}
	}
	items := &Props{XPreserveUnknownFields: new(true)}
	if len(elements) > 0 {
		items = r.field(path+"[]", elements)
	}
	props.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items}
	if props.MaxItems == nil {
		r.refuse(path, position(values(atoms)), "bound the list, such as list.MaxItems(16) & […]: a custom resource must not grow without end")
	}
	if unique {
		unify(props, items)
	}
}

// unify makes the entries of a list unique, by the cheapest means that the API server has for them.
func unify(props, items *Props) {
	switch {
	case items.Type != "object" && items.Type != "array":
		props.XListType = new("set")
	case len(items.Properties) == 1 && len(items.Required) == 1:
		props.XListType = new("map")
		props.XListMapKeys = items.Required
	default:
		require(props, apiextensionsv1.ValidationRule{
			Rule: "self.all(x, self.exists_one(y, x == y))", Message: "must not hold the same entry twice",
		})
	}
}

// object reads a struct.
func (r *reader) object(props *Props, path string, atoms []atom) {
	props.Type = "object"
	open := true
	var pattern *atom
	for _, a := range atoms {
		switch {
		case a.call == "MinFields":
			props.MinProperties = a.count()
		case a.call == "MaxFields":
			props.MaxProperties = a.count()
		case a.call != "" || a.isDisjunction():
			r.refuse(path, a.value.Pos(), "the API server knows no structs of different forms: declare all fields as optional, and say what goes together by kind.#Rule")
		default:
			open = open && isOpen(a.value)
			if it, err := a.value.Fields(cue.Patterns(true)); err == nil {
				for it.Next() {
					if it.Selector().ConstraintType() == cue.PatternConstraint {
						pattern = &atom{value: it.Value(), key: it.Selector().Pattern()}
					}
				}
			}
		}
	}
	for _, f := range r.fields(path, atoms) {
		if props.Properties == nil {
			props.Properties = map[string]Props{}
		}
		props.Properties[f.name] = *r.property(props, f)
	}
	require(props, r.rules(path, atoms)...)
	switch {
	case pattern != nil && len(props.Properties) > 0:
		r.refuse(path, pattern.value.Pos(), "the API server knows no struct with both declared fields and others by a pattern: keep them apart")
	case pattern != nil:
		r.free(props, path, *pattern)
	case open:
		props.XPreserveUnknownFields = new(true)
	}
	slices.Sort(props.Required)
}

// free reads a struct whose fields have any names that fit a pattern.
func (r *reader) free(props *Props, path string, pattern atom) {
	element := r.field(path+"[]", []cue.Value{pattern.value})
	props.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: element}
	if props.MaxProperties == nil {
		r.refuse(path, pattern.value.Pos(), "bound the map, such as struct.MaxFields(16) & {…}: a custom resource must not grow without end")
	}
	keys := r.field(path+" (keys)", []cue.Value{pattern.key})
	var tests []string
	message := "has a key that is not allowed"
	if keys.Pattern != "" {
		tests = append(tests, "key.matches("+celString(keys.Pattern)+")")
		message = "keys must match " + keys.Pattern
	}
	if keys.MaxLength != nil {
		tests = append(tests, fmt.Sprintf("key.size() <= %d", *keys.MaxLength))
	}
	if keys.MinLength != nil {
		tests = append(tests, fmt.Sprintf("key.size() >= %d", *keys.MinLength))
	}
	for _, rule := range keys.XValidations {
		tests = append(tests, "("+replaceSelf(rule.Rule, "key")+")")
		message = "keys " + rule.Message
	}
	if len(tests) > 0 {
		require(props, apiextensionsv1.ValidationRule{
			Rule: "self.all(key, " + strings.Join(tests, " && ") + ")", Message: message,
		})
	}
}

// require adds rules. A definition that is met in two conjuncts gives the same rule twice.
func require(props *Props, rules ...apiextensionsv1.ValidationRule) {
	for _, rule := range rules {
		if !slices.Contains(props.XValidations, rule) {
			props.XValidations = append(props.XValidations, rule)
		}
	}
}

// property reads a field of the struct whose schema parent is, with what only its place in the struct says: whether it may be
// left out, its default, its description.
func (r *reader) property(parent *Props, f *field) *Props {
	props := r.field(f.path, f.values)
	props.Description = f.description
	switch f.presence {
	case required:
		parent.Required = append(parent.Required, f.name)
	case regular:
		if d := r.defaultOf(f, props); d != nil {
			props.Default = &apiextensionsv1.JSON{Raw: d}
		} else if props.XPreserveUnknownFields == nil && !r.lenient {
			parent.Required = append(parent.Required, f.name)
		}
	}
	if f.mapKey != "" {
		props.XListType, props.XListMapKeys = new("map"), []string{f.mapKey}
	}
	if f.immutable {
		require(parent, immutable(f, props))
	}
	return props
}

// defaultOf returns the default of a field that is always there, as JSON; nil if it has none.
func (r *reader) defaultOf(f *field, props *Props) []byte {
	switch {
	case r.lenient:
		return nil
	case props.Type == "object":
		if len(props.Required) > 0 || props.MinProperties != nil {
			return nil
		}
		// In full: the API server would fill in the defaults of the fields, but it tries the rules on this by itself.
		whole := map[string]*apiextensionsv1.JSON{}
		for name, child := range props.Properties {
			if child.Default != nil {
				whole[name] = child.Default
			}
		}
		data, err := json.Marshal(whole)
		if err != nil {
			return nil
		}
		return data
	}
	for _, v := range f.values {
		d, has := v.Default()
		if !has && v.IsConcrete() && v.Err() == nil {
			d, has = v, true
		}
		if !has || !d.IsConcrete() {
			continue
		}
		if data, err := d.MarshalJSON(); err == nil {
			return data
		}
	}
	return nil
}
