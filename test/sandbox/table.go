package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/jsonpath"

	"golang.org/x/term"

	"github.com/example/memcached-operator/reconciler/kind"
)

// table shows the custom resources of all kinds, those of the checkout included. On a terminal it is drawn over itself; elsewhere
// it is printed again when something but the age has changed.
type table struct {
	client dynamic.Interface
	kinds  *kind.Library
	out    *os.File
	live   bool
	drawn  int    // lines of the last drawing that are to be drawn over
	last   string // what was last shown, without ages
}

func newTable(config *rest.Config, kinds *kind.Library, out *os.File) (*table, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &table{client: client, kinds: kinds, out: out, live: term.IsTerminal(int(out.Fd()))}, nil
}

// refresh shows the custom resources as they are now, and tells whether there are some and all are ready.
func (t *table) refresh(ctx context.Context) (ready bool, err error) {
	var rows [][]string
	ready = true
	for _, k := range t.kinds.Kinds() {
		resource := k.GVK().GroupVersion().WithResource(k.Names.Plural)
		list, err := t.client.Resource(resource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // its CustomResourceDefinition is not there, or no longer
		}
		if err != nil {
			return false, fmt.Errorf("listing %s: %w", k.Names.Plural, err)
		}
		for i := range list.Items {
			row, isReady := describe(k, &list.Items[i])
			rows = append(rows, row)
			ready = ready && isReady
		}
	}
	const age = 4
	without := fmt.Sprint(ready)
	for _, r := range rows {
		without += strings.Join(r[:age], " ") + " " + strings.Join(r[age+1:], " ") + "\n"
	}
	if changed := without != t.last; changed || t.live {
		t.last = without
		t.draw(rows)
	}
	return ready && len(rows) > 0, nil
}

// print puts text below the table; the next drawing begins after it.
func (t *table) print(text string) {
	_, _ = fmt.Fprint(t.out, text)
	t.drawn = 0
}

func (t *table) draw(rows [][]string) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nKIND\tNAME\tREADY\tSTATUS\tAGE\tDETAILS")
	for _, r := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	_ = w.Flush()
	if t.live && t.drawn > 0 {
		_, _ = fmt.Fprintf(t.out, "\x1b[%dA\x1b[J", t.drawn) // up over the last drawing, and clear from there
	}
	_, _ = t.out.Write(b.Bytes())
	t.drawn = bytes.Count(b.Bytes(), []byte("\n"))
}

// describe returns kind, name, readiness, its reason, age and the kind's own columns of a custom resource, and whether it is
// ready.
func describe(k *kind.Kind, cr *unstructured.Unstructured) ([]string, bool) {
	ready, reason := "Unknown", "-"
	conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" {
			ready, reason = fmt.Sprint(m["status"]), fmt.Sprint(m["reason"])
		}
	}
	return []string{
		k.Names.Kind, cr.GetNamespace() + "/" + cr.GetName(), ready, reason,
		duration.HumanDuration(time.Since(cr.GetCreationTimestamp().Time)), details(k.Columns, cr),
	}, ready == "True"
}

// details returns what kubectl shows of a custom resource beside its conditions, as "name value" of each column that has one.
func details(columns []kind.Column, cr *unstructured.Unstructured) string {
	var parts []string
	for _, c := range columns {
		if c.Priority > 0 || strings.HasPrefix(c.JSONPath, ".status.conditions") {
			continue
		}
		path := jsonpath.New(c.Name).AllowMissingKeys(true)
		var value bytes.Buffer
		if path.Parse("{"+c.JSONPath+"}") == nil && path.Execute(&value, cr.Object) == nil && value.Len() > 0 {
			parts = append(parts, strings.ToLower(c.Name)+" "+value.String())
		}
	}
	return strings.Join(parts, ", ")
}
