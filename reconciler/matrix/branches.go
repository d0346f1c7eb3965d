package matrix

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/validate"
)

// branch is one way through a template: the body of an if, a with or a range, what happens otherwise, or a define.
type branch struct {
	where   string // file:line
	what    string // what no sample does, if it is not reached
	parent  *branch
	list    *parse.ListNode // begins with a call of fail until the branch is reached
	reached bool
}

// branches tells which of the chart's branches no sample reaches, and how many there are. Go's templates do not count what
// they run. So each branch of a copy of the chart begins with a call of fail: a sample that fails has reached the branch, which
// then loses the call, until the sample renders.
func branches(k *kind.Kind) (count int, problems []string, err error) {
	var c coverage
	for _, file := range k.Chart.Templates {
		if path.Ext(file.Name) == ".txt" { // NOTES.txt, which Helm would print
			continue
		}
		if err := c.parse(path.Join("charts", k.Chart.Name(), file.Name), file); err != nil {
			return 0, nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.Samples)) {
		if err := c.reach(k, name); err != nil {
			return 0, nil, fmt.Errorf("schemas/%s: sample %s: %w", k.Folder, name, err)
		}
	}
	for _, b := range c.branches {
		if !b.reached && (b.parent == nil || b.parent.reached) { // or else the parent says it all
			problems = append(problems, b.where+": "+b.what)
		}
	}
	return len(c.branches), problems, nil
}

// coverage is a chart's templates, and how much of them is reached.
type coverage struct {
	files    []*file
	branches []*branch
}

// file is a template's file: itself, and what it defines by name.
type file struct {
	name    string
	text    string
	path    string
	root    *parse.Tree
	defines map[string]*parse.Tree
}

// parse adds a file, whose path is the one to tell.
func (c *coverage) parse(where string, source *chart.File) error {
	f := &file{name: source.Name, text: string(source.Data), path: where, root: parse.New(where), defines: map[string]*parse.Tree{}}
	f.root.Mode = parse.SkipFuncCheck // Helm's functions are many, and their names do not matter to the parser
	if _, err := f.root.Parse(f.text, "", "", f.defines); err != nil {
		return err
	}
	delete(f.defines, where)
	c.files = append(c.files, f)
	c.walk(f, nil, f.root.Root)
	for _, name := range slices.Sorted(maps.Keys(f.defines)) {
		tree := f.defines[name]
		b := c.add(&branch{where: f.at(f.lineOf(name, tree)), what: fmt.Sprintf("{{define %q}} is used by no sample", name), list: tree.Root})
		c.walk(f, b, tree.Root)
	}
	return nil
}

// add makes b a branch to reach.
func (c *coverage) add(b *branch) *branch {
	c.branches = append(c.branches, b)
	b.list.Nodes = append([]parse.Node{action(fmt.Sprintf("fail %q", marker(len(c.branches)-1)))}, b.list.Nodes...)
	return b
}

// walk adds the branches in a list. A node prints itself as the template that it came from, but for text: one that ends in a
// brace would make another template of what comes after it.
func (c *coverage) walk(f *file, parent *branch, list *parse.ListNode) {
	for i, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			list.Nodes[i] = action(strconv.Quote(string(n.Text)))
		case *parse.IfNode:
			c.fork(f, parent, &n.BranchNode, "is true in no sample", "is false in no sample")
		case *parse.WithNode:
			c.fork(f, parent, &n.BranchNode, "has a value in no sample", "is empty in no sample")
		case *parse.RangeNode:
			c.fork(f, parent, &n.BranchNode, "has an element in no sample", "is empty in no sample")
		}
	}
}

func (c *coverage) fork(f *file, parent *branch, n *parse.BranchNode, body, otherwise string) {
	word := map[parse.NodeType]string{parse.NodeIf: "if", parse.NodeWith: "with", parse.NodeRange: "range"}[n.NodeType]
	way := func(list *parse.ListNode, what string) *branch {
		return &branch{where: f.at(n.Line), what: fmt.Sprintf("{{%s %s}} %s", word, n.Pipe, what), parent: parent, list: list}
	}
	c.walk(f, c.add(way(n.List, body)), n.List)
	switch {
	case n.ElseList == nil && n.NodeType == parse.NodeRange: // an empty list is no case of its own
	case n.ElseList == nil:
		n.ElseList = &parse.ListNode{NodeType: parse.NodeList}
		c.add(way(n.ElseList, otherwise))
	case isElseIf(n.ElseList): // is reached if one of its own ways is
		c.walk(f, parent, n.ElseList)
	default:
		c.walk(f, c.add(way(n.ElseList, otherwise)), n.ElseList)
	}
}

// isElseIf tells whether an else holds another if or with, and nothing else.
func isElseIf(list *parse.ListNode) bool {
	if len(list.Nodes) != 1 {
		return false
	}
	t := list.Nodes[0].Type()
	return t == parse.NodeIf || t == parse.NodeWith
}

// reach renders a sample until it fails no more.
func (c *coverage) reach(k *kind.Kind, name string) error {
	sample := plan.Sample(k, name, plan.SampleNamespace)
	values, err := validate.Spec(k, name, sample.Object["spec"])
	if err != nil {
		return err
	}
	target := render.Target{Name: name, Namespace: sample.GetNamespace(), KubeVersion: plan.SampleKubeVersion}
	for {
		_, err := render.Render(k.WithChart(c.chart(k.Chart)), values, target)
		if err == nil {
			return nil
		}
		found := marked.FindStringSubmatch(err.Error())
		if found == nil {
			return err
		}
		i, err := strconv.Atoi(found[1])
		if err != nil {
			return err
		}
		c.branches[i].reached = true
		c.branches[i].list.Nodes[0] = action(`""`)
	}
}

// marker is what a sample fails with that reaches branch i; marked finds it.
func marker(i int) string { return fmt.Sprintf("branch <%d> is reached", i) }

var marked = regexp.MustCompile(`branch <(\d+)> is reached`)

// chart returns the chart with a call of fail in each branch that is not reached yet.
func (c *coverage) chart(original *chart.Chart) *chart.Chart {
	copied := *original
	copied.Templates = nil
	for _, f := range c.files {
		var b strings.Builder
		b.WriteString(f.root.Root.String())
		for _, name := range slices.Sorted(maps.Keys(f.defines)) {
			fmt.Fprintf(&b, "{{define %q}}%s{{end}}", name, f.defines[name].Root)
		}
		copied.Templates = append(copied.Templates, &chart.File{Name: f.name, Data: []byte(b.String())})
	}
	return &copied
}

func (f *file) at(line int) string { return fmt.Sprintf("%s:%d", f.path, line) }

// lineOf returns where a template is defined. The parser only knows where its first node is.
func (f *file) lineOf(name string, tree *parse.Tree) int {
	at := int(tree.Root.Pos)
	if found := regexp.MustCompile(`\b(define|block)\s+` + regexp.QuoteMeta(strconv.Quote(name))).FindStringIndex(f.text); found != nil {
		at = found[0]
	}
	return 1 + strings.Count(f.text[:at], "\n")
}

// action returns the node of {{ call }}.
func action(call string) parse.Node {
	tree := parse.New("")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse("{{"+call+"}}", "", "", map[string]*parse.Tree{}); err != nil {
		panic(err) // call is a name and a quoted string
	}
	return tree.Root.Nodes[0]
}
