package matrix

import (
	"strings"
	"testing"
)

// TestRuns has a template in which the gate sees nothing wrong: the keys, which come in any order, are sorted too late. One time in
// eight the first of them is a.
func TestRuns(t *testing.T) {
	if problems := runs(load(t, ""), 10); len(problems) > 0 {
		t.Errorf("got %q", problems)
	}
	k := load(t, "\n---\n"+`{apiVersion: v1, kind: Secret, metadata: {name: {{ dict "a" 1 "b" 2 "c" 3 "d" 4 "e" 5 "f" 6 "g" 7 "h" 8 | keys | first | list | sortAlpha | first | eq "a" | printf "is-%t" }}}}`)
	const want = "schemas/thing: sample x: charts/thing renders it differently from time to time\n--- first\n+++ rendered\n@@ "
	problems := runs(k, 200)
	if len(problems) != 2 || !strings.HasPrefix(problems[0], want) {
		t.Errorf("want a diff of either sample, got %q", problems)
	}
	// The gate, which renders twice, may see the difference, but not each time.
	for range 50 {
		if r := Test(k, Options{Runs: 200}); len(r.Problems) > 0 && strings.HasPrefix(r.Problems[0], want) {
			return
		}
	}
	t.Error("a test does not render often")
}
