package schema

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// scalar reads the constraints on a string, a number or a bool. What has a message of its own becomes a rule with that
// message; else the API server's own keywords and messages do.
func (r *reader) scalar(props *Props, path string, atoms []atom) {
	for _, a := range atoms {
		if a.isDisjunction() {
			r.alternatives(props, path, a)
		} else {
			r.constrain(props, path, a)
		}
	}
}

// constrain adds one constraint in the API server's own words where it has them.
func (r *reader) constrain(props *Props, path string, a atom) {
	switch {
	case a.isLiteral() && r.lenient: // computed, and so another one for another custom resource
	case a.isLiteral():
		r.enumerate(props, []atom{a})
	case a.call == "MinRunes":
		props.MinLength = a.count()
	case a.call == "MaxRunes":
		props.MaxLength = a.count()
	case a.call == "Time":
		props.Format = "date-time"
	case a.call != "":
		r.gap(path, a)
	case a.op == cue.RegexMatchOp && props.Pattern == "" && !props.XIntOrString:
		props.Pattern, _ = a.args[0].String()
		limitLength(props, maxRunes(props.Pattern))
	case a.op == cue.NoOp:
	default:
		if isNumber(a) && props.Type != "" && r.bound(props, a) {
			return
		}
		r.rule(props, path, [][]atom{{a}}, "")
	}
}

// bound adds a bound on a number. It tells whether the API server has a word for it.
func (r *reader) bound(props *Props, a atom) bool {
	limit, err := a.args[0].Float64()
	if err != nil || math.Abs(limit) > 1<<53 {
		return false
	}
	switch a.op {
	case cue.GreaterThanEqualOp, cue.GreaterThanOp:
		props.Minimum, props.ExclusiveMinimum = &limit, a.op == cue.GreaterThanOp
	case cue.LessThanEqualOp, cue.LessThanOp:
		props.Maximum, props.ExclusiveMaximum = &limit, a.op == cue.LessThanOp
	default:
		return false
	}
	return true
}

// alternatives adds a disjunction: an enumeration, or a rule.
func (r *reader) alternatives(props *Props, path string, d atom) {
	// That null is allowed is told by nullable.
	d.arms = slices.DeleteFunc(slices.Clone(d.arms), func(arm []atom) bool { return len(arm) == 1 && arm[0].kind() == cue.NullKind })
	if len(d.arms) == 1 && d.message == "" {
		r.scalar(props, path, d.arms[0])
		return
	}
	literals, free := true, true
	longest := int64(0)
	for _, arm := range d.arms {
		literals = literals && len(arm) == 1 && arm[0].isLiteral()
		free = free && len(arm) == 1 && !arm[0].isLiteral() && arm[0].call == "" && arm[0].op == cue.NoOp
		if longest >= 0 {
			if n := longestOf(arm); n < 0 || n > longest {
				longest = n
			}
		}
	}
	switch {
	case free: // such as int | string
	case literals && d.message == "":
		var all []atom
		for _, arm := range d.arms {
			all = append(all, arm...)
		}
		r.enumerate(props, all)
	default:
		if longest >= 0 && (props.Type == "string" || props.XIntOrString) {
			limitLength(props, longest)
		}
		r.rule(props, path, d.arms, d.message)
	}
}

// enumerate allows only the given literals, of those that were allowed before.
func (r *reader) enumerate(props *Props, literals []atom) {
	var enum []apiextensionsv1.JSON
	for _, l := range literals {
		data, err := l.value.MarshalJSON()
		if err != nil || l.value.IncompleteKind() == cue.NullKind {
			continue
		}
		known := slices.ContainsFunc(props.Enum, func(j apiextensionsv1.JSON) bool { return string(j.Raw) == string(data) })
		if props.Enum == nil || known {
			enum = append(enum, apiextensionsv1.JSON{Raw: data})
		}
	}
	props.Enum = enum
}

// rule adds a rule in CEL that one of the arms holds.
func (r *reader) rule(props *Props, path string, arms [][]atom, message string) {
	var tests []string
	for _, arm := range arms {
		var parts []string
		if props.XIntOrString {
			parts = append(parts, typeTest(arm))
		}
		for _, a := range arm {
			if a.call == "MaxRunes" && len(arms) == 1 && props.MaxLength != nil {
				continue // said already
			}
			test, ok := celTest(a, props.Type == "number")
			if !ok {
				r.gap(path, a)
			}
			if test != "" {
				parts = append(parts, test)
			}
		}
		if len(parts) == 0 {
			return // an arm that allows everything
		}
		tests = append(tests, strings.Join(parts, " && "))
	}
	if message == "" {
		message = "must be " + describe(arms)
	}
	rule := tests[0]
	if len(tests) > 1 {
		rule = "(" + strings.Join(tests, ") || (") + ")"
	}
	if needsLength(arms) && props.MaxLength == nil {
		r.refuse(path, position(values(arms[0])), "bound the string, such as strings.MaxRunes(253) & …: the API server runs no regular expression on endless strings")
	}
	require(props, apiextensionsv1.ValidationRule{Rule: rule, Message: message})
}

