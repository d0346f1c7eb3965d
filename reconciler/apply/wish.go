package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
)

// The words of package ownership that Apply and Prune are asked and answer in.
type (
	// Owner is the custom resource for which objects are written.
	Owner = ownership.Owner
	// Inventory lists the objects that a custom resource has or may have.
	Inventory = ownership.Inventory
	// Conflict is a field that another manager has set to another value than ours.
	Conflict = ownership.Conflict
)

// wish is an object as it is to be applied.
type wish struct {
	owner  Owner
	object *unstructured.Unstructured
	digest string // which the object bears
}

func newWish(owner Owner, object *unstructured.Unstructured) (*wish, error) {
	claimed, digest, err := owner.Claim(object)
	return &wish{owner: owner, object: claimed, digest: digest}, err
}

// String names the object for people.
func (w *wish) String() string { return kind.Describe(w.object) }

func (w *wish) id() objectID { return idOf(w.object) }

func idOf(o *unstructured.Unstructured) objectID {
	return objectID{o.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

func idOfEntry(e ownership.Entry) objectID {
	return objectID{e.GVK().GroupKind(), types.NamespacedName{Namespace: e.Namespace, Name: e.Name}}
}
