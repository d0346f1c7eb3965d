package matrix

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
	"github.com/example/memcached-operator/reconciler/plan"
)

// reportsFile holds the cases of the report: by a case's name, what is observed and the status that it gives.
const reportsFile = "reports.yaml"

type reportCase struct {
	Observed observe.Observation `json:"observed"`
	Status   map[string]any      `json:"status"`
}

// reports computes the status of each case in testdata for a custom resource called example.
func reports(k *kind.Kind, testdata fs.FS) (problems []string) {
	file := path.Join("schemas", k.Folder, "testdata", reportsFile)
	data, err := fs.ReadFile(testdata, reportsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var cases map[string]reportCase
	if err == nil {
		err = yaml.UnmarshalStrict(data, &cases)
	}
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", file, err)}
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if err := reportAsWanted(k, cases[name]); err != nil {
			problems = append(problems, fmt.Sprintf("%s: case %q: %v", file, name, err))
		}
	}
	return problems
}

func reportAsWanted(k *kind.Kind, c reportCase) error {
	status, err := observe.Report(k, plan.SampleNamespace, "example", c.Observed)
	if err != nil {
		return err
	}
	want, err := yaml.Marshal(c.Status)
	if err != nil {
		return err
	}
	got, err := yaml.Marshal(status)
	if err != nil {
		return err
	}
	if d := difference("status", want, got); d != "" {
		return fmt.Errorf("the report gives another status\n%s", d)
	}
	return nil
}