// gap notes a constraint that the API server cannot check.
func (r *reader) gap(path string, a atom) {
	r.gaps = append(r.gaps, Gap{Path: path, Rule: fmt.Sprintf("must satisfy %v", a.value)})
}

// celTest returns the test of self in CEL; empty if there is nothing to test. ok is false if CEL cannot say it.
func celTest(a atom, float bool) (test string, ok bool) {
	operand := ""
	if len(a.args) > 0 {
		operand = celLiteral(a.args[0], float)
	}
	switch {
	case a.isDisjunction():
		var tests []string
		for _, arm := range a.arms {
			var parts []string
			for _, inner := range arm {
				t, ok := celTest(inner, float)
				if !ok {
					return "", false
				}
				if t != "" {
					parts = append(parts, t)
				}
			}
			if len(parts) == 0 {
				return "", true
			}
			tests = append(tests, strings.Join(parts, " && "))
		}
		return "((" + strings.Join(tests, ") || (") + "))", true
	case a.isLiteral():
		return "self == " + celLiteral(a.value, float), true
	case a.call == "MaxRunes":
		return "self.size() <= " + operand, true
	case a.call == "MinRunes":
		return "self.size() >= " + operand, true
	case a.call != "":
		return "", false
	case a.op == cue.RegexMatchOp:
		return "self.matches(" + operand + ")", true
	case a.op == cue.NotRegexMatchOp:
		return "!self.matches(" + operand + ")", true
	case a.op == cue.NoOp:
		return "", true
	}
	return fmt.Sprintf("self %s %s", a.op, operand), true
}

// typeTest tells an int from a string where both are allowed.
func typeTest(arm []atom) string {
	types := cue.TopKind
	for _, a := range arm {
		types &= a.kind()
	}
	if types == cue.StringKind {
		return "type(self) == string"
	}
	return "type(self) == int"
}

func celLiteral(v cue.Value, float bool) string {
	if s, err := v.String(); err == nil {
		return celString(s)
	}
	text := fmt.Sprint(v)
	if n, err := v.Int64(); err == nil {
		text = strconv.FormatInt(n, 10)
		if float {
			text += ".0"
		}
	}
	return text
}

// celString returns s as a literal in CEL, raw where it can be: regular expressions are full of backslashes.
func celString(s string) string {
	if !strings.ContainsAny(s, "'\n\r") {
		if strings.Contains(s, `\`) {
			return "r'" + s + "'"
		}
		return "'" + s + "'"
	}
	return strconv.Quote(s)
}

var self = regexp.MustCompile(`\bself\b`)

// replaceSelf returns rule about what stands elsewhere than in self. Rules are ours or a kind's, whose literals have no self.
func replaceSelf(rule, with string) string { return self.ReplaceAllLiteralString(rule, with) }

// celField returns a field's name as CEL writes it after a dot.
func celField(name string) string {
	return strings.NewReplacer("__", "__underscores__", ".", "__dot__", "-", "__dash__", "/", "__slash__").Replace(name)
}

// describe says in words what arms allow.
func describe(arms [][]atom) string {
	var all []string
	for _, arm := range arms {
		var parts []string
		for _, a := range arm {
			switch a.op {
			case cue.NotEqualOp:
				parts = append(parts, fmt.Sprintf("other than %v", a.args[0]))
			case cue.RegexMatchOp:
				parts = append(parts, fmt.Sprintf("text that matches %v", a.args[0]))
			case cue.NotRegexMatchOp:
				parts = append(parts, fmt.Sprintf("text that does not match %v", a.args[0]))
			default:
				parts = append(parts, fmt.Sprint(a.value))
			}
		}
		all = append(all, strings.Join(parts, " and "))
	}
	return strings.Join(all, ", or ")
}

func isNumber(a atom) bool {
	return len(a.args) == 1 && a.args[0].IncompleteKind()&cue.NumberKind != 0
}

// needsLength tells whether the cost of a test grows with the string.
func needsLength(arms [][]atom) bool {
	for _, arm := range arms {
		for _, a := range arm {
			if a.op == cue.RegexMatchOp || a.op == cue.NotRegexMatchOp || a.isDisjunction() && needsLength(a.arms) {
				return true
			}
		}
	}
	return false
}

func limitLength(props *Props, n int64) {
	if n >= 0 && (props.MaxLength == nil || n < *props.MaxLength) {
		props.MaxLength = &n
	}
}
