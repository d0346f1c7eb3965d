package kind

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxSigned is how many files of a folder are watched: a tenth of a second's work, should they be so many.
const maxSigned = 10000

// LibraryOptions say which kinds a Library holds.
type LibraryOptions struct {
	// Dir is a folder with more kinds, laid out as the repository, which stand beside the embedded ones and in place of those
	// with the same group and kind; "" means none.
	Dir string
	// Names select kinds, written as for Select; all if there are none.
	Names []string
	// Check is asked before a kind is served, and refuses it by an error; nil allows all.
	Check func(*Kind) error
}

// Library holds the kinds that are served: the embedded ones and those of a folder, whose changes it follows. A folder that
// breaks does not end its kind: the last good one stays. A Library is safe for concurrent use.
type Library struct {
	options  LibraryOptions
	interval time.Duration
	embedded []*Kind
	folders  map[string]*Kind // the last good kind of each folder; of load alone
	shelf    atomic.Pointer[shelf]
}

// shelf is what a Library holds at one time. It never changes.
type shelf struct {
	kinds  map[schema.GroupKind]*Kind
	broken map[string]error
}

// Change is what became of one kind, or of a folder that holds none yet.
type Change struct {
	// Old was served before, New is from now on; nil is none. Both are the same if the folder broke, with Err, or was mended
	// without a change, without Err. A kind without New is retired.
	Old, New *Kind
	// Folder is where New or else Old was read from, below schemas/; "" if the whole Dir cannot be read.
	Folder string
	// Err says why the folder's present files are not served.
	Err error
}

// OpenLibrary loads and checks all kinds. It fails if an embedded one is refused, if Dir cannot be read, or if Names ask for
// a kind that does not exist and cannot appear later. A broken folder of Dir is no failure: see Broken.
func OpenLibrary(o LibraryOptions) (*Library, error) {
	if o.Check == nil {
		o.Check = func(*Kind) error { return nil }
	}
	embedded, err := Embedded()
	if err != nil {
		return nil, err
	}
	for _, k := range embedded {
		if err := o.Check(k); err != nil {
			return nil, fmt.Errorf("checking kind %s: %w", k.Folder, err)
		}
	}
	l := &Library{options: o, interval: time.Second, embedded: embedded}
	l.shelf.Store(&shelf{})
	if o.Dir == "" {
		if _, err := Select(embedded, o.Names); err != nil {
			return nil, err
		}
	}
	l.load()
	return l, l.Broken()[""]
}

// Get returns the kind that is served for gk now, or nil.
func (l *Library) Get(gk schema.GroupKind) *Kind {
	return l.shelf.Load().kinds[gk]
}

// Kinds returns the kinds that are served now, sorted by group and kind.
func (l *Library) Kinds() []*Kind {
	kinds := slices.Collect(maps.Values(l.shelf.Load().kinds))
	slices.SortFunc(kinds, func(a, b *Kind) int {
		return cmp.Or(cmp.Compare(a.Names.Group, b.Names.Group), cmp.Compare(a.Names.Kind, b.Names.Kind))
	})
	return kinds
}

// IsEmbedded tells whether k, which the Library holds, is built into the binary.
func (l *Library) IsEmbedded(k *Kind) bool {
	return slices.Contains(l.embedded, k)
}

// Broken returns why the present files of a folder are not served, by folder. It is not to be changed.
func (l *Library) Broken() map[string]error {
	return l.shelf.Load().broken
}

// Watch follows the folder until ctx ends, and calls changed with one change after the other; Get and Kinds have changed by
// then. Files are loaded once they have been still for a second.
//
// It compares names, sizes and times once a second rather than ask the kernel to tell (fsnotify): a mounted ConfigMap changes
// by a link that is renamed two folders above the files, and network file systems tell nothing.
func (l *Library) Watch(ctx context.Context, changed func(Change)) error {
	if l.options.Dir == "" {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(l.interval)
	defer ticker.Stop()
	var loaded, before uint64 // nothing is loaded by this loop yet: files may have changed since OpenLibrary
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := signature(os.DirFS(l.options.Dir))
		if now != loaded && now == before {
			loaded = now
			for _, c := range l.load() {
				changed(c)
			}
		}
		before = now
	}
}

