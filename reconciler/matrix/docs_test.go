package matrix_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/matrix"
	"github.com/example/memcached-operator/reconciler/plan"
	"github.com/example/memcached-operator/reconciler/render"
)

// example finds a file in docs/kinds.md: its path in backquotes, and a block of code.
var example = regexp.MustCompile("(?ms)`([a-zA-Z/.-]+)`:\n\n```[a-z]+\n(.*?)^```$")

// TestTheExampleInTheDocs tests the kind in docs/kinds.md as a reader would who copies its files into a folder.
func TestTheExampleInTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, found := range example.FindAllStringSubmatch(string(docs), -1) {
		files[found[1]] = &fstest.MapFile{Data: []byte(found[2])}
	}
	loaded, err := kind.LoadFolder(files)
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded) != 1 || loaded[0].Err != nil {
		t.Fatalf("want one kind, got %+v", loaded)
	}
	k := loaded[0].Kind
	for _, problem := range matrix.Test(k, matrix.Options{Runs: 1}).Problems {
		t.Error(problem)
	}
	resources, err := render.Decode(strings.NewReader(string(files["my-redis.yaml"].Data)))
	if err != nil || len(resources) != 1 || resources[0].GroupVersionKind() != k.GVK() {
		t.Fatalf("my-redis.yaml: got %v, %v", resources, err)
	}
	m, _, err := plan.Make(k, resources[0], plan.SampleKubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.YAML()
	if err != nil || !strings.Contains(string(text), `- "805306368"`) {
		t.Errorf("1Gi should give 805306368 bytes of cache, got:\n%s\n%v", text, err)
	}
}
