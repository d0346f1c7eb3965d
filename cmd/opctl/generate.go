package main

import "github.com/spf13/cobra"

func newGenerateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "generate", Short: "Print files that follow from the kinds"}
	cmd.AddCommand(newGenerateRBACCommand(), newGenerateCRDCommand())
	return cmd
}
