package validate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	cueerrors "cuelang.org/go/cue/errors"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Bounds of an InvalidError's message: the fields that it names, and the bytes that it quotes of a value and of what CUE says.
const (
	maxFields = 5
	maxValue  = 60
	maxCause  = 300
)

// InvalidError says that a spec breaks its kind's schema.
type InvalidError struct {
	// Fields are the offending fields, sorted by path; never empty.
	Fields []FieldError
}

// FieldError is what is wrong with one field.
type FieldError struct {
	// Path leads to the field from the object's root, such as spec.image.pullSecrets[0].name.
	Path string
	// Message says what is wrong and what is allowed. It quotes the value where there is one.
	Message string
}

// Error returns "path: message" of the first fields, joined by "; ".
func (e *InvalidError) Error() string {
	var parts []string
	for i, f := range e.Fields {
		if i == maxFields {
			parts = append(parts, fmt.Sprintf("and %d more", len(e.Fields)-i))
			break
		}
		parts = append(parts, f.Path+": "+f.Message)
	}
	return strings.Join(parts, "; ")
}

// fieldCauses collects what CUE says of one field. A field with a default is a disjunction to CUE, which reports the
// failure of every alternative, the default's included; only the telling ones are for the user.
type fieldCauses struct {
	telling []string // bounds that were broken, the schema's own messages, unknown and missing fields
	types   []string // the types that were expected
	allowed []string // the values that were expected
}

// newInvalidError turns the errors that CUE found in input into one message per field. root is how many selectors of a CUE
// path lead to the schema of the whole input.
func newInvalidError(input map[string]any, root int, err error) *InvalidError {
	causes := map[string]*fieldCauses{}
	values := map[string]any{}
	for _, e := range cueerrors.Errors(err) {
		path, value, ok := locate(input, e.Path(), root)
		if !ok {
			continue // inside a calculation of the schema, which fails only because a field did
		}
		if causes[path] == nil {
			causes[path] = &fieldCauses{}
		}
		causes[path].add(e, value)
		values[path] = value
	}
	invalid := &InvalidError{}
	for _, path := range slices.Sorted(maps.Keys(causes)) {
		if message := causes[path].message(values[path]); message != "" {
			invalid.Fields = append(invalid.Fields, FieldError{Path: path, Message: message})
		}
	}
	if len(invalid.Fields) == 0 {
		invalid.Fields = []FieldError{{Path: "spec", Message: kind.Explain(err)}}
	}
	return invalid
}

// locate returns the field path and the input's value for the path of a CUE error. A trailing hidden field (a rule over
// several fields) stands for the struct that holds it. ok is false for a path that is not the input's.
func locate(input map[string]any, selectors []string, root int) (path string, value any, ok bool) {
	if len(selectors) <= root {
		return "", nil, false
	}
	selectors = selectors[root:]
	if _, ok := input[selectors[0]]; !ok {
		return "", nil, false
	}
	value = input
	for _, s := range selectors {
		if strings.HasPrefix(s, "_") {
			return path, nil, true
		}
		if list, isList := value.([]any); isList {
			path += "[" + s + "]"
			index, err := strconv.Atoi(s)
			if err != nil || index >= len(list) {
				return path, nil, true
			}
			value = list[index]
			continue
		}
		if key, err := strconv.Unquote(s); err == nil {
			s = key
		}
		path = FieldPath(path, s)
		m, _ := value.(map[string]any)
		value = m[s]
	}
	return path, value, true
}

// plainKey is a field's name that can be told from the path around it.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_/-]+$`)

// FieldPath returns the path of a field of the struct at path: spec.size, or metadata.labels["app.kubernetes.io/name"].
func FieldPath(path, key string) string {
	key = kind.Shorten(key, maxValue)
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func (c *fieldCauses) add(e cueerrors.Error, value any) {
	format, args := e.Msg()
	switch {
	case strings.HasSuffix(format, "errors in empty disjunction:"):
	case strings.HasPrefix(format, "conflicting values") && len(args) == 4:
		// The types follow the values; the one that is not the input's was expected.
		expected, got := fmt.Sprint(args[3]), fmt.Sprint(args[2])
		if got != typeOf(value) {
			expected = got
		}
		c.types = append(c.types, expected)
	case strings.HasPrefix(format, "conflicting values") && len(args) == 2:
		for _, a := range args {
			if literal := fmt.Sprint(a); literal != quote(value) {
				c.allowed = append(c.allowed, literal)
			}
		}
	default:
		c.telling = append(c.telling, shorten(fmt.Sprintf(format, args...), value))
	}
}

// shorten bounds the text of an error in which CUE may quote a whole list or struct.
func shorten(text string, value any) string {
	const rule = " (does not satisfy "
	if i := strings.LastIndex(text, rule); i > maxCause && strings.HasPrefix(text, "invalid value ") {
		return "invalid value " + quote(value) + text[i:]
	}
	return kind.Shorten(text, maxCause)
}

func (c *fieldCauses) message(value any) string {
	var text string
	switch {
	case len(c.telling) > 0:
		text = strings.Join(distinct(c.telling), ", ")
		if strings.HasPrefix(text, "invalid value") || !isScalar(value) || strings.HasPrefix(text, "field not allowed") {
			return text
		}
	case len(c.types) > 0:
		text = "must be of type " + strings.Join(distinct(c.types), " or ")
	case len(c.allowed) > 0:
		text = "must be one of " + strings.Join(distinct(c.allowed), ", ")
	default:
		return ""
	}
	return "invalid value " + quote(value) + ": " + text
}

func isScalar(value any) bool {
	switch value.(type) {
	case nil, map[string]any, []any:
		return false
	}
	return true
}

// typeOf returns CUE's name for the type of a JSON value.
func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case string:
		return "string"
	case int64:
		return "int"
	case float64:
		return "float"
	case []any:
		return "list"
	}
	return "struct"
}

// quote returns value as JSON, cut short.
func quote(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return kind.Shorten(string(data), maxValue)
}

func distinct[T cmp.Ordered](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}
