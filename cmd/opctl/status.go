package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/memcached-operator/reconciler/kind"
)

func newStatusCommand() *cobra.Command {
	var kindsDir, output string
	var flags clusterFlags
	cmd := &cobra.Command{
		Use:   "status [KIND] NAME",
		Short: "Show how a custom resource, its objects and its pods fare",
		Long: `Show a custom resource as a tree: its conditions, each of its objects with the pods that it brings about, how they fare by
the operator's own rules, and the latest events about them. Without KIND all custom resources of that name are shown.

KIND is a kind, its plural, a short name, or PLURAL.GROUP. What may not be read is said to be unknown, and the rest shown.

Exit code 0 says that the condition Ready is true of the present generation, 1 that it is not, 2 that the custom resource could
not be looked at.`,
		Example: `  opctl status my-cache
  opctl status memcached/my-cache -n caches

  # Which pods are in trouble?
  opctl status memcached my-cache -o json | jq '.objects[].children[]? | select(.ready == false)'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, name, err := meant(kindsDir, args)
			if err != nil {
				return err
			}
			c, err := flags.open(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			found, err := c.find(cmd.Context(), kinds, name)
			if err != nil {
				if len(found) == 0 {
					return err
				}
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "# %s\n", oneLine(err.Error())) // others of that name may be there
			}
			isReady := true
			for _, r := range found {
				report := reportOf(r.Unstructured, c.look(cmd.Context(), r.kind, r.Unstructured))
				if err := report.show(cmd.OutOrStdout(), output); err != nil {
					return err
				}
				isReady = isReady && report.isReady()
			}
			if !isReady {
				return findings{}
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeKind(kindsDir, begun), cobra.ShellCompDirectiveNoFileComp
		},
	}
	addKindsDirFlag(cmd, &kindsDir)
	flags.add(cmd)
	addOutputFlag(cmd, &output, formatTree, formatTable, formatJSON, formatYAML)
	return cmd
}

// show prints a report in one of the formats.
func (r *report) show(out io.Writer, format string) error {
	switch format {
	case formatTree:
		return r.tree(time.Now()).write(out)
	case formatTable:
		return printTable(out, []string{"KIND", "NAMESPACE", "NAME", "STATUS", "REASON", "MESSAGE"}, r.rows())
	case formatYAML:
		if _, err := fmt.Fprintln(out, "---"); err != nil {
			return err
		}
	}
	return printAs(out, format, r)
}

// rows returns the custom resource and all below it as the rows of a table.
func (r *report) rows() [][]string {
	rows := [][]string{{r.Kind, r.Namespace, r.Name, "Ready=" + r.Ready}}
	var add func(nodes []*node)
	add = func(nodes []*node) {
		for _, n := range nodes {
			rows = append(rows, []string{n.Kind, n.Namespace, n.Name, n.Status, n.Reason, n.Message})
			add(n.Children)
		}
	}
	add(r.Objects)
	return rows
}

// meant returns the kinds that args, NAME, KIND/NAME or KIND NAME, may mean, and the name.
func meant(kindsDir string, args []string) ([]*kind.Kind, string, error) {
	kinds, err := loadKinds(kindsDir)
	if err != nil {
		return nil, "", err
	}
	if len(args) == 1 {
		if word, name, hasKind := strings.Cut(args[0], "/"); hasKind {
			args = []string{word, name}
		} else {
			args = []string{"", args[0]}
		}
	}
	word, name := args[0], args[1]
	if name == "" || strings.Contains(name, "/") {
		return nil, "", fmt.Errorf("%q is no name of a custom resource", name)
	}
	if word == "" {
		return kinds, name, nil
	}
	var found []*kind.Kind
	for _, k := range kinds {
		if slices.ContainsFunc(wordsFor(k), func(w string) bool { return strings.EqualFold(w, word) }) {
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return nil, "", fmt.Errorf("there is no kind %q: known are %s", word, kind.List(kinds))
	}
	return found, name, nil
}

// wordsFor returns what kubectl takes for a kind, the one for completions first.
func wordsFor(k *kind.Kind) []string {
	return append([]string{k.Names.Singular, k.Names.Kind, k.Names.Plural, k.Names.Plural + "." + k.Names.Group, k.Names.Singular + "." + k.Names.Group}, k.Names.ShortNames...)
}

// completeKind returns the kinds whose name begins so.
func completeKind(kindsDir, begun string) []string {
	kinds, err := loadKinds(kindsDir)
	if err != nil {
		return nil // what is wrong is said when the command runs
	}
	var words []string
	for _, k := range kinds {
		if word := wordsFor(k)[0]; strings.HasPrefix(word, strings.ToLower(begun)) {
			words = append(words, word)
		}
	}
	return words
}

// find returns the custom resources of that name. err says which kinds could not be looked at, or that there is none.
func (c *cluster) find(ctx context.Context, kinds []*kind.Kind, name string) (found []resource, err error) {
	var failed []error
	var looked []string
	for _, k := range kinds {
		cr, err := c.get(ctx, k.GVK(), c.namespace, name)
		switch {
		case notInstalled(err):
			err = fmt.Errorf("the cluster does not know %s %s", k.GVK().GroupVersion(), k.Names.Kind)
			if len(kinds) == 1 {
				failed = append(failed, err)
			}
		case err != nil:
			failed = append(failed, fmt.Errorf("getting %s %s: %w", k.Names.Kind, name, err))
		case cr == nil:
			looked = append(looked, k.Names.Kind)
		default:
			found = append(found, resource{Unstructured: cr, kind: k})
		}
	}
	if len(found) == 0 && len(failed) == 0 {
		failed = append(failed, fmt.Errorf("there is no %s %s in namespace %s", strings.Join(looked, ", "), name, c.namespace))
	}
	return found, errors.Join(failed...)
}
