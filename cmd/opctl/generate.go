package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/example/memcached-operator/reconciler/gate"
	"github.com/example/memcached-operator/reconciler/generate"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/matrix"
)

func newGenerateCommand() *cobra.Command {
	var kindsDir string
	var check bool
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Write all files that follow from the kinds of a folder",
		Long: `Write into the folder that --kinds-dir names all that follows from the kinds in it:

  config/crd/bases            CustomResourceDefinitions, and the kustomization that lists them
  config/rbac/role.yaml       the operator's ClusterRole
  config/samples              a commented custom resource of each kind, and their kustomization
  charts/CHART/values.yaml    the values with which stock Helm renders the chart
  charts/CHART/values.schema.json
  docs/reference/KIND.md      every field
  schemas/KIND/testdata       what the samples render to

It prints the files that changed. With --check it writes nothing, and the exit code is 1 if a file would change. The commands
below it print one kind of file each.`,
		Example: `  opctl generate --kinds-dir .
  opctl generate --kinds-dir ./my-kinds --check`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kindsDir == "" {
				return errors.New("name the folder by --kinds-dir: what is built in has no files")
			}
			if check {
				return checkGenerated(cmd.OutOrStdout(), kindsDir)
			}
			changed, err := generateAll(kindsDir)
			for _, path := range changed {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), path); err != nil {
					return err
				}
			}
			return err
		},
	}
	addKindsDirFlag(cmd, &kindsDir)
	cmd.Flags().BoolVar(&check, "check", false, "only tell which files are not what follows from the kinds")
	cmd.AddCommand(
		newGenerateCRDCommand(),
		newGenerateRBACCommand(),
		newGenerateFileCommand("values", "the chart's values.yaml of a kind", generate.Values),
		newGenerateFileCommand("values-schema", "the chart's values.schema.json of a kind", generate.ValuesSchema),
		newGenerateFileCommand("reference", "the page of Markdown about a kind", generate.Reference),
		newGenerateFileCommand("sample", "a commented custom resource of a kind", generate.Sample),
	)
	return cmd
}

func newGenerateFileCommand(name, what string, write func(*kind.Kind) ([]byte, error)) *cobra.Command {
	var kindsDir string
	cmd := &cobra.Command{
		Use:               name + " KIND",
		Short:             "Print " + what,
		Long:              "Print " + what + ", KIND or PLURAL.GROUP.",
		Example:           "  opctl generate " + name + " Memcached",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, names []string) error {
			kinds, err := selectKinds(kindsDir, names)
			if err != nil {
				return err
			}
			text, err := write(kinds[0])
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	addKindsDirFlag(cmd, &kindsDir)
	return cmd
}

// generateAll writes all that follows from the kinds in dir, and returns the paths of the files that it changed. Nothing is
// written if the operator would refuse one of the kinds.
func generateAll(dir string) (changed []string, err error) {
	files, removed, err := generated(dir)
	if err != nil {
		return nil, err
	}
	if changed, err = writeFiles(files); err != nil {
		return changed, err
	}
	for _, path := range removed {
		if err := os.Remove(path); err != nil {
			return changed, err
		}
		changed = append(changed, path)
	}
	return changed, nil
}

// writeFiles writes files by their paths, and returns the paths of those that it changed.
func writeFiles(files map[string][]byte) (changed []string, err error) {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if isCurrent(path, files[path]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return changed, err
		}
		if err := os.WriteFile(path, files[path], 0o644); err != nil {
			return changed, err
		}
		changed = append(changed, path)
	}
	return changed, nil
}

// checkGenerated tells which files generateAll would change.
func checkGenerated(out io.Writer, dir string) error {
	files, stale, err := generated(dir)
	if err != nil {
		return err
	}
	for path, text := range files {
		if !isCurrent(path, text) {
			stale = append(stale, path)
		}
	}
	slices.Sort(stale)
	for _, path := range stale {
		if _, err := fmt.Fprintln(out, path); err != nil {
			return err
		}
	}
	if len(stale) > 0 {
		return findings{fmt.Errorf("%d files are not what follows from the kinds: run opctl generate --kinds-dir %s", len(stale), dir)}
	}
	return nil
}

// generated returns all files that follow from the kinds in dir, by their paths, and the snapshots of samples that are gone.
func generated(dir string) (files map[string][]byte, removed []string, err error) {
	library, err := openLibrary(dir)
	if err != nil {
		return nil, nil, err
	}
	kinds, err := kindsOfFolder(library)
	if err != nil {
		return nil, nil, err
	}
	if len(kinds) == 0 {
		return nil, nil, fmt.Errorf("%s holds no kind", filepath.Join(dir, "schemas"))
	}
	return following(dir, kinds)
}

// kindsOfFolder returns the kinds in library that are not built in. One that the operator would refuse is an error.
func kindsOfFolder(library *kind.Library) (kinds []*kind.Kind, err error) {
	var problems []error
	for _, k := range library.Kinds() {
		if library.IsEmbedded(k) {
			continue
		}
		kinds = append(kinds, k)
		if err := gate.Check(k); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return nil, findings{errors.Join(problems...)}
	}
	return kinds, nil
}

// following returns all files that follow from kinds if these are in dir, by their paths, and the snapshots in dir of samples
// that are gone.
func following(dir string, kinds []*kind.Kind) (files map[string][]byte, removed []string, err error) {
	below, err := generate.Files(kinds)
	if err != nil {
		return nil, nil, findings{err}
	}
	files = map[string][]byte{}
	for path, text := range below {
		files[filepath.Join(dir, path)] = text
	}
	for _, k := range kinds {
		testdata := filepath.Join(dir, "schemas", k.Folder, "testdata")
		snapshots, gone, err := matrix.Refresh(k, os.DirFS(testdata))
		if err != nil {
			return nil, nil, err
		}
		for name, text := range snapshots {
			files[filepath.Join(testdata, name)] = text
		}
		for _, name := range gone {
			removed = append(removed, filepath.Join(testdata, name))
		}
	}
	return files, removed, nil
}

func isCurrent(path string, text []byte) bool {
	present, err := os.ReadFile(path)
	return err == nil && bytes.Equal(present, text)
}
