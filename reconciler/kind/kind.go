// Package kind loads kinds. A kind is all that the operator knows of a custom resource: a CUE package (names, schema, chart
// values, status) and a Helm chart, read from file systems. A loaded kind never changes. Its CUE values are to be evaluated
// under Evaluate.
package kind

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing/fstest"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/version"
)

// Manager is the name under which the operator owns fields and labels objects. It can never change: the API server would
// take the fields of the old name for another manager's, which a later apply cannot remove.
const Manager = version.Name

// ManagedByLabel is the label, with Manager as its value, that every object and pod of the operator bears. The operator's
// caches hold nothing without it.
const ManagedByLabel = "app.kubernetes.io/managed-by"

// OwnerAnnotation is the annotation, <namespace>/<name> of the custom resource, that objects and pods bear whose kind may put
// them into other namespaces: the owner label names none.
const OwnerAnnotation = version.Domain + "/owner"

// Kind is one custom resource kind.
type Kind struct {
	// Folder is where the kind was read from, below schemas/.
	Folder string
	Names  Names
	// Scope is Namespaced or Cluster.
	Scope string
	// Columns are printed by kubectl get; Scale is nil for a kind that cannot be scaled.
	Columns []Column
	Scale   *Scale
	// Observe names what is looked at beside the rendered objects: Pod, Job.
	Observe  []string
	Policies Policies
	// Samples are specs by the name of their custom resource.
	Samples map[string]map[string]any
	// Listed tells what else there is to say of the samples, in the order of their declaration. The first is the usual one.
	Listed []Sample
	// Chart renders the objects. Whole numbers in its values are int64, since Helm would print a float64 of 1000000 as 1e+06.
	Chart *chart.Chart
	// Digest identifies contract, schema and chart: 64 hexadecimal digits.
	Digest string

	module   fstest.MapFS // what program is compiled from
	program  *Program     // whoever holds the turn may use it; nil after a runaway, until it is compiled anew
	runaways atomic.Int32
}

// Values are what a chart sees as .Values: JSON's types, whole numbers as int64.
type Values map[string]any

// WithChart returns k with another chart, to try that out. The digest remains.
func (k *Kind) WithChart(c *chart.Chart) *Kind {
	return &Kind{
		Folder: k.Folder, Names: k.Names, Scope: k.Scope, Columns: k.Columns, Scale: k.Scale, Observe: k.Observe,
		Policies: k.Policies, Samples: k.Samples, Listed: k.Listed, Chart: c, Digest: k.Digest, module: k.module,
	}
}

// GVK returns the group, version and kind of the custom resource.
func (k *Kind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Names.Group, Version: k.Names.Version, Kind: k.Names.Kind}
}

// GroupKind returns the group and kind of the custom resource.
func (k *Kind) GroupKind() schema.GroupKind {
	return k.GVK().GroupKind()
}

// name is the kind's, or its folder's while that is not known.
func (k *Kind) name() string {
	if k.Names.Kind == "" {
		return k.Folder
	}
	return k.Names.Kind
}

// OwnerLabel returns the key of the label that every object and pod of a custom resource bears, with the custom resource's
// name as value: <group>/<singular>.
func (k *Kind) OwnerLabel() string {
	return k.Names.Group + "/" + k.Names.Singular
}

// MayBeOwnerLabel tells whether key has the form of an owner label. Whether it is one is not always known: kinds come and go.
func MayBeOwnerLabel(key string) bool {
	group, _, found := strings.Cut(key, "/")
	return found && !strings.HasSuffix(group, "kubernetes.io")
}

// Describe names an object for people: "Deployment cache".
func Describe(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetName()
}

// Shorten returns s, cut to at most most bytes and an ellipsis.
func Shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Find returns the kind that serves gvk, or nil.
func Find(kinds []*Kind, gvk schema.GroupVersionKind) *Kind {
	i := slices.IndexFunc(kinds, func(k *Kind) bool { return k.GVK() == gvk })
	if i < 0 {
		return nil
	}
	return kinds[i]
}

// Select returns the kinds that names ask for, all if there are none. A name is a kind, Teapot, or plural and group,
// teapots.kitchen.example.com.
func Select(kinds []*Kind, names []string) ([]*Kind, error) {
	if len(names) == 0 {
		return kinds, nil
	}
	var selected []*Kind
	for _, k := range kinds {
		if k.IsOneOf(names) {
			selected = append(selected, k)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(kinds, func(k *Kind) bool { return k.IsOneOf([]string{name}) }) {
			return nil, fmt.Errorf("there is no kind %q: known are %s", name, List(kinds))
		}
	}
	return selected, nil
}

// IsOneOf tells whether names, written as for Select, ask for k.
func (k *Kind) IsOneOf(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.EqualFold(name, k.Names.Kind) || strings.EqualFold(name, k.Names.Plural+"."+k.Names.Group)
	})
}

// List names kinds for people: "kitchen.example.com/v1 Teapot, …".
func List(kinds []*Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.GVK().GroupVersion().String()+" "+k.Names.Kind)
	}
	return strings.Join(names, ", ")
}
