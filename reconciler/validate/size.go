package validate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Bounds on a spec, since the cost of CUE grows faster than its input, and what Helm writes grows with each level of
// indentation. See TestHostileSpecs for what a spec at the bounds costs.
const (
	maxDepth   = 32
	maxEntries = 1000      // fields of one struct, or entries of one list
	maxNodes   = 2000      // fields and entries of all
	maxKey     = 512       // bytes of a field's name
	maxString  = 64 << 10  // bytes of one string
	maxSize    = 256 << 10 // bytes of all names and strings
)

// checkSize returns an *InvalidError if spec exceeds a bound. It looks at no more than the bounds allow, level by level
// rather than recursively, in the order of the fields' names, so that the same spec always gives the same message.
func checkSize(spec any) error {
	s := sizer{nodes: []node{{value: spec, key: "spec", parent: -1}}}
	for i := 0; i < len(s.nodes); i++ {
		if at, message := s.visit(i); message != "" {
			return &InvalidError{Fields: []FieldError{{Path: s.path(at), Message: message}}}
		}
	}
	return nil
}

// sizer holds the values that were reached, in the order in which they are visited.
type sizer struct {
	nodes []node
	size  int
}

type node struct {
	value   any
	parent  int // index of the node that holds it
	depth   int
	key     string // a field's name or an entry's index
	isEntry bool
}

// visit checks node i and appends what it holds. A message says what is wrong with the node at.
func (s *sizer) visit(i int) (at int, message string) {
	n := s.nodes[i]
	switch value := n.value.(type) {
	case string:
		s.size += len(value)
		if len(value) > maxString {
			return i, fmt.Sprintf("has %d bytes, %d are allowed", len(value), maxString)
		}
	case map[string]any:
		if len(value) > maxEntries {
			return i, fmt.Sprintf("has %d fields, %d are allowed", len(value), maxEntries)
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			s.size += len(key)
			if len(key) > maxKey {
				return i, fmt.Sprintf("has a field whose name has %d bytes, %d are allowed: %s", len(key), maxKey, kind.Shorten(key, maxValue))
			}
			s.nodes = append(s.nodes, node{value: value[key], parent: i, depth: n.depth + 1, key: key})
		}
	case []any:
		if len(value) > maxEntries {
			return i, fmt.Sprintf("has %d entries, %d are allowed", len(value), maxEntries)
		}
		for index := range value {
			s.nodes = append(s.nodes, node{value: value[index], parent: i, depth: n.depth + 1, key: strconv.Itoa(index), isEntry: true})
		}
	}
	switch {
	case n.depth > maxDepth:
		return i, fmt.Sprintf("is nested deeper than %d levels", maxDepth)
	case len(s.nodes) > maxNodes:
		return 0, fmt.Sprintf("has more than %d fields and list entries in all", maxNodes)
	case s.size > maxSize:
		return 0, fmt.Sprintf("has more than %d bytes of names and strings in all", maxSize)
	}
	return 0, ""
}

// path returns the field path of node i.
func (s *sizer) path(i int) string {
	n := s.nodes[i]
	switch {
	case n.parent < 0:
		return FieldPath("", n.key)
	case n.isEntry:
		return s.path(n.parent) + "[" + n.key + "]"
	}
	return FieldPath(s.path(n.parent), n.key)
}
