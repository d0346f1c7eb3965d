package agreement_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
)

// TestKubernetesTypes: schemas/kind/pod.cue has Kubernetes' own types by hand. They have the fields of Kubernetes, of the same
// types, and ask for those that Kubernetes asks for.
func TestKubernetesTypes(t *testing.T) {
	root, err := schema.Of(everything())
	if err != nil {
		t.Fatal(err)
	}
	spec := root.Properties["spec"]
	ours := spec.Properties["types"]
	for name, theirs := range map[string]any{
		"affinity": corev1.Affinity{}, "toleration": corev1.Toleration{}, "tolerations": []corev1.Toleration{},
		"spread": []corev1.TopologySpreadConstraint{}, "selector": metav1.LabelSelector{}, "nodeSelector": map[string]string{},
	} {
		field := ours.Properties[name]
		if count := sameType(t, name, &field, reflect.TypeOf(theirs)); count == 0 {
			t.Errorf("%s: nothing was compared", name)
		}
	}
}

// everything returns the kind in testdata.
func everything() *kind.Kind {
	return kinds[slices.IndexFunc(kinds, func(k *kind.Kind) bool { return k.Names.Kind == "Everything" })]
}

// jsonTypes are those of Go's scalars.
var jsonTypes = map[reflect.Kind]string{
	reflect.String: "string", reflect.Bool: "boolean", reflect.Int32: "integer", reflect.Int64: "integer",
}

// sameType compares a schema with a Go type, and returns how many scalars it met.
func sameType(t *testing.T, path string, ours *props, theirs reflect.Type) (count int) {
	want := jsonTypes[theirs.Kind()]
	switch theirs.Kind() {
	case reflect.Pointer:
		return sameType(t, path, ours, theirs.Elem())
	case reflect.Slice:
		want = "array"
		if ours.Type == want {
			count = sameType(t, path+"[]", ours.Items.Schema, theirs.Elem())
		}
	case reflect.Map:
		want = "object"
		if ours.AdditionalProperties == nil || ours.AdditionalProperties.Schema == nil {
			t.Errorf("%s: want a map", path)
			return 0
		}
		count = sameType(t, path+"[]", ours.AdditionalProperties.Schema, theirs.Elem())
	case reflect.Struct:
		want = "object"
		count = sameFields(t, path, ours, theirs)
	default:
		count = 1
	}
	if ours.Type != want {
		t.Errorf("%s: want the type %s of Kubernetes, got %s", path, want, ours.Type)
	}
	return count
}

func sameFields(t *testing.T, path string, ours *props, theirs reflect.Type) (count int) {
	unknown := maps.Clone(ours.Properties)
	for i := range theirs.NumField() {
		name, options, _ := strings.Cut(theirs.Field(i).Tag.Get("json"), ",")
		field, isKnown := ours.Properties[name]
		if !isKnown {
			t.Errorf("%s: lacks Kubernetes' field %s", path, name)
			continue
		}
		delete(unknown, name)
		if !strings.Contains(options, "omitempty") && !slices.Contains(ours.Required, name) {
			t.Errorf("%s: does not ask for %s, which Kubernetes does", path, name)
		}
		count += sameType(t, path+"."+name, &field, theirs.Field(i).Type)
	}
	for name := range unknown {
		t.Errorf("%s: has the field %s, which Kubernetes does not know", path, name)
	}
	return count
}
