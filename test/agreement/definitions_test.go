package agreement_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/generate"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
)

// TestDefinitionsAreAccepted: the API server took all definitions when the cluster started, the cost of their rules included. It has
// nothing against their structure either, and keeps them as they were generated.
func TestDefinitionsAreAccepted(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.Names.Kind, func(t *testing.T) {
			generated, err := generate.CRD(k)
			if err != nil {
				t.Fatal(err)
			}
			text, err := env.Kubectl(t.Context(), "get", "crd", generated.Name, "-o", "json")
			if err != nil {
				t.Fatal(err)
			}
			var stored apiextensionsv1.CustomResourceDefinition
			if err := json.Unmarshal([]byte(text), &stored); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plain(generated.Spec.Versions), plain(stored.Spec.Versions)); diff != "" {
				t.Errorf("the API server keeps another definition (-generated +stored):\n%s", diff)
			}
			for _, c := range stored.Status.Conditions {
				if isGood := c.Type == apiextensionsv1.Established || c.Type == apiextensionsv1.NamesAccepted; isGood != (c.Status == apiextensionsv1.ConditionTrue) {
					t.Errorf("%s is %s: %s", c.Type, c.Status, c.Message)
				}
			}
		})
	}
}

// TestDefinitionsAreUpToDate: those in config/crd/bases, which the other tests install, are the generated ones.
func TestDefinitionsAreUpToDate(t *testing.T) {
	for _, k := range embedded {
		file := filepath.Join(definitions, k.Names.Group+"_"+k.Names.Plural+".yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var written apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &written); err != nil {
			t.Fatal(err)
		}
		generated, err := generate.CRD(k)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain(written), plain(generated)); diff != "" {
			t.Errorf("%s is out of date, run opctl generate crd %s (-file +generated):\n%s", file, k.Names.Kind, diff)
		}
	}
}

// TestSamplesGetTheSameDefaults: what the API server stores of a kind's sample is what CUE makes of it.
func TestSamplesGetTheSameDefaults(t *testing.T) {
	for _, k := range kinds {
		server := newServer(t, k)
		for _, name := range slices.Sorted(maps.Keys(k.Samples)) {
			t.Run(k.Names.Kind+"/"+name, func(t *testing.T) { sampleGetsTheSameDefaults(t, server, k, name) })
		}
	}
}

func sampleGetsTheSameDefaults(t *testing.T, server *server, k *kind.Kind, name string) {
	sample := plan.Sample(k, name, plan.SampleNamespace)
	object, err := json.Marshal(sample)
	if err != nil {
		t.Fatal(err)
	}
	stored, refusal, err := server.create(string(object))
	if err != nil || refusal != "" {
		t.Fatalf("%v%s", err, refusal)
	}
	want, err := completed(k, name, sample.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("(-CUE +API server):\n%s", diff)
	}
}
