package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
	"github.com/example/memcached-operator/reconciler/validate"
)

// Values returns the chart's values.yaml: the values of the usual sample, with which stock Helm renders the chart by itself. Helm
// lays them below a user's values. A value that another sample does not have is therefore an error: it would remain there.
func Values(k *kind.Kind) ([]byte, error) {
	if len(k.Listed) == 0 {
		return nil, errors.New("the kind has no sample")
	}
	usual := k.Listed[0].Name
	values, err := validate.Spec(k, usual, k.Samples[usual])
	if err != nil {
		return nil, fmt.Errorf("sample %s: %w", usual, err)
	}
	for _, s := range k.Listed[1:] {
		others, err := validate.Spec(k, s.Name, k.Samples[s.Name])
		if err != nil {
			return nil, fmt.Errorf("sample %s: %w", s.Name, err)
		}
		if path := missing("", values, others); path != "" {
			return nil, fmt.Errorf("schemas/%s: the value %s is there for sample %s and not for %s: let values always have it, empty where it says nothing", k.Folder, path, usual, s.Name)
		}
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, err
	}
	header := fmt.Sprintf("# "+made+"\n# The operator computes every value from the custom resource; so does \"opctl render --show-values\". These are the values of\n# the sample %s, for the chart by itself.\n", k.Folder, usual)
	return append([]byte(header), text...), nil
}

// missing returns the path of a value that is in one map and not in other; empty if there is none.
func missing(path string, one, other map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(one)) {
		at := key
		if path != "" {
			at = path + "." + key
		}
		value, found := other[key]
		if !found {
			return at
		}
		a, isMap := one[key].(map[string]any)
		b, isMapToo := value.(map[string]any)
		if isMap && isMapToo {
			if below := missing(at, a, b); below != "" {
				return below
			}
		}
	}
	return ""
}

// ValuesSchema returns the chart's values.schema.json, by which stock Helm checks values that were not computed.
func ValuesSchema(k *kind.Kind) ([]byte, error) {
	values, err := schema.Values(k)
	if err != nil {
		return nil, fmt.Errorf("reading the values of %s: %w", k.Names.Kind, err)
	}
	for _, s := range k.Listed {
		known, err := validate.Spec(k, s.Name, k.Samples[s.Name])
		if err != nil {
			return nil, fmt.Errorf("sample %s: %w", s.Name, err)
		}
		schema.Widen(values, known)
	}
	root := jsonSchema(values)
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "Values of the chart " + k.Chart.Name()
	root["$comment"] = fmt.Sprintf(made, k.Folder)
	// Helm adds these to what a user gives.
	if properties, ok := root["properties"].(map[string]any); ok {
		properties["global"] = map[string]any{}
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// jsonSchema returns p in the words of JSON Schema, which has no rules in CEL, and in which structs are open unless it is said.
func jsonSchema(p *schema.Props) map[string]any {
	out := map[string]any{}
	set := func(key string, is bool, value any) {
		if is {
			out[key] = value
		}
	}
	set("description", p.Description != "", p.Description)
	switch {
	case p.XIntOrString:
		out["type"] = []string{"integer", "string"}
	case p.Type != "":
		out["type"] = p.Type
	}
	set("enum", len(p.Enum) > 0, p.Enum)
	set("pattern", p.Pattern != "", p.Pattern)
	set(map[bool]string{false: "minimum", true: "exclusiveMinimum"}[p.ExclusiveMinimum], p.Minimum != nil, p.Minimum)
	set(map[bool]string{false: "maximum", true: "exclusiveMaximum"}[p.ExclusiveMaximum], p.Maximum != nil, p.Maximum)
	for key, n := range map[string]*int64{
		"minLength": p.MinLength, "maxLength": p.MaxLength, "minItems": p.MinItems, "maxItems": p.MaxItems,
		"minProperties": p.MinProperties, "maxProperties": p.MaxProperties,
	} {
		if n != nil {
			out[key] = *n
		}
	}
	if p.Items != nil && p.Items.Schema != nil {
		out["items"] = jsonSchema(p.Items.Schema)
	}
	if len(p.Properties) > 0 {
		properties := map[string]any{}
		for name, field := range p.Properties {
			properties[name] = jsonSchema(&field)
		}
		out["properties"] = properties
		set("additionalProperties", p.XPreserveUnknownFields == nil, false)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		out["additionalProperties"] = jsonSchema(p.AdditionalProperties.Schema)
	}
	return out
}
