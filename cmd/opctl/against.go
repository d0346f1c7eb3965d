package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
)

// readDefinitions returns the CustomResourceDefinitions in files and folders, - being stdin.
func readDefinitions(stdin io.Reader, names []string) (definitions []*apiextensionsv1.CustomResourceDefinition, err error) {
	for _, name := range names {
		files := []string{name}
		if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(name, "*.yaml")); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			objects, err := readFile(stdin, file)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
			for _, o := range objects {
				if o.GetKind() != "CustomResourceDefinition" {
					return nil, fmt.Errorf("reading %s: %s is no CustomResourceDefinition", file, kind.Describe(o))
				}
				d := &apiextensionsv1.CustomResourceDefinition{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
					return nil, fmt.Errorf("reading %s: %s: %w", file, kind.Describe(o), err)
				}
				definitions = append(definitions, d)
			}
		}
	}
	return definitions, nil
}

// breaks returns what custom resources of k that are stored under one of the definitions would not survive.
func breaks(k *kind.Kind, definitions []*apiextensionsv1.CustomResourceDefinition) (problems []string) {
	at := slices.IndexFunc(definitions, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == k.Names.Group && d.Spec.Names.Kind == k.Names.Kind
	})
	if at < 0 {
		return nil // a new kind
	}
	d := definitions[at]
	if string(d.Spec.Scope) != k.Scope {
		problems = append(problems, fmt.Sprintf("%s: the scope was %s: it cannot be changed", d.Name, d.Spec.Scope))
	}
	now, err := schema.Of(k)
	if err != nil {
		return append(problems, err.Error())
	}
	for _, v := range d.Spec.Versions {
		switch {
		case v.Name != k.Names.Version && (v.Served || v.Storage):
			problems = append(problems, fmt.Sprintf("%s: version %s is served, and would be gone", d.Name, v.Name))
		case v.Name == k.Names.Version && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil:
			for _, part := range []string{"spec", "metadata"} {
				before, after := v.Schema.OpenAPIV3Schema.Properties[part], now.Properties[part]
				for _, b := range schema.Breaks(part, &before, &after) {
					problems = append(problems, fmt.Sprintf("%s %s: %s", d.Name, v.Name, b))
				}
			}
		}
	}
	return problems
}
