package schema

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// presence says whether a field may be left out.
type presence int

const (
	optional presence = iota // a?
	required                 // a!
	regular                  // a, which CUE fills in, or else misses
)

// field is a field of a struct, with what all conjuncts of the struct say of it.
type field struct {
	name, path  string
	presence    presence
	values      []cue.Value
	description string
	immutable   bool   // @crd(immutable)
	mapKey      string // @crd(mapKey=name): the field that tells the entries of a list apart
	pos         token.Pos
}

// fields returns the fields of a struct in the order of their declaration, without hidden ones, definitions and patterns.
func (r *reader) fields(path string, atoms []atom) []*field {
	var fields []*field
	byName := map[string]*field{}
	for _, a := range atoms {
		if a.call != "" || a.isDisjunction() {
			continue
		}
		it, err := a.value.Fields(cue.Optional(true))
		if err != nil {
			r.refuse(path, a.value.Pos(), "%v", err)
			continue
		}
		for it.Next() {
			s := it.Selector()
			name := s.Unquoted()
			f := byName[name]
			if f == nil {
				f = &field{name: name, path: join(path, name), pos: it.Value().Pos()}
				byName[name] = f
				r.positions[f.path] = f.pos
				fields = append(fields, f)
			}
			f.add(s, it.Value())
		}
	}
	for _, a := range atoms {
		r.checkConditional(path, a.value, byName)
	}
	return fields
}

