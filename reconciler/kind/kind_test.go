package kind

import (
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/charts"
	"github.com/example/memcached-operator/schemas"
)

func TestModuleFileIsTheRepositorys(t *testing.T) {
	want, err := os.ReadFile("../../cue.mod/module.cue")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), moduleFile); diff != "" {
		t.Errorf("the cue command and the operator see different modules (-cue.mod/module.cue +operator):\n%s", diff)
	}
}

func memcached(kinds []*Kind) *Kind {
	return Find(kinds, schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"})
}

func TestEmbeddedMemcached(t *testing.T) {
	kinds, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	want := Names{
		Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached", Plural: "memcacheds", Singular: "memcached",
		ShortNames: []string{"mc"}, Categories: []string{"cache"},
	}
	if diff := cmp.Diff(want, memcached(kinds).Names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := memcached(kinds).OwnerLabel(); got != "cache.example.com/memcached" {
		t.Errorf("owner label is %s", got)
	}
	again, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	if memcached(kinds).Digest != memcached(again).Digest {
		t.Error("loading twice gives two digests")
	}
}

func TestWithChart(t *testing.T) {
	kinds, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	other := &chart.Chart{}
	k := memcached(kinds)
	before, after := reflect.ValueOf(k).Elem(), reflect.ValueOf(k.WithChart(other)).Elem()
	for i := range before.NumField() {
		f := before.Type().Field(i)
		if f.IsExported() && f.Name != "Chart" && !reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
			t.Errorf("%s is another", f.Name)
		}
	}
	if k.WithChart(other).Chart != other || k.Chart == other {
		t.Error("the chart is not the other one, or that of the original, too")
	}
}

// TestWholeNumbersStayWhole guards against Helm's reading of values.yaml, in which 1000000 becomes 1e+06.
func TestWholeNumbersStayWhole(t *testing.T) {
	got := wholeNumbers(map[string]any{"a": float64(1000000), "b": []any{float64(3), 2.5}, "c": map[string]any{"d": float64(1 << 60)}})
	want := map[string]any{"a": int64(1000000), "b": []any{int64(3), 2.5}, "c": map[string]any{"d": float64(1 << 60)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBrokenKindsSayWhatAndWhere(t *testing.T) {
	for name, c := range map[string]struct {
		file, from, to string
		want           string
	}{
		"schema does not compile":   {"schemas/memcached/memcached.cue", "size: int & >=0", "size: int & >=nowhere", "schemas/memcached/memcached.cue:"},
		"schema contradicts itself": {"schemas/memcached/memcached.cue", `apiVersion: "cache.example.com/v1alpha1"`, `apiVersion: "cache.example.com/v2"`, `object.apiVersion: conflicting values`},
		"no name":                   {"schemas/memcached/memcached.cue", `plural:  "memcacheds"`, ``, "names.plural"},
		"no contract":               {"schemas/memcached/memcached.cue", "report: #Report", "", "report"},
		"no such chart":             {"schemas/memcached/memcached.cue", `chart:  "memcached"`, `chart: "nowhere"`, "reading chart nowhere"},
		"no chart file":             {"charts/memcached/Chart.yaml", "name: memcached", "nome: memcached", "chart.metadata.name is required"},
		"subchart":                  {"charts/memcached/Chart.yaml", "type: application", "dependencies: [{name: x, version: 1.0.0, repository: 'file://x'}]", "must stand alone"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			copyTo(t, files, "schemas", schemas.FS)
			copyTo(t, files, "charts", charts.FS)
			before := string(files[c.file].Data)
			if !strings.Contains(before, c.from) {
				t.Fatalf("%s does not hold %q", c.file, c.from)
			}
			files[c.file].Data = []byte(strings.Replace(before, c.from, c.to, 1))
			_, err := LoadAll(sub(t, files, "schemas"), sub(t, files, "charts"))
			if err == nil || !strings.Contains(err.Error(), "kind memcached") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error about kind memcached with %q, got %v", c.want, err)
			}
		})
	}
}

func copyTo(t *testing.T, files fstest.MapFS, folder string, from fs.FS) {
	t.Helper()
	all, err := readFiles(from, ".", func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range all {
		files[folder+"/"+name] = file
	}
}

func sub(t *testing.T, fsys fs.FS, dir string) fs.FS {
	t.Helper()
	below, err := fs.Sub(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	return below
}
