package main

import (
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
)

// resource is a custom resource.
type resource struct {
	*unstructured.Unstructured
	kind *kind.Kind
	file string // "" if it is not from a file
}

// readResources returns the custom resources in files. What is wrong with them is found before the cluster is asked.
func readResources(kinds []*kind.Kind, stdin io.Reader, files []string, namespace string) ([]resource, error) {
	var all []resource
	for _, file := range files {
		objects, err := readFile(stdin, file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		for _, cr := range objects {
			k, err := kindFor(kinds, cr, place{namespace: namespace})
			if err == nil && cr.GetName() == "" {
				err = errors.New("has no metadata.name")
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, kind.Describe(cr), err)
			}
			all = append(all, resource{cr, k, file})
		}
	}
	return all, nil
}

// status is the operator's part of a custom resource's status.
type status struct {
	Conditions []metav1.Condition  `json:"conditions"`
	Inventory  ownership.Inventory `json:"inventory"`
	Observed   int64               `json:"observedGeneration"`
}

// statusOf returns the operator's part of cr's status, nothing if cr is nil or nobody has reported yet.
func statusOf(cr *unstructured.Unstructured) status {
	var typed struct {
		Status status `json:"status"`
	}
	if cr == nil || cr.Object["status"] == nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": cr.Object["status"]}, &typed) != nil {
		return status{}
	}
	return typed.Status
}
