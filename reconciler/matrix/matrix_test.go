package matrix_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/matrix"
)

// TestTheKindsOfTheRepository is `opctl test --kinds-dir .`: `make generate` refreshes stale snapshots.
func TestTheKindsOfTheRepository(t *testing.T) {
	root := os.DirFS("../..")
	kinds, err := kind.LoadFolder(root)
	if err != nil || len(kinds) < 3 {
		t.Fatalf("found %d kinds: %v", len(kinds), err)
	}
	for _, l := range kinds {
		t.Run(l.Folder, func(t *testing.T) {
			if l.Err != nil {
				t.Fatal(l.Err)
			}
			testdata, err := fs.Sub(root, "schemas/"+l.Folder+"/testdata")
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range matrix.Test(l.Kind, matrix.Options{Testdata: testdata, Runs: 10}).Problems {
				t.Error(problem)
			}
		})
	}
}

const schema = `package thing

import (
	"list"
	"struct"

	"github.com/example/memcached-operator/schemas/kind"
)

kind.#Kind & {
	names: {group: "test.example.com", version: "v1", kind: "Thing", plural: "things"}
	chart:  "thing"
	object: #Thing
	values: {#object: #Thing, #object.spec}
	report: {#observed: kind.#Observation, pods: len(#observed.pods)}
	samples: {%s}
}
#Thing: kind.#Object & {
	apiVersion: "test.example.com/v1"
	kind:       "Thing"
	spec: {
		a: *false | bool
		b: *false | bool
		s: *"" | string
		l: list.MaxItems(9) & [...string]
		m: struct.MaxFields(9) & {[string]: string}
	}
	status?: {pods?: int, ...}
}
`

const configMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name | quote }}}
data:
`

// thing returns a kind with samples, whose chart has templates by their files' names.
func thing(t *testing.T, samples string, templates map[string]string) *kind.Kind {
	t.Helper()
	files := fstest.MapFS{
		"schemas/thing/thing.cue": {Data: fmt.Appendf(nil, schema, samples)},
		"charts/thing/Chart.yaml": {Data: []byte("apiVersion: v2\nname: thing\nversion: 0.1.0\n")},
	}
	for name, text := range templates {
		files["charts/thing/templates/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	loaded, err := kind.LoadFolder(files)
	if err != nil {
		t.Fatal(err)
	}
	if loaded[0].Err != nil {
		t.Fatal(loaded[0].Err)
	}
	return loaded[0].Kind
}

// test returns what a test of a kind without testdata says of its templates. configMap has four lines.
func test(t *testing.T, samples string, templates map[string]string) matrix.Result {
	t.Helper()
	r := matrix.Test(thing(t, samples, templates), matrix.Options{Runs: 2})
	var problems []string
	for _, p := range r.Problems {
		if !strings.HasPrefix(p, "schemas/") {
			problems = append(problems, p)
		}
	}
	r.Problems = problems
	return r
}

func TestBranches(t *testing.T) {
	const x, helpers = "charts/thing/templates/x.yaml:", "charts/thing/templates/_helpers.tpl:"
	for name, c := range map[string]struct {
		samples  string
		template string
		helpers  string
		count    int
		want     []string
	}{
		"none":                        {samples: "x: {}", template: "  a: b", count: 0},
		"if, both ways":               {samples: "x: {}, y: a: true", template: "  {{- if .Values.a }}\n  a: b\n  {{- end }}", count: 2},
		"if, never true":              {samples: "x: {}", template: "  {{- if .Values.a }}\n  a: b\n  {{- end }}", count: 2, want: []string{x + "5: {{if .Values.a}} is true in no sample"}},
		"if, never false":             {samples: "y: a: true", template: "  x: y\n  {{- if .Values.a }}\n  a: b\n  {{- end }}", count: 2, want: []string{x + "6: {{if .Values.a}} is false in no sample"}},
		"if and else, never false":    {samples: "y: a: true", template: "  {{- if .Values.a }}\n  a: b\n  {{- else }}\n  c: d\n  {{- end }}", count: 2, want: []string{x + "5: {{if .Values.a}} is false in no sample"}},
		"empty if":                    {samples: "x: {}", template: "  x: {{ if .Values.a }}{{ else }}y{{ end }}", count: 2, want: []string{x + "5: {{if .Values.a}} is true in no sample"}},
		"with, both ways":             {samples: "x: {}, y: s: \"b\"", template: "  x: y\n  {{- with .Values.s }}\n  a: {{ . }}\n  {{- end }}", count: 2},
		"with, never set":             {samples: "x: {}", template: "  {{- with .Values.s }}\n  a: {{ . }}\n  {{- end }}", count: 2, want: []string{x + "5: {{with .Values.s}} has a value in no sample"}},
		"with, always set":            {samples: "y: s: \"b\"", template: "  {{- with .Values.s }}\n  a: {{ . }}\n  {{- end }}", count: 2, want: []string{x + "5: {{with .Values.s}} is empty in no sample"}},
		"range, always empty":         {samples: "x: {}", template: "  {{- range $i, $e := .Values.l }}\n  k{{ $i }}: {{ $e }}\n  {{- end }}", count: 1, want: []string{x + "5: {{range $i, $e := .Values.l}} has an element in no sample"}},
		"range, never empty":          {samples: "x: l: [\"v\"]", template: "  {{- range $i, $e := .Values.l }}\n  k{{ $i }}: {{ $e }}\n  {{- end }}", count: 1},
		"range and else, never empty": {samples: "x: l: [\"v\", \"w\"]", template: "  {{- range $i, $e := .Values.l }}\n  k{{ $i }}: {{ $e }}{{ continue }}\n  {{- else }}\n  a: b\n  {{- end }}", count: 2, want: []string{x + "5: {{range $i, $e := .Values.l}} is empty in no sample"}},
		"else if":                     {samples: "x: {}, y: a: true", template: "  x: {{ if .Values.a }}a{{ else if .Values.b }}b{{ else }}c{{ end }}", count: 3, want: []string{x + "5: {{if .Values.b}} is true in no sample"}},
		"else if without else":        {samples: "x: b: true, y: a: true", template: "  x: {{ if .Values.a }}a{{ else if .Values.b }}b{{ end }}", count: 3, want: []string{x + "5: {{if .Values.b}} is false in no sample"}},
		"an if and more in an else":   {samples: "x: b: true", template: "  x: {{ if .Values.a }}a{{ else }}{{ if .Values.b }}b{{ end }}c{{ end }}", count: 4, want: []string{x + "5: {{if .Values.a}} is true in no sample", x + "5: {{if .Values.b}} is false in no sample"}},
		"else with":                   {samples: "x: {}, y: l: [\"b\"]", template: "  x: {{ with .Values.l }}a{{ else with .Values.s }}b{{ else }}c{{ end }}", count: 3, want: []string{x + "5: {{with .Values.s}} has a value in no sample"}},
		"only the outermost is told":  {samples: "x: {}", template: "  {{- if .Values.a }}\n  {{- if .Values.b }}\n  a: b\n  {{- end }}\n  {{- end }}", count: 4, want: []string{x + "5: {{if .Values.a}} is true in no sample"}},
		"inside one that is reached":  {samples: "x: {}, y: a: true", template: "  {{- if .Values.a }}\n  {{- if .Values.b }}\n  a: b\n  {{- end }}\n  {{- end }}", count: 4, want: []string{x + "6: {{if .Values.b}} is true in no sample"}},
		"braces in the text":          {samples: "x: {}, y: a: true", template: "  x: \"{ {{- .Release.Name -}} }\"\n  y: { {{- if .Values.a }}a: \"\\\\`\"{{ end -}} }", count: 2},
		"defines": {
			samples: "x: {}, y: a: true", template: "  x: {{ include `used` . | trunc 1 }}{{ template \"other\" . }}", count: 5,
			helpers: "{{/* the first */}}\n{{- define \"used\" -}}\n{{ if .Values.a }}a{{ else }}b{{ end }}\n{{- end }}\n\n{{ define \"other\" }}c{{ end }}\n{{ define \"unused\" -}}\n\n\nd{{ end }}",
			want:    []string{helpers + "7: {{define \"unused\"}} is used by no sample"},
		},
		"a define that another one replaces": {
			samples: "x: {}", template: "  x: {{ include \"a\" . }}\n{{- define \"a\" }}y{{ end }}", count: 2,
			helpers: "{{ define \"a\" }}x{{ end }}",
			want:    []string{x + "6: {{define \"a\"}} is used by no sample"},
		},
		"block": {samples: "x: {}", template: "  x: {{ block \"b\" .Values }}{{ if .a }}a{{ else }}c{{ end }}{{ end }}", count: 3, want: []string{x + "5: {{if .a}} is true in no sample"}},
		"a value that is only there in its branch": {samples: "x: {}, y: m: k: \"v\"", template: "  x: {{ if .Values.m }}{{ .Values.m.k }}{{ else }}z{{ end }}", count: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := test(t, c.samples, map[string]string{"x.yaml": configMap + c.template, "_helpers.tpl": c.helpers, "NOTES.txt": "{{ if .Values.a }}{{ end }}"})
			if diff := cmp.Diff(c.want, r.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if r.Branches != c.count {
				t.Errorf("want %d branches, got %d", c.count, r.Branches)
			}
		})
	}
}

