package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/example/memcached-operator/reconciler/gate"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/matrix"
)

type testOptions struct {
	kindsDir string
	update   bool
	runs     int
	output   string
	against  []string
}

func newTestCommand() *cobra.Command {
	var o testOptions
	cmd := &cobra.Command{
		Use:   "test [KIND…]",
		Short: "Test kinds by their samples",
		Long: `Test the named kinds, KIND or PLURAL.GROUP; without a name those in the folder that --kinds-dir names, or else all.

A kind passes if
- the operator would serve it: names, policies, templates, and each sample from validation to the status;
- each sample renders to its snapshot, DIR/schemas/<kind>/testdata/<sample>.yaml, and each case of the report in reports.yaml
  beside it gives its status; the kinds that are built in have none;
- each sample renders the same each time;
- each branch of the templates is reached by a sample, and each field of the spec set, with each value of its enumerations and
  booleans;
- with --against, its schema takes all custom resources that those CustomResourceDefinitions took.`,
		Example: `  opctl test
  opctl test --kinds-dir ./my-kinds --update
  kubectl get crd redises.data.example.com -o yaml | opctl test --kinds-dir ./my-kinds --against -`,
		ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, names []string) error {
			return test(cmd.InOrStdin(), cmd.OutOrStdout(), names, o)
		},
	}
	addKindsDirFlag(cmd, &o.kindsDir)
	cmd.Flags().BoolVar(&o.update, "update", false, "write the snapshots, and delete those of samples that are gone, before they are compared")
	cmd.Flags().IntVar(&o.runs, "runs", 100, "how many times each sample is rendered")
	cmd.Flags().StringArrayVar(&o.against, "against", nil, "file or folder with CustomResourceDefinitions whose stored custom resources must remain valid, - for standard input; may be repeated")
	addOutputFlag(cmd, &o.output, formatText, formatTable, formatJSON, formatYAML)
	return cmd
}

func test(in io.Reader, out io.Writer, names []string, o testOptions) error {
	switch {
	case o.update && o.kindsDir == "":
		return errors.New("--update writes into the folder that --kinds-dir names")
	case o.runs < 0:
		return fmt.Errorf("--runs %d is less than 0", o.runs)
	}
	definitions, err := readDefinitions(in, o.against)
	if err != nil {
		return err
	}
	library, err := kind.OpenLibrary(kind.LibraryOptions{Dir: o.kindsDir})
	if err != nil {
		return err
	}
	var results []matrix.Result
	for _, folder := range slices.Sorted(maps.Keys(library.Broken())) {
		results = append(results, matrix.Result{Kind: "schemas/" + folder, Problems: []string{library.Broken()[folder].Error()}})
	}
	kinds, err := kind.Select(library.Kinds(), names)
	if err != nil && len(results) == 0 { // else it may be the broken one
		return err
	}
	for _, k := range kinds {
		if o.kindsDir != "" && len(names) == 0 && library.IsEmbedded(k) {
			continue
		}
		result, err := testKind(k, library.IsEmbedded(k), o)
		if err != nil {
			return err
		}
		result.Problems = append(result.Problems, breaks(k, definitions)...)
		results = append(results, result)
	}
	if err := showTests(out, o.output, results); err != nil {
		return err
	}
	return failed(results)
}

func testKind(k *kind.Kind, isEmbedded bool, o testOptions) (matrix.Result, error) {
	if isEmbedded {
		return matrix.Test(k, matrix.Options{Runs: o.runs}), nil
	}
	testdata := filepath.Join(o.kindsDir, "schemas", k.Folder, "testdata")
	if o.update && gate.Check(k) == nil {
		if err := matrix.Update(k, testdata); err != nil {
			return matrix.Result{}, err
		}
	}
	return matrix.Test(k, matrix.Options{Testdata: os.DirFS(testdata), Runs: o.runs}), nil
}

// failed returns which kinds have problems, if any.
func failed(results []matrix.Result) error {
	failed := 0
	for _, r := range results {
		if len(r.Problems) > 0 {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return findings{fmt.Errorf("%d of %d kinds failed", failed, len(results))}
}

// showTests prints results in one of the formats.
func showTests(out io.Writer, format string, results []matrix.Result) error {
	switch format {
	case formatText:
	case formatTable:
		var rows [][]string
		for _, r := range results {
			rows = append(rows, []string{
				r.Kind, strconv.Itoa(r.Samples), strconv.Itoa(r.Branches), strconv.Itoa(r.Fields), strconv.Itoa(r.Runs), strconv.Itoa(len(r.Problems)),
			})
		}
		return printTable(out, []string{"KIND", "SAMPLES", "BRANCHES", "FIELDS", "RUNS", "PROBLEMS"}, rows)
	default:
		return printAs(out, format, results)
	}
	for _, r := range results {
		if err := showTest(out, r); err != nil {
			return err
		}
	}
	return nil
}

func showTest(out io.Writer, r matrix.Result) error {
	if len(r.Problems) == 0 {
		_, err := fmt.Fprintf(out, "ok   %s: %d samples, %d branches, %d fields, %d runs\n", r.Kind, r.Samples, r.Branches, r.Fields, r.Runs)
		return err
	}
	if _, err := fmt.Fprintf(out, "FAIL %s\n", r.Kind); err != nil {
		return err
	}
	for _, problem := range r.Problems {
		if _, err := fmt.Fprintln(out, problem); err != nil {
			return err
		}
	}
	return nil
}
