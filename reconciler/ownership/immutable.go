package ownership

import (
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// immutable is how the API server's validation says that a field cannot change: in general, of a Service's clusterIP, of a
// StatefulSet's, a Pod's, a PersistentVolumeClaim's, a PriorityClass' or a binding's.
var immutable = regexp.MustCompile(`field is immutable|is immutable after|may not change once set|updates to [a-z]+ spec for fields other than|updates may not change fields other than|may not be changed in an update|cannot change roleRef`)

// IsImmutable tells whether err is the API server's refusal to change a field. The API has no reason for that; the wording is
// that of the validation library.
func IsImmutable(err error) bool {
	return apierrors.IsInvalid(err) && immutable.MatchString(err.Error())
}

// MayRecreate tells whether live, an object of kind gk, may be deleted and created anew when a change of it is refused: an
// annotation of the object or, if it is the custom resource's already, the kind allows it.
func (o Owner) MayRecreate(gk schema.GroupKind, live metav1.Object) bool {
	return live.GetAnnotations()[RecreateAnnotation] == "true" || o.IsProven(live) && o.Kind.Policies.MayRecreate(gk)
}
