package main

import (
	"github.com/spf13/cobra"

	"github.com/example/memcached-operator/reconciler/kind"
)

// fileExtensions are those of files that may hold custom resources.
var fileExtensions = []string{"yaml", "yml", "json"}

// completeFiles completes names of files that may hold custom resources.
func completeFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return fileExtensions, cobra.ShellCompDirectiveFilterFileExt
}

// completeKinds completes names of kinds, those in the folder of --kinds-dir included, that are not among args yet. One that does
// not load is left out: that is for the command to tell.
func completeKinds(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	dir, err := cmd.Flags().GetString("kinds-dir")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	library, err := kind.OpenLibrary(kind.LibraryOptions{Dir: dir})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, k := range library.Kinds() {
		if !k.IsOneOf(args) {
			names = append(names, cobra.CompletionWithDesc(k.Names.Kind, k.GVK().GroupVersion().String()))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
