package ownership

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Inventory lists the objects that a custom resource has or may have. It is kept in the status, sorted, each object once.
type Inventory []Entry

// Entry names an object. Its JSON form is an element of status.inventory.
type Entry struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// GVK returns the object's group, version and kind.
func (e Entry) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)
}

// String returns "Deployment cache".
func (e Entry) String() string { return e.Kind + " " + e.Name }

// NewInventory returns the inventory of objects.
func NewInventory(objects []*unstructured.Unstructured) Inventory {
	var out Inventory
	for _, o := range objects {
		out = append(out, Entry{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	return out.Sorted()
}

// Sorted sorts the inventory in place and returns it with each object once.
func (i Inventory) Sorted() Inventory {
	slices.SortFunc(i, compareEntries)
	return slices.CompactFunc(i, sameObject)
}

// IsSorted tells whether the inventory is in order, with each object once.
func (i Inventory) IsSorted() bool {
	for n := 1; n < len(i); n++ {
		if sameObject(i[n-1], i[n]) || compareEntries(i[n-1], i[n]) > 0 {
			return false
		}
	}
	return true
}

func compareEntries(a, b Entry) int {
	return cmp.Or(
		cmp.Compare(a.GVK().Group, b.GVK().Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion),
	)
}

// sameObject tells whether a and b are one object, be it in two versions of its API.
func sameObject(a, b Entry) bool {
	return a.GVK().GroupKind() == b.GVK().GroupKind() && a.Namespace == b.Namespace && a.Name == b.Name
}

// Union returns the objects of both.
func (i Inventory) Union(other Inventory) Inventory {
	return append(slices.Clone(other), i...).Sorted()
}

// Without returns the objects of i that other lacks.
func (i Inventory) Without(other Inventory) Inventory {
	return slices.DeleteFunc(slices.Clone(i), func(e Entry) bool {
		return slices.ContainsFunc(other, func(o Entry) bool { return sameObject(e, o) })
	})
}

// GVKs returns the kinds of the objects.
func (i Inventory) GVKs() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, e := range i {
		out = append(out, e.GVK())
	}
	return out
}

// Unstructured returns the inventory as it stands in the status.
func (i Inventory) Unstructured() []any {
	out := make([]any, 0, len(i))
	for _, e := range i {
		entry := map[string]any{"apiVersion": e.APIVersion, "kind": e.Kind, "name": e.Name}
		if e.Namespace != "" {
			entry["namespace"] = e.Namespace
		}
		out = append(out, entry)
	}
	return out
}
