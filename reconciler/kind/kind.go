// Package kind loads kinds. A kind is all that the operator knows of a custom resource: a CUE package (names, schema, chart
// values, status) and a Helm chart, read from file systems. A loaded kind never changes. Its CUE values are to be evaluated
// under Evaluate.
package kind

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"testing/fstest" // a file system in memory: nothing smaller is as well kept

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/load"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/charts"
	"github.com/example/memcached-operator/schemas"
	"github.com/example/memcached-operator/version"
)

// moduleFile makes the schemas' folder part of the CUE module that the kinds import each other by. cue.mod/module.cue at the
// repository's root says the same to the cue command.
const moduleFile = `module: "github.com/example/memcached-operator"
language: version: "v0.17.0"
`

// contract is the folder of the package that every kind imports; it is no kind itself.
const contract = "kind"

// Manager is the name under which the operator owns fields and labels objects. It can never change: the API server would
// take the fields of the old name for another manager's, which a later apply cannot remove.
const Manager = "memcached-operator"

// OwnerAnnotation holds <namespace>/<name> of the custom resource on objects outside its namespace.
const OwnerAnnotation = version.Domain + "/owner"

// ManagedByLabel is the label, with Manager as its value, that every object and pod of the operator bears. The operator's
// caches hold nothing without it.
const ManagedByLabel = "app.kubernetes.io/managed-by"

// Kind is one custom resource kind.
type Kind struct {
	Names Names
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
	// Object is the schema of the whole custom resource.
	Object cue.Value
	// Values computes the chart's values from #object, a valid custom resource with its defaults filled in.
	Values cue.Value
	// Report computes the kind's part of the status from #metadata and #observed.
	Report cue.Value
	// Chart renders the objects. Whole numbers in its values are int64, since Helm would print a float64 of 1000000 as 1e+06.
	Chart *chart.Chart
	// Digest identifies schema and chart: 64 hexadecimal digits.
	Digest string
}

// Values are what a chart sees as .Values: JSON's types, whole numbers as int64.
type Values map[string]any

// GVK returns the group, version and kind of the custom resource.
func (k *Kind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Names.Group, Version: k.Names.Version, Kind: k.Names.Kind}
}

// OwnerLabel returns the key of the label that every object and pod of a custom resource bears, with the custom resource's
// name as value: <group>/<singular>.
func (k *Kind) OwnerLabel() string {
	return k.Names.Group + "/" + k.Names.Singular
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

// Embedded returns the kinds that are built into the binary, sorted by folder.
func Embedded() ([]*Kind, error) {
	return LoadAll(schemas.FS, charts.FS)
}

// LoadAll loads every kind below schemaFS (<kind>/*.cue, and the contract in kind/), sorted by folder, with its chart from
// chartFS (<chart>/…). It fails on the first kind that does not load.
func LoadAll(schemaFS, chartFS fs.FS) ([]*Kind, error) {
	module, err := newModule(schemaFS)
	if err != nil {
		return nil, err
	}
	folders, err := fs.ReadDir(schemaFS, ".")
	if err != nil {
		return nil, fmt.Errorf("reading schemas: %w", err)
	}
	var kinds []*Kind
	for _, f := range folders {
		if !f.IsDir() || f.Name() == contract {
			continue
		}
		k, err := loadKind(module, chartFS, f.Name())
		if err != nil {
			return nil, fmt.Errorf("loading kind %s: %w", f.Name(), err)
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

// Find returns the kind that serves gvk, or nil.
func Find(kinds []*Kind, gvk schema.GroupVersionKind) *Kind {
	i := slices.IndexFunc(kinds, func(k *Kind) bool { return k.GVK() == gvk })
	if i < 0 {
		return nil
	}
	return kinds[i]
}

// newModule returns the CUE module in which schemaFS is the folder schemas.
func newModule(schemaFS fs.FS) (fstest.MapFS, error) {
	module := fstest.MapFS{"cue.mod/module.cue": {Data: []byte(moduleFile)}}
	err := eachFile(schemaFS, ".", func(name string, data []byte) {
		module[path.Join("schemas", name)] = &fstest.MapFile{Data: data}
	})
	if err != nil {
		return nil, fmt.Errorf("reading schemas: %w", err)
	}
	return module, nil
}

func loadKind(module fstest.MapFS, chartFS fs.FS, folder string) (*Kind, error) {
	instance := load.Instances([]string{"./schemas/" + folder}, &load.Config{FS: module})[0]
	if instance.Err != nil {
		return nil, describe(instance.Err)
	}
	root := cuecontext.New().BuildInstance(instance)
	if err := root.Validate(); err != nil {
		return nil, describe(err)
	}
	k := &Kind{}
	for field, into := range map[string]any{
		"names": &k.Names, "scope": &k.Scope, "columns": &k.Columns, "scale": &k.Scale,
		"observe": &k.Observe, "policies": &k.Policies, "samples": &k.Samples,
	} {
		v := root.LookupPath(cue.ParsePath(field))
		if !v.Exists() && field == "scale" {
			continue
		}
		if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
			return nil, describe(err)
		}
		if err := v.Decode(into); err != nil {
			return nil, describe(err)
		}
	}
	for field, v := range map[string]*cue.Value{"object": &k.Object, "values": &k.Values, "report": &k.Report} {
		*v = root.LookupPath(cue.ParsePath(field))
		if !v.Exists() {
			return nil, fmt.Errorf("schemas/%s has no field %q: unify its package with kind.#Kind", folder, field)
		}
	}
	chartName, err := root.LookupPath(cue.ParsePath("chart")).String()
	if err != nil {
		return nil, describe(err)
	}
	digest := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(module)) {
		_, _ = fmt.Fprintf(digest, "%s %d\n%s", name, len(module[name].Data), module[name].Data) // a hash takes everything
	}
	var files []*loader.BufferedFile
	err = eachFile(chartFS, chartName, func(name string, data []byte) {
		_, _ = fmt.Fprintf(digest, "%s %d\n%s", name, len(data), data)
		files = append(files, &loader.BufferedFile{Name: name, Data: data})
	})
	if err != nil {
		return nil, fmt.Errorf("reading chart %s: %w", chartName, err)
	}
	if k.Chart, err = loader.LoadFiles(files); err != nil {
		return nil, fmt.Errorf("loading chart %s: %w", chartName, err)
	}
	if len(k.Chart.Metadata.Dependencies) > 0 {
		return nil, fmt.Errorf("chart %s has dependencies: a kind's chart must stand alone", chartName)
	}
	k.Chart.Values, _ = wholeNumbers(k.Chart.Values).(map[string]any)
	k.Digest = hex.EncodeToString(digest.Sum(nil))
	return k, nil
}

// eachFile calls f with the path below root and the content of every regular file, in the order of their paths.
func eachFile(fsys fs.FS, root string, f func(name string, data []byte)) error {
	below, err := fs.Sub(fsys, root)
	if err != nil {
		return err
	}
	return fs.WalkDir(below, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(below, name)
		if err != nil {
			return err
		}
		f(name, data)
		return nil
	})
}

// wholeNumbers returns v with every float64 that is a whole number below 2^53 turned into an int64.
func wholeNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = wholeNumbers(value)
		}
	case []any:
		for i, value := range v {
			v[i] = wholeNumbers(value)
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return v
}

// describe puts all of a CUE error, with files and lines, into the message.
func describe(err error) error {
	return errors.New(cueerrors.Details(err, nil))
}
