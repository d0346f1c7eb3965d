package main

import (
	_ "embed" // for the schema
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
)

// openSchema is the schema of custom resources of any kind: the operator's own part of the status, and all else open.
//
//go:embed schema.yaml
var openSchema []byte

func newGenerateCRDCommand() *cobra.Command {
	var kindsDir string
	cmd := &cobra.Command{
		Use:   "crd [KIND…]",
		Short: "Print the CustomResourceDefinitions of kinds",
		Long: `Print the CustomResourceDefinitions of the named kinds, KIND or PLURAL.GROUP; of all without a name.

The spec is open: the API server stores any, and the operator reports what breaks the kind's schema in the condition Valid.`,
		Example: "  opctl generate crd --kinds-dir ./my-kinds MyKind | kubectl apply --server-side -f -",
		RunE: func(cmd *cobra.Command, names []string) error {
			kinds, err := selectKinds(kindsDir, names)
			if err != nil {
				return err
			}
			for _, k := range kinds {
				definition, err := definitionOf(k)
				if err != nil {
					return err
				}
				if err := printYAML(cmd, definition); err != nil {
					return err
				}
			}
			return nil
		},
	}
	addKindsDirFlag(cmd, &kindsDir)
	return cmd
}

// definitionOf returns the CustomResourceDefinition of k.
func definitionOf(k *kind.Kind) (*apiextensionsv1.CustomResourceDefinition, error) {
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict(openSchema, schema); err != nil {
		return nil, fmt.Errorf("reading schema.yaml: %w", err)
	}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name:                     k.Names.Version,
		Served:                   true,
		Storage:                  true,
		Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
		Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		AdditionalPrinterColumns: columns(k),
	}
	if s := k.Scale; s != nil {
		version.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: s.Spec, StatusReplicasPath: s.Status}
		if s.Selector != "" {
			version.Subresources.Scale.LabelSelectorPath = &s.Selector
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
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
	}, nil
}

// columns are the kind's, and the age that kubectl leaves out as soon as there are any.
func columns(k *kind.Kind) []apiextensionsv1.CustomResourceColumnDefinition {
	all := append([]kind.Column{}, k.Columns...)
	if len(all) == 0 {
		all = append(all, kind.Column{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`})
	}
	all = append(all, kind.Column{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"})
	var out []apiextensionsv1.CustomResourceColumnDefinition
	for _, c := range all {
		out = append(out, apiextensionsv1.CustomResourceColumnDefinition{Name: c.Name, Type: c.Type, JSONPath: c.JSONPath, Priority: c.Priority})
	}
	return out
}

// printYAML prints an object of the API as a YAML document, without the status that its type always has.
func printYAML(cmd *cobra.Command, object any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	kept, _, _ := strings.Cut(string(text), "\nstatus:\n")
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "---\n%s\n", strings.TrimSuffix(kept, "\n"))
	return err
}
