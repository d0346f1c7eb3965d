package apply

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/memcached-operator/reconciler/ownership"
)

// The refusals are in the words of a Kubernetes 1.36 API server, which the tests of the package above check.
func TestReasonOfAnError(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	invalid := func(detail string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", field.ErrorList{field.Forbidden(field.NewPath("spec"), detail)})
	}
	terminating := apierrors.NewForbidden(pods, "x", errors.New("unable to create new content in namespace y because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for want, errs := range map[string][]error{
		ReasonNamespaceTerminating: {terminating},
		ReasonTerminating:          {ownership.ErrTerminating},
		ReasonConflict:             {&ownership.ForeignError{Live: &corev1.Pod{}}, &fieldsError{}, apierrors.NewConflict(pods, "x", errors.New("modified"))},
		ReasonImmutable: {
			&immutableError{err: errors.New("any")},
			invalid("field is immutable"), invalid("field is immutable when `immutable` is set"),
			invalid("updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template' are forbidden"),
			invalid("pod updates may not change fields other than `spec.containers[*].image`"),
			invalid("spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"),
			invalid("may not change once set"), invalid("may not be changed in an update."), invalid("cannot change roleRef"),
		},
		ReasonApplyLoop:        {&loopError{}},
		ReasonKindNotInstalled: {&meta.NoKindMatchError{}},
		ReasonPruneBlocked:     {&blockedError{}},
		ReasonQuotaExceeded:    {apierrors.NewForbidden(pods, "x", errors.New("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"))},
		"Forbidden":            {apierrors.NewForbidden(pods, "x", errors.New("no"))},
		"Invalid":              {invalid("must be positive")},
		"Timeout":              {apierrors.NewTimeoutError("slow", 1)},
		ReasonApplyFailed:      {errors.New("connection refused"), context.DeadlineExceeded, errors.New("field is immutable, says nobody")},
	} {
		for _, err := range errs {
			for _, err := range []error{err, fmt.Errorf("wrapped: %w", err)} {
				if got := NewError("Pod x", err); got.Reason != want || !errors.Is(got, err) || got.Error() != "Pod x: "+err.Error() {
					t.Errorf("want %s, got %s: %v", want, got.Reason, got)
				}
			}
		}
	}
	if got := NotInstalled("X x", "v1").Reason; got != ReasonKindNotInstalled {
		t.Errorf("got %s", got)
	}
}
