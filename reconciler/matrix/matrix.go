// Package matrix tests a kind by its samples, which are its test matrix: what they render to is known, is the same each time,
// reaches every branch of the chart's templates, and comes from every field of the spec. It knows no cluster.
package matrix

import (
	"errors"
	"io/fs"

	"github.com/example/memcached-operator/reconciler/gate"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
)

// Options say what a test compares with.
type Options struct {
	// Testdata holds the kind's snapshots, <sample>.yaml, and the cases of its report, reports.yaml; nil if it has none.
	Testdata fs.FS
	// Runs is how many times each sample is rendered.
	Runs int
}

// Result is what became of a test.
type Result struct {
	// Kind is the kind's name and group.
	Kind string `json:"kind"`
	// Samples, Branches and Fields are how many there are; Runs is how many times each sample was rendered. All but Samples are 0
	// if the test did not get that far.
	Samples  int `json:"samples"`
	Branches int `json:"branches"`
	Fields   int `json:"fields"`
	Runs     int `json:"runs"`
	// Problems begin with the file and the line where they are known; a diff may follow.
	Problems []string `json:"problems,omitempty"`
}

// Test tests k. What the gate refuses is tested no further.
func Test(k *kind.Kind, o Options) Result {
	r := Result{Kind: k.GroupKind().String(), Samples: len(k.Samples)}
	if err := gate.Check(k); err != nil {
		r.Problems = joined(err)
		return r
	}
	snapshots, err := Snapshots(k)
	if err != nil {
		r.add(nil, err)
		return r
	}
	if o.Testdata != nil {
		r.Problems = append(compare(k, o.Testdata, snapshots), reports(k, o.Testdata)...)
	}
	r.Runs = o.Runs
	r.add(runs(k, o.Runs), nil)
	count, problems, err := branches(k)
	r.Branches = count
	r.add(problems, err)
	count, problems, err = fields(k)
	r.Fields = count
	r.add(problems, err)
	return r
}

func (r *Result) add(problems []string, err error) {
	r.Problems = append(r.Problems, problems...)
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
}

// joined returns the errors that errors.Join made one of.
func joined(err error) (messages []string) {
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		return []string{err.Error()}
	}
	for _, e := range all.Unwrap() {
		messages = append(messages, e.Error())
	}
	return messages
}

// fields tells which fields of the spec, and which of their values, no sample has, and how many fields there are.
func fields(k *kind.Kind) (count int, problems []string, err error) {
	root, err := schema.Of(k)
	if err != nil {
		return 0, nil, err
	}
	spec, err := own(k, new(root.Properties["spec"]))
	if err != nil {
		return 0, nil, err
	}
	all, err := specs(k)
	if err != nil {
		return 0, nil, err
	}
	count, gaps := fieldGaps(spec, all)
	where, err := places(k, gaps)
	if err != nil {
		return 0, nil, err
	}
	for i, gap := range gaps {
		problems = append(problems, where[i]+": "+gap.String())
	}
	return count, problems, nil
}
