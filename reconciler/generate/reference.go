package generate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
)

// made is the first line of what people might be tempted to edit.
const made = `Made by "opctl generate" from schemas/%s. Edit that.`

// Reference returns the page about k in Markdown: every field with its type, default, bounds and meaning, the rules over several
// fields, and the samples.
func Reference(k *kind.Kind) ([]byte, error) {
	root, err := schema.Of(k)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", k.Names.Kind, err)
	}
	gaps, err := schema.Gaps(k)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", k.Names.Kind, err)
	}
	var out bytes.Buffer
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&out, format+"\n", args...) } // a buffer takes everything
	line("<!-- "+made+" -->\n", k.Folder)
	line("# %s\n", k.Names.Kind)
	if root.Description != "" {
		line("%s\n", root.Description)
	}
	line("`apiVersion: %s`, `kind: %s`; %s; `kubectl get %s`.", k.GVK().GroupVersion(), k.Names.Kind, strings.ToLower(k.Scope), strings.Join(append([]string{k.Names.Plural}, k.Names.ShortNames...), "`, `kubectl get "))
	line("")
	for _, rule := range root.XValidations {
		line("- %s", rule.Message)
	}
	for _, part := range []string{"spec", "status"} {
		props := root.Properties[part]
		line("\n## %s\n", part)
		if part == "spec" {
			line("| field | type | default | bounds | meaning |\n|---|---|---|---|---|")
		} else {
			line("| field | type | meaning |\n|---|---|---|")
		}
		walk(part, &props, func(path string, p *schema.Props, required bool) {
			if part == "status" {
				line("| `%s` | %s | %s |", path, cell(Type(p)), cell(p.Description))
				return
			}
			standard := code(Default(p))
			if required {
				standard = "**required**"
			}
			line("| `%s` | %s | %s | %s | %s |", path, cell(Type(p)), standard, cell(strings.Join(fieldBounds(p), "; ")), cell(p.Description))
		})
		crossRules(part, &props, line)
	}
	if len(gaps) > 0 {
		line("\n## What only the operator checks\n\nThe API server takes a custom resource that breaks these; its condition `Valid` then says so.\n")
		for _, g := range gaps {
			line("- `%s`: %s", g.Path, g.Rule)
		}
	}
	line("\n## Samples")
	for _, s := range k.Listed {
		text, err := yaml.Marshal(map[string]any{"spec": k.Samples[s.Name]})
		if err != nil {
			return nil, fmt.Errorf("sample %s: %w", s.Name, err)
		}
		line("\n%s\n\n```yaml\napiVersion: %s\nkind: %s\nmetadata: {name: %s}\n%s```", s.Description, k.GVK().GroupVersion(), k.Names.Kind, s.Name, text)
	}
	return out.Bytes(), nil
}

// fieldBounds are those of a field, and of the entries of a list of scalars. Those of a struct stand below the table.
func fieldBounds(p *schema.Props) []string {
	bounds := *p
	if len(p.Properties) > 0 {
		bounds.XValidations = nil
	}
	out := Bounds(&bounds)
	if p.Items != nil && p.Items.Schema != nil && len(p.Items.Schema.Properties) == 0 {
		for _, b := range Bounds(p.Items.Schema) {
			out = append(out, "each "+b)
		}
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil && len(p.AdditionalProperties.Schema.Properties) == 0 {
		for _, b := range Bounds(p.AdditionalProperties.Schema) {
			out = append(out, "each value "+b)
		}
	}
	return out
}

// crossRules writes those over several fields, by the struct.
func crossRules(path string, p *schema.Props, line func(string, ...any)) {
	first := true
	visit := func(path string, p *schema.Props, _ bool) {
		inner := p
		for inner.Items != nil && inner.Items.Schema != nil {
			inner, path = inner.Items.Schema, path+"[]"
		}
		if len(inner.Properties) == 0 {
			return
		}
		for _, rule := range inner.XValidations {
			if first {
				line("\nBeyond the bounds of each field:\n")
				first = false
			}
			line("- `%s`: %s", path, rule.Message)
		}
	}
	visit(path, p, false)
	walk(path, p, visit)
}

// walk visits the fields below p in the order of their names, those of lists and maps of structs too.
func walk(path string, p *schema.Props, visit func(path string, p *schema.Props, required bool)) {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		field := p.Properties[name]
		visit(path+"."+name, &field, slices.Contains(p.Required, name))
		walk(path+"."+name, &field, visit)
	}
	if p.Items != nil && p.Items.Schema != nil {
		walk(path+"[]", p.Items.Schema, visit)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		walk(path+".*", p.AdditionalProperties.Schema, visit)
	}
}

// cell returns text that ends no cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}
