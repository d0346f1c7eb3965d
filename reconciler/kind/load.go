package kind

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"testing/fstest"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/load"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/example/memcached-operator/charts"
	"github.com/example/memcached-operator/schemas"
)

// moduleFile makes the schemas' folder part of the CUE module by which kinds import the contract. cue.mod/module.cue at the
// repository's root says the same to the cue command.
const moduleFile = `module: "github.com/example/memcached-operator"
language: version: "v0.17.0"
`

// contract is the folder of the package that every kind imports; it is no kind itself.
const contract = "kind"

// Loaded is what became of one folder: a kind, or an error that names the folder.
type Loaded struct {
	// Folder is the kind's, below schemas/.
	Folder string
	Kind   *Kind
	Err    error
}

// Embedded returns the kinds that are built into the binary, sorted by folder.
func Embedded() ([]*Kind, error) {
	return LoadAll(schemas.FS, charts.FS)
}

// LoadAll loads every kind below schemaFS (<kind>/*.cue), sorted by folder, with its chart from chartFS (<chart>/…). It fails
// if one does not load.
func LoadAll(schemaFS, chartFS fs.FS) ([]*Kind, error) {
	folders, err := loadEach(schemaFS, chartFS)
	if err != nil {
		return nil, err
	}
	var kinds []*Kind
	for _, f := range folders {
		if f.Err != nil {
			return nil, f.Err
		}
		kinds = append(kinds, f.Kind)
	}
	return kinds, nil
}

// LoadFolder loads every kind of a folder that is laid out as the repository, with schemas/<kind>/*.cue and charts/<chart>/…,
// sorted by folder. Each loads or fails by itself. The contract is the binary's own, whatever stands in the folder.
func LoadFolder(fsys fs.FS) ([]Loaded, error) {
	if _, err := fs.Stat(fsys, "schemas"); err != nil {
		return nil, err
	}
	schemaFS, err := fs.Sub(fsys, "schemas")
	if err != nil {
		return nil, err
	}
	chartFS, err := fs.Sub(fsys, "charts")
	if err != nil {
		return nil, err
	}
	return loadEach(schemaFS, chartFS)
}

func loadEach(schemaFS, chartFS fs.FS) ([]Loaded, error) {
	entries, err := fs.ReadDir(schemaFS, ".")
	if err != nil {
		return nil, fmt.Errorf("reading the folder schemas: %w", err)
	}
	var loaded []Loaded
	for _, e := range entries {
		if e.Name() == contract || isScratch(e.Name()) {
			continue
		}
		files, err := readFiles(schemaFS, e.Name(), isDefinition)
		if errors.Is(err, errNoFolder) || err == nil && len(files) == 0 {
			continue // such as a README
		}
		l := Loaded{Folder: e.Name()}
		if err == nil {
			l.Kind, err = loadKind(l.Folder, files, chartFS)
		}
		if err != nil {
			l.Err = fmt.Errorf("loading kind %s: %w", l.Folder, err)
		}
		loaded = append(loaded, l)
	}
	return loaded, nil
}

func loadKind(folder string, definitions fstest.MapFS, chartFS fs.FS) (*Kind, error) {
	module, err := newModule(folder, definitions)
	if err != nil {
		return nil, err
	}
	k := &Kind{Folder: folder, module: module}
	chartName, err := Evaluate(k, "the definitions", k.readDefinitions)
	if err != nil {
		return nil, err
	}
	files, err := readFiles(chartFS, chartName, isChartFile)
	if err != nil {
		return nil, fmt.Errorf("reading chart %s: %w", chartName, err)
	}
	if k.Chart, err = loadChart(chartName, files); err != nil {
		return nil, fmt.Errorf("charts/%s: %w", chartName, err)
	}
	digest := sha256.New()
	addTo(digest, module)
	addTo(digest, files)
	k.Digest = hex.EncodeToString(digest.Sum(nil))
	return k, nil
}

// newModule returns the CUE module of one kind: the contract and the kind's definitions.
func newModule(folder string, definitions fstest.MapFS) (fstest.MapFS, error) {
	module := fstest.MapFS{"cue.mod/module.cue": {Data: []byte(moduleFile)}}
	shared, err := readFiles(schemas.FS, contract, isDefinition)
	if err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}
	for name, file := range shared {
		module[path.Join("schemas", contract, name)] = file
	}
	for name, file := range definitions {
		module[path.Join("schemas", folder, name)] = file
	}
	return module, nil
}

