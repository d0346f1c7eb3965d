// Command opctl shows authors and users of kinds what the operator would do, with the operator's own code and without a cluster.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/example/memcached-operator/version"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "opctl",
		Short:         "Look at custom resources as the operator does",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newVetCommand(), newRenderCommand(), newGenerateCommand(), &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.String())
			return err
		},
	})
	return root
}
