package matrix

import (
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
)

func TestFieldGaps(t *testing.T) {
	const (
		structs = `{type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: string}, d: {type: integer}}}}}`
		choice  = `{type: object, properties: {c: {type: string, enum: [X, "Y"]}, num: {type: integer, enum: [1, 2]}, flag: {type: boolean}}}`
		list    = `{type: object, properties: {l: {type: array, items: {type: object, properties: {k: {type: string}, e: {type: string, enum: [A, B]}}}}, s: {type: array, items: {type: string, enum: [A, B]}}}}`
		maps    = `{type: object, properties: {m: {type: object, additionalProperties: {type: object, properties: {k: {type: string}}}}, i: {x-kubernetes-int-or-string: true}, o: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`
	)
	for name, c := range map[string]struct {
		schema, given string // given are the specs
		completed     string // given unless set
		count         int
		want          []string
	}{
		"no fields":                  {schema: `{type: object}`, given: `[{}]`},
		"all set":                    {schema: structs, given: `[{a: x}, {b: {c: x, d: 0}}]`, count: 4},
		"in different samples":       {schema: structs, given: `[{b: {c: x}}, {a: ""}, {b: {d: 1}}]`, count: 4},
		"a field":                    {schema: structs, given: `[{a: x}, {b: {c: x}}]`, count: 4, want: []string{"spec.b.d: no sample sets it"}},
		"null is not set":            {schema: structs, given: `[{a: null, b: {c: x, d: 1}}]`, count: 4, want: []string{"spec.a: no sample sets it"}},
		"by default only":            {schema: structs, given: `[{b: {c: x, d: 1}}]`, completed: `[{a: x, b: {c: x, d: 1}}]`, count: 4, want: []string{"spec.a: no sample sets it"}},
		"only the outermost is told": {schema: structs, given: `[{a: x}]`, count: 4, want: []string{"spec.b: no sample sets it"}},
		"every choice":               {schema: choice, given: `[{c: X, num: 1, flag: true}, {c: "Y", num: 2, flag: false}]`, count: 3},
		"a choice by default":        {schema: choice, given: `[{c: X, num: 1, flag: true}, {}]`, completed: `[{c: X, num: 1, flag: true}, {c: "Y", num: 2, flag: false}]`, count: 3},
		"choices": {
			schema: choice, given: `[{c: X, num: 1, flag: false}]`, count: 3,
			want: []string{`spec.c: is "Y" in no sample`, "spec.flag: is true in no sample", "spec.num: is 2 in no sample"},
		},
		"lists": {schema: list, given: `[{l: [{k: x, e: A}], s: [A]}, {l: [{e: B}], s: [A, B]}]`, count: 4},
		"in lists": {
			schema: list, given: `[{l: [{e: A}], s: [B]}]`, count: 4,
			want: []string{`spec.l[].e: is "B" in no sample`, "spec.l[].k: no sample sets it", `spec.s[]: is "A" in no sample`},
		},
		"empty lists": {schema: list, given: `[{l: [], s: [A, B]}]`, count: 4, want: []string{"spec.l: is empty in all samples"}},
		"maps":        {schema: maps, given: `[{m: {x: {k: v}}, i: 1, o: {}}]`, count: 4},
		"in maps":     {schema: maps, given: `[{m: {x: {}}, i: 1, o: {}}]`, count: 4, want: []string{"spec.m.*.k: no sample sets it"}},
		"empty maps":  {schema: maps, given: `[{m: {}, i: 1, o: {}}]`, count: 4, want: []string{"spec.m: is empty in all samples"}},
		"eight choices": {
			schema: `{properties: {c: {type: string, enum: [a, b, c, d, e, f, g, h]}}}`, given: `[{c: a}, {c: b}, {c: c}, {c: d}, {c: e}, {c: f}, {c: g}]`, count: 1,
			want: []string{`spec.c: is "h" in no sample`},
		},
		"too many to be choices": {schema: `{properties: {c: {type: string, enum: [a, b, c, d, e, f, g, h, i]}}}`, given: `[{c: a}]`, count: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var spec apiextensionsv1.JSONSchemaProps
			var all values
			read := func(text string, into any) {
				t.Helper()
				if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			read(c.schema, &spec)
			read(c.given, &all.given)
			if c.completed == "" {
				c.completed = c.given
			}
			read(c.completed, &all.completed)
			count, gaps := fieldGaps(&spec, all)
			var got []string
			for _, gap := range gaps {
				got = append(got, gap.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
			if count != c.count {
				t.Errorf("want %d fields, got %d", c.count, count)
			}
		})
	}
}

const withFields = `package thing

import (
	"list"
	"struct"

	"github.com/example/memcached-operator/schemas/kind"
)

kind.#Kind & {
	names: {group: "test.example.com", version: "v1", kind: "Thing", plural: "things"}
	chart:  "thing"
	object: #Thing
	values: {#object: #Thing}
	report: {}
	samples: {x: {items: [{of: "a"}]}, y: {optional: {inner: "B"}, required: 2}}
}
#Thing: kind.#Object & {
	apiVersion: "test.example.com/v1"
	kind:       "Thing"
	spec:       #Spec
}
#Spec: {
	required: *1 | int
	optional?: {
		inner: *"A" | "B"
		other: *true | bool
	}
	items: list.MaxItems(9) & [...#Item]
	map: struct.MaxFields(9) & {[string]: {
		of: string
	}}
	#Shared
	column?: kind.#Column
	columns: list.MaxItems(9) & [...kind.#Column]
	byName: struct.MaxFields(9) & {[string]: kind.#Column}
	inner?: column?: kind.#Column
}
#Item: {
	of!: #Name
}
#Name: string
#Shared: {
	shared?: string
}
`

func load(t *testing.T, template string) *kind.Kind {
	t.Helper()
	loaded, err := kind.LoadFolder(fstest.MapFS{
		"schemas/thing/thing.cue":       {Data: []byte(withFields)},
		"charts/thing/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: thing\nversion: 0.1.0\n")},
		"charts/thing/templates/x.yaml": {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}" + template)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if loaded[0].Err != nil {
		t.Fatal(loaded[0].Err)
	}
	return loaded[0].Kind
}

func TestSpecs(t *testing.T) {
	all, err := specs(load(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	want := values{
		given: []any{
			map[string]any{"items": []any{map[string]any{"of": "a"}}},
			map[string]any{"optional": map[string]any{"inner": "B"}, "required": int64(2)},
		},
		completed: []any{
			map[string]any{"required": int64(1), "items": []any{map[string]any{"of": "a"}}, "map": map[string]any{}, "columns": []any{}, "byName": map[string]any{}},
			map[string]any{"required": int64(2), "optional": map[string]any{"inner": "B", "other": true}, "items": []any{}, "map": map[string]any{}, "columns": []any{}, "byName": map[string]any{}},
		},
	}
	if diff := cmp.Diff(want, all, cmp.AllowUnexported(values{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlaces(t *testing.T) {
	lines := strings.Split(withFields, "\n")
	for path, want := range map[string]string{
		"spec.required":       "required: *1 | int",
		"spec.optional":       "optional?: {",
		"spec.optional.inner": `inner: *"A" | "B"`,
		"spec.items.[].of":    "of!: #Name",
		"spec.map.*.of":       "of: string",
		"spec.shared":         "shared?: string",
	} {
		found, err := places(load(t, ""), []fieldGap{{path: strings.Split(path, ".")}})
		if err != nil {
			t.Fatal(err)
		}
		file, line := "schemas/thing/thing.cue", 0
		for i, l := range lines {
			if strings.TrimSpace(l) == want {
				line = i + 1
			}
		}
		if diff := cmp.Diff([]string{file + ":" + strconv.Itoa(line)}, found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestOwn(t *testing.T) {
	const column = `{type: object, properties: {name: {type: string}, type: {type: string, enum: [a, b]}}}`
	const with = `{properties: {required: {}, list: {items: {properties: {of: {}}}}, map: {additionalProperties: {properties: {of: {}}}}, shared: {},
  column: ` + column + `, columns: {items: ` + column + `}, byName: {additionalProperties: ` + column + `}, inner: {properties: {column: ` + column + `}}}}`
	without := strings.ReplaceAll(with, "{name: {type: string}, type: {type: string, enum: [a, b]}}", "{}")
	var spec, want apiextensionsv1.JSONSchemaProps
	for text, into := range map[string]*apiextensionsv1.JSONSchemaProps{with: &spec, without: &want} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	got, err := own(load(t, ""), &spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