func TestSnapshots(t *testing.T) {
	const folder = "schemas/thing/testdata"
	dir := filepath.Join(t.TempDir(), "testdata")
	problems := func(k *kind.Kind) (found []string) {
		for _, p := range matrix.Test(k, matrix.Options{Testdata: os.DirFS(dir)}).Problems {
			if strings.HasPrefix(p, folder) {
				found = append(found, p)
			}
		}
		return found
	}
	check := func(k *kind.Kind, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, problems(k)); diff != "" {
			t.Errorf("problems (-want +got):\n%s", diff)
		}
	}
	update := func(k *kind.Kind) {
		t.Helper()
		if err := matrix.Update(k, dir); err != nil {
			t.Fatal(err)
		}
	}
	template := map[string]string{"x.yaml": configMap + "  s: {{ .Values.s | quote }}"}
	two := thing(t, `x: {}, y: {}`, template)
	check(two, folder+": there are no snapshots: --update writes them")
	update(two)
	check(two)
	text, err := os.ReadFile(filepath.Join(dir, "x.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const first = `# Sample x of Thing.test.example.com as "opctl render" prints it; "opctl test --update" refreshes it.
---
apiVersion: v1
data:
  s: ""
kind: ConfigMap
`
	if !strings.HasPrefix(string(text), first) {
		t.Errorf("want a snapshot that begins with\n%s\ngot\n%s", first, text)
	}

	other := thing(t, `y: s: "set", z: {}`, template)
	// What is in the folder beside snapshots is the author's.
	authors := map[string]string{"notes.yaml": "a: b\n", "reports.yaml": "# Sample reports.\n{}\n", "x.txt": "# Sample x"}
	for name, text := range authors {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check(other,
		folder+`/y.yaml: is not what the sample renders to: review the change, and let --update write it
--- snapshot
+++ rendered
@@ -2,7 +2,7 @@
 ---
 apiVersion: v1
 data:
-  s: ""
+  s: set
 kind: ConfigMap
 metadata:
   labels:`,
		folder+"/z.yaml: there is no snapshot of this sample: --update writes it",
		folder+"/x.yaml: there is no such sample: --update deletes it",
	)
	update(other)
	check(other)
	for name := range authors {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := matrix.Update(thing(t, `reports: {}`, template), dir); err == nil || !strings.Contains(err.Error(), "sample reports: the file of that name holds the cases of the report") {
		t.Errorf("a sample may be called as the file of the report's cases: %v", err)
	}
}

func TestReports(t *testing.T) {
	k := thing(t, "x: {}", map[string]string{"x.yaml": configMap + "  a: b"})
	for name, c := range map[string]struct{ cases, want string }{
		"as wanted":    {"one pod: {observed: {pods: [{name: a}]}, status: {pods: 1}}", ""},
		"other status": {"one pod: {observed: {pods: [{name: a}]}, status: {pods: 2}}", "case \"one pod\": the report gives another status\n--- status\n+++ rendered\n@@ -1,1 +1,1 @@\n-pods: 2\n+pods: 1"},
		"unknown name": {"one pod: {observed: {pod: []}, status: {pods: 0}}", `unknown field "pod"`},
		"no YAML":      {"a: b: c", "mapping values are not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			for _, p := range matrix.Test(k, matrix.Options{Testdata: fstest.MapFS{"reports.yaml": {Data: []byte(c.cases)}}}).Problems {
				if strings.HasPrefix(p, "schemas/thing/testdata/reports.yaml: ") {
					got += p
				}
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("want %q, got %q", c.want, got)
			}
		})
	}
}

func TestWhatTheGateRefusesIsTestedNoFurther(t *testing.T) {
	r := matrix.Test(thing(t, "x: a: true", map[string]string{"x.yaml": configMap + "  a: {{ now }}\n  b: {{ env `HOME` }}"}), matrix.Options{Runs: 1})
	want := matrix.Result{Kind: "Thing.test.example.com", Samples: 1, Problems: []string{
		"charts/thing/templates/x.yaml:5: calls now: the same custom resource must render the same for ever, whatever the time and the time zone",
		"charts/thing/templates/x.yaml:6: calls env: rendering asks nobody: what a chart needs must be in the custom resource",
	}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
