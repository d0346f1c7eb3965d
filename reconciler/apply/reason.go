package apply

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ReasonNamespaceTerminating says that nothing can be created any more, and that all there is, the custom resource included,
// is about to be deleted: there is nothing to do and nobody to tell.
const ReasonNamespaceTerminating = "NamespaceTerminating"

// ReasonTerminating says that an object of ours is on its way out, and comes back once it is gone.
const ReasonTerminating = "Terminating"

// reasonOf names an API server's refusal. Quota and immutability have no reason of their own in the API; the wording is
// that of the quota admission plugin and of the validation library.
func reasonOf(err error) string {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ReasonNamespaceTerminating
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return "QuotaExceeded"
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "field is immutable"):
		return "Immutable"
	}
	return string(apierrors.ReasonForError(err))
}
