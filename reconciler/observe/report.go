package observe

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/token"

	"github.com/example/memcached-operator/reconciler/kind"
)

// input is what the report of a kind is computed from.
type input struct {
	Metadata metadata    `json:"#metadata"`
	Observed Observation `json:"#observed"`
}

// metadata is #Metadata in schemas/kind.
type metadata struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Report returns the kind's part of the status of the custom resource namespace/name: JSON's types, whole numbers as int64.
// An error is a fault of the kind.
func Report(k *kind.Kind, namespace, name string, observed Observation) (map[string]any, error) {
	data := literal(reflect.ValueOf(input{metadata{namespace, name}, observed}))
	return kind.Evaluate(k, "the report", func(p *kind.Program) (map[string]any, error) { return evaluate(k, p, data) })
}

func evaluate(k *kind.Kind, p *kind.Program, data ast.Expr) (map[string]any, error) {
	// A context of its own for each input: what is built in a shared one is never freed. All of the input in one expression:
	// each value that is unified evaluates the report anew, and a value that was evaluated before is copied.
	result := p.Report.Unify(cuecontext.New().BuildExpr(data))
	if err := result.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return nil, fmt.Errorf("computing the report of %s: %s", k.Names.Kind, kind.Explain(err))
	}
	var report map[string]any
	if err := result.Decode(&report); err != nil {
		return nil, fmt.Errorf("decoding the report of %s: %w", k.Names.Kind, err)
	}
	return report, nil
}

// literal returns v as a CUE expression: structs by the names of their JSON form, lists, strings, booleans and whole numbers.
func literal(v reflect.Value) ast.Expr {
	switch v.Kind() {
	case reflect.Struct:
		s := &ast.StructLit{Elts: make([]ast.Decl, 0, v.NumField())}
		for i := range v.NumField() {
			if name := v.Type().Field(i).Tag.Get("json"); name != "-" {
				s.Elts = append(s.Elts, &ast.Field{Label: ast.NewIdent(name), Value: literal(v.Field(i))})
			}
		}
		return s
	case reflect.Slice:
		l := &ast.ListLit{Elts: make([]ast.Expr, v.Len())}
		for i := range l.Elts {
			l.Elts[i] = literal(v.Index(i))
		}
		return l
	case reflect.String:
		return ast.NewString(strings.ToValidUTF8(v.String(), "\uFFFD"))
	case reflect.Bool:
		return ast.NewBool(v.Bool())
	case reflect.Int64:
		return ast.NewLit(token.INT, strconv.FormatInt(v.Int(), 10))
	default:
		panic("observe: no literal for " + v.Kind().String())
	}
}
