package apply

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reasonOf names an API server's refusal. Quota and immutability have no reason of their own in the API; the wording is
// that of the quota admission plugin and of the validation library.
func reasonOf(err error) string {
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return "QuotaExceeded"
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "field is immutable"):
		return "Immutable"
	}
	return string(apierrors.ReasonForError(err))
}
