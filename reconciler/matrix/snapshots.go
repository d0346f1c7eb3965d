package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
)

// header begins the first line of each snapshot. Files without it are nobody's business but the author's.
const header = "# Sample "

// Snapshots returns the snapshot of each sample of k, by its file's name: a line that names the sample, and what it renders to.
func Snapshots(k *kind.Kind) (map[string][]byte, error) {
	snapshots := map[string][]byte{}
	for name := range k.Samples {
		text, err := manifest(k, name)
		if err != nil {
			return nil, fmt.Errorf("schemas/%s: sample %s: %w", k.Folder, name, err)
		}
		line := fmt.Sprintf("%s%s of %s as \"opctl render\" prints it; \"opctl test --update\" refreshes it.\n", header, name, k.GroupKind())
		snapshots[name+".yaml"] = append([]byte(line), text...)
	}
	if _, found := snapshots[reportsFile]; found {
		return nil, fmt.Errorf("schemas/%s: sample %s: the file of that name holds the cases of the report: call it something else", k.Folder, strings.TrimSuffix(reportsFile, ".yaml"))
	}
	return snapshots, nil
}

// Refresh returns the snapshots of k, by their files' names, and which files in testdata are snapshots of samples that are gone.
func Refresh(k *kind.Kind, testdata fs.FS) (snapshots map[string][]byte, gone []string, err error) {
	if snapshots, err = Snapshots(k); err != nil {
		return nil, nil, err
	}
	present, err := read(testdata)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(present)) {
		if snapshots[file] == nil {
			gone = append(gone, file)
		}
	}
	return snapshots, gone, nil
}

// Update makes the folder testdata hold the snapshots of k, and no others.
func Update(k *kind.Kind, testdata string) error {
	snapshots, gone, err := Refresh(k, os.DirFS(testdata))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(testdata, 0o755); err != nil {
		return err
	}
	for _, file := range gone {
		if err := os.Remove(filepath.Join(testdata, file)); err != nil {
			return err
		}
	}
	for file, text := range snapshots {
		if err := os.WriteFile(filepath.Join(testdata, file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare returns how the snapshots in testdata differ from those of k.
func compare(k *kind.Kind, testdata fs.FS, snapshots map[string][]byte) (problems []string) {
	folder := path.Join("schemas", k.Folder, "testdata")
	present, err := read(testdata)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", folder, err)}
	}
	if len(present) == 0 {
		return []string{folder + ": there are no snapshots: --update writes them"}
	}
	for _, file := range slices.Sorted(maps.Keys(snapshots)) {
		switch {
		case present[file] == nil:
			problems = append(problems, fmt.Sprintf("%s: there is no snapshot of this sample: --update writes it", path.Join(folder, file)))
		case !bytes.Equal(present[file], snapshots[file]):
			problems = append(problems, fmt.Sprintf("%s: is not what the sample renders to: review the change, and let --update write it\n%s",
				path.Join(folder, file), difference("snapshot", present[file], snapshots[file])))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(present)) {
		if snapshots[file] == nil {
			problems = append(problems, fmt.Sprintf("%s: there is no such sample: --update deletes it", path.Join(folder, file)))
		}
	}
	return problems
}

// read returns the snapshots in testdata, by their files' names; none if there is no such folder.
func read(testdata fs.FS) (map[string][]byte, error) {
	entries, err := fs.ReadDir(testdata, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	present := map[string][]byte{}
	for _, e := range entries {
		if path.Ext(e.Name()) != ".yaml" || e.Name() == reportsFile {
			continue
		}
		text, err := fs.ReadFile(testdata, e.Name())
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(text, []byte(header)) {
			present[e.Name()] = text
		}
	}
	return present, nil
}

// manifest returns what the sample called name renders to.
func manifest(k *kind.Kind, name string) ([]byte, error) {
	m, _, err := plan.Make(k, plan.Sample(k, name, plan.SampleNamespace), plan.SampleKubeVersion)
	if err != nil {
		return nil, err
	}
	return m.YAML()
}

// difference returns a unified diff without the line that only repeats the names.
func difference(what string, want, got []byte) string {
	_, text, _ := strings.Cut(string(diff.Diff(what, want, "rendered", got)), "\n")
	return strings.TrimSuffix(text, "\n")
}
