package kind

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	thing  = schema.GroupKind{Group: "test.example.com", Kind: "Thing"}
	gadget = schema.GroupKind{Group: "test.example.com", Kind: "Gadget"}
)

// put writes files below dir.
func put(t testing.TB, dir string, files fstest.MapFS) {
	t.Helper()
	for name, file := range files {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, file.Data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t testing.TB, o LibraryOptions) *Library {
	t.Helper()
	l, err := OpenLibrary(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// describeAll writes changes as "folder: old → new broken".
func describeAll(changes []Change) (list []string) {
	name := func(k *Kind) string {
		if k == nil {
			return "none"
		}
		return k.Names.Kind + " " + k.Names.Version
	}
	for _, c := range changes {
		line := c.Folder + ": " + name(c.Old) + " → " + name(c.New)
		if c.Err != nil {
			line += " broken"
		}
		list = append(list, line)
	}
	return list
}

func embedded(t *testing.T) []*Kind {
	t.Helper()
	kinds, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// TestAFolderOfKindsThroughItsLife adds, changes, breaks, mends and removes kinds in a folder.
func TestAFolderOfKindsThroughItsLife(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, kindFiles("thing", `{n: int | *1}`, `n: #object.spec.n`))
	l := open(t, LibraryOptions{Dir: dir})
	first := l.Get(thing)
	if first == nil || len(l.Kinds()) != 1+len(embedded(t)) || len(l.Broken()) != 0 {
		t.Fatalf("want Thing beside the embedded kinds, got %s, broken %v", List(l.Kinds()), l.Broken())
	}
	edit := func(name, from, to string) {
		t.Helper()
		file := filepath.Join(dir, name)
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), from) {
			t.Fatalf("%s does not hold %q: %v", name, from, err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(data), from, to)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		reason string
		do     func()
		want   []string
	}{
		{"nothing happened", func() {}, nil},
		{"a second kind", func() { put(t, dir, kindFiles("gadget", `{n: int | *1}`, `n: #object.spec.n`)) }, []string{"gadget: none → Gadget v1"}},
		{"the last good one stays", func() { edit("schemas/thing/kind.cue", "int | *1", "int | *nowhere") }, []string{"thing: Thing v1 → Thing v1 broken"}},
		{"told once", func() {}, nil},
		{"mended without a change", func() { edit("schemas/thing/kind.cue", "int | *nowhere", "int | *1") }, []string{"thing: Thing v1 → Thing v1"}},
		{"scratch is nothing", func() {
			put(t, dir, fstest.MapFS{"schemas/thing/.kind.cue.swp": {}, "schemas/thing/kind.cue~": {}, "charts/thing/templates/#x.yaml#": {}, "schemas/README.md": {}})
		}, nil},
		{"a new version", func() { edit("schemas/thing/kind.cue", `"v1"`, `"v2"`); edit("schemas/thing/kind.cue", `/v1"`, `/v2"`) }, []string{"thing: Thing v1 → Thing v2"}},
		{"a name belongs to who has it", func() {
			edit("schemas/gadget/kind.cue", `plural: "gadgets"`, `plural: "things"`)
		}, []string{"gadget: Gadget v1 → Gadget v1 broken"}},
		{"and back", func() {
			edit("schemas/gadget/kind.cue", `plural: "things"`, `plural: "gadgets"`)
		}, []string{"gadget: Gadget v1 → Gadget v1"}},
		{"over an embedded one", func() {
			put(t, dir, kindFiles("mine", `{n: int | *1}`, `n: #object.spec.n`))
			edit("schemas/mine/kind.cue", "test.example.com", "cache.example.com")
			edit("schemas/mine/kind.cue", `kind: "Mine", plural: "mines"`, `kind: "Memcached", plural: "memcacheds"`)
			edit("schemas/mine/kind.cue", `#Mine: kind.#Object & {`, "#Mine: kind.#Object & {\n\tkind: \"Memcached\"")
			edit("schemas/mine/kind.cue", `kind:       "Mine"`, ``)
			edit("schemas/mine/kind.cue", `"v1"`, `"v9"`)
			edit("schemas/mine/kind.cue", `/v1"`, `/v9"`)
		}, []string{"mine: Memcached v1alpha1 → Memcached v9"}},
		{"falls back to the embedded one", func() { _ = os.RemoveAll(dir + "/schemas/mine") }, []string{"memcached: Memcached v9 → Memcached v1alpha1"}},
		{"retired", func() { _ = os.RemoveAll(dir + "/schemas/gadget") }, []string{"gadget: Gadget v1 → none"}},
		{"a folder that is gone retires nothing", func() { _ = os.Rename(dir+"/schemas", dir+"/moved") }, []string{": none → none broken"}},
		{"and comes back", func() { _ = os.Rename(dir+"/moved", dir+"/schemas") }, []string{": none → none"}},
	} {
		step.do()
		got := describeAll(l.load())
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\nbroken: %v", step.reason, diff, l.Broken())
		}
	}
	if l.Get(gadget) != nil || l.Get(thing) == nil {
		t.Errorf("in the end there are %s", List(l.Kinds()))
	}
}

func TestKindsOfOneNameAreRefused(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, kindFiles("thing", `{n: int | *1}`, `n: #object.spec.n`))
	other := kindFiles("thing", `{n: int | *2}`, `n: #object.spec.n`)
	put(t, dir, fstest.MapFS{"schemas/zone/kind.cue": other["schemas/thing/kind.cue"]})
	l := open(t, LibraryOptions{Dir: dir})
	want := "kind Thing.test.example.com in schemas/zone has the kind, the plural or the singular of the one in schemas/thing"
	if got := l.Broken()["zone"]; got == nil || got.Error() != want {
		t.Errorf("want %q, got %v", want, got)
	}
	if l.Get(thing).Folder != "thing" {
		t.Error("the first folder must stay")
	}
}