func (f *field) add(s cue.Selector, v cue.Value) {
	f.values = append(f.values, v)
	switch s.ConstraintType() {
	case cue.OptionalConstraint:
	case cue.RequiredConstraint:
		f.presence = max(f.presence, required)
	default:
		f.presence = regular
	}
	if f.description == "" {
		f.description = description(v)
	}
	if a := v.Attribute("crd"); a.Err() == nil {
		if is, err := a.Flag(0, "immutable"); err == nil && is {
			f.immutable = true
		}
		if key, found, err := a.Lookup(0, "mapKey"); err == nil && found {
			f.mapKey = key
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// description returns the first comment of a field or definition, its lines joined.
func description(v cue.Value) string {
	for _, group := range v.Doc() {
		if text := strings.Join(strings.Fields(group.Text()), " "); text != "" {
			return strings.TrimPrefix(text, "#")
		}
	}
	return ""
}

// title returns the comment of the definition that bears the kind's name.
func (r *reader) title(object cue.Value) string {
	_, conjuncts := object.Expr()
	for _, v := range conjuncts {
		if definition := cue.Dereference(v); len(definition.Path().Selectors()) == 1 && definition.Path().Selectors()[0].IsDefinition() {
			if text := description(definition); text != "" {
				return text
			}
		}
	}
	return ""
}

// ruleCheck leads to what kind.#Rule itself adds to a rule.
var ruleCheck = cue.MakePath(cue.Hid("_check", "github.com/example/memcached-operator/schemas/kind"))

// rules returns those over several fields of a struct: its hidden fields that are a kind.#Rule.
func (r *reader) rules(path string, atoms []atom) (rules apiextensionsv1.ValidationRules) {
	for _, a := range atoms {
		it, err := a.value.Fields(cue.Hidden(true), cue.Optional(true))
		if err != nil {
			continue // told by fields
		}
		for it.Next() {
			if it.Selector().LabelType() != cue.HiddenLabel {
				continue
			}
			message, err := it.Value().LookupPath(cue.ParsePath("message")).String()
			if err != nil {
				continue // a part of some calculation
			}
			if it.Value().LookupPath(cue.ParsePath("holds")).Exists() && !it.Value().LookupPath(ruleCheck).Exists() {
				r.refuse(join(path, it.Selector().String()), it.Value().Pos(), "is no kind.#Rule, so that nobody checks it. In a struct with a field kind, which that name means there, write #Rule, and #Rule: kind.#Rule beside the struct")
			}
			cel, err := it.Value().LookupPath(cue.ParsePath("cel")).String()
			if err != nil {
				r.gaps = append(r.gaps, Gap{Path: path, Rule: message})
				continue
			}
			rules = append(rules, apiextensionsv1.ValidationRule{Rule: cel, Message: message})
		}
	}
	return rules
}

// immutable returns the rule for a field that cannot be changed once it is set.
func immutable(f *field, props *Props) apiextensionsv1.ValidationRule {
	name := celField(f.name)
	same := "self." + name + " == oldSelf." + name
	if props.Default == nil && f.presence == optional {
		same = "has(self." + name + ") == has(oldSelf." + name + ") && (!has(self." + name + ") || " + same + ")"
	}
	return apiextensionsv1.ValidationRule{Rule: same, Message: f.name + " cannot be changed"}
}

// checkConditional refuses fields that a struct has only under an `if`: whoever reads the schema without a custom resource, as
// the API server does, does not see them, and prunes them.
func (r *reader) checkConditional(path string, v cue.Value, declared map[string]*field) {
	for _, s := range literals(v.Source()) {
		for _, element := range s.Elts {
			c, ok := element.(*ast.Comprehension)
			if !ok {
				continue
			}
			body, ok := c.Value.(*ast.StructLit)
			if !ok {
				continue
			}
			for _, e := range body.Elts {
				f, ok := e.(*ast.Field)
				if !ok {
					continue
				}
				name, _, err := ast.LabelName(f.Label)
				if err != nil || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#") {
					continue
				}
				if declared[name] == nil {
					r.refuse(join(path, name), f.Pos(), "is declared only under a condition, so that the API server would silently drop it: declare it beside the condition, too, as %s?: …", name)
				}
			}
		}
	}
}

// entry is a part of the custom resource whose schema is object: at path, as part of what whole makes.
type entry struct {
	object cue.Value
	path   string
	pos    token.Pos
	whole  func(any) any
}

func (e entry) field(name string, pos token.Pos) entry {
	return entry{e.object, join(e.path, name), pos, func(v any) any { return e.whole(map[string]any{name: v}) }}
}

func (e entry) element() entry {
	return entry{e.object, e.path + "[]", e.pos, func(v any) any { return e.whole([]any{v}) }}
}

// value is one in a map, under a name that most patterns allow.
func (e entry) value() entry {
	return entry{e.object, e.path + "[]", e.pos, func(v any) any { return e.whole(map[string]any{"a": v}) }}
}

// isClosed tells whether CUE refuses a field that is not declared.
func (e entry) isClosed() bool {
	tried := e.object.Unify(cuecontext.New().Encode(e.whole(map[string]any{"undeclared": true})))
	return slices.ContainsFunc(cueerrors.Errors(tried.Validate()), func(err cueerrors.Error) bool {
		format, _ := err.Msg()
		return strings.Contains(format, "not allowed")
	})
}

// checkEntries refuses structs in lists and maps that CUE takes with fields that they do not declare: the API server does not.
// Within a definition all is closed, but CUE forgets that in `list.MaxItems(8) & [...{…}]` (cuelang.org/go v0.17.1).
func (r *reader) checkEntries(e entry, props *Props) {
	isStruct := props.Type == "object" && props.XPreserveUnknownFields == nil && props.AdditionalProperties == nil
	if isStruct && strings.Contains(e.path, "[]") && !e.isClosed() {
		r.refuse(e.path, e.pos, "takes any field beside those that are declared: give it a definition of its own, such as [...#Entry]")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		field := props.Properties[name]
		r.checkEntries(e.field(name, r.positions[join(e.path, name)]), &field)
	}
	if props.Items != nil && props.Items.Schema != nil {
		r.checkEntries(e.element(), props.Items.Schema)
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		r.checkEntries(e.value(), props.AdditionalProperties.Schema)
	}
}

// isOpen tells whether a struct takes fields that it does not declare. What a definition holds is closed unless it says
// otherwise, but CUE forgets that of the entries of lists.
func isOpen(v cue.Value) bool {
	structs := literals(v.Source())
	for _, s := range structs {
		for _, element := range s.Elts {
			if _, ok := element.(*ast.Ellipsis); ok {
				return true
			}
		}
	}
	return len(structs) == 0 && v.Allows(cue.AnyString)
}

// literals returns the struct literals that a node of CUE's syntax consists of.
func literals(n ast.Node) []*ast.StructLit {
	switch n := n.(type) {
	case *ast.StructLit:
		return []*ast.StructLit{n}
	case *ast.Field:
		return literals(n.Value)
	case *ast.ParenExpr:
		return literals(n.X)
	case *ast.BinaryExpr:
		return append(literals(n.X), literals(n.Y)...)
	}
	return nil
}
