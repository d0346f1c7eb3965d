package schema

import (
	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// root reads the whole custom resource. The API server itself knows apiVersion, kind and metadata; of those only the name can
// have rules.
func (r *reader) root(object cue.Value) *Props {
	root := &Props{Type: "object", Properties: map[string]Props{}, Description: r.title(object)}
	for _, f := range r.fields("", r.flatten("", object)) {
		switch f.name {
		case "apiVersion", "kind":
			root.Properties[f.name] = Props{Type: "string"}
		case "metadata":
			root.Properties[f.name] = Props{Type: "object"}
			require(root, r.metadata(f)...)
		case "spec":
			spec := r.property(root, f)
			root.Properties[f.name] = *spec
			r.checkEntries(entry{object: object, whole: func(v any) any { return v }}.field("spec", f.pos), spec)
		case "status":
			root.Properties[f.name] = *r.status(f)
		default:
			r.refuse(f.name, f.pos, "a custom resource has no such field: put it into spec")
		}
	}
	return root
}

// metadata returns the rules over the name.
func (r *reader) metadata(metadata *field) (rules apiextensionsv1.ValidationRules) {
	atoms := r.flatten("metadata", metadata.values...)
	for _, f := range r.fields("metadata", atoms) {
		if f.name != "name" {
			r.refuse("metadata."+f.name, f.pos, "the API server checks no other field of the metadata than the name")
			continue
		}
		name := r.field("metadata.name", f.values)
		for _, rule := range name.XValidations {
			rules = append(rules, apiextensionsv1.ValidationRule{
				Rule: replaceSelf(rule.Rule, "self.metadata.name"), Message: "metadata.name " + rule.Message,
			})
		}
	}
	for _, rule := range r.rules("metadata", atoms) {
		rules = append(rules, apiextensionsv1.ValidationRule{
			Rule: replaceSelf(rule.Rule, "self.metadata"), Message: "metadata: " + rule.Message,
		})
	}
	return rules
}

// status reads the status, which the kind declares open since the operator adds to it. What is not declared is pruned all the
// same: reports are checked against it.
func (r *reader) status(f *field) *Props {
	inner := &reader{folder: r.folder, lenient: true, positions: r.positions}
	status := inner.field("status", f.values)
	status.XPreserveUnknownFields = nil
	return status
}
