// Package render turns a kind's values into a manifest with Helm's template engine. It is pure: no client, no lookup, no DNS,
// no clock. The same input gives the same bytes.
package render

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Target is the custom resource that a manifest is for.
type Target struct {
	// Name and Namespace are the custom resource's; a chart sees them as .Release.Name and .Release.Namespace. Namespace is
	// empty for a kind of scope Cluster.
	Name, Namespace string
	// KubeVersion is what a chart sees as .Capabilities.KubeVersion, such as v1.36.3.
	KubeVersion string
	// Strict makes it an error when a template asks for a value that is not there, which otherwise is empty.
	Strict bool
}

// Manifest is what a custom resource wants to exist.
type Manifest struct {
	// Objects are complete but for their owner, in the order in which to apply them. They are not to be changed.
	Objects []*unstructured.Unstructured
}

// Render renders the kind's chart for one custom resource. Every object gets the target's namespace, unless the kind may place
// it elsewhere, the managed-by label and the kind's owner label; so do the pods of its pod template. The objects and pods of a
// kind that may place them anywhere get kind.OwnerAnnotation, too. An error names the template, and the line where Helm knows it.
func Render(k *kind.Kind, values kind.Values, target Target) (*Manifest, error) {
	version, err := chartutil.ParseKubeVersion(target.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("parsing Kubernetes version %q: %w", target.KubeVersion, err)
	}
	// IsInstall and Revision would make the second rendering differ from the first: they are held constant.
	release := chartutil.ReleaseOptions{Name: target.Name, Namespace: target.Namespace, Revision: 1, IsInstall: true}
	capabilities := &chartutil.Capabilities{
		KubeVersion: *version,
		APIVersions: chartutil.DefaultVersionSet,
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
	// CUE has checked the values; Helm's schema validation would compile a JSON schema each time and follow its $refs.
	const skipSchemaValidation = true
	input, err := chartutil.ToRenderValuesWithSchemaValidation(k.Chart, values, release, capabilities, skipSchemaValidation)
	if err != nil {
		return nil, fmt.Errorf("merging the values of chart %s: %w", k.Chart.Name(), err)
	}
	files, err := engine.Engine{Strict: target.Strict}.Render(k.Chart, input)
	if err != nil {
		return nil, fmt.Errorf("rendering chart %s: %w", k.Chart.Name(), err)
	}
	manifest := &Manifest{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(file) == ".txt" { // NOTES.txt
			continue
		}
		objects, err := Decode(strings.NewReader(files[file]))
		if err != nil {
			return nil, fmt.Errorf("reading what %s rendered: %w", file, err)
		}
		for _, o := range objects {
			if err := adopt(k, o, target); err != nil {
				return nil, fmt.Errorf("checking what %s rendered: %w", file, err)
			}
		}
		manifest.Objects = append(manifest.Objects, objects...)
	}
	slices.SortStableFunc(manifest.Objects, byStage)
	if err := distinct(manifest.Objects); err != nil {
		return nil, fmt.Errorf("checking what chart %s rendered: %w", k.Chart.Name(), err)
	}
	return manifest, nil
}

// YAML returns the manifest as YAML documents in apply order, keys sorted.
func (m *Manifest) YAML() ([]byte, error) {
	var b bytes.Buffer
	for _, o := range m.Objects {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", kind.Describe(o), err)
		}
		fmt.Fprintf(&b, "---\n%s", data)
	}
	return b.Bytes(), nil
}

// adopt checks that o may stand for the target, and gives it its namespace and the marks by which it finds its owner.
func adopt(k *kind.Kind, o *unstructured.Unstructured, target Target) error {
	if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
		return fmt.Errorf("%s has no apiVersion, kind or metadata.name", kind.Describe(o))
	}
	if _, isHook := o.GetAnnotations()["helm.sh/hook"]; isHook {
		return fmt.Errorf("%s is a Helm hook: there are no releases, so that hooks would never run", kind.Describe(o))
	}
	if err := place(k, o, target); err != nil {
		return err
	}
	labels := map[string]string{kind.ManagedByLabel: kind.Manager, k.OwnerLabel(): target.Name}
	annotations := map[string]string{}
	if k.Policies.Placement == kind.PlacementAnywhere {
		annotations[kind.OwnerAnnotation] = target.Namespace + "/" + target.Name
	}
	for _, at := range [][]string{{}, {"spec", "template"}, {"spec", "jobTemplate"}, {"spec", "jobTemplate", "spec", "template"}} {
		if err := errors.Join(addTo(o, at, "labels", labels), addTo(o, at, "annotations", annotations)); err != nil {
			return fmt.Errorf("marking %s: %w", kind.Describe(o), err)
		}
	}
	return nil
}

// addTo adds entries to a field of the metadata of the struct at path, if there is such a struct.
func addTo(o *unstructured.Unstructured, at []string, field string, entries map[string]string) error {
	if _, found, err := unstructured.NestedFieldNoCopy(o.Object, at...); !found || err != nil {
		return err
	}
	for key, value := range entries {
		if err := unstructured.SetNestedField(o.Object, value, append(slices.Clone(at), "metadata", field, key)...); err != nil {
			return err
		}
	}
	return nil
}

// distinct returns an error if two objects are one and the same to the API server.
func distinct(objects []*unstructured.Unstructured) error {
	seen := map[string]bool{}
	for _, o := range objects {
		id := o.GroupVersionKind().GroupKind().String() + "/" + o.GetNamespace() + "/" + o.GetName()
		if seen[id] {
			return fmt.Errorf("%s is rendered twice", kind.Describe(o))
		}
		seen[id] = true
	}
	return nil
}
