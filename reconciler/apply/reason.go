package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
)

// Reasons of an Error that are not the API server's own.
const (
	// ReasonNamespaceTerminating says that nothing can be created any more, and that all there is, the custom resource
	// included, is about to be deleted: there is nothing to do and nobody to tell.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonTerminating says that an object of ours is on its way out, and comes back once it is gone.
	ReasonTerminating = "Terminating"
	// ReasonConflict says that an object, or a field of it, is somebody else's.
	ReasonConflict = "Conflict"
	// ReasonImmutable says that the API server does not allow the change of a field.
	ReasonImmutable = "Immutable"
	// ReasonApplyLoop says that an object is changed back each time that it is mended.
	ReasonApplyLoop = "ApplyLoop"
	// ReasonKindNotInstalled says that the cluster does not know a kind of objects.
	ReasonKindNotInstalled = "KindNotInstalled"
	// ReasonPruneBlocked says that an object which is no longer wanted, or whose custom resource is deleted, does not go.
	ReasonPruneBlocked = "PruneBlocked"
	// ReasonQuotaExceeded says that the namespace's quota is used up.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonApplyFailed says that the API server could not be asked, or said nothing of the above.
	ReasonApplyFailed = "ApplyFailed"
)

// immutableError says which fields could not be changed.
type immutableError struct {
	err   error
	drift []string
}

func (e *immutableError) Error() string {
	// The API server's words may hold all of a pod template.
	return fmt.Sprintf("cannot be changed in %s; undo the change, or allow the object to be deleted and created anew with the annotation %s=true; %s",
		kind.Shorten(strings.Join(fieldsOf(e.drift), ", "), 300), ownership.RecreateAnnotation, kind.Shorten(e.err.Error(), 300))
}

func (e *immutableError) Unwrap() error { return e.err }

// fieldsError says that fields which should be ours are another manager's.
type fieldsError struct{ conflicts []Conflict }

func (e *fieldsError) Error() string {
	return "other managers have set fields that are not to be taken from them: " + ownership.DescribeConflicts(e.conflicts)
}

// NotInstalled returns the error for an object whose kind the cluster does not know.
func NotInstalled(object, apiVersion string) *Error {
	return &Error{Object: object, Reason: ReasonKindNotInstalled, Err: fmt.Errorf("the cluster does not know %s: it will be applied once that is installed", apiVersion)}
}

// Blocked returns the error for an object that is deleted and held by finalizers.
func Blocked(object string, finalizers []string) *Error {
	return NewError(object, &blockedError{finalizers})
}

// IsKindNotInstalled tells whether err, one of Apply's, says so of an object.
func IsKindNotInstalled(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), IsKindNotInstalled)
	}
	failure, ok := errors.AsType[*Error](err)
	return ok && failure.Reason == ReasonKindNotInstalled
}

// Error says why one object could not be applied or deleted.
type Error struct {
	// Object names it: "Deployment cache".
	Object string
	// Reason is a condition's reason: one of the above or the API server's own (Forbidden, Invalid …).
	Reason string
	// Err is the cause.
	Err error
}

// Error returns the object and the cause.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Object, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NewError gives err, an API server's answer or one of this package's, the reason that it stands for.
func NewError(object string, err error) *Error {
	return &Error{Object: object, Reason: reasonOf(err), Err: err}
}

func reasonOf(err error) string {
	switch {
	case is[*ownership.ForeignError](err), is[*fieldsError](err):
		return ReasonConflict
	case is[*immutableError](err):
		return ReasonImmutable
	case is[*loopError](err):
		return ReasonApplyLoop
	case is[*blockedError](err):
		return ReasonPruneBlocked
	case errors.Is(err, ownership.ErrTerminating):
		return ReasonTerminating
	case meta.IsNoMatchError(err):
		return ReasonKindNotInstalled
	}
	return reasonOfAnswer(err)
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// reasonOfAnswer names an API server's refusal. Quota has no reason of its own in the API; the wording is that of the quota
// admission plugin.
func reasonOfAnswer(err error) string {
	reason := apierrors.ReasonForError(err)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ReasonNamespaceTerminating
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return ReasonQuotaExceeded
	case ownership.IsImmutable(err):
		return ReasonImmutable
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse): // the path, not the object
		return ReasonKindNotInstalled
	case reason == metav1.StatusReasonUnknown:
		return ReasonApplyFailed
	}
	return string(reason)
}
