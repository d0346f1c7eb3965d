package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/render"
)

// read returns an object from YAML, nil from "".
func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	objects, err := render.Decode(strings.NewReader(text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%s: %d objects, %v", text, len(objects), err)
	}
	return objects[0]
}

func TestValuesOfSecretsAreMasked(t *testing.T) {
	const secret, other = "{apiVersion: v1, kind: Secret, ", "{apiVersion: test.example.com/v1, kind: Secret, "
	for name, c := range map[string]struct{ live, wanted, before, after string }{
		"alike":       {secret + "data: {a: eA==}}", secret + "data: {a: eA==}}", "a: '***'", "a: '***'"},
		"different":   {secret + "data: {a: eA==}}", secret + "data: {a: eQ==}}", "a: '*** (before)'", "a: '*** (after)'"},
		"added":       {secret + "data: {}}", secret + "data: {a: eA==}}", "data: {}", "a: '***'"},
		"removed":     {secret + "data: {a: eA==}}", secret + "data: {}}", "a: '***'", "data: {}"},
		"created":     {"", secret + "stringData: {a: eA==}}", "", "a: '***'"},
		"pruned":      {secret + "data: {a: eA==}}", "", "a: '***'", ""},
		"no map":      {secret + "data: eA==}", secret + "data: [eA==]}", "kind: Secret", "kind: Secret"},
		"other kinds": {other + "data: {a: eA==}}", other + "data: {a: eQ==}}", "a: eA==", "a: eQ=="},
	} {
		before, after, err := texts(read(t, c.live), read(t, c.wanted), "")
		if err != nil || !strings.Contains(string(before), c.before) || !strings.Contains(string(after), c.after) {
			t.Errorf("%s: want %q and %q, got %v\n%s---\n%s", name, c.before, c.after, err, before, after)
		}
		if both := string(before) + string(after); name != "other kinds" && (strings.Contains(both, "eA==") || strings.Contains(both, "eQ==")) {
			t.Errorf("%s: a value is shown:\n%s", name, both)
		}
	}
}

// TestWhatOnlyTheServerKnowsIsLeftOut shows what is left of an object: what somebody wrote.
func TestWhatOnlyTheServerKnowsIsLeftOut(t *testing.T) {
	const object = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  uid: 1
  resourceVersion: "2"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  managedFields: [{manager: x}]
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    memcached-operator.example.com/applied-digest: "4"
    memcached-operator.example.com/owner-uid: "5"
  ownerReferences: [{name: cr, uid: "5"}]
status: {}
`
	want := func(rest string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n" + rest }
	for unknown, want := range map[string]string{
		"":  want("  annotations:\n    memcached-operator.example.com/owner-uid: \"5\"\n  name: a\n  ownerReferences:\n  - name: cr\n    uid: \"5\"\n"),
		"5": want("  name: a\n  ownerReferences:\n  - name: cr\n"),
	} {
		got, _, err := texts(read(t, object), nil, unknown)
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Errorf("unknown %q: %v (-want +got):\n%s", unknown, err, diff)
		}
	}
}

func TestColors(t *testing.T) {
	for line, want := range map[string]string{
		"--- live/x\n": "\x1b[1m--- live/x\x1b[0m\n", "+++ wanted/x\n": "\x1b[1m+++ wanted/x\x1b[0m\n", "@@ -1 +1 @@\n": "\x1b[36m@@ -1 +1 @@\x1b[0m\n",
		"-a: 1\n": "\x1b[31m-a: 1\x1b[0m\n", "+a: 2\n": "\x1b[32m+a: 2\x1b[0m\n", " b: 3\n": " b: 3\n",
	} {
		if got := colored(line, true); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
		if got := colored(line, false); got != line {
			t.Errorf("without colors: got %q", got)
		}
	}
	if hasColor(&strings.Builder{}) {
		t.Error("a pipe is no terminal")
	}
}
