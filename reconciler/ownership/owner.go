// Package ownership says whose an object is, whose a field of it, and which objects a custom resource has. It is pure: what
// writes objects and what only shows what would be written decide by the same words.
package ownership

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

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

// Annotations of a custom resource.
const (
	// DeletionPolicyAnnotation overrides its kind's policy: Delete or Orphan.
	DeletionPolicyAnnotation = version.Domain + "/deletion-policy"
	// PausedAnnotation with the value true keeps the operator's hands off everything but a deletion.
	PausedAnnotation = version.Domain + "/paused"
)

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

func (o Owner) relationTo(live metav1.Object) relation {
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
func (o Owner) isLabelledOn(live metav1.Object) bool {
	owner, found := live.GetAnnotations()[kind.OwnerAnnotation]
	return live.GetLabels()[kind.ManagedByLabel] == kind.Manager && live.GetLabels()[o.Kind.OwnerLabel()] == o.GetName() &&
		(owner == o.GetNamespace()+"/"+o.GetName() || !found && live.GetNamespace() == o.GetNamespace())
}

// Owns tells whether live is the custom resource's own already.
func (o Owner) Owns(live metav1.Object) bool { return o.relationTo(live) == ours }

// IsProven tells whether label and UID agree that live is the custom resource's, which a deletion asks for.
func (o Owner) IsProven(live metav1.Object) bool {
	return live.GetLabels()[o.Kind.OwnerLabel()] == o.GetName() && o.Owns(live)
}

// ErrTerminating says that an object is on its way out. Its end is an event that brings the custom resource back.
var ErrTerminating = errors.New("is being deleted; it will be applied again once it is gone")

// Objection returns why live, an existing object, is not to be written for the custom resource: ErrTerminating, a
// *ForeignError, or nil.
func (o Owner) Objection(live metav1.Object) error {
	relation := o.relationTo(live)
	switch {
	case live.GetDeletionTimestamp() != nil || relation == leftover:
		return ErrTerminating
	case relation == foreign:
		return &ForeignError{live}
	}
	return nil
}

// ForeignError says that an object exists which its custom resource does not own.
type ForeignError struct{ Live metav1.Object }

func (e *ForeignError) Error() string {
	holder := ""
	if c := metav1.GetControllerOfNoCopy(e.Live); c != nil {
		holder = c.Kind + " " + c.Name
	} else if uid := e.Live.GetAnnotations()[OwnerUIDAnnotation]; uid != "" {
		holder = cmp.Or(e.Live.GetAnnotations()[kind.OwnerAnnotation], "the custom resource with the UID "+uid)
	}
	if holder != "" {
		return fmt.Sprintf("exists already and belongs to %s: delete or rename it, or rename the custom resource", holder)
	}
	return fmt.Sprintf("exists already and belongs to nobody: delete or rename it, rename the custom resource, or annotate the object with %s=<name of the custom resource>", AdoptAnnotation)
}

// RefuseClusterScoped refuses an object whose kind belongs to no namespace, unless the custom resource's kind allows it.
func (o Owner) RefuseClusterScoped(object *unstructured.Unstructured) error {
	if o.Kind.Policies.Placement == kind.PlacementAnywhere {
		return nil
	}
	return fmt.Errorf("%s is cluster-scoped: the kind's policies.placement allows objects in the custom resource's own namespace only", object.GetKind())
}

// Claim returns object as it is applied: with the custom resource as its owner, by a reference or an annotation, and with the
// digest of all that.
func (o Owner) Claim(object *unstructured.Unstructured) (claimed *unstructured.Unstructured, digest string, err error) {
	claimed = object.DeepCopy()
	annotations := claimed.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if o.collects(claimed.GetNamespace()) {
		claimed.SetOwnerReferences([]metav1.OwnerReference{ownerReference(o)})
	} else {
		annotations[OwnerUIDAnnotation] = string(o.GetUID())
		claimed.SetAnnotations(annotations)
	}
	data, err := json.Marshal(claimed.Object)
	if err != nil {
		return nil, "", fmt.Errorf("encoding: %w", err)
	}
	sum := sha256.Sum256(data)
	digest = hex.EncodeToString(sum[:16])
	annotations[DigestAnnotation] = digest
	claimed.SetAnnotations(annotations)
	return claimed, digest, nil
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
