package generate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
)

// width is how long a line of a comment gets.
const width = 120

// maxShown is how deep a sample shows fields that it does not set.
const maxShown = 3

// Sample returns the usual sample of k as YAML, with a comment on each field, and the fields that it leaves out, with their
// defaults, as comments.
func Sample(k *kind.Kind) ([]byte, error) {
	if len(k.Listed) == 0 {
		return nil, errors.New("the kind has no sample")
	}
	root, err := schema.Of(k)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", k.Names.Kind, err)
	}
	usual := k.Listed[0]
	w := &sampleWriter{}
	w.comment("", fmt.Sprintf(made, k.Folder))
	w.comment("", "Every other field is shown as a comment, with its default: docs/reference/"+strings.ToLower(k.Names.Kind)+".md tells more.")
	w.line("")
	w.comment("", usual.Description)
	w.line("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s", k.GVK().GroupVersion(), k.Names.Kind, usual.Name)
	if usual.Namespace != "" {
		w.line("  namespace: %s", usual.Namespace)
	}
	spec := root.Properties["spec"]
	if len(k.Samples[usual.Name]) == 0 {
		w.line("spec: {}")
	} else {
		w.line("spec:")
	}
	w.fields("  ", &spec, k.Samples[usual.Name], 1)
	return w.out.Bytes(), w.err
}

type sampleWriter struct {
	out bytes.Buffer
	err error
}

func (w *sampleWriter) line(format string, args ...any) {
	_, _ = fmt.Fprintf(&w.out, format+"\n", args...) // a buffer takes everything
}

// comment writes text in lines that are not too long.
func (w *sampleWriter) comment(indent, text string) {
	line := indent + "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width {
			w.line("%s", line)
			line = indent + "#"
		}
		line += " " + word
	}
	if line != indent+"#" {
		w.line("%s", line)
	}
}

// fields writes those that value sets, required ones first, and then the others.
func (w *sampleWriter) fields(indent string, p *schema.Props, value map[string]any, depth int) {
	names := slices.Sorted(maps.Keys(p.Properties))
	for _, name := range names {
		given, isSet := value[name]
		if !isSet {
			continue
		}
		field := p.Properties[name]
		w.comment(indent, field.Description)
		if inner, ok := given.(map[string]any); ok && len(field.Properties) > 0 {
			w.line("%s%s:", indent, name)
			w.fields(indent+"  ", &field, inner, depth+1)
			continue
		}
		w.value(indent, name, given)
	}
	for _, name := range names {
		if _, isSet := value[name]; !isSet {
			field := p.Properties[name]
			w.absent(indent+"# ", name, &field, depth)
		}
	}
}

// absent writes a field that is not set: its default, or an example of its form.
func (w *sampleWriter) absent(indent, name string, p *schema.Props, depth int) {
	w.comment(indent, p.Description)
	switch {
	case len(p.Properties) > 0 && depth < maxShown:
		w.line("%s%s:", indent, name)
		for _, inner := range slices.Sorted(maps.Keys(p.Properties)) {
			field := p.Properties[inner]
			w.absent(indent+"  ", inner, &field, depth+1)
		}
	case p.Default != nil:
		var standard any
		if w.err == nil {
			w.err = yaml.Unmarshal(p.Default.Raw, &standard)
		}
		w.value(indent, name, standard)
	default:
		w.line("%s%s: … (%s)", indent, name, Type(p))
	}
}

func (w *sampleWriter) value(indent, name string, value any) {
	text, err := yaml.Marshal(map[string]any{name: value})
	if err != nil && w.err == nil {
		w.err = err
	}
	for line := range strings.Lines(string(text)) {
		w.line("%s%s", indent, strings.TrimSuffix(line, "\n"))
	}
}
