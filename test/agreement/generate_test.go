package agreement_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/example/memcached-operator/reconciler/kind"
)

type props = apiextensionsv1.JSONSchemaProps

// generator makes specs of one kind from its structural schema. The same seed and number give the same spec.
type generator struct {
	kind *kind.Kind
	spec *props
	seed uint64
}

// make returns the name and the spec with a number; as JSON, since 1.0 and 1 are the same to Go's encoder. Half are built to be
// valid, except that rules over several fields are left to chance; the others have one to three mistakes.
func (g *generator) make(number int) (name string, spec json.RawMessage) {
	m := &maker{Rand: rand.New(rand.NewPCG(g.seed, uint64(number)))}
	value := m.basis(g)
	if number%2 == 1 {
		for range 1 + m.IntN(3) {
			value = m.mistake(value, g.spec)
		}
	}
	if m.chance(0.002) {
		value = nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // all of it is made here
	}
	return m.name(), escaped(data)
}

// escaped returns a JSON text without the characters that YAML does not allow.
func escaped(text []byte) (out []byte) {
	for _, r := range string(text) {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// maker makes one spec.
type maker struct {
	*rand.Rand
	// density is how likely an optional field is set.
	density float64
}

func (m *maker) chance(p float64) bool { return m.Float64() < p }

func pick[T any](m *maker, from []T) T { return from[m.IntN(len(from))] }

// name returns mostly the same one, and else one about the bounds.
func (m *maker) name() string {
	if !m.chance(0.05) {
		return "x"
	}
	return pick(m, []string{"a", "a-b", "a1", "1a", "a-", "a.b", "A", strings.Repeat("a", 45), strings.Repeat("a", 46), strings.Repeat("a", 52), strings.Repeat("a", 53)})
}

// basis returns a spec without intended mistakes: all new, or one of the kind's samples with other values here and there, which
// keeps more of the rules over several fields.
func (m *maker) basis(g *generator) any {
	m.density = pick(m, []float64{0.1, 0.3, 0.6, 0.95})
	if m.chance(0.4) {
		return m.value(g.spec, 0)
	}
	sample := g.kind.Samples[pick(m, slices.Sorted(maps.Keys(g.kind.Samples)))]
	spec := runtime.DeepCopyJSON(sample)
	for range m.IntN(5) {
		p := pick(m, places(spec, g.spec))
		m.refill(p)
	}
	return spec
}

// refill sets a field of a struct, or removes one, or makes a list or value anew.
func (m *maker) refill(p place) {
	object, isStruct := p.get().(map[string]any)
	if isStruct && len(p.props.Properties) > 0 {
		name := pick(m, slices.Sorted(maps.Keys(p.props.Properties)))
		if m.chance(0.2) && !slices.Contains(p.props.Required, name) {
			delete(object, name)
			return
		}
		field := p.props.Properties[name]
		object[name] = m.value(&field, 1)
		return
	}
	if p.set != nil {
		p.set(m.value(p.props, 1))
	}
}

// value returns one that p allows, as far as p alone tells.
func (m *maker) value(p *props, depth int) any {
	switch {
	case p.Nullable && m.chance(0.1):
		return nil
	case len(p.Enum) > 0:
		return pick(m, p.Enum)
	case p.XIntOrString && m.chance(0.5), p.Type == "integer":
		return m.integer(p)
	case p.XIntOrString, p.Type == "string":
		return m.text(p)
	case p.Type == "number":
		return float64(m.integer(p)) + pick(m, []float64{0, 0.5})
	case p.Type == "boolean":
		return m.chance(0.5)
	case p.Type == "array":
		return m.list(p, m.count(p.MinItems, p.MaxItems, depth), depth)
	case p.AdditionalProperties != nil:
		return m.mapping(p, m.count(p.MinProperties, p.MaxProperties, depth), depth)
	case p.Type == "object":
		object := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
			if field := p.Properties[name]; slices.Contains(p.Required, name) || m.chance(m.density) {
				object[name] = m.value(&field, depth+1)
			}
		}
		return object
	}
	return m.anything()
}

// anything returns a value of any type.
func (m *maker) anything() any {
	return pick(m, []any{
		true, 0, -1, 7, json.RawMessage("1.0"), 2.5, json.RawMessage("1e3"), json.RawMessage("9223372036854775808"), "", "x", "1", "true", "null",
		[]any{}, []any{"x"}, []any{nil}, map[string]any{}, map[string]any{"x": 1}, map[string]any{"x": nil}, nil,
	})
}

func (m *maker) integer(p *props) int64 {
	low, high := bounds(p)
	return pick(m, []int64{low, high, min(low+1, high), max(high-1, low), low + m.Int64N(max(min(high-low, 1<<40), 1)), low + min(high-low, m.Int64N(20))})
}

var (
	lowerBound = regexp.MustCompile(`self >= (-?\d+)`)
	upperBound = regexp.MustCompile(`self <= (-?\d+)`)
)

// bounds returns those of an integer, which a message of one's own makes a rule.
func bounds(p *props) (low, high int64) {
	low, high = -1<<50, 1<<50
	if p.Minimum != nil {
		low = int64(*p.Minimum)
	}
	if p.Maximum != nil {
		high = int64(*p.Maximum)
	}
	for _, rule := range p.XValidations {
		if found := lowerBound.FindStringSubmatch(rule.Rule); found != nil {
			low, _ = strconv.ParseInt(found[1], 10, 64)
		}
		if found := upperBound.FindStringSubmatch(rule.Rule); found != nil {
			high, _ = strconv.ParseInt(found[1], 10, 64)
		}
	}
	return low, high
}

// count returns how many entries a list or map gets: mostly few, since each costs.
func (m *maker) count(low, high *int64, depth int) int {
	least, most := 0, 20
	if low != nil {
		least = int(*low)
	}
	if high != nil {
		most = int(*high)
	}
	if m.chance(0.1 / float64(1+depth*depth)) {
		return most
	}
	return min(most, least+m.IntN(3))
}

func (m *maker) list(p *props, count, depth int) []any {
	list := []any{}
	known := map[string]bool{}
	for range count * 2 {
		if len(list) == count {
			break
		}
		item := m.value(p.Items.Schema, depth+1)
		if data, err := json.Marshal(key(p, item)); err == nil && (!isUnique(p) || !known[string(data)]) {
			known[string(data)] = true
			list = append(list, item)
		}
	}
	return list
}

// key returns what must be unique of an entry.
func key(p *props, item any) any {
	object, _ := item.(map[string]any)
	if len(p.XListMapKeys) == 0 || object == nil {
		return item
	}
	var all []any
	for _, name := range p.XListMapKeys {
		all = append(all, object[name])
	}
	return all
}

func isUnique(p *props) bool {
	return p.XListType != nil && *p.XListType != "atomic" ||
		slices.ContainsFunc(p.XValidations, func(r apiextensionsv1.ValidationRule) bool { return strings.Contains(r.Rule, "exists_one") })
}

func (m *maker) mapping(p *props, count, depth int) map[string]any {
	object := map[string]any{}
	keys := &props{Type: "string"}
	for _, rule := range p.XValidations {
		if inner, isOfKeys := strings.CutPrefix(rule.Rule, "self.all(key, "); isOfKeys {
			keys.XValidations = append(keys.XValidations, apiextensionsv1.ValidationRule{Rule: strings.ReplaceAll(inner, "key.", "self.")})
		}
	}
	for range count {
		object[m.text(keys)] = m.value(p.AdditionalProperties.Schema, depth+1)
	}
	return object
}

func (m *maker) text(p *props) string { return pick(m, textsOf(p)) }

var texts sync.Map // of the schemas of strings to lists of strings that they allow

// textsOf returns strings that p allows, short and long ones.
func textsOf(p *props) []string {
	identity := fmt.Sprint(p.Pattern, p.MinLength != nil, p.MaxLength != nil, p.XValidations)
	if p.MaxLength != nil {
		identity += fmt.Sprint(*p.MaxLength)
	}
	if found, isKnown := texts.Load(identity); isKnown {
		return found.([]string)
	}
	made := makeTexts(p)
	texts.Store(identity, made)
	return made
}

var (
	positive = regexp.MustCompile(`(^|[^!])self\.matches\((?:r?'([^']*)'|("(?:[^"\\]|\\.)*"))\)`)
	negative = regexp.MustCompile(`()!self\.matches\((?:r?'([^']*)'|("(?:[^"\\]|\\.)*"))\)`)
	unequal  = regexp.MustCompile(`self != '([^']*)'`)
)

// patterns returns the regular expressions in the rules of p.
func patterns(p *props, in *regexp.Regexp) (all []string) {
	for _, rule := range p.XValidations {
		for _, found := range in.FindAllStringSubmatch(rule.Rule, -1) {
			text := found[2]
			if found[3] != "" {
				text, _ = strconv.Unquote(found[3])
			}
			all = append(all, text)
		}
	}
	return all
}

const (
	textsOfPattern = 60
	// longText is how long strings get that have no bound.
	longText = 300
)

func makeTexts(p *props) (all []string) {
	wanted := patterns(p, positive)
	if p.Pattern != "" {
		wanted = append(wanted, p.Pattern)
	}
	if len(wanted) == 0 {
		wanted = []string{`.{0,40}`}
	}
	keep := func(text string) {
		if fits(p, wanted, text) && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	longest := longText
	if p.MaxLength != nil {
		longest = int(*p.MaxLength)
	}
	for _, pattern := range wanted {
		strings := rapid.StringMatching(pattern)
		for seed := range textsOfPattern {
			text := strings.Example(seed)
			keep(text)
			if seed%10 == 0 {
				for length := longest + 1; length >= longest-1; length-- {
					keep(stretch(text, length))
				}
			}
		}
	}
	if len(all) == 0 {
		panic(fmt.Sprintf("no string is known for %q", wanted))
	}
	return all
}

// stretch repeats a character in the middle of text until it has length of them.
func stretch(text string, length int) string {
	runes := []rune(text)
	if len(runes) == 0 || len(runes) >= length {
		return text
	}
	at := len(runes) / 2
	return string(runes[:at]) + strings.Repeat(string(runes[at]), length-len(runes)) + string(runes[at:])
}

// fits tells whether p allows text.
func fits(p *props, wanted []string, text string) bool {
	matches := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(text) }
	if !slices.ContainsFunc(wanted, matches) || slices.ContainsFunc(patterns(p, negative), matches) {
		return false
	}
	for _, rule := range p.XValidations {
		for _, found := range unequal.FindAllStringSubmatch(rule.Rule, -1) {
			if found[1] == text {
				return false
			}
		}
	}
	length := int64(len([]rune(text)))
	return (p.MinLength == nil || length >= *p.MinLength) && (p.MaxLength == nil || length <= *p.MaxLength)
}

// place is a value within a spec.
type place struct {
	props *props // nil for what the schema does not know
	get   func() any
	set   func(any) // nil for the root
	unset func()    // nil but for fields
}

// places returns all values of a spec, the root first, in the order of the fields' names.
func places(spec any, p *props) []place {
	all := []place{{props: p, get: func() any { return spec }}}
	for i := 0; i < len(all); i++ {
		at := all[i]
		switch value := at.get().(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				all = append(all, place{
					props: fieldOf(at.props, name),
					get:   func() any { return value[name] }, set: func(v any) { value[name] = v }, unset: func() { delete(value, name) },
				})
			}
		case []any:
			var items *props
			if at.props != nil && at.props.Items != nil {
				items = at.props.Items.Schema
			}
			for index := range value {
				all = append(all, place{props: items, get: func() any { return value[index] }, set: func(v any) { value[index] = v }})
			}
		}
	}
	return all
}

