package generate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/example/memcached-operator/reconciler/schema"
)

// Type returns the type of a field in words: integer, string, []string, map[string]string.
func Type(p *schema.Props) string {
	switch {
	case p.XIntOrString:
		return "integer or string"
	case p.Items != nil && p.Items.Schema != nil:
		return "[]" + Type(p.Items.Schema)
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		return "map[string]" + Type(p.AdditionalProperties.Schema)
	case p.Type == "" || p.XPreserveUnknownFields != nil && len(p.Properties) == 0:
		return "any"
	case p.Format == "date-time":
		return "time"
	}
	return p.Type
}

// Default returns the default of a scalar, a list or a map as JSON; empty if there is none. That of a struct is its fields'.
func Default(p *schema.Props) string {
	if p.Default == nil || len(p.Properties) > 0 {
		return ""
	}
	return string(p.Default.Raw)
}

// Bounds returns what else than its type is asked of a field, each in words.
func Bounds(p *schema.Props) (bounds []string) {
	add := func(format string, args ...any) { bounds = append(bounds, fmt.Sprintf(format, args...)) }
	if len(p.Enum) > 0 {
		var values []string
		for _, v := range p.Enum {
			values = append(values, string(v.Raw))
		}
		add("one of %s", strings.Join(values, ", "))
	}
	if p.Minimum != nil {
		add("%s %s", map[bool]string{false: ">=", true: ">"}[p.ExclusiveMinimum], number(*p.Minimum))
	}
	if p.Maximum != nil {
		add("%s %s", map[bool]string{false: "<=", true: "<"}[p.ExclusiveMaximum], number(*p.Maximum))
	}
	if p.Pattern != "" {
		add("matches %s", p.Pattern)
	}
	for _, limit := range []struct {
		n      *int64
		format string
	}{
		{p.MinLength, "at least %d characters"}, {p.MaxLength, "at most %d characters"},
		{p.MinItems, "at least %d entries"}, {p.MaxItems, "at most %d entries"},
		{p.MinProperties, "at least %d keys"}, {p.MaxProperties, "at most %d keys"},
	} {
		if limit.n != nil {
			add(limit.format, *limit.n)
		}
	}
	if p.XListType != nil && *p.XListType == "set" {
		add("no entry twice")
	}
	if len(p.XListMapKeys) > 0 {
		add("no %s twice", strings.Join(p.XListMapKeys, " and "))
	}
	for _, rule := range p.XValidations {
		if !slices.Contains(bounds, rule.Message) {
			add("%s", rule.Message)
		}
	}
	return bounds
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