func TestOpeningALibrary(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, kindFiles("thing", `{n: int | *1}`, `n: #object.spec.n`))
	refuse := func(k *Kind) error {
		if k.Folder == "thing" {
			return errors.New("no")
		}
		return nil
	}
	if l := open(t, LibraryOptions{Dir: dir, Check: refuse}); l.Get(thing) != nil || l.Broken()["thing"] == nil {
		t.Errorf("a refused kind must not be served, got %s, broken %v", List(l.Kinds()), l.Broken())
	}
	if l := open(t, LibraryOptions{Dir: dir, Names: []string{"things.test.example.com"}}); len(l.Kinds()) != 1 || l.Get(thing) == nil {
		t.Errorf("want the selected kind alone, got %s", List(l.Kinds()))
	}
	if l := open(t, LibraryOptions{Names: []string{"memcached"}}); len(l.Kinds()) != 1 {
		t.Errorf("want the selected kind, got %s", List(l.Kinds()))
	}
	for want, o := range map[string]LibraryOptions{
		`there is no kind "Thing": known are `: {Names: []string{"Thing"}},
		"nowhere: stat schemas: ":              {Dir: dir + "/nowhere"},
		"checking kind backup: refused":        {Check: func(*Kind) error { return errors.New("refused") }},
	} {
		if _, err := OpenLibrary(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// TestMountedConfigMaps loads and follows files that the kubelet mounts: links into a folder that is replaced. One ConfigMap
// holds the charts, whose folder is a link; the other is mounted as the schema's folder, in which the files are.
func TestMountedConfigMaps(t *testing.T) {
	dir := t.TempDir()
	files := kindFiles("thing", `{n: int | *1}`, `n: #object.spec.n`)
	before := files["schemas/thing/kind.cue"]
	after := &fstest.MapFile{Data: []byte(strings.Replace(string(before.Data), "int | *1", "int | *2", 1))}
	delete(files, "schemas/thing/kind.cue")
	put(t, dir+"/..one", files)
	put(t, dir+"/schemas/thing", fstest.MapFS{"..one/kind.cue": before, "..two/kind.cue": after})
	link := func(to, name string) {
		t.Helper()
		temporary := filepath.Join(dir, "..tmp")
		if err := errors.Join(os.Symlink(to, temporary), os.Rename(temporary, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	link("..one", "..data")
	link("..data/charts", "charts")
	link("..one", "schemas/thing/..data")
	link("..data/kind.cue", "schemas/thing/kind.cue")
	l := open(t, LibraryOptions{Dir: dir})
	l.interval = 10 * time.Millisecond
	first := l.Get(thing)
	if first == nil {
		t.Fatalf("broken: %v", l.Broken())
	}

	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan Change, 10)
	var group sync.WaitGroup
	group.Go(func() { _ = l.Watch(ctx, func(c Change) { changes <- c }) })
	for range 4 { // readers and evaluations go on under changes
		group.Go(func() {
			for ctx.Err() == nil {
				if _, err := compute(l.Get(thing), map[string]any{"n": 3}); err != nil {
					t.Error(err)
				}
				_ = l.Kinds()
			}
		})
	}
	link("..two", "schemas/thing/..data")
	select {
	case c := <-changes:
		if c.Old != first || c.New == first || c.New != l.Get(thing) || c.Err != nil {
			t.Errorf("got %+v", c)
		}
	case <-time.After(time.Minute):
		t.Error("the change was not noticed")
	}
	cancel()
	group.Wait()
}

func TestTheDigestIsOfOneKindAlone(t *testing.T) {
	files := kindFiles("thing", `{n: int | *1}`, `n: #object.spec.n`)
	before := loadOne(t, files).Digest
	for name, file := range kindFiles("gadget", `{n: int | *1}`, `n: #object.spec.n`) {
		files[name] = file
	}
	loaded, err := LoadFolder(files)
	if err != nil || loaded[1].Kind == nil {
		t.Fatal(err, loaded)
	}
	if loaded[1].Kind.Digest != before {
		t.Error("another kind changes the digest")
	}
	files["schemas/thing/testdata/a.yaml"] = &fstest.MapFile{Data: []byte("# a snapshot")}
	files["schemas/thing/testdata/b.cue"] = &fstest.MapFile{Data: []byte("no CUE")}
	if again, _ := LoadFolder(files); again[1].Kind == nil || again[1].Kind.Digest != before {
		t.Error("testdata change the digest")
	}
	files["charts/thing/templates/x.yaml"] = &fstest.MapFile{Data: []byte("# changed")}
	if again, _ := LoadFolder(files); again[1].Kind.Digest == before {
		t.Error("a template does not change the digest")
	}
}

func TestBoundsOfAKindsFiles(t *testing.T) {
	large := kindFiles("thing", `{n: int | *1}`, `n: #object.spec.n`)
	large["charts/thing/large"] = &fstest.MapFile{Data: make([]byte, maxBytes+1)}
	deep := kindFiles("thing", `{n: int | *1}`, `n: #object.spec.n`)
	deep["charts/thing/"+strings.Repeat("a/", maxDepth+1)+"x"] = &fstest.MapFile{}
	for want, files := range map[string]fs.FS{
		"thing holds more than 500 files or 4096 KiB": large,
		"folders are nested deeper than 8":            deep,
	} {
		loaded, err := LoadFolder(files)
		if err != nil || loaded[0].Err == nil || !strings.Contains(loaded[0].Err.Error(), want) {
			t.Errorf("want an error with %q, got %v, %+v", want, err, loaded)
		}
	}
}

func BenchmarkSignature(b *testing.B) {
	dir := os.DirFS("../..")
	for b.Loop() {
		signature(dir)
	}
}
