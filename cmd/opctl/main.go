// Command opctl shows authors and users of kinds what the operator would do, with the operator's own code and without a cluster.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(commandFor(strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"))))
}

// The names by which kubectl knows this program: as its command "operator", and as that command's completion.
const (
	pluginName         = "kubectl-operator"
	pluginCompleteName = "kubectl_complete-operator"
)

// commandFor returns the command line for a program that was called by its name. As a plugin of kubectl it speaks of itself as
// "kubectl operator".
func commandFor(program string) *cobra.Command {
	root := newCommand()
	if program == pluginName || program == pluginCompleteName {
		root.Use = pluginName
		callIt(root, "kubectl operator")
	}
	if program == pluginCompleteName {
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...))
	}
	return root
}

// callIt lets the help of cmd and of what is below it call the program by another name.
func callIt(cmd *cobra.Command, name string) {
	if !cmd.HasParent() {
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	}
	cmd.Long = strings.ReplaceAll(cmd.Long, "opctl", name)
	cmd.Example = strings.ReplaceAll(cmd.Example, "opctl", name)
	for _, c := range cmd.Commands() {
		callIt(c, name)
	}
}

// findings are the error of a command that did its work and found something wrong or different; any other error says that it could
// not do its work. A findings without an error says that the command itself has told all.
type findings struct{ error }

// Unwrap returns the cause.
func (f findings) Unwrap() error { return f.error }

// run executes the command line, tells what went wrong, and returns the exit code that the root's help speaks of.
func run(root *cobra.Command) int {
	started := false
	markStart(root, &started)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	found, isFindings := errors.AsType[findings](err)
	if !isFindings || found.error != nil {
		red := paint(os.Stderr, color.FgRed)
		for _, each := range apart(err) {
			fmt.Fprintln(os.Stderr, red("Error:"), each)
		}
	}
	if !started {
		fmt.Fprintf(os.Stderr, "See '%s --help'.\n", cmd.CommandPath())
	}
	if isFindings {
		return 1
	}
	return 2
}

// apart returns the errors that were joined to err, else err.
func apart(err error) []error {
	joined, isJoined := err.(interface{ Unwrap() []error })
	if !isJoined {
		return []error{err}
	}
	var all []error
	for _, each := range joined.Unwrap() {
		all = append(all, apart(each)...)
	}
	return all
}

// markStart lets started tell whether the work of a command below parent began: an error before that is one of usage.
func markStart(parent *cobra.Command, started *bool) {
	for _, cmd := range parent.Commands() {
		markStart(cmd, started)
		work := cmd.RunE
		if work == nil { // It groups other commands. By itself cobra shows the help and is content, whatever it was asked for.
			cmd.Args = cobra.NoArgs
			work = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return work(cmd, args)
		}
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "opctl",
		Short: "Look at custom resources as the operator does",
		Long: `Look at custom resources, and at the kinds that define them, as the operator does.

opctl holds the operator's own code and kinds. With --kinds-dir it reads more of them from a folder.

Exit codes:
  0  all is well
  1  what was looked at is wrong or differs: an invalid custom resource, a kind that fails its test
  2  opctl could not do its work: an unknown flag, a file that is missing or cannot be read, no cluster`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		newExplainCommand(),
		newNewCommand(),
		newVetCommand(),
		newRenderCommand(),
		newTestCommand(),
		newDiffCommand(),
		newStatusCommand(),
		newGenerateCommand(),
		newVersionCommand(),
	)
	return root
}
