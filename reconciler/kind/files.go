package kind

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing/fstest" // a file system in memory: nothing smaller is as well kept
)

// Bounds on the files of one kind. The largest public charts have some hundred files and less than 1 MiB.
const (
	maxFiles = 500
	maxBytes = 4 << 20
)

// maxDepth bounds how deep folders are nested. Links that lead in a circle end there.
const maxDepth = 8

// errNoFolder says that there is a file where a folder is looked for.
var errNoFolder = errors.New("not a folder")

// readFiles returns the files of fsys below root that keep allows, by their path below root.
func readFiles(fsys fs.FS, root string, keep func(name string) bool) (fstest.MapFS, error) {
	files, size := fstest.MapFS{}, int64(0)
	err := walk(fsys, root, func(name string, info fs.FileInfo) error {
		if !keep(name) {
			return nil
		}
		if size += info.Size(); size > maxBytes || len(files) == maxFiles {
			return fmt.Errorf("%s holds more than %d files or %d KiB", root, maxFiles, maxBytes>>10)
		}
		data, err := fs.ReadFile(fsys, path.Join(root, name))
		files[name] = &fstest.MapFile{Data: data}
		return err
	})
	return files, err
}

// walk calls visit with the path below root of every regular file, in the order of their paths. Symbolic links are followed,
// since each file of a mounted ConfigMap is one. Scratch is left out.
func walk(fsys fs.FS, root string, visit func(name string, info fs.FileInfo) error) error {
	if info, err := fs.Stat(fsys, root); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s: %w", root, errNoFolder)
	}
	return walkFolder(fsys, root, ".", visit)
}

func walkFolder(fsys fs.FS, root, folder string, visit func(name string, info fs.FileInfo) error) error {
	if strings.Count(folder, "/") >= maxDepth {
		return fmt.Errorf("%s: folders are nested deeper than %d", path.Join(root, folder), maxDepth)
	}
	entries, err := fs.ReadDir(fsys, path.Join(root, folder))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if isScratch(entry.Name()) {
			continue
		}
		name := path.Join(folder, entry.Name())
		info, err := fs.Stat(fsys, path.Join(root, name)) // of what a link leads to, unlike the entry's
		switch {
		case err != nil:
		case info.IsDir():
			err = walkFolder(fsys, root, name, visit)
		case info.Mode().IsRegular():
			err = visit(name, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isScratch tells whether a file or folder is hidden, as the versions of a mounted ConfigMap are and most editors' scratch
// files, or is another editor's.
func isScratch(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".orig")
}

// isDefinition tells whether a file of a kind's schema folder says what the kind is. Folders in it, such as testdata, and CUE's
// tests and commands do not, and what starts with an underscore is nothing to CUE.
func isDefinition(name string) bool {
	return path.Ext(name) == ".cue" && !strings.Contains(name, "/") && !strings.HasPrefix(name, "_") &&
		!strings.HasSuffix(name, "_test.cue") && !strings.HasSuffix(name, "_tool.cue")
}

// isChartFile tells whether a file makes a difference to what the chart renders. Its schema does not: CUE checks the values.
func isChartFile(name string) bool {
	return name != "values.schema.json"
}
