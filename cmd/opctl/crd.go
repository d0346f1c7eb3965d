package main

import (
	"github.com/spf13/cobra"

	"github.com/example/memcached-operator/reconciler/generate"
)

func newGenerateCRDCommand() *cobra.Command {
	var kindsDir string
	cmd := &cobra.Command{
		Use:   "crd [KIND…]",
		Short: "Print the CustomResourceDefinitions of kinds",
		Long: `Print the CustomResourceDefinitions of the named kinds, KIND or PLURAL.GROUP; of all without a name.

They follow from the kinds' schemas: the API server refuses what breaks them, and fills in the defaults.`,
		Example:           "  opctl generate crd --kinds-dir ./my-kinds MyKind | kubectl apply --server-side -f -",
		ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, names []string) error {
			kinds, err := selectKinds(kindsDir, names)
			if err != nil {
				return err
			}
			for _, k := range kinds {
				definition, err := generate.CRD(k)
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

// printYAML prints an object of the API as a YAML document.
func printYAML(cmd *cobra.Command, object any) error {
	text, err := generate.YAML(object)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
