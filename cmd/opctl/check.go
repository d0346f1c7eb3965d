package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
	"github.com/example/memcached-operator/reconciler/validate"
)

// fault is what is wrong with a custom resource, or with a field of it.
type fault struct {
	validate.FieldError
	atKey bool // the field's name is wrong rather than its value
}

// faults are those of one object, at most one for each path: the first that is found is the most telling.
type faults []fault

func (f *faults) add(path, format string, args ...any) {
	f.put(fault{FieldError: validate.FieldError{Path: path, Message: fmt.Sprintf(format, args...)}})
}

func (f *faults) addKey(path, format string, args ...any) {
	f.put(fault{FieldError: validate.FieldError{Path: path, Message: fmt.Sprintf(format, args...)}, atKey: true})
}

func (f *faults) put(one fault) {
	if !slices.ContainsFunc(*f, func(known fault) bool { return known.Path == one.Path }) {
		*f = append(*f, one)
	}
}

const (
	isMissing = "field is required but not present" // CUE's words
	isUnknown = "field not allowed"
)

// fieldsOfObjects are all that a custom resource has.
var fieldsOfObjects = []string{"apiVersion", "kind", "metadata", "spec", "status"}

// check tells what the API server would say of object's envelope, and the operator of its name and spec.
func check(kinds []*kind.Kind, object map[string]any, where place) faults {
	var found faults
	k := kindOf(kinds, object, &found)
	if k == nil {
		return found
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(fieldsOfObjects, key) {
			found.addKey(validate.FieldPath("", key), "%s: known are %s", isUnknown, strings.Join(fieldsOfObjects, ", "))
		}
	}
	meta := checkMetadata(k, object, where, &found)
	cr := &unstructured.Unstructured{Object: map[string]any{"spec": object["spec"]}}
	cr.SetGroupVersionKind(k.GVK())
	cr.SetName(meta.Name)
	cr.SetNamespace(meta.Namespace)
	checkSpec(k, cr, where, &found)
	return found
}

// checkSpec tells what the operator would say of cr. CUE speaks of unknown fields only once all values are right, and of missing
// ones last; so the fields that are wrong are left out, and the rest is looked at again.
func checkSpec(k *kind.Kind, cr *unstructured.Unstructured, where place, found *faults) {
	_, _, err := plan.Make(k, cr, where.kubeVersion)
	invalid, isInvalid := errors.AsType[*validate.InvalidError](err)
	if !isInvalid {
		if err != nil {
			found.add("", "%v", err)
		}
		return
	}
	for _, f := range invalid.Fields {
		found.put(fault{FieldError: f, atKey: isAbout(f, isUnknown)})
	}
	rest := cr.DeepCopy()
	for isInvalid && remove(rest, invalid.Fields) {
		_, err = validate.Spec(k, rest.GetName(), rest.Object["spec"])
		if invalid, isInvalid = errors.AsType[*validate.InvalidError](err); !isInvalid {
			return
		}
		for _, f := range invalid.Fields {
			// Other messages may come from what was left out.
			if isAbout(f, isUnknown) || isAbout(f, isMissing) {
				found.put(fault{FieldError: f, atKey: isAbout(f, isUnknown)})
			}
		}
	}
}

func isAbout(f validate.FieldError, what string) bool { return strings.HasPrefix(f.Message, what) }

// remove removes fields of the spec, and tells whether there were any. Entries of lists stay, lest others get their paths.
func remove(cr *unstructured.Unstructured, fields []validate.FieldError) (removed bool) {
	for _, f := range fields {
		path := steps(f.Path)
		var parent any = cr.Object
		for _, step := range path[:len(path)-1] {
			switch p := parent.(type) {
			case map[string]any:
				parent = p[step]
			case []any:
				if i, err := strconv.Atoi(step); err == nil && i < len(p) {
					parent = p[i]
				}
			}
		}
		last := path[len(path)-1]
		if m, isStruct := parent.(map[string]any); isStruct && path[0] == "spec" {
			if _, isSet := m[last]; isSet {
				delete(m, last)
				removed = true
			}
		}
	}
	return removed
}

// kindOf returns the kind that serves object, or nil and says why there is none.
func kindOf(kinds []*kind.Kind, object map[string]any, found *faults) *kind.Kind {
	for _, path := range []string{"apiVersion", "kind"} {
		switch value := object[path].(type) {
		case nil:
			found.add(path, isMissing)
		case string:
			if value == "" {
				found.add(path, `invalid value "": must be that of a kind`)
			}
		default:
			found.add(path, "invalid value %s: must be of type string", quote(value))
		}
	}
	if len(*found) > 0 {
		return nil
	}
	u := unstructured.Unstructured{Object: object}
	if k := kind.Find(kinds, u.GroupVersionKind()); k != nil {
		return k
	}
	path := "apiVersion"
	if slices.ContainsFunc(kinds, func(k *kind.Kind) bool { return k.GVK().GroupVersion() == u.GroupVersionKind().GroupVersion() }) {
		path = "kind"
	}
	found.add(path, "no such kind in %q: known are %s", u.GetAPIVersion(), kind.List(kinds))
	return nil
}

