package gate_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/example/memcached-operator/reconciler/gate"
	"github.com/example/memcached-operator/reconciler/kind"
)

func TestEmbeddedKindsPass(t *testing.T) {
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if err := gate.Check(k); err != nil {
			t.Errorf("%s: %v", k.Names.Kind, err)
		}
	}
}

const schema = `package thing

import "github.com/example/memcached-operator/schemas/kind"

kind.#Kind & {
	names: {group: "test.example.com", version: "v1", kind: "Thing", plural: "things"}
	chart:  "thing"
	object: #Thing
	values: {#object: #Thing, size: #object.spec.size}
	report: {#observed: _, pods: len(#observed.pods), first: [for p in #observed.pods {p.name}, "none"][0]}
	samples: {a: {}, b: size: 2}
	policies: {fields: [{kind: "Deployment.apps", path: "spec.replicas", conflict: "Yield"}], optional: ["ConfigMap"]}
}
#Thing: kind.#Object & {
	apiVersion: "test.example.com/v1"
	kind:       "Thing"
	spec: size: int & <10 | *1
	status?: {pods: int, first: string}
}
`

const template = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  keys: {{ keys .Values | sortAlpha | join "," }}{{ sortAlpha (values .Values) | len }}
---
# helm.sh/hook in a comment
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec: {replicas: {{ .Values.size }}}
`

func files(schema, template string) fstest.MapFS {
	return fstest.MapFS{
		"schemas/thing/thing.cue":       {Data: []byte(schema)},
		"charts/thing/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: thing\nversion: 0.1.0\n")},
		"charts/thing/templates/x.yaml": {Data: []byte(template)},
	}
}

// check loads a kind and lets it through the gate.
func check(t *testing.T, files fstest.MapFS) error {
	t.Helper()
	loaded, err := kind.LoadFolder(files)
	if err != nil {
		t.Fatal(err)
	}
	if loaded[0].Err != nil {
		return loaded[0].Err
	}
	return gate.Check(loaded[0].Kind)
}

func TestAGoodKindPasses(t *testing.T) {
	if err := check(t, files(schema, template)); err != nil {
		t.Error(err)
	}
}

func TestFaultyKindsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		schema   [2]string // from, to
		template string    // instead of the good one
		file     string    // more
		want     string
	}{
		"does not compile":         {schema: [2]string{"size: 2}", "size: 2"}, want: "schemas/thing/thing.cue:"},
		"unknown reference":        {schema: [2]string{"#object.spec.size}", "#object.spec.sice}"}, want: "schemas/thing/thing.cue:9"},
		"no sample":                {schema: [2]string{"samples: {a: {}, b: size: 2}", "samples: {}"}, want: "schemas/thing: samples: there is none"},
		"sample breaks the schema": {schema: [2]string{"b: size: 2", "b: size: 20"}, want: "schemas/thing: sample b: spec.size: invalid value 20 (out of bound <10)"},
		"sample with a bad name":   {schema: [2]string{"b: size: 2", "B_: size: 2"}, want: `sample B_: metadata.name: invalid value "B_"`},
		"bad group":                {schema: [2]string{`test.example.com`, `test`}, want: `names.group "test": must be a domain`},
		"bad version":              {schema: [2]string{`v1"`, `1.0"`}, want: `names.version "1.0"`},
		"bad plural":               {schema: [2]string{`"things"`, `"Things"`}, want: `names.plural "Things": a DNS-1035 label`},
		"bad short name":           {schema: [2]string{`"things"}`, `"things", shortNames: ["t_"]}`}, want: `names.shortNames "t_"`},
		"cluster without anywhere": {schema: [2]string{`chart:  "thing"`, `chart: "thing", scope: "Cluster"`}, want: "scope Cluster needs policies.placement Anywhere"},
		"bad scale":                {schema: [2]string{`chart:  "thing"`, `chart: "thing", scale: {spec: ".spec.size", status: ".spec.size"}`}, want: "scale: spec must lead below .spec and status below .status"},
		"column twice":             {schema: [2]string{`chart:  "thing"`, `chart: "thing", columns: [{name: "A", jsonPath: ".spec.size"}, {name: "A", jsonPath: ".spec.size"}]`}, want: `columns: there are two named "A"`},
		"unknown policy":           {schema: [2]string{`"Yield"`, `"Fight"`}, want: "policies.fields.0.conflict"},
		"policy of the operator's": {schema: [2]string{`"spec.replicas"`, `"metadata.labels"`}, want: "policies.fields: path metadata.labels"},
		"policy of no object":      {schema: [2]string{`"Deployment.apps"`, `"Deployment"`}, want: "schemas/thing: policies.fields names Deployment, which no sample renders: there are [ConfigMap Deployment.apps]"},
		"report is not concrete":   {schema: [2]string{`pods: len(#observed.pods)`, `pods: int`}, want: "sample a: with nothing observed: computing the report of Thing: report.pods: incomplete value int"},
		"report fails when empty":  {schema: [2]string{`, "none"][0]`, `][0]`}, want: "report.first: index out of range [0]"},
		"report is not the status": {schema: [2]string{`status?: {pods: int`, `status?: {pods: string`}, want: "the report is not the status that the kind declares: status.pods: invalid value"},
		"report is not declared":   {schema: [2]string{`status?: {pods: int, first: string}`, `status?: {pods: int, ...}`}, want: "the report gives status.first, which the object's status does not declare: the API server would drop it"},
		"field under a condition":  {schema: [2]string{`spec: size: int & <10 | *1`, "spec: {size: int & <10 | *1, if size > 3 {why: string}}"}, want: "schemas/thing/thing.cue:17: spec.why: is declared only under a condition, so that the API server would silently drop it: declare it beside the condition, too, as why?: …"},
		"map without end":          {schema: [2]string{`spec: size: int & <10 | *1`, "spec: {size: int & <10 | *1, labels: [string]: string}"}, want: "spec.labels: bound the map, such as struct.MaxFields(16)"},
		"report is the operator's": {schema: [2]string{`#observed: _,`, `#observed: _, conditions: [],`}, want: "report has a field conditions, which is the operator's own"},
		"template does not parse":  {template: "a: b\nc: {{ if }}", want: "charts/thing/templates/x.yaml:2"},
		"template fails":           {template: "a: b\nc: {{ fail `no` }}", want: "thing/templates/x.yaml:2"},
		"absent value":             {template: template + "# {{ .Values.sice }}", want: `thing/templates/x.yaml:13:`},
		"clock":                    {template: "a: b\nc: {{ now }}", want: "charts/thing/templates/x.yaml:2: calls now: the same custom resource must render the same for ever"},
		"random":                   {template: "{{ if true }}\n{{ else }}\n{{ randAlphaNum 3 | quote }}{{ end }}", want: "charts/thing/templates/x.yaml:3: calls randAlphaNum: "},
		"certificate":              {template: "{{ with genCA `a` 1 }}{{ end }}", want: "x.yaml:1: calls genCA: "},
		"lookup":                   {template: "{{ range (lookup `v1` `Secret` `` ``).items }}{{ end }}", want: "x.yaml:1: calls lookup: rendering asks nobody"},
		"tpl in a definition":      {template: "{{ define `x` }}\n{{ tpl .a . }}{{ end }}", want: "x.yaml:2: calls tpl: a user's text would be run as a template"},
		"tpl as an argument":       {template: "{{ print (include `a` (dict `b` (tpl .a .))) }}", want: "x.yaml:1: calls tpl"},
		"keys in any order":        {template: "{{ range keys .Values }}{{ end }}", want: "x.yaml:1: calls keys: the order changes"},
		"sorted before the keys":   {template: "{{ list | sortAlpha | keys }}", want: "x.yaml:1: calls keys"},
		"hook":                     {template: "a:\n  \"helm.sh/hook\": test", want: "charts/thing/templates/x.yaml:2: annotation helm.sh/hook: there are no releases"},
		"kept resource":            {template: "a:\n  helm.sh/resource-policy: keep", want: "x.yaml:2: annotation helm.sh/resource-policy"},
		"other's namespace":        {template: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}", want: `sample a: checking what thing/templates/x.yaml rendered: ConfigMap a is in namespace "b"`},
		"folder crds":              {file: "charts/thing/crds/x.yaml", want: "charts/thing: the chart has a folder crds"},
		"subchart":                 {file: "charts/thing/charts/sub/Chart.yaml", want: "charts/thing: the chart has dependencies"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(schema, c.schema[0]) {
				t.Fatalf("the schema does not hold %q", c.schema[0])
			}
			text := template
			if c.template != "" {
				text = c.template
			}
			faulty := files(strings.ReplaceAll(schema, c.schema[0], c.schema[1]), text)
			if c.file != "" {
				faulty[c.file] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: sub\nversion: 0.1.0\n")}
			}
			if err := check(t, faulty); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with %q, got:\n%v", c.want, err)
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	kinds, err := kind.Embedded()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := gate.Check(kinds[0]); err != nil {
			b.Fatal(err)
		}
	}
}
