package kind

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
)

// kindFiles are the files of a small kind, Thing, whose spec and chart's values are as given.
func kindFiles(folder, spec, values string) fstest.MapFS {
	title := strings.ToUpper(folder[:1]) + folder[1:]
	return fstest.MapFS{
		"schemas/" + folder + "/kind.cue": {Data: []byte(`package ` + folder + `

import (
	"list"

	"github.com/example/memcached-operator/schemas/kind"
)

kind.#Kind & {
	names: {group: "test.example.com", version: "v1", kind: "` + title + `", plural: "` + folder + `s"}
	chart:  "` + folder + `"
	object: #` + title + `
	values: {#object: #` + title + `, ` + values + `, _ones: list.Repeat([1], 2)}
	report: {...}
	samples: sample: {}
}
#` + title + `: kind.#Object & {
	apiVersion: "test.example.com/v1"
	kind:       "` + title + `"
	spec: ` + spec + `
}
`)},
		"charts/" + folder + "/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: " + folder + "\nversion: 0.1.0\n")},
		"charts/" + folder + "/templates/x.yaml": {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n")},
	}
}

func loadOne(t testing.TB, files fstest.MapFS) *Kind {
	t.Helper()
	loaded, err := LoadFolder(files)
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded) != 1 || loaded[0].Err != nil {
		t.Fatalf("want one kind, got %+v", loaded)
	}
	return loaded[0].Kind
}

// compute evaluates a kind's values for a spec.
func compute(k *Kind, spec map[string]any) (map[string]any, error) {
	return Evaluate(k, "the schema", func(p *Program) (map[string]any, error) {
		object := p.Object.Unify(cuecontext.New().Encode(map[string]any{"metadata": map[string]any{"name": "x"}, "spec": spec}))
		var values map[string]any
		return values, p.Values.FillPath(cue.MakePath(cue.Def("object")), object).Decode(&values)
	})
}

// TestARunawayHoldsUpNobody gives a kind inputs that explode, and goes on using that kind and another one meanwhile.
func TestARunawayHoldsUpNobody(t *testing.T) {
	limit := maxEvaluation
	defer func() { maxEvaluation = limit }()
	explosive := loadOne(t, kindFiles("bomb", `{n: int | *1}`,
		`let l = list.Range(0, #object.spec.n, 1), sum: len([for a in l for b in l for c in l if a+b+c > 5 {a}])`))
	other := loadOne(t, kindFiles("thing", `{n: int | *1}`, `n: #object.spec.n`))

	maxEvaluation = 100 * time.Millisecond
	_, err := compute(explosive, map[string]any{"n": 22})
	maxEvaluation = limit
	var runaway *RunawayError
	if !errors.As(err, &runaway) || runaway.What != "the schema of Bomb" {
		t.Fatalf("want a RunawayError about the schema of Bomb, got %v", err)
	}
	if explosive.runaways.Load() != 1 {
		t.Fatal("the evaluation ended too early for this test: let it multiply more")
	}
	if explosive.program != nil { // the race detector does not see every way in which two evaluations meet
		t.Error("the runaway's program is still the kind's")
	}
	var group sync.WaitGroup
	for i := range 8 {
		k := []*Kind{explosive, other}[i%2]
		group.Go(func() {
			for range 5 {
				if _, err := compute(k, map[string]any{"n": 2}); err != nil {
					t.Errorf("%s beside a runaway: %v", k.Names.Kind, err)
				}
			}
		})
	}
	group.Wait()
	for deadline := time.Now().Add(2 * time.Minute); explosive.runaways.Load() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the runaway does not end")
		}
	}
}

func TestTooManyRunawaysAreRefused(t *testing.T) {
	k := loadOne(t, kindFiles("thing", `{n: int | *1}`, `n: #object.spec.n`))
	k.runaways.Store(maxRunaways)
	if _, err := compute(k, nil); err == nil || !strings.Contains(err.Error(), "the schema of Thing: 3 evaluations of this kind were given up and still run") {
		t.Errorf("want a refusal, got %v", err)
	}
}

func TestAPanicIsAnError(t *testing.T) {
	k := loadOne(t, kindFiles("thing", `{n: int | *1}`, `n: #object.spec.n`))
	_, err := Evaluate(k, "the schema", func(*Program) (int, error) { panic("no such thing") })
	if err == nil || err.Error() != "evaluating the schema of Thing: no such thing" {
		t.Errorf("got %v", err)
	}
	if _, err := compute(k, map[string]any{"n": 2}); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}
