package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	yamlv3 "go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/kind"
)

// problem is what is wrong at one place of a file.
type problem struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	// Path is empty if it is the object as a whole.
	Path    string `json:"path"`
	Message string `json:"message"`
}

type vetOptions struct {
	kindsDir string
	where    place
	format   string
}

func newVetCommand() *cobra.Command {
	o := vetOptions{where: defaultPlace}
	cmd := &cobra.Command{
		Use:   "vet FILE…",
		Short: "Tell what is wrong with custom resources in files",
		Long: `Tell what is wrong with custom resources in files, before they are in a cluster.

The answer is the operator's: each spec is checked against its kind's schema, and the objects are rendered. What the API server
would refuse is told, too: unknown kinds and fields, fields that are set twice, names, labels, a namespace that must not be.

A FILE holds YAML or JSON documents, and may be - for standard input, or a folder: then all its files *.yaml, *.yml and
*.json are looked at, not those in folders below. All problems of all files are printed, with their lines, to standard error; a
line for each custom resource that is valid to standard output. With -o json or yaml a list of the problems is printed to
standard output.`,
		Example: `  # All custom resources in a file and in a folder
  opctl vet my-resource.yaml deploy/

  # Of a kind that is being worked on
  opctl vet --kinds-dir ./my-kinds my-resource.yaml

  # What another program makes
  kubectl kustomize deploy | opctl vet -

  # In a script
  opctl vet -o json deploy/ | jq -r '.[] | "\(.file):\(.line): \(.message)"'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name a file, a folder, or - for standard input")
			}
			return nil
		},
		ValidArgsFunction: completeFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return vet(cmd, args, o)
		},
	}
	addKindsDirFlag(cmd, &o.kindsDir)
	addPlaceFlags(cmd, &o.where)
	addOutputFlag(cmd, &o.format, formatText, formatTable, formatJSON, formatYAML)
	return cmd
}

func vet(cmd *cobra.Command, arguments []string, o vetOptions) error {
	if _, err := chartutil.ParseKubeVersion(o.where.kubeVersion); err != nil { // which is no custom resource's fault
		return fmt.Errorf("parsing Kubernetes version %q: %w", o.where.kubeVersion, err)
	}
	kinds, err := loadKinds(o.kindsDir)
	if err != nil {
		return err
	}
	v := vetter{
		vetOptions: o, kinds: kinds, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), caret: paint(cmd.ErrOrStderr(), color.FgGreen),
		problems: []problem{}, // printed as an empty list rather than null
	}
	files, err := fileNames(arguments)
	unreadable := []error{err}
	for _, file := range files {
		unreadable = append(unreadable, v.file(cmd.InOrStdin(), file))
	}
	switch o.format {
	case formatText:
	case formatTable:
		unreadable = append(unreadable, printTable(v.out, []string{"FILE", "LINE", "COLUMN", "OBJECT", "FIELD", "MESSAGE"}, rowsOf(v.problems)))
	default:
		unreadable = append(unreadable, printAs(v.out, o.format, v.problems))
	}
	if err := errors.Join(unreadable...); err != nil {
		return err
	}
	if len(v.problems) > 0 {
		return findings{fmt.Errorf("found %s in %d of %s", count(len(v.problems), "problem"), v.faulty, count(v.objects, "object"))}
	}
	return nil
}

// vetter looks at one file after the other.
type vetter struct {
	vetOptions
	kinds    []*kind.Kind
	out, err io.Writer
	caret    func(...any) string

	problems        []problem
	objects, faulty int
}

// file looks at all that can be read of a file, and returns what could not.
func (v *vetter) file(stdin io.Reader, name string) error {
	name, text, err := readText(stdin, name)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	var unreadable []error
	before := v.objects
	for _, d := range documents(text) {
		objects, err := d.objects(name)
		unreadable = append(unreadable, err)
		for _, s := range objects {
			v.objects++
			if err := v.object(name, s); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(unreadable...); err != nil || v.objects > before {
		return err
	}
	return fmt.Errorf("reading %s: holds no object", name)
}

// object tells what is wrong with an object, or that it is valid. An error says that it could not be told.
func (v *vetter) object(file string, s source) error {
	object, isStruct := s.value.(map[string]any)
	u := unstructured.Unstructured{Object: object}
	about := problem{
		File: file, APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: cmp.Or(u.GetName(), u.GetGenerateName()),
	}
	var found []problem
	put := func(n *yamlv3.Node, path, message string) {
		p := about
		p.Line, p.Column, p.Path, p.Message = s.line(n), n.Column, path, message
		found = append(found, p)
	}
	if !isStruct {
		put(s.node, "", "is not an object")
	} else {
		for _, f := range check(v.kinds, object, v.where) {
			put(find(s.node, f.Path, f.atKey), f.Path, f.Message)
		}
	}
	repeated(s.node, "", func(path string, key, first *yamlv3.Node) {
		put(key, path, fmt.Sprintf("field is set already in line %d", s.line(first)))
	})
	slices.SortStableFunc(found, func(a, b problem) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	if len(found) > 0 {
		v.faulty++
	}
	v.problems = append(v.problems, found...)
	switch {
	case v.format != formatText:
		return nil
	case len(found) == 0:
		_, err := fmt.Fprintf(v.out, "%s: %s is valid\n", file, harmless(about.object()))
		return err
	}
	for _, p := range found {
		if _, err := fmt.Fprintf(v.err, "%s\n%s", harmless(p.String()), s.excerpt(p, v.caret)); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf returns problems as the rows of a table.
func rowsOf(problems []problem) (rows [][]string) {
	for _, p := range problems {
		rows = append(rows, []string{p.File, strconv.Itoa(p.Line), strconv.Itoa(p.Column), p.object(), p.Path, p.Message})
	}
	return rows
}

// String returns the line that compilers would print, from which editors find the place.
func (p problem) String() string {
	text := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	for _, part := range []string{p.object(), p.Path} {
		if part != "" {
			text += part + ": "
		}
	}
	return text + p.Message
}

// object names the object for people, as far as it has a name.
func (p problem) object() string { return strings.TrimSpace(p.Kind + " " + p.Name) }

// excerpt returns the line in which p is, and a caret below the place.
func (d document) excerpt(p problem, caret func(...any) string) string {
	const most = 120                    // characters of a line; JSON may all be in one
	if p.Line-d.first >= len(d.lines) { // YAML has rarer ends of lines than editors
		return ""
	}
	line := []rune(d.lines[p.Line-d.first])
	column := min(p.Column-1, len(line))
	start := 0
	if len(line) > most {
		start = max(0, min(column-most/2, len(line)-most))
		line = line[start : start+most]
	}
	// A tab is as wide below as above.
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(line[:column-start]))
	return fmt.Sprintf("%6d | %s\n%6s | %s%s\n", p.Line, harmless(string(line)), "", indent, caret("^"))
}

// harmless returns text without what would make a terminal do more than show it.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// count returns "1 problem" or "2 problems".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
