// Package helm_test shows that the charts remain ordinary charts: stock helm finds nothing wrong with them, and renders the same
// objects as the operator.
package helm_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/validate"
)

// helm runs the stock command, of the release that tools/helm pins.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "-modfile=../../tools/helm/go.mod", "helm"}, args...)...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Logf("helm %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), problems.String())
		return "", err
	}
	return out.String(), nil
}

func TestStockHelm(t *testing.T) {
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		chart := filepath.Join("../../charts", k.Chart.Name())
		t.Run(k.Names.Kind, func(t *testing.T) {
			if _, err := helm(t, "lint", "--strict", chart); err != nil {
				t.Error("helm lint finds something wrong")
			}
			if _, err := helm(t, "template", "by-itself", chart, "--kube-version", plan.SampleKubeVersion); err != nil {
				t.Error("the chart does not render by itself")
			}
			if _, err := helm(t, "template", "wrong", chart, "--kube-version", plan.SampleKubeVersion, "--set", "image.pullPolicy=Sometimes"); err == nil {
				t.Error("the chart takes a value that its schema does not")
			}
			for _, sample := range k.Listed {
				t.Run(sample.Name, func(t *testing.T) { compare(t, k, chart, sample.Name) })
			}
		})
	}
}

// compare renders a sample by stock helm, with the values that `opctl render --show-values` prints, and as the operator does.
func compare(t *testing.T, k *kind.Kind, chart, sample string) {
	values, err := validate.Spec(k, sample, k.Samples[sample])
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := helm(t, "template", sample, chart, "--namespace", plan.SampleNamespace, "--kube-version", plan.SampleKubeVersion, "--values", file)
	if err != nil {
		t.Fatal("helm does not render it")
	}
	stock, err := render.Decode(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	ours, _, err := plan.Make(k, plan.Sample(k, sample, plan.SampleNamespace), plan.SampleKubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(k, stock), contents(k, ours.Objects)); diff != "" {
		t.Errorf("-helm +operator:\n%s", diff)
	}
}

// contents returns the objects by kind and name, without what the operator adds to mark them as its own.
func contents(k *kind.Kind, objects []*unstructured.Unstructured) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, o := range objects {
		o = o.DeepCopy()
		o.SetNamespace("")
		for _, holder := range [][]string{{}, {"spec", "template"}, {"spec", "jobTemplate"}, {"spec", "jobTemplate", "spec", "template"}} {
			for _, label := range []string{k.OwnerLabel(), kind.ManagedByLabel} {
				unstructured.RemoveNestedField(o.Object, slices.Concat(holder, []string{"metadata", "labels", label})...)
			}
		}
		out[kind.Describe(o)] = o.Object
	}
	return out
}
