package gate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/example/memcached-operator/reconciler/kind"
)

// names checks what the API server would refuse in a CustomResourceDefinition.
func names(k *kind.Kind) (problems []error) {
	n := k.Names
	check := func(field, value string, rule func(string) []string) {
		for _, message := range rule(value) {
			problems = append(problems, fmt.Errorf("schemas/%s: names.%s %q: %s", k.Folder, field, value, message))
		}
	}
	check("group", n.Group, isGroup)
	check("version", n.Version, validation.IsDNS1035Label)
	check("kind", n.Kind, func(s string) []string { return validation.IsDNS1035Label(strings.ToLower(s)) })
	check("plural", n.Plural, validation.IsDNS1035Label)
	check("singular", n.Singular, validation.IsDNS1035Label)
	for _, name := range n.ShortNames {
		check("shortNames", name, validation.IsDNS1035Label)
	}
	for _, name := range n.Categories {
		check("categories", name, validation.IsDNS1035Label)
	}
	return problems
}

// isGroup wants a domain of more than one label: names without a dot, and those of k8s.io, are Kubernetes' own.
func isGroup(s string) []string {
	switch {
	case !strings.Contains(s, "."):
		return []string{"must be a domain, such as cache.example.com"}
	case s == "k8s.io" || strings.HasSuffix(s, ".kubernetes.io"):
		return []string{"belongs to Kubernetes"}
	}
	return validation.IsDNS1123Subdomain(s)
}

// definitions checks what the contract allows but does not make sense together.
func definitions(k *kind.Kind) (problems []error) {
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("schemas/%s: "+format, append([]any{k.Folder}, args...)...))
	}
	if len(k.Samples) == 0 {
		problem("samples: there is none, so that nothing can be tried out")
	}
	if k.Scope == kind.ScopeCluster && k.Policies.Placement != kind.PlacementAnywhere {
		problem("scope Cluster needs policies.placement Anywhere: a custom resource without a namespace has none for its objects")
	}
	if s := k.Scale; s != nil {
		if !strings.HasPrefix(s.Spec, ".spec.") || !strings.HasPrefix(s.Status, ".status.") || strings.Contains(s.Spec+s.Status+s.Selector, "[") {
			problem("scale: spec must lead below .spec and status below .status, struct by struct")
		}
		if s.Selector != "" && !strings.HasPrefix(s.Selector, ".status.") && !strings.HasPrefix(s.Selector, ".spec.") {
			problem("scale: selector must lead below .spec or .status")
		}
	}
	var columns []string
	for _, c := range k.Columns {
		if slices.Contains(columns, c.Name) {
			problem("columns: there are two named %q", c.Name)
		}
		columns = append(columns, c.Name)
	}
	for _, f := range k.Policies.Fields {
		switch root, _, _ := strings.Cut(f.Path, "."); root {
		case "apiVersion", "kind", "metadata", "status":
			problem("policies.fields: path %s: the operator does not share this field", f.Path)
		}
	}
	return problems
}
