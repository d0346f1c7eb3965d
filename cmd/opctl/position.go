package main

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/example/memcached-operator/reconciler/validate"
)

// find returns where the field at path, as validate.FieldError writes it, stands in object: its value, or its key if that is
// asked for. Of a field that is missing it is the key of the struct that lacks it.
func find(object *yaml.Node, path string, atKey bool) *yaml.Node {
	var key *yaml.Node
	value := object
	for _, step := range steps(path) {
		k, v := child(value, step)
		if v == nil {
			atKey = true
			break
		}
		key, value = k, v
	}
	isEmpty := value.Kind == yaml.ScalarNode && value.Value == "" && value.Tag == "!!null"
	isBelow := key != nil && (value.Kind == yaml.MappingNode || value.Kind == yaml.SequenceNode) && value.Line > key.Line
	if key != nil && (atKey || isEmpty || isBelow) {
		return key
	}
	return value
}

// steps takes a path apart: spec.items[0]["a.b"] into spec, items, 0, a.b.
func steps(path string) []string {
	var list []string
	for path != "" {
		if rest, isBracket := strings.CutPrefix(path, "["); isBracket {
			step, _, _ := strings.Cut(rest, "]")
			end := len(step)
			if quoted, err := strconv.QuotedPrefix(rest); err == nil {
				end = len(quoted)
				step, _ = strconv.Unquote(quoted)
			}
			list = append(list, step)
			path = strings.TrimPrefix(rest[end:], "]")
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		list = append(list, path[:end])
		path = path[end:]
	}
	return list
}

// child returns the key and the value of a field of a struct, or an entry of a list, which has no key.
func child(parent *yaml.Node, step string) (key, value *yaml.Node) {
	if parent.Kind == yaml.AliasNode {
		parent = parent.Alias
	}
	switch parent.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(parent.Content) {
			return nil, parent.Content[i]
		}
	case yaml.MappingNode:
		// The last one counts, be it merged, as it does to the decoder that kubectl uses.
		for i := len(parent.Content) - 2; i >= 0; i -= 2 {
			key, value = parent.Content[i], parent.Content[i+1]
			if isMerge(key) {
				if k, v := merged(value, step); v != nil {
					return k, v
				}
			} else if isNamed(key, step) {
				return key, value
			}
		}
	}
	return nil, nil
}

// merged returns a field of what a merge key names: one struct, or several, of which the first counts.
func merged(value *yaml.Node, step string) (k, v *yaml.Node) {
	if value.Kind != yaml.SequenceNode {
		return child(value, step)
	}
	for _, each := range value.Content {
		if k, v = child(each, step); v != nil {
			return k, v
		}
	}
	return nil, nil
}

func isMerge(key *yaml.Node) bool { return key.Tag == "!!merge" }

// isNamed tells whether a step of a path, in which long names are cut short, means key.
func isNamed(key *yaml.Node, step string) bool {
	start, isCut := strings.CutSuffix(step, "…")
	return name(key) == step || isCut && strings.HasPrefix(name(key), start)
}

func name(key *yaml.Node) string {
	if key.Kind == yaml.AliasNode {
		key = key.Alias
	}
	return key.Value
}

// repeated calls each with the path and the key of every field below the struct or list n, which is at path, that stands there
// before, at the key first. It does not follow aliases: what they stand for is looked at where it is written.
func repeated(n *yaml.Node, path string, each func(path string, key, first *yaml.Node)) {
	switch n.Kind {
	case yaml.SequenceNode:
		for i, entry := range n.Content {
			repeated(entry, fmt.Sprintf("%s[%d]", path, i), each)
		}
	case yaml.MappingNode:
		seen := map[string]*yaml.Node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if isMerge(key) {
				repeated(value, path, each)
				continue
			}
			at := validate.FieldPath(path, name(key))
			if first := seen[name(key)]; first != nil {
				each(at, key, first)
			} else {
				seen[name(key)] = key
			}
			repeated(value, at, each)
		}
	}
}
