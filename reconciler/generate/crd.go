// Package generate writes what follows from a kind: the files that other programs and people read. It is pure: a kind in, a
// file out.
package generate

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
)

// CRD returns the CustomResourceDefinition of k, by which the API server refuses what breaks the schema, and fills in the
// defaults.
func CRD(k *kind.Kind) (*apiextensionsv1.CustomResourceDefinition, error) {
	root, err := schema.Of(k)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", k.Names.Kind, err)
	}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name:                     k.Names.Version,
		Served:                   true,
		Storage:                  true,
		Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: root},
		Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		AdditionalPrinterColumns: columns(k),
	}
	if s := k.Scale; s != nil {
		version.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: s.Spec, StatusReplicasPath: s.Status}
		if s.Selector != "" {
			version.Subresources.Scale.LabelSelectorPath = &s.Selector
		}
	}
	definition := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: k.Names.Plural + "." + k.Names.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.Names.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: k.Names.Kind, ListKind: k.Names.Kind + "List", Plural: k.Names.Plural, Singular: k.Names.Singular,
				ShortNames: k.Names.ShortNames, Categories: k.Names.Categories,
			},
			Scope:    apiextensionsv1.ResourceScope(k.Scope),
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
		},
	}
	if strings.HasSuffix(k.Names.Group, ".k8s.io") {
		// The API server asks for it in Kubernetes' own domain, in which the kind is a guest.
		definition.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, experimental-only"}
	}
	return definition, nil
}

// columns are the kind's, and the age that kubectl leaves out as soon as there are any: before those that only -o wide shows.
func columns(k *kind.Kind) []apiextensionsv1.CustomResourceColumnDefinition {
	all := append([]kind.Column{}, k.Columns...)
	if len(all) == 0 {
		all = append(all, kind.Column{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`})
	}
	age := kind.Column{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"}
	at := len(all)
	for at > 0 && all[at-1].Priority > 0 {
		at--
	}
	var out []apiextensionsv1.CustomResourceColumnDefinition
	for _, c := range append(append(append([]kind.Column{}, all[:at]...), age), all[at:]...) {
		out = append(out, apiextensionsv1.CustomResourceColumnDefinition{Name: c.Name, Type: c.Type, JSONPath: c.JSONPath, Priority: c.Priority})
	}
	return out
}
