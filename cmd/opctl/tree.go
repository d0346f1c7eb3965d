package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

// tree is a line of text and what stands below it.
type tree struct {
	text     string
	branches []tree
}

// tree returns the report for people, as of now.
func (r *report) tree(now time.Time) tree {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	root := tree{text: fmt.Sprintf("%s %s  Ready=%s  generation %d (observed %d)", r.Kind, name, r.Ready, r.Generation, r.ObservedGeneration)}
	if r.Terminating {
		root.text += "  is being deleted"
	}
	age := func(t time.Time) string { return duration.HumanDuration(now.Sub(t)) }
	var rows [][]string
	for _, c := range r.Conditions {
		rows = append(rows, []string{c.Type, string(c.Status), c.Reason, age(c.LastTransitionTime.Time), oneLine(c.Message)})
	}
	root.add(table("conditions", rows))
	root.branches = append(root.branches, trees(r.Objects, r.Namespace)...)
	rows = nil
	for _, e := range r.Events {
		seen := age(e.Time.Time)
		if e.Count > 1 {
			seen += fmt.Sprintf(" (x%d)", e.Count)
		}
		rows = append(rows, []string{seen, e.Type, e.Reason, e.Object, oneLine(e.Message)})
	}
	root.add(table("events", rows))
	rows = nil
	for _, u := range r.Unknown {
		rows = append(rows, []string{oneLine(u)})
	}
	root.add(table("unknown", rows))
	return root
}

// trees returns a branch for each node.
func trees(nodes []*node, namespace string) []tree {
	var rows [][]string
	for _, n := range nodes {
		rows = append(rows, []string{n.label(namespace), n.fares()})
	}
	branches := table("", rows).branches
	for i, n := range nodes {
		branches[i].branches = trees(n.Children, namespace)
	}
	return branches
}

// add appends a branch, unless it is bare.
func (t *tree) add(branch tree) {
	if len(branch.branches) > 0 {
		t.branches = append(t.branches, branch)
	}
}

// table returns a branch with a row of aligned columns for each row.
func table(title string, rows [][]string) tree {
	t := tree{text: title}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		t.branches = append(t.branches, tree{text: strings.TrimRight(line.String(), " ")})
	}
	return t
}

// write prints the tree.
func (t tree) write(out io.Writer) error {
	var b strings.Builder
	b.WriteString(t.text + "\n")
	t.writeBranches(&b, "")
	_, err := io.WriteString(out, b.String())
	return err
}

func (t tree) writeBranches(b *strings.Builder, indent string) {
	for i, branch := range t.branches {
		here, below := "├─ ", "│  "
		if i == len(t.branches)-1 {
			here, below = "└─ ", "   "
		}
		b.WriteString(indent + here + branch.text + "\n")
		branch.writeBranches(b, indent+below)
	}
}
