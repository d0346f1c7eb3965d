package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/memcached-operator/version"
)

func newVersionCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version of opctl and of the kinds that are built into it: the release, the commit, and the Go that compiled it.

An operator of the same version gives the same answers.`,
		Example: `  opctl version
  opctl version -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != formatText {
				return printAs(cmd.OutOrStdout(), format, version.Get())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.String())
			return err
		},
	}
	addOutputFlag(cmd, &format, formatText, formatJSON, formatYAML)
	return cmd
}