// load reads the folder and returns what changed.
func (l *Library) load() []Change {
	next := &shelf{kinds: map[schema.GroupKind]*Kind{}, broken: map[string]error{}}
	for _, k := range l.embedded {
		if err := l.put(next, k); err != nil {
			next.broken[k.Folder] = err
		}
	}
	good, folders := l.folders, l.readFolders(next.broken)
	changed := func(folder string) int { return len(slices.Compact([]*Kind{folders[folder], good[folder]})) }
	l.folders = map[string]*Kind{}
	// Those that did not change come first: a name belongs to who has it.
	for _, folder := range slices.SortedFunc(maps.Keys(folders), func(a, b string) int {
		return cmp.Or(cmp.Compare(changed(a), changed(b)), cmp.Compare(a, b))
	}) {
		k := folders[folder]
		if err := l.put(next, k); err != nil {
			next.broken[folder] = err
			if k = good[folder]; k == nil || l.put(next, k) != nil {
				continue
			}
		}
		l.folders[folder] = k
	}
	return changes(l.shelf.Swap(next), next)
}

// readFolders returns the good kind of each folder of Dir: the present one, or the last one if that is broken.
func (l *Library) readFolders(broken map[string]error) map[string]*Kind {
	if l.options.Dir == "" {
		return nil
	}
	loaded, err := LoadFolder(os.DirFS(l.options.Dir))
	if err != nil {
		broken[""] = fmt.Errorf("loading kinds from %s: %w", l.options.Dir, err)
		return l.folders
	}
	folders := map[string]*Kind{}
	for _, now := range loaded {
		good := l.folders[now.Folder]
		if now.Err == nil && (good == nil || good.Digest != now.Kind.Digest) {
			if now.Err = l.options.Check(now.Kind); now.Err == nil {
				good = now.Kind
			}
		}
		if now.Err != nil {
			broken[now.Folder] = now.Err
		}
		if good != nil {
			folders[now.Folder] = good
		}
	}
	return folders
}

// put places k on the shelf if it is selected. A name that another folder's kind has already is an error.
func (l *Library) put(s *shelf, k *Kind) error {
	if len(l.options.Names) > 0 && !k.IsOneOf(l.options.Names) {
		return nil
	}
	for gk, other := range s.kinds {
		if k.Names.Group != gk.Group || gk == k.GroupKind() && slices.Contains(l.embedded, other) {
			continue
		}
		if k.Names.Kind == gk.Kind || k.Names.Plural == other.Names.Plural || k.Names.Singular == other.Names.Singular {
			return fmt.Errorf("kind %s in schemas/%s has the kind, the plural or the singular of the one in schemas/%s", k.GroupKind(), k.Folder, other.Folder)
		}
	}
	s.kinds[k.GroupKind()] = k
	return nil
}

// changes compares two shelves: the kinds first, then the folders whose error came, changed or went.
func changes(last, next *shelf) []Change {
	var list []Change
	told := map[string]bool{}
	for gk := range either(last.kinds, next.kinds) {
		c := Change{Old: last.kinds[gk], New: next.kinds[gk]}
		if c.Old == c.New {
			continue
		}
		c.Folder = cmp.Or(c.New, c.Old).Folder
		c.Err = next.broken[c.Folder]
		told[c.Folder] = true
		list = append(list, c)
	}
	for folder := range either(last.broken, next.broken) {
		err := next.broken[folder]
		if told[folder] || fmt.Sprint(err) == fmt.Sprint(last.broken[folder]) {
			continue
		}
		served := next.from(folder)
		list = append(list, Change{Old: served, New: served, Folder: folder, Err: err})
	}
	slices.SortStableFunc(list, func(a, b Change) int { return cmp.Compare(a.Folder, b.Folder) })
	return list
}

// from returns the kind that was read from folder, or nil.
func (s *shelf) from(folder string) *Kind {
	for _, k := range s.kinds {
		if k.Folder == folder {
			return k
		}
	}
	return nil
}

// either returns the keys that are in a or in b.
func either[K comparable, V any](a, b map[K]V) map[K]bool {
	keys := map[K]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}

// signature is the same as long as no file of the kinds in dir has changed its name, size or time.
func signature(dir fs.FS) uint64 {
	h := fnv.New64a()
	for _, root := range []string{"schemas", "charts"} {
		n := 0
		err := walk(dir, root, func(name string, info fs.FileInfo) error {
			if n++; n > maxSigned {
				return fmt.Errorf("%s holds more than %d files", root, maxSigned)
			}
			_, err := fmt.Fprintln(h, root, name, info.Size(), info.ModTime().UnixNano())
			return err
		})
		_, _ = fmt.Fprintln(h, err) // a hash takes everything
	}
	return h.Sum64()
}
