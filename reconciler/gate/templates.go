package gate

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Reasons for which a template must not call a function.
const (
	whyRandom = "the same custom resource must render the same for ever"
	whyClock  = whyRandom + ", whatever the time and the time zone"
	whyWorld  = "rendering asks nobody: what a chart needs must be in the custom resource"
	whyTpl    = "a user's text would be run as a template"
	whyOrder  = "the order changes from call to call: pipe it into sortAlpha"
)

var forbidden = map[string]string{
	"bcrypt": whyRandom, "htpasswd": whyRandom, "encryptAES": whyRandom, "shuffle": whyRandom, "uuidv4": whyRandom,
	"now": whyClock, "ago": whyClock, "date": whyClock, "dateInZone": whyClock, "date_in_zone": whyClock, "dateModify": whyClock,
	"date_modify": whyClock, "mustDateModify": whyClock, "must_date_modify": whyClock, "durationRound": whyClock,
	"htmlDate": whyClock, "htmlDateInZone": whyClock, "toDate": whyClock, "mustToDate": whyClock,
	"lookup": whyWorld, "getHostByName": whyWorld, "env": whyWorld, "expandenv": whyWorld,
	"tpl":  whyTpl,
	"keys": whyOrder, "values": whyOrder,
}

// randomPrefix begins the names of the many functions that make random strings, keys and certificates.
var randomPrefix = regexp.MustCompile(`^(rand[A-Z]|gen[A-Z])`)

// helmAnnotation finds the annotations by which a chart talks to Helm's installation, which does not exist here.
var helmAnnotation = regexp.MustCompile(`^[^#]*helm\.sh/(hook|resource-policy)`)

// templates looks at the chart's templates without running them.
func templates(k *kind.Kind) (problems []error) {
	for _, file := range k.Chart.Templates {
		problems = append(problems, template(path.Join("charts", k.Chart.Name(), file.Name), file)...)
	}
	return problems
}

func template(name string, file *chart.File) (problems []error) {
	for i, line := range strings.Split(string(file.Data), "\n") {
		if found := helmAnnotation.FindStringSubmatch(line); found != nil {
			problems = append(problems, fmt.Errorf("%s:%d: annotation helm.sh/%s: there are no releases, so that it would have no effect", name, i+1, found[1]))
		}
	}
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck // Helm's functions are many, and their names do not matter to the parser
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(string(file.Data), "", "", trees); err != nil {
		return append(problems, err)
	}
	for _, t := range trees {
		w := walker{tree: t}
		w.walk(t.Root)
		problems = append(problems, w.problems...)
	}
	return problems
}

// walker finds forbidden calls in one template.
type walker struct {
	tree     *parse.Tree
	problems []error
	sorted   bool // what is called here gets sorted
}

func (w *walker) walk(node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n != nil { // the else that is not there
			w.walkAll(n.Nodes)
		}
	case *parse.ActionNode:
		w.walk(n.Pipe)
	case *parse.IfNode:
		w.branch(n.BranchNode)
	case *parse.RangeNode:
		w.branch(n.BranchNode)
	case *parse.WithNode:
		w.branch(n.BranchNode)
	case *parse.TemplateNode:
		w.walk(n.Pipe)
	case *parse.PipeNode:
		w.pipe(n)
	case *parse.CommandNode:
		w.command(n)
	case *parse.ChainNode:
		w.walk(n.Node)
	case *parse.IdentifierNode:
		w.call(n)
	}
}

func (w *walker) walkAll(nodes []parse.Node) {
	for _, n := range nodes {
		w.walk(n)
	}
}

func (w *walker) branch(n parse.BranchNode) {
	w.walk(n.Pipe)
	w.walk(n.List)
	w.walk(n.ElseList)
}

// pipe walks a | b | sortAlpha, in which a and b are sorted by what comes after them.
func (w *walker) pipe(n *parse.PipeNode) {
	if n == nil {
		return
	}
	before := w.sorted
	for i := len(n.Cmds) - 1; i >= 0; i-- {
		w.walk(n.Cmds[i])
		w.sorted = w.sorted || isSort(n.Cmds[i])
	}
	w.sorted = before
}

// command walks the function and its arguments, of which sortAlpha sorts its own.
func (w *walker) command(n *parse.CommandNode) {
	before := w.sorted
	w.sorted = w.sorted || isSort(n)
	w.walkAll(n.Args)
	w.sorted = before
}

func isSort(n *parse.CommandNode) bool {
	f, ok := n.Args[0].(*parse.IdentifierNode)
	return ok && f.Ident == "sortAlpha"
}

func (w *walker) call(n *parse.IdentifierNode) {
	why := forbidden[n.Ident]
	if randomPrefix.MatchString(n.Ident) {
		why = whyRandom
	}
	if why == "" || why == whyOrder && w.sorted {
		return
	}
	where, _ := w.tree.ErrorContext(n)
	where = where[:strings.LastIndex(where, ":")] // without the column
	w.problems = append(w.problems, fmt.Errorf("%s: calls %s: %s", where, n.Ident, why))
}
