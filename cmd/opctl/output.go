package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// The formats of output that -o may name.
const (
	formatText  = "text"
	formatTree  = "tree"
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// outputFlag is the value of -o: one of a command's formats.
type outputFlag struct {
	format  *string
	formats []string
}

func (f outputFlag) String() string { return *f.format }

func (f outputFlag) Type() string { return "FORMAT" }

func (f outputFlag) Set(value string) error {
	if !slices.Contains(f.formats, value) {
		return fmt.Errorf("must be one of %s", strings.Join(f.formats, ", "))
	}
	*f.format = value
	return nil
}

// addOutputFlag lets -o set format to one of formats, of which the first is the default.
func addOutputFlag(cmd *cobra.Command, format *string, formats ...string) {
	*format = formats[0]
	cmd.Flags().VarP(outputFlag{format, formats}, "output", "o", "output format: "+strings.Join(formats, ", "))
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is defined above
	}
}

// printTable prints rows below a header, in columns.
func printTable(out io.Writer, header []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			row[i] = oneLine(cell)
		}
		_, _ = fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t")) // Flush tells what went wrong
	}
	return w.Flush()
}

// printAs prints v as JSON or YAML.
func printAs(out io.Writer, format string, v any) error {
	if format == formatJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(v)
	}
	data, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
