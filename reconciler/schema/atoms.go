package schema

import (
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/token"
)

// atom is a part of a field's schema that is not a conjunction: a type, a struct, a list, a literal, a bound, a call of a
// validator such as strings.MaxRunes, or a disjunction.
type atom struct {
	value cue.Value
	// call is the name of the validator, without its package; empty for anything else.
	call string
	args []cue.Value
	// arms are those of a disjunction, each an atom list, without error("…"), whose text message is.
	arms    [][]atom
	message string
	// op is a bound's: >=, =~ and the like.
	op cue.Op
	// key is the pattern of the names of a map's fields.
	key cue.Value
}

// flatten returns the atoms of conjuncts, with references followed.
func (r *reader) flatten(path string, conjuncts ...cue.Value) (atoms []atom) {
	for _, v := range conjuncts {
		op, args := v.Expr()
		switch op {
		case cue.AndOp:
			atoms = append(atoms, r.flatten(path, args...)...)
		case cue.SelectorOp, cue.IndexOp:
			atoms = append(atoms, r.follow(path, v, args)...)
		case cue.OrOp:
			atoms = append(atoms, r.disjunction(path, v, args)...)
		case cue.CallOp:
			atoms = append(atoms, atom{value: v, call: callee(args[0]), args: args[1:]})
		case cue.GreaterThanOp, cue.GreaterThanEqualOp, cue.LessThanOp, cue.LessThanEqualOp, cue.NotEqualOp,
			cue.RegexMatchOp, cue.NotRegexMatchOp:
			atoms = append(atoms, atom{value: v, op: op, args: args[:1]})
		default:
			if inner := withoutDefault(v, args); inner.Exists() {
				atoms = append(atoms, r.flatten(path, inner)...)
			} else {
				atoms = append(atoms, atom{value: v})
			}
		}
	}
	return atoms
}

// withoutDefault returns T of *x | T, which CUE shows as T alone with a default. The default of a list literal is its own.
func withoutDefault(v cue.Value, args []cue.Value) (none cue.Value) {
	d, has := v.Default()
	if !has || len(args) != 1 {
		return none
	}
	if v.IncompleteKind() == cue.ListKind {
		if n, err := d.Len().Int64(); err != nil || n == 0 {
			return none
		}
	}
	return args[0]
}

// follow returns the atoms of what a reference leads to. Validators that take no argument look like references, too.
func (r *reader) follow(path string, v cue.Value, args []cue.Value) []atom {
	name, _ := args[len(args)-1].String()
	target := cue.Dereference(v)
	switch {
	case name == "UniqueItems" || name == "Time":
		return []atom{{value: v, call: name}}
	case !target.Exists() || target.Path().String() == v.Path().String() && target.Pos() == v.Pos(): // a definition may bear the name of another package's
		return []atom{{value: v}}
	}
	return r.flatten(path, target)
}

// disjunction returns the atoms of a disjunction: those of its only arm, if that says all.
func (r *reader) disjunction(path string, v cue.Value, args []cue.Value) []atom {
	d := atom{value: v}
	for _, arg := range args {
		if op, call := arg.Expr(); op == cue.CallOp && callee(call[0]) == "error" {
			d.message = "is not valid"
			if text, err := call[1].String(); err == nil {
				d.message = text
			}
			continue
		}
		d.arms = append(d.arms, r.flatten(path, arg))
	}
	d.arms = withoutRepetition(d.arms)
	if len(d.arms) == 1 && d.message == "" {
		return d.arms[0]
	}
	return []atom{d}
}

// withoutRepetition leaves out literals, mostly the default, that an arm beside them allows, too; arms that are disjunctions
// themselves become arms of the whole.
func withoutRepetition(arms [][]atom) (out [][]atom) {
	var literals, others [][]atom
	for _, arm := range arms {
		if len(arm) == 1 && arm[0].isLiteral() {
			literals = append(literals, arm)
		} else {
			others = append(others, arm)
		}
	}
	for _, l := range literals {
		allowed := false
		for _, arm := range others {
			all := true
			for _, a := range arm {
				all = all && a.value.Unify(l[0].value).Err() == nil
			}
			allowed = allowed || all
		}
		if !allowed {
			out = append(out, l)
		}
	}
	return append(out, others...)
}

// callee returns the name of a function, without its package.
func callee(f cue.Value) string {
	if op, args := f.Expr(); op == cue.SelectorOp {
		name, _ := args[len(args)-1].String()
		return name
	}
	return "error" // the one that is built in
}

func (a atom) isDisjunction() bool { return len(a.arms) > 0 }

func (a atom) isLiteral() bool {
	return a.call == "" && a.op == cue.NoOp && !a.isDisjunction() && a.value.IsConcrete() && a.value.IncompleteKind()&(cue.StructKind|cue.ListKind) == 0
}

// kind returns the types that the atom allows.
func (a atom) kind() cue.Kind {
	switch {
	case a.isDisjunction():
		kinds := cue.BottomKind
		for _, arm := range a.arms {
			k := cue.TopKind
			for _, inner := range arm {
				k &= inner.kind()
			}
			kinds |= k
		}
		return kinds
	case a.call == "UniqueItems":
		return cue.ListKind
	case a.op == cue.NotEqualOp:
		return cue.TopKind
	}
	return a.value.IncompleteKind()
}

// count returns the number that the atom's validator takes.
func (a atom) count() *int64 {
	if len(a.args) == 0 {
		return nil
	}
	n, err := a.args[0].Int64()
	if err != nil {
		return nil
	}
	return &n
}

func values(atoms []atom) (out []cue.Value) {
	for _, a := range atoms {
		out = append(out, a.value)
	}
	return out
}

// position returns the first position that is known.
func position(values []cue.Value) token.Pos {
	for _, v := range values {
		if p := v.Pos(); p.IsValid() {
			return p
		}
	}
	return token.NoPos
}
