package gate

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/schemas"
)

// example finds a file in docs/kinds.md: its path in backquotes, and a block of code.
var example = regexp.MustCompile("(?ms)`([a-zA-Z/.-]+)`:\n\n```[a-z]+\n(.*?)^```$")

func readDocs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheExampleInTheDocs loads the kind in docs/kinds.md as a reader would who copies its files into a folder.
func TestTheExampleInTheDocs(t *testing.T) {
	files := fstest.MapFS{}
	for _, found := range example.FindAllStringSubmatch(readDocs(t), -1) {
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
	if err := Check(k); err != nil {
		t.Error(err)
	}
	resources, err := render.Decode(strings.NewReader(string(files["my-redis.yaml"].Data)))
	if err != nil || len(resources) != 1 || resources[0].GroupVersionKind() != k.GVK() {
		t.Fatalf("my-redis.yaml: got %v, %v", resources, err)
	}
	m, _, err := plan.Make(k, resources[0], kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.YAML()
	if err != nil || !strings.Contains(string(text), `- "805306368"`) {
		t.Errorf("1Gi should give 805306368 bytes of cache, got:\n%s\n%v", text, err)
	}
}

// TestTheDocsAreComplete looks for each field of the contract and each forbidden function in docs/kinds.md.
func TestTheDocsAreComplete(t *testing.T) {
	docs := readDocs(t)
	contract, err := fs.ReadFile(schemas.FS, "kind/kind.cue")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, field := range regexp.MustCompile(`(?m)^\t{1,2}([a-z][A-Za-z]+)[?!]?: `).FindAllStringSubmatch(string(contract), -1) {
		words = append(words, field[1])
	}
	for name := range forbidden {
		words = append(words, name)
	}
	for _, word := range words {
		if !regexp.MustCompile("`[^`\n]*\\b" + word + "\\b[^`\n]*`").MatchString(docs) {
			t.Errorf("docs/kinds.md does not mention `%s`", word)
		}
	}
}
