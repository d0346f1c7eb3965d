package schema_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
)

const module = `package thing

import (
	"list"
	"strings"
	"struct"
	"time"

	"github.com/example/memcached-operator/schemas/kind"
)

_imports: [list, strings, struct, time]

kind.#Kind & {
	names: {group: "test.example.com", version: "v1", kind: "Thing", plural: "things"}
	chart:  "thing"
	object: #Thing
	values: {#object: #Thing, name: #object.metadata.name, text: "a\(#object.metadata.name)", from: #object.spec}
	report: {}
	samples: a: {}
}
// #Thing is what
// this test reads.
#Thing: kind.#Object & {
	apiVersion: "test.example.com/v1"
	kind:       "Thing"
	spec:       #Spec
	status?: {pods?: int, ...}
}
`

// read returns the schema of a kind with this spec.
func read(t *testing.T, spec string) (*schema.Props, *kind.Kind, error) {
	t.Helper()
	loaded, err := kind.LoadFolder(fstest.MapFS{
		"schemas/thing/thing.cue":         {Data: []byte(module)},
		"schemas/thing/spec.cue":          {Data: []byte("package thing\n\nimport (\n\t\"list\"\n\t\"strings\"\n\t\"struct\"\n\t\"time\"\n\n\t\"github.com/example/memcached-operator/schemas/kind\"\n)\n\n_here: [list, strings, struct, time, kind]\n\n#Spec: {\n" + spec + "\n}\n")},
		"charts/thing/Chart.yaml":         {Data: []byte("apiVersion: v2\nname: thing\nversion: 0.1.0\n")},
		"charts/thing/templates/all.yaml": {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if loaded[0].Err != nil {
		t.Fatal(loaded[0].Err)
	}
	root, err := schema.Of(loaded[0].Kind)
	return root, loaded[0].Kind, err
}

// TestSpec shows what becomes of each feature of CUE: a field, and its schema. A line "required" says that the field must be set.
func TestSpec(t *testing.T) {
	for _, c := range []struct{ reason, field, want string }{
		{"a type that must be set", `f!: string`, "type: string\nrequired"},
		{"a type without a default must be set, too", `f: string`, "type: string\nrequired"},
		{"one that may be left out", `f?: bool`, "type: boolean"},
		{"a default beside bounds", `f: int & >=1 & <=50 | *3`, "type: integer\nformat: int64\nminimum: 1\nmaximum: 50\ndefault: 3"},
		{"a default before bounds", `f: *3 | int & >=1`, "type: integer\nformat: int64\nminimum: 1\ndefault: 3"},
		{"no default where CUE has none", `f?: *3 | int`, "type: integer\nformat: int64"},
		{"open bounds", `f?: number & >0 & <1`, "type: number\nminimum: 0\nexclusiveMinimum: true\nmaximum: 1\nexclusiveMaximum: true"},
		{"CUE's own ranges", `f?: uint8`, "type: integer\nformat: int64\nminimum: 0\nmaximum: 255"},
		{"a number", `f: *1.5 | number`, "type: number\ndefault: 1.5"},
		{"an enumeration", `f: *"A" | "B"`, "type: string\nenum: [A, B]\ndefault: A"},
		{"an enumeration of numbers", `f?: 1 | 2`, "type: integer\nformat: int64\nenum: [1, 2]"},
		{"one value alone", `f: "A"`, "type: string\nenum: [A]\ndefault: A"},
		{"a pattern, whose length is known", `f?: =~"^[a-z]{1,9}x$"`, "type: string\npattern: ^[a-z]{1,9}x$\nmaxLength: 10"},
		{"a pattern without end", `f?: =~"^a"`, "type: string\npattern: ^a"},
		{"lengths", `f?: strings.MinRunes(1) & strings.MaxRunes(9)`, "type: string\nminLength: 1\nmaxLength: 9"},
		{"a message of one's own", `f?: =~"^[a-z]$" | error("must be a letter")`,
			"type: string\nmaxLength: 1\nx-kubernetes-validations:\n- rule: self.matches('^[a-z]$')\n  message: must be a letter"},
		{"through a definition, with a default", "f: *\"a\" | #L\n#L: =~\"^[a-z]$\" | error(\"must be a letter\")",
			"type: string\nmaxLength: 1\ndefault: a\nx-kubernetes-validations:\n- rule: self.matches('^[a-z]$')\n  message: must be a letter"},
		{"through a definition that bears the name of another package's", "f?: #CPU\n#CPU: kind.#CPU",
			"x-kubernetes-int-or-string: true\nmaxLength: 8\nx-kubernetes-validations:\n- rule: (type(self) == int && self >= 0 && self <= 1000) || (type(self) == string && self.matches(r'^([0-9]{1,4}(\\.[0-9]{1,3})?|[0-9]{1,7}m)$'))\n  message: must be an amount of CPU, such as 250m, 0.5 or 2"},
		{"a message over bounds", `f?: int & >=1 | error("too few")`,
			"type: integer\nformat: int64\nx-kubernetes-validations:\n- rule: self >= 1\n  message: too few"},
		{"bounds on a float in a message", `f?: number & >=1 | error("too few")`,
			"type: number\nx-kubernetes-validations:\n- rule: self >= 1.0\n  message: too few"},
		{"what must not be", `f?: strings.MaxRunes(9) & !="no" & !~"x$"`,
			"type: string\nmaxLength: 9\nx-kubernetes-validations:\n- rule: self != 'no'\n  message: must be other than \"no\"\n- rule: '!self.matches(''x$'')'\n  message: must be text that does not match \"x$\""},
		{"either a word or a pattern", `f?: "auto" | =~"^[0-9]$"`,
			"type: string\nmaxLength: 4\nx-kubernetes-validations:\n- rule: (self == 'auto') || (self.matches('^[0-9]$'))\n  message: 'must be \"auto\", or text that matches \"^[0-9]$\"'"},
		{"int or string", `f?: int | string`, "x-kubernetes-int-or-string: true"},
		{"int or string, each bounded", `f: *"1m" | int & <=9 | =~"^[0-9]m$" | error("must be an amount")`,
			"x-kubernetes-int-or-string: true\nmaxLength: 2\ndefault: 1m\nx-kubernetes-validations:\n- rule: (type(self) == int && self <= 9) || (type(self) == string && self.matches('^[0-9]m$'))\n  message: must be an amount"},
		{"null", `f?: null | string`, "type: string\nnullable: true"},
		{"null beside bounds", `f?: null | strings.MaxRunes(9)`, "type: string\nnullable: true\nmaxLength: 9"},
		{"a time", `f?: time.Time`, "type: string\nformat: date-time"},
		{"anything", `f?: _`, "x-kubernetes-preserve-unknown-fields: true"},
		{"a struct takes its fields' defaults", `f: {a: *1 | int, b?: string, c: d: *true | bool}`,
			"type: object\ndefault: {a: 1, c: {d: true}}\nproperties:\n  a: {type: integer, format: int64, default: 1}\n  b: {type: string}\n  c: {type: object, default: {d: true}, properties: {d: {type: boolean, default: true}}}"},
		{"a struct that needs a field must be set", `f: a!: string`, "type: object\nrequired: [a]\nproperties:\n  a: {type: string}\nrequired"},
		{"an optional struct is not made up", `f?: a: *1 | int`, "type: object\nproperties:\n  a: {type: integer, format: int64, default: 1}"},
		{"an open struct", `f?: {a?: int, ...}`, "type: object\nproperties:\n  a: {type: integer, format: int64}\nx-kubernetes-preserve-unknown-fields: true"},
		{"an embedded definition", "f?: {#E, b?: int}\n#E: a?: int", "type: object\nproperties:\n  a: {type: integer, format: int64}\n  b: {type: integer, format: int64}"},
		{"two definitions at once", "f?: #E & #G\n#E: {a?: int, ...}\n#G: {a!: >3, ...}",
			"type: object\nrequired: [a]\nproperties:\n  a: {type: integer, format: int64, minimum: 3, exclusiveMinimum: true}\nx-kubernetes-preserve-unknown-fields: true"},
		{"a map", `f?: struct.MaxFields(3) & {[string]: int}`, "type: object\nmaxProperties: 3\nadditionalProperties: {type: integer, format: int64}"},
		{"a map whose keys have a pattern", `f: struct.MaxFields(3) & {[=~"^[a-z]$"]: string}`,
			"type: object\nmaxProperties: 3\ndefault: {}\nadditionalProperties: {type: string}\nx-kubernetes-validations:\n- rule: 'self.all(key, key.matches(''^[a-z]$'') && key.size() <= 1)'\n  message: 'keys must match ^[a-z]$'"},
		{"a list", `f: list.MaxItems(4) & [...string]`, "type: array\nmaxItems: 4\ndefault: []\nitems: {type: string}"},
		{"a list with a default", `f: list.MaxItems(4) & ([...string] | *["a"])`, "type: array\nmaxItems: 4\ndefault: [a]\nitems: {type: string}"},
		{"a list that must not be empty", `f: list.MinItems(1) & list.MaxItems(4) & [...int]`, "type: array\nminItems: 1\nmaxItems: 4\nitems: {type: integer, format: int64}\nrequired"},
		{"a set", `f?: list.UniqueItems & list.MaxItems(4) & [...string]`, "type: array\nmaxItems: 4\nx-kubernetes-list-type: set\nitems: {type: string}"},
		{"a set of structs with a name alone", "f?: list.UniqueItems() & list.MaxItems(4) & [...#E]\n#E: name!: string",
			"type: array\nmaxItems: 4\nx-kubernetes-list-type: map\nx-kubernetes-list-map-keys: [name]\nitems: {type: object, required: [name], properties: {name: {type: string}}}"},
		{"entries told apart by a field", "f?: list.MaxItems(4) & [...#E] @crd(mapKey=name)\n#E: {name!: string, a?: int}",
			"type: array\nmaxItems: 4\nx-kubernetes-list-type: map\nx-kubernetes-list-map-keys: [name]\nitems: {type: object, required: [name], properties: {name: {type: string}, a: {type: integer, format: int64}}}"},
		{"lists of lists", `f?: list.MaxItems(4) & [...list.MaxItems(2) & [...int]]`,
			"type: array\nmaxItems: 4\nitems: {type: array, maxItems: 2, items: {type: integer, format: int64}}"},
		{"a description", "// What it is,\n// in two lines.\nf?: int", "type: integer\nformat: int64\ndescription: What it is, in two lines."},
		{"a declared condition", `f?: {a: *1 | int, b?: int, if a > 1 {b: >3}}`,
			"type: object\nproperties:\n  a: {type: integer, format: int64, default: 1}\n  b: {type: integer, format: int64}"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			root, _, err := read(t, c.field)
			if err != nil {
				t.Fatal(err)
			}
			spec := root.Properties["spec"]
			want, isRequired := strings.CutSuffix(c.want, "\nrequired")
			if got := len(spec.Required) > 0; got != isRequired {
				t.Errorf("is the field required? got %t, want %t", got, isRequired)
			}
			var props schema.Props
			if err := yaml.UnmarshalStrict([]byte(want), &props); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text(t, props), text(t, spec.Properties["f"])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRules shows rules over several fields, and what only the operator checks.
func TestRules(t *testing.T) {
	root, k, err := read(t, `
	a: *1 | int
	b: *2 | int
	once?: string @crd(immutable)
	always: *3 | int @crd(immutable)
	upper?: strings.MaxRunes(9) & strings.HasPrefix("x")
	_order: kind.#Rule & {holds: a < b, message: "a must be below b", cel: "self.a < self.b"}
	_even: kind.#Rule & {holds: mod(a, 1) == 0, message: "a must be even"}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := `- message: once cannot be changed
  rule: has(self.once) == has(oldSelf.once) && (!has(self.once) || self.once == oldSelf.once)
- message: always cannot be changed
  rule: self.always == oldSelf.always
- message: a must be below b
  rule: self.a < self.b
`
	if diff := cmp.Diff(want, text(t, root.Properties["spec"].XValidations)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	gaps, err := schema.Gaps(k)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]schema.Gap{{Path: "spec", Rule: "a must be even"}, {Path: "spec.upper", Rule: `must satisfy strings.HasPrefix("x")`}}, gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
}

// TestRoot shows what stands beside the spec.
func TestRoot(t *testing.T) {
	root, _, err := read(t, `f?: int`)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Thing is what this test reads."; root.Description != want {
		t.Errorf("want the description %q, got %q", want, root.Description)
	}
	if len(root.Required) > 0 || root.Properties["spec"].Default == nil {
		t.Error("a spec with defaults alone may be left out")
	}
	if len(root.XValidations) != 1 || !strings.HasPrefix(root.XValidations[0].Rule, "self.metadata.name.matches('^[a-z]") {
		t.Errorf("want the contract's rule over the name, got %v", root.XValidations)
	}
	status := root.Properties["status"]
	for _, field := range []string{"pods", "conditions", "inventory", "observedGeneration", "lastHandledReconcileAt"} {
		if status.Properties[field].Type == "" {
			t.Errorf("the status has no %s", field)
		}
	}
	if keys := status.Properties["conditions"].XListMapKeys; len(keys) != 1 || keys[0] != "type" {
		t.Errorf("conditions are told apart by %v", keys)
	}
}

// TestProblems shows what is refused, with file, line and field.
func TestProblems(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{`a: [string]: string`, "spec.cue:15: spec.a: bound the map, such as struct.MaxFields(16) & {…}: a custom resource must not grow without end"},
		{`a?: [...string]`, "spec.cue:15: spec.a: bound the list, such as list.MaxItems(16) & […]: a custom resource must not grow without end"},
		{`a: *1 | int, if a > 1 {b: string}`, "spec.cue:15: spec.b: is declared only under a condition, so that the API server would silently drop it: declare it beside the condition, too, as b?: …"},
		{`a?: {b: *1 | int, if b > 1 {c: string}}`, "spec.cue:15: spec.a.c: is declared only under a condition"},
		{`a?: int | [...int]`, "spec.cue:15: spec.a: the API server knows no field that may be (int|list): choose one, or int | string"},
		{`a?: bool | string`, "spec.cue:15: spec.a: the API server knows no field that may be (bool|string): choose one, or int | string"},
		{`a?: {b!: int} | {c!: int}`, "spec.cue:15: spec.a: the API server knows no structs of different forms: declare all fields as optional, and say what goes together by kind.#Rule"},
		{`a?: struct.MaxFields(4) & {b?: int, [string]: int}`, "spec.cue:15: spec.a: the API server knows no struct with both declared fields and others by a pattern: keep them apart"},
		{`a?: =~"^a" | error("must begin with a")`, "spec.cue:15: spec.a: bound the string, such as strings.MaxRunes(253) & …: the API server runs no regular expression on endless strings"},
		{`kind?: string, _same: kind.#Rule & {holds: kind == "a", message: "kind must be a"}`, "spec.cue:15: spec._same: is no kind.#Rule, so that nobody checks it."},
		{`a?: list.MaxItems(4) & [...{b?: int}]`, "spec.cue:15: spec.a[]: takes any field beside those that are declared: give it a definition of its own, such as [...#Entry]"},
		{`a?: b?: list.MaxItems(4) & [...{c?: int}]`, "spec.cue:15: spec.a.b[]: takes any field"},
		{`a?: float & >1`, "spec.cue:15: spec.a: write number for float: what a user writes as 1.0 is stored as 1, which is no float"},
		{`a?: list.MaxItems(2) & string`, "spec.a: no value can be of this type"},
	} {
		_, _, err := read(t, c.spec)
		if err == nil || !strings.HasPrefix(err.Error(), "schemas/thing/") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", c.spec, c.want, err)
		}
	}
}
