package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/memcached-operator/reconciler/gate"
)

func newVetCommand() *cobra.Command {
	var kindsDir string
	cmd := &cobra.Command{
		Use:   "vet [KIND…]",
		Short: "Try kinds out as the operator does before it serves them",
		Long: `Try out the named kinds, KIND or PLURAL.GROUP, or all kinds without a name, as the operator does before it serves them:
names, policies, templates, and each sample from validation to the status.`,
		Example: "  opctl vet --kinds-dir ./my-kinds",
		RunE: func(cmd *cobra.Command, names []string) error {
			kinds, err := selectKinds(kindsDir, names)
			if err != nil {
				return err
			}
			var problems []error
			for _, k := range kinds {
				if err := gate.Check(k); err != nil {
					problems = append(problems, err)
					continue
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is fine: %d samples\n", k.GroupKind(), len(k.Samples)); err != nil {
					return err
				}
			}
			return errors.Join(problems...)
		},
	}
	addKindsDirFlag(cmd, &kindsDir)
	return cmd
}