// addTo makes files part of a digest.
func addTo(digest hash.Hash, files fstest.MapFS) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, _ = fmt.Fprintf(digest, "%s %d\n%s", name, len(files[name].Data), files[name].Data) // a hash takes everything
	}
}

// compile returns a program of its own.
func (k *Kind) compile() (*Program, error) {
	instance := load.Instances([]string{"./schemas/" + k.Folder}, &load.Config{FS: k.module})[0]
	if instance.Err != nil {
		return nil, errors.New(Explain(instance.Err))
	}
	root := cuecontext.New().BuildInstance(instance)
	if err := root.Validate(); err != nil {
		return nil, errors.New(Explain(err))
	}
	p := &Program{root: root}
	for field, v := range map[string]*cue.Value{"object": &p.Object, "values": &p.Values, "report": &p.Report} {
		*v = root.LookupPath(cue.ParsePath(field))
		if !v.Exists() {
			return nil, fmt.Errorf("schemas/%s has no field %q: unify its package with kind.#Kind", k.Folder, field)
		}
	}
	p.Plan = p.Values.FillPath(cue.MakePath(cue.Def("object")), p.Object)
	return p, nil
}

// readDefinitions fills in the data of k, and returns the name of its chart.
func (k *Kind) readDefinitions(p *Program) (chartName string, err error) {
	for field, into := range map[string]any{
		"names": &k.Names, "scope": &k.Scope, "columns": &k.Columns, "scale": &k.Scale, "observe": &k.Observe,
		"policies": &k.Policies, "samples": &k.Samples, "chart": &chartName,
	} {
		v := p.root.LookupPath(cue.ParsePath(field))
		if !v.Exists() && field == "scale" {
			continue
		}
		if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
			return "", errors.New(Explain(err))
		}
		if err := v.Decode(into); err != nil {
			return "", errors.New(Explain(err))
		}
	}
	if k.Listed, err = listSamples(p.root.LookupPath(cue.ParsePath("samples"))); err != nil {
		return "", err
	}
	if strings.Contains(chartName, "/") || !fs.ValidPath(chartName) || isScratch(chartName) {
		return "", fmt.Errorf("schemas/%s: chart %q is not the name of a folder below charts", k.Folder, chartName)
	}
	return chartName, nil
}

// listSamples returns the samples in the order of their declaration.
func listSamples(samples cue.Value) (listed []Sample, err error) {
	it, err := samples.Fields()
	if err != nil {
		return nil, errors.New(Explain(err))
	}
	for it.Next() {
		s := Sample{Name: it.Selector().Unquoted()}
		for _, group := range it.Value().Doc() {
			if s.Description == "" {
				s.Description = strings.Join(strings.Fields(group.Text()), " ")
			}
		}
		if a := it.Value().Attribute("sample"); a.Err() == nil {
			s.Namespace, _, _ = a.Lookup(0, "namespace")
		}
		listed = append(listed, s)
	}
	return listed, nil
}

// loadChart refuses what needs Helm's own machinery: nothing here fetches other charts or knows when a release is installed.
func loadChart(name string, files fstest.MapFS) (*chart.Chart, error) {
	var buffered []*loader.BufferedFile
	for _, file := range slices.Sorted(maps.Keys(files)) {
		buffered = append(buffered, &loader.BufferedFile{Name: file, Data: files[file].Data})
	}
	c, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	switch {
	case c.Name() != name:
		return nil, fmt.Errorf("the name in Chart.yaml, %q, must be the folder's", c.Name())
	case c.Metadata.Type == "library":
		return nil, errors.New("the type in Chart.yaml is library: such a chart renders nothing")
	case len(c.Metadata.Dependencies) > 0 || len(c.Dependencies()) > 0:
		return nil, errors.New("the chart has dependencies: a kind's chart must stand alone")
	case len(c.CRDObjects()) > 0:
		return nil, errors.New("the chart has a folder crds, which is for Helm's installation: install the CustomResourceDefinitions beforehand, or render them from templates")
	}
	c.Values, _ = wholeNumbers(c.Values).(map[string]any)
	return c, nil
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

// Explain returns all of a CUE error, with files and lines.
func Explain(err error) string {
	const root = "/" // the module's, so that files are ./schemas/…
	return strings.TrimSpace(cueerrors.Details(err, &cueerrors.Config{Cwd: root, ToSlash: true}))
}