// checkMetadata checks all of object's metadata but the rules for names, and returns it as the operator would see it.
func checkMetadata(k *kind.Kind, object map[string]any, where place, found *faults) *metav1.ObjectMeta {
	meta := &metav1.ObjectMeta{}
	metadata, isStruct := object["metadata"].(map[string]any)
	if object["metadata"] != nil && !isStruct {
		found.add("metadata", "invalid value %s: must be of type struct", quote(object["metadata"]))
		meta.Name = "unknown" // so that nobody asks for it, too
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		readMetadata(meta, key, metadata[key], found)
	}
	checkLabels(meta, found)
	if meta.Name == "" && meta.GenerateName != "" {
		meta.Name = meta.GenerateName + "xxxxx" // so many characters the API server adds
	}
	switch {
	case k.Scope == kind.ScopeCluster && meta.Namespace != "":
		found.add("metadata.namespace", "invalid value %q: the kind has the scope Cluster", meta.Namespace)
		meta.Namespace = ""
	case k.Scope == kind.ScopeNamespaced && meta.Namespace == "":
		meta.Namespace = where.namespace
	}
	anyName := func(string, bool) []string { return nil } // the kind's schema has stricter rules
	for _, err := range apivalidation.ValidateObjectMeta(meta, k.Scope == kind.ScopeNamespaced, anyName, field.NewPath("metadata")) {
		if err.Type == field.ErrorTypeRequired {
			found.add(err.Field, isMissing)
			continue
		}
		found.add(err.Field, "invalid value %s: %s", quote(err.BadValue), err.Detail)
	}
	return meta
}

// readMetadata reads one field of the metadata into meta. What cannot be read is left out.
func readMetadata(meta *metav1.ObjectMeta, key string, value any, found *faults) {
	path := validate.FieldPath("metadata", key)
	if entries, isStruct := value.(map[string]any); isStruct && (key == "labels" || key == "annotations") {
		// They are strings all, which true and 1 are not: the most common mistake is told at its place.
		texts := map[string]any{}
		for name, entry := range entries {
			if _, isString := entry.(string); isString || entry == nil { // null is "" to the API server
				texts[name] = entry
			} else {
				found.add(validate.FieldPath(path, name), "invalid value %s: must be of type string, in quotes", quote(entry))
			}
		}
		value = texts
	}
	data, err := json.Marshal(map[string]any{key: value})
	if err != nil {
		found.add(path, "%v", err)
		return
	}
	unknown, err := kjson.UnmarshalStrict(data, meta, kjson.DisallowUnknownFields)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		found.add(path, "invalid value %s: must be of type %s", quote(value), typeName(wrong.Type))
	} else if err != nil {
		found.add(path, "invalid value %s: %v", quote(value), err)
	}
	for _, err := range unknown {
		at := path
		if inner, ok := errors.AsType[kjson.FieldError](err); ok {
			at = "metadata." + inner.FieldPath()
		}
		found.addKey(at, isUnknown)
	}
}

// checkLabels checks labels and annotations, and removes them: the API server's own check would not tell which one is wrong.
func checkLabels(meta *metav1.ObjectMeta, found *faults) {
	for _, name := range slices.Sorted(maps.Keys(meta.Labels)) {
		path := validate.FieldPath("metadata.labels", name)
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			found.addKey(path, "invalid name: %s", strings.Join(problems, ", "))
		}
		if problems := validation.IsValidLabelValue(meta.Labels[name]); len(problems) > 0 {
			found.add(path, "invalid value %s: %s", quote(meta.Labels[name]), strings.Join(problems, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(meta.Annotations)) {
		if problems := validation.IsQualifiedName(strings.ToLower(name)); len(problems) > 0 {
			found.addKey(validate.FieldPath("metadata.annotations", name), "invalid name: %s", strings.Join(problems, ", "))
		}
	}
	meta.Labels, meta.Annotations = nil, nil
}

// typeName returns CUE's name of the type that JSON has for t.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Slice:
		return "list"
	case reflect.Map, reflect.Struct:
		return "struct"
	}
	return "int"
}

// quote returns value as JSON, cut short.
func quote(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	const most = 60
	return kind.Shorten(string(data), most)
}
