package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/version"
)

// Annotations of objects.
const (
	// DigestAnnotation holds the digest of what was last applied to an object: 32 hexadecimal digits.
	DigestAnnotation = version.Domain + "/applied-digest"
	// OwnerUIDAnnotation holds the UID of the custom resource that an object belongs to, where no owner reference says so.
	OwnerUIDAnnotation = version.Domain + "/owner-uid"
	// AdoptAnnotation lets the custom resource that it names take an object over that nobody controls.
	AdoptAnnotation = version.Domain + "/adopt"
	// RecreateAnnotation with the value true lets an object be deleted and created anew when a change of it is refused.
	RecreateAnnotation = version.Domain + "/recreate"
)

// DeletionPolicyAnnotation of a custom resource overrides its kind's policy: Delete or Orphan.
const DeletionPolicyAnnotation = version.Domain + "/deletion-policy"

// Owner is the custom resource for which objects are written, and its kind, which says what is allowed.
type Owner struct {
	*unstructured.Unstructured
	Kind *kind.Kind
}

// Orphans tells whether the objects stay when the custom resource is deleted.
func (o Owner) Orphans() bool {
	policy := o.Kind.Policies.Deletion
	if own, ok := o.GetAnnotations()[DeletionPolicyAnnotation]; ok {
		policy = own
	}
	return policy == kind.DeletionOrphan
}

// collects tells whether Kubernetes' garbage collector deletes an object of this namespace with the custom resource, which is
// when it bears an owner reference.
func (o Owner) collects(namespace string) bool {
	return !o.Orphans() && (namespace == o.GetNamespace() || o.GetNamespace() == "")
}

// NeedsFinalizer tells whether the custom resource may only go after we have deleted some of these objects ourselves.
func (o Owner) NeedsFinalizer(objects Inventory) bool {
	for _, e := range objects {
		if !o.Orphans() && !o.collects(e.Namespace) {
			return true
		}
	}
	return false
}

// relation is what an existing object is to a custom resource.
type relation int

const (
	// foreign: somebody else's, or nobody's.
	foreign relation = iota
	// ours: the custom resource's own.
	ours
	// adoptable: nobody's, and we may have it: our label says that it was a namesake's who left it behind, or an annotation or
	// the kind's policy allows it.
	adoptable
	// leftover: a deleted namesake's, which the garbage collector is about to delete.
	leftover
)

func (o Owner) relationTo(live client.Object) relation {
	controller, uid := metav1.GetControllerOfNoCopy(live), live.GetAnnotations()[OwnerUIDAnnotation]
	switch {
	case controller != nil && controller.UID == o.GetUID(), controller == nil && uid == string(o.GetUID()):
		return ours
	case controller != nil && controller.APIVersion == o.GetAPIVersion() && controller.Kind == o.GetKind() && controller.Name == o.GetName():
		return leftover
	case controller != nil:
		return foreign
	case o.isLabelledOn(live):
		return adoptable
	case live.GetAnnotations()[AdoptAnnotation] == o.GetName(), uid == "" && o.Kind.Policies.Adopt == kind.AdoptUnowned:
		return adoptable
	}
	return foreign
}

// isLabelledOn tells whether live's marks name o, or a namesake that was there before. Labels name no namespace: an object in
// another one, or in none, has an annotation for that.
func (o Owner) isLabelledOn(live client.Object) bool {
	owner, found := live.GetAnnotations()[kind.OwnerAnnotation]
	return live.GetLabels()[kind.ManagedByLabel] == kind.Manager && live.GetLabels()[o.Kind.OwnerLabel()] == o.GetName() &&
		(owner == o.GetNamespace()+"/"+o.GetName() || !found && live.GetNamespace() == o.GetNamespace())
}

// wish is an object as it is to be applied.
type wish struct {
	owner  Owner
	object *unstructured.Unstructured
	digest string // which the object bears
}

func newWish(owner Owner, object *unstructured.Unstructured) (*wish, error) {
	want := object.DeepCopy()
	annotations := want.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if owner.collects(want.GetNamespace()) {
		want.SetOwnerReferences([]metav1.OwnerReference{ownerReference(owner)})
	} else {
		annotations[OwnerUIDAnnotation] = string(owner.GetUID())
		want.SetAnnotations(annotations)
	}
	data, err := json.Marshal(want.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	sum := sha256.Sum256(data)
	w := &wish{owner: owner, object: want, digest: hex.EncodeToString(sum[:16])}
	annotations[DigestAnnotation] = w.digest
	want.SetAnnotations(annotations)
	return w, nil
}

func ownerReference(owner Owner) metav1.OwnerReference {
	isController, blockDeletion := true, true
	return metav1.OwnerReference{
		APIVersion:         owner.GetAPIVersion(),
		Kind:               owner.GetKind(),
		Name:               owner.GetName(),
		UID:                owner.GetUID(),
		Controller:         &isController,
		BlockOwnerDeletion: &blockDeletion,
	}
}

// String names the object for people.
func (w *wish) String() string { return kind.Describe(w.object) }

func (w *wish) id() objectID { return idOf(w.object) }

func idOf(o *unstructured.Unstructured) objectID {
	return objectID{o.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}
