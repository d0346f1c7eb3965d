package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing/fstest" // a file system in memory: nothing smaller is as well kept
	"text/template"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/matrix"
	"github.com/example/memcached-operator/reconciler/validate"
)

// scaffolds are the templates of a kind's files, by their paths, in which NAME stands for the kind's name. Their actions are in
// square brackets, since curly ones are the chart's.
//
//go:embed all:scaffold
var scaffolds embed.FS

// scaffoldValues are what the templates ask for.
type scaffoldValues struct {
	Kind, Name, Group, Version, Plural string // Name is Kind in lower case
	Repository, Tag                    string // of the image
	Port                               int
}

// scaffold returns the files of a kind, as they are in a folder that is laid out as the repository.
func scaffold(v scaffoldValues) (fstest.MapFS, error) {
	files := fstest.MapFS{}
	err := fs.WalkDir(scaffolds, "scaffold", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		t, err := template.New(path.Base(file)).Delims("[[", "]]").ParseFS(scaffolds, file)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, v); err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, "scaffold/"), ".tmpl")
		files[strings.ReplaceAll(name, "NAME", v.Name)] = &fstest.MapFile{Data: text.Bytes()}
		return nil
	})
	return files, err
}

// tried returns the kind that files hold, which the operator would serve and which passes its test.
func tried(files fstest.MapFS) (*kind.Kind, error) {
	loaded, err := kind.LoadFolder(files)
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 {
		return nil, fmt.Errorf("want one kind, got %d", len(loaded))
	}
	k := loaded[0].Kind
	if err := loaded[0].Err; err != nil {
		return nil, err
	}
	// The operator's own check is part of this. Snapshots are yet to be written.
	var problems []error
	for _, problem := range matrix.Test(k, matrix.Options{Runs: 2}).Problems {
		problems = append(problems, errors.New(problem))
	}
	return k, errors.Join(problems...)
}

// unusual returns what the schema says of an image and a port that are not the usual ones. CUE does not hold a default against
// what else a field may be, so that the kind with the usual ones is asked.
func unusual(v scaffoldValues) error {
	spec := map[string]any{"image": map[string]any{"repository": v.Repository, "tag": v.Tag}, "port": v.Port}
	var err error
	if v.Repository, v.Tag, err = splitImage(usualImage); err != nil {
		return err
	}
	v.Port = usualPort
	files, err := scaffold(v)
	if err != nil {
		return err
	}
	loaded, err := kind.LoadFolder(files)
	if err != nil {
		return err
	}
	for _, l := range loaded {
		if l.Err != nil {
			return l.Err
		}
		if _, err := validate.Spec(l.Kind, "any", spec); err != nil {
			return err
		}
	}
	return nil
}
