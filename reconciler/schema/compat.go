package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Breaks returns how the schema now refuses, or would silently drop, what the schema before took: one line a field, beginning
// with its path. Custom resources that are stored keep their form, and can then no longer be changed.
//
// Of rules in CEL it knows only whether they are new: whether one refuses more than an older one is for people to say.
func Breaks(path string, before, now *Props) (breaks []string) {
	add := func(format string, args ...any) { breaks = append(breaks, path+": "+fmt.Sprintf(format, args...)) }
	if !takes(now, before) {
		add("was %s, is %s", typeName(before), typeName(now))
		return breaks
	}
	if before.Nullable && !now.Nullable {
		add("may no longer be null")
	}
	breaks = append(breaks, narrowed(path, before, now)...)
	for _, name := range now.Required {
		if !slices.Contains(before.Required, name) && now.Properties[name].Default == nil {
			add("%s is required now", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		old := before.Properties[name]
		field, found := now.Properties[name]
		switch {
		case found:
			breaks = append(breaks, Breaks(path+"."+name, &old, &field)...)
		case now.AdditionalProperties != nil && now.AdditionalProperties.Schema != nil:
			breaks = append(breaks, Breaks(path+"."+name, &old, now.AdditionalProperties.Schema)...)
		case now.XPreserveUnknownFields == nil:
			breaks = append(breaks, path+"."+name+": is gone: stored values would be dropped")
		}
	}
	if before.Items != nil && now.Items != nil && before.Items.Schema != nil && now.Items.Schema != nil {
		breaks = append(breaks, Breaks(path+"[]", before.Items.Schema, now.Items.Schema)...)
	}
	if a, b := before.AdditionalProperties, now.AdditionalProperties; a != nil && b != nil && a.Schema != nil && b.Schema != nil {
		breaks = append(breaks, Breaks(path+".*", a.Schema, b.Schema)...)
	}
	return breaks
}

// takes tells whether values of the type of before are of the type of now.
func takes(now, before *Props) bool {
	switch {
	case now.Type == "" && !now.XIntOrString, now.Type == before.Type && now.XIntOrString == before.XIntOrString:
		return true
	case now.XIntOrString:
		return before.Type == "integer" || before.Type == "string"
	}
	return now.Type == "number" && before.Type == "integer"
}

func typeName(p *Props) string {
	switch {
	case p.XIntOrString:
		return "integer or string"
	case p.Type == "":
		return "anything"
	}
	return p.Type
}

// narrowed returns the bounds of one field that became narrower.
func narrowed(path string, before, now *Props) (breaks []string) {
	add := func(format string, args ...any) { breaks = append(breaks, path+": "+fmt.Sprintf(format, args...)) }
	if now.Minimum != nil && (before.Minimum == nil || *now.Minimum > *before.Minimum || *now.Minimum == *before.Minimum && now.ExclusiveMinimum && !before.ExclusiveMinimum) {
		add("the minimum is %v now", *now.Minimum)
	}
	if now.Maximum != nil && (before.Maximum == nil || *now.Maximum < *before.Maximum || *now.Maximum == *before.Maximum && now.ExclusiveMaximum && !before.ExclusiveMaximum) {
		add("the maximum is %v now", *now.Maximum)
	}
	for _, limit := range []struct {
		what        string
		before, now *int64
		least       bool
	}{
		{"shortest length", before.MinLength, now.MinLength, true},
		{"greatest length", before.MaxLength, now.MaxLength, false},
		{"least number of entries", before.MinItems, now.MinItems, true},
		{"greatest number of entries", before.MaxItems, now.MaxItems, false},
		{"least number of keys", before.MinProperties, now.MinProperties, true},
		{"greatest number of keys", before.MaxProperties, now.MaxProperties, false},
	} {
		if limit.now != nil && (limit.before == nil || limit.least && *limit.now > *limit.before || !limit.least && *limit.now < *limit.before) {
			add("the %s is %d now", limit.what, *limit.now)
		}
	}
	if now.Pattern != "" && now.Pattern != before.Pattern {
		add("must match %s now", now.Pattern)
	}
	if gone := without(before.Enum, now.Enum); len(now.Enum) > 0 && len(gone) > 0 {
		add("may no longer be %s", strings.Join(gone, ", "))
	} else if len(now.Enum) > 0 && len(before.Enum) == 0 {
		add("is an enumeration now")
	}
	if now.XListType != nil && *now.XListType != "atomic" && (before.XListType == nil || *before.XListType != *now.XListType) {
		add("may no longer hold the same entry twice")
	}
	for _, rule := range now.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(old apiextensionsv1.ValidationRule) bool { return old.Rule == rule.Rule }) {
			add("has a new rule: %s", rule.Message)
		}
	}
	return breaks
}

// without returns the values of before that are not in now.
func without(before, now []apiextensionsv1.JSON) (gone []string) {
	for _, v := range before {
		if !slices.ContainsFunc(now, func(j apiextensionsv1.JSON) bool { return string(j.Raw) == string(v.Raw) }) {
			gone = append(gone, string(v.Raw))
		}
	}
	return gone
}
