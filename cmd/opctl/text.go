package main

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/ownership"
)

// texts returns an object as it is and as it would be, as YAML; "" for nil. What the API server and the operator keep about it, and
// the UID unknown, which no custom resource has, are left out, and the values of a Secret are masked.
func texts(live, wanted *unstructured.Unstructured, unknown string) (before, after []byte, err error) {
	live, wanted = plain(live, unknown), plain(wanted, unknown)
	if isSecret(live) || isSecret(wanted) {
		mask(live, wanted)
	}
	if before, err = text(live); err != nil {
		return nil, nil, err
	}
	after, err = text(wanted)
	return before, after, err
}

func text(o *unstructured.Unstructured) ([]byte, error) {
	if o == nil {
		return nil, nil
	}
	return yaml.Marshal(o.Object)
}

// removeServers removes what the API server keeps in an object.
func removeServers(o *unstructured.Unstructured) {
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	delete(o.Object, "status")
}

// plain returns a copy of o that holds nothing but what users write.
func plain(o *unstructured.Unstructured, unknown string) *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	o = o.DeepCopy()
	removeServers(o)
	annotations := o.GetAnnotations()
	delete(annotations, ownership.DigestAnnotation)         // it differs as soon as anything else does
	delete(annotations, corev1.LastAppliedConfigAnnotation) // so does this, which may hold a Secret's values
	if unknown != "" && annotations[ownership.OwnerUIDAnnotation] == unknown {
		delete(annotations, ownership.OwnerUIDAnnotation)
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
	owners, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "ownerReferences")
	list, _ := owners.([]any)
	for _, owner := range list {
		if m, ok := owner.(map[string]any); ok && unknown != "" && m["uid"] == unknown {
			delete(m, "uid")
		}
	}
	return o
}

func isSecret(o *unstructured.Unstructured) bool {
	return o != nil && o.GetKind() == "Secret" && o.GroupVersionKind().Group == ""
}

// What stands in place of a Secret's values.
const (
	masked       = "***"
	maskedBefore = "*** (before)"
	maskedAfter  = "*** (after)"
)

// mask hides the values of a Secret, as it is and as it would be, and tells only whether they differ. Either may be nil.
func mask(live, wanted *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		before, after := values(live, field), values(wanted, field)
		for key, value := range before {
			other, found := after[key]
			switch {
			case !found:
				before[key] = masked
			case reflect.DeepEqual(value, other):
				before[key], after[key] = masked, masked
			default:
				before[key], after[key] = maskedBefore, maskedAfter
			}
		}
		for key := range after {
			if _, found := before[key]; !found {
				after[key] = masked
			}
		}
	}
}

// values returns a field of o with a Secret's values, nil if there is none. One that is no map, which no API server takes, goes.
func values(o *unstructured.Unstructured, field string) map[string]any {
	if o == nil {
		return nil
	}
	m, ok := o.Object[field].(map[string]any)
	if !ok {
		delete(o.Object, field)
	}
	return m
}