func fieldOf(p *props, name string) *props {
	if p == nil {
		return nil
	}
	if field, isKnown := p.Properties[name]; isKnown {
		return &field
	}
	if p.AdditionalProperties != nil {
		return p.AdditionalProperties.Schema
	}
	return nil
}

// mistake changes one value so that it most likely breaks the schema.
func (m *maker) mistake(spec any, root *props) any {
	all := places(spec, root)
	at := pick(m, all)
	if at.set == nil && m.chance(0.05) {
		return m.anything()
	}
	object, _ := at.get().(map[string]any)
	switch {
	case object != nil && m.chance(0.7):
		m.mistakeInStruct(object, at.props)
	case at.set == nil:
	case at.unset != nil && m.chance(0.1):
		at.unset()
	case m.chance(0.2):
		at.set(m.anything())
	case m.chance(0.15):
		at.set(nil)
	case m.chance(0.12):
		// Of the same type perhaps, but of another field.
		at.set(runtime.DeepCopyJSONValue(plain(pick(m, all).get())))
	default:
		at.set(m.wrong(at.get(), at.props))
	}
	return spec
}

// plain returns v in JSON's types.
func plain(v any) (out any) {
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

func (m *maker) mistakeInStruct(object map[string]any, p *props) {
	known := slices.Sorted(maps.Keys(object))
	unknown := pick(m, []string{"x", "Name", "name", "", "a b", "a/b", "_x", "#x", "a.b", "spec", "0", "ä", "x-y", "__", strings.Repeat("k", 64), strings.Repeat("k", 400)})
	choice := m.IntN(4)
	switch {
	case choice == 0:
		object[unknown] = m.anything()
	case choice == 1 && len(known) > 0: // a typing error
		name := pick(m, known)
		object[name+pick(m, []string{"s", "_", " ", "X"})] = object[name]
		delete(object, name)
	case choice == 2 && p != nil && p.AdditionalProperties != nil:
		for i := range 1 + m.IntN(40) {
			object[fmt.Sprint("key", i)] = m.value(p.AdditionalProperties.Schema, 3)
		}
	case p != nil && len(p.Properties) > 0: // valid by itself, but perhaps not beside the others
		name := pick(m, slices.Sorted(maps.Keys(p.Properties)))
		field := p.Properties[name]
		object[name] = m.value(&field, 2)
		if m.chance(0.2) {
			delete(object, name)
		}
	}
}

// wrong returns a value near one that p allows.
func (m *maker) wrong(value any, p *props) any {
	if p == nil {
		return m.anything()
	}
	if _, isText := value.(string); isText || p.Type == "string" || p.XIntOrString && m.chance(0.5) {
		return m.wrongText(value, p)
	}
	low, high := bounds(p)
	switch p.Type {
	case "array":
		list, _ := value.([]any)
		return m.wrongList(list, p)
	case "object":
		return pick(m, []any{map[string]any{}, []any{}, []any{map[string]any{}}, "", "{}", nil})
	case "boolean":
		return pick(m, []any{"true", "false", 0, 1, "", nil})
	}
	return pick(m, []any{
		low - 1, high + 1, -high, json.RawMessage(fmt.Sprint(low, ".5")), json.RawMessage(fmt.Sprint(low, ".0")), json.RawMessage(fmt.Sprint(low, "e0")),
		strconv.FormatInt(low, 10), math.MaxInt64, math.MinInt64, json.RawMessage("1e300"), json.RawMessage("-0"), json.RawMessage("-0.0"), true,
	})
}

func (m *maker) wrongText(value any, p *props) any {
	text, isText := value.(string)
	if !isText {
		text = m.text(p)
	}
	if len(p.Enum) > 0 {
		return pick(m, []string{strings.ToLower(text), text + " ", "", text[:len(text)/2]})
	}
	longest := longText
	if p.MaxLength != nil {
		longest = int(*p.MaxLength)
	}
	runes := []rune(text)
	at := m.IntN(len(runes) + 1)
	insert := func(what string) string { return string(runes[:at]) + what + string(runes[at:]) }
	return pick(m, []any{
		"", " ", text + "\n", "\n" + text, " " + text, stretch(text+"a", longest), stretch(text+"a", longest+1), stretch(text+"ä", longest),
		insert("-"), insert("."), insert("/"), insert("//"), insert("ä"), insert("\u0000"), insert("\u2028"), insert("A"), insert("0"), insert("_"), insert("%2f"),
		insert("{{"), insert("😀"), insert("'\"\\"), strings.ToUpper(text), strings.ToLower(text), text + text, "Local", "5-1 * * * *", "0 0 10-9 * *",
		strings.Repeat("a", 5000), m.nearAmount(), m.nearAmount(), 1, true,
	})
}

// nearAmount returns an amount about those in the rules of all kinds.
func (m *maker) nearAmount() any {
	return pick(m, []any{"119Mi", "120Mi", "121Mi", "122879Ki", "122880Ki", 125829119, 125829120, "125829119", "125829120", "125M", "126M", "0120Mi", "0", 0, "1Gi", "0.12Gi", "999T", "999Ti"})
}

func (m *maker) wrongList(list []any, p *props) any {
	switch m.IntN(5) {
	case 0:
		return []any{}
	case 1:
		if len(list) > 0 {
			return append(list, runtime.DeepCopyJSONValue(plain(pick(m, list))))
		}
	case 2:
		if p.MaxItems != nil {
			return m.list(p, int(*p.MaxItems)+1, 3)
		}
	case 3:
		return append(list, m.anything())
	}
	return m.anything()
}
