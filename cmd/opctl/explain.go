package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/example/memcached-operator/reconciler/generate"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
)

func newExplainCommand() *cobra.Command {
	var kindsDir, output string
	var recursive bool
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD…]",
		Short: "Tell what a field of a custom resource means",
		Long: `Tell what a custom resource, or a field of it, means: its type, its default, its bounds and the fields below it.

A field that does not begin with spec or status is looked for below spec. Lists and maps are left out of the path.`,
		Example: `  opctl explain Memcached
  opctl explain Memcached.spec.resources.limits.memory
  opctl explain backups.ops.cloudista.io --recursive`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := loadKinds(kindsDir)
			if err != nil {
				return err
			}
			e, err := explain(kinds, args[0])
			if err != nil {
				return err
			}
			switch output {
			case formatText:
				return e.print(cmd.OutOrStdout(), recursive)
			case formatTable:
				return printTable(cmd.OutOrStdout(), []string{"FIELD", "TYPE", "REQUIRED", "DEFAULT", "MEANING"}, e.rows("", e.props, recursive))
			}
			return printAs(cmd.OutOrStdout(), output, e)
		},
	}
	addKindsDirFlag(cmd, &kindsDir)
	addOutputFlag(cmd, &output, formatText, formatTable, formatJSON, formatYAML)
	cmd.Flags().BoolVar(&recursive, "recursive", false, "list the fields at any depth")
	return cmd
}

// explanation is what there is to say of a custom resource or of one of its fields.
type explanation struct {
	Kind        string           `json:"kind"`
	APIVersion  string           `json:"apiVersion"`
	Path        string           `json:"path,omitempty"`
	Type        string           `json:"type"`
	Required    bool             `json:"required,omitempty"`
	Default     string           `json:"default,omitempty"`
	Bounds      []string         `json:"bounds,omitempty"`
	Description string           `json:"description,omitempty"`
	Fields      []explainedField `json:"fields,omitempty"`

	props *schema.Props
}

// explainedField is one below what is explained.
type explainedField struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Required    bool   `json:"required,omitempty"`
	Default     string `json:"default,omitempty"`
	Description string `json:"description,omitempty"`
}

// explain returns what there is to say of what, a kind with or without a path of fields.
func explain(kinds []*kind.Kind, what string) (*explanation, error) {
	k, path, err := findKind(kinds, what)
	if err != nil {
		return nil, err
	}
	root, err := schema.Of(k)
	if err != nil {
		return nil, err
	}
	e := &explanation{Kind: k.Names.Kind, APIVersion: k.GVK().GroupVersion().String(), props: root}
	if len(path) > 0 && root.Properties[path[0]].Type == "" && path[0] != "metadata" {
		path = append([]string{"spec"}, path...)
	}
	for i, name := range path {
		parent := structOf(e.props)
		next, found := parent.Properties[name]
		if !found {
			return nil, fmt.Errorf("%s has no field %s; %s has %s", k.Names.Kind, strings.Join(path[:i+1], "."),
				strings.Join(append([]string{k.Names.Kind}, path[:i]...), "."), orNone(slices.Sorted(maps.Keys(parent.Properties))))
		}
		e.Required = slices.Contains(parent.Required, name)
		e.props = &next
	}
	e.Path = strings.Join(path, ".")
	e.Type, e.Default, e.Bounds, e.Description = generate.Type(e.props), generate.Default(e.props), generate.Bounds(e.props), e.props.Description
	e.Fields = fieldsOf(e.props)
	return e, nil
}

// element finds the names in what a user may have copied from a message: spec.image.pullSecrets[0].name.
var element = regexp.MustCompile(`\[[^\]]*\]`)

// findKind returns the kind that what begins with, as kind.Select knows it, and the path after it.
func findKind(kinds []*kind.Kind, what string) (*kind.Kind, []string, error) {
	parts := strings.Split(element.ReplaceAllString(what, ""), ".")
	for n := len(parts); n > 0; n-- {
		if found, err := kind.Select(kinds, []string{strings.Join(parts[:n], ".")}); err == nil {
			return found[0], parts[n:], nil
		}
	}
	_, err := kind.Select(kinds, parts[:1])
	return nil, nil, err
}

// structOf returns the struct of which p is a list or a map, or p itself.
func structOf(p *schema.Props) *schema.Props {
	switch {
	case p.Items != nil && p.Items.Schema != nil:
		return structOf(p.Items.Schema)
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		return structOf(p.AdditionalProperties.Schema)
	}
	return p
}

func fieldsOf(p *schema.Props) (fields []explainedField) {
	parent := structOf(p)
	for _, name := range slices.Sorted(maps.Keys(parent.Properties)) {
		f := parent.Properties[name]
		fields = append(fields, explainedField{name, generate.Type(&f), slices.Contains(parent.Required, name), generate.Default(&f), f.Description})
	}
	return fields
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (e *explanation) print(out io.Writer, recursive bool) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	say := func(label, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", label, text) // Flush tells what went wrong
		}
	}
	say("KIND:", e.Kind+" ("+e.APIVersion+")")
	say("FIELD:", e.Path)
	say("TYPE:", e.Type+map[bool]string{true: ", required"}[e.Required])
	say("DEFAULT:", e.Default)
	for i, b := range e.Bounds {
		say(map[bool]string{true: "BOUNDS:", false: ""}[i == 0], b)
	}
	if e.Description != "" {
		_, _ = fmt.Fprintf(w, "\n%s\n", e.Description)
	}
	if len(e.Fields) > 0 {
		_, _ = fmt.Fprintln(w, "\nFIELDS:")
		printFields(w, "  ", e.props, recursive)
	}
	return w.Flush()
}

// rows returns the fields below p as the rows of a table.
func (e *explanation) rows(path string, p *schema.Props, recursive bool) (rows [][]string) {
	parent := structOf(p)
	for _, f := range fieldsOf(p) {
		rows = append(rows, []string{path + f.Name, f.Type, strconv.FormatBool(f.Required), f.Default, f.Description})
		if recursive {
			rows = append(rows, e.rows(path+f.Name+".", new(parent.Properties[f.Name]), true)...)
		}
	}
	return rows
}

func printFields(w io.Writer, indent string, p *schema.Props, recursive bool) {
	parent := structOf(p)
	for _, f := range fieldsOf(p) {
		extra := ""
		if f.Required {
			extra = ", required"
		} else if f.Default != "" {
			extra = ", default " + f.Default
		}
		_, _ = fmt.Fprintf(w, "%s%s\t<%s%s>\t%s\n", indent, f.Name, f.Type, extra, f.Description)
		if recursive {
			printFields(w, indent+"  ", new(parent.Properties[f.Name]), true)
		}
	}
}
