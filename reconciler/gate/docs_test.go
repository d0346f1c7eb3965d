package gate

import (
	"io/fs"
	"os"
	"regexp"
	"testing"

	"github.com/example/memcached-operator/schemas"
)

// TestTheDocsAreComplete looks for each field of the contract and each forbidden function in docs/kinds.md.
func TestTheDocsAreComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := string(text)
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
