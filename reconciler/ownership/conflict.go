package ownership

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Conflict is a field that another manager has set to another value than ours.
type Conflict struct {
	// Object is the field's: "Deployment cache".
	Object string
	// Field is its path, as in spec.replicas or spec.template.spec.containers[name="x"].image.
	Field string
	// Manager is the name under which the other owns the field.
	Manager string
}

// String returns "spec.replicas (kubectl-edit)".
func (c Conflict) String() string { return fmt.Sprintf("%s (%s)", c.Field, c.Manager) }

// maxConflicts is how many of the conflicting fields a message names.
const maxConflicts = 3

// DescribeConflicts names the first few of conflicts.
func DescribeConflicts(conflicts []Conflict) string {
	var parts []string
	for i, c := range conflicts {
		if i == maxConflicts {
			parts = append(parts, fmt.Sprintf("and %d more", len(conflicts)-i))
			break
		}
		parts = append(parts, c.String())
	}
	return strings.Join(parts, ", ")
}

// managerIn finds the manager in the API server's wording: conflict with "kubectl-edit" using apps/v1.
var managerIn = regexp.MustCompile(`conflict with "([^"]*)"`)

// ConflictsIn returns the fields over which the API server refused to apply object, sorted; none if err says something else.
func ConflictsIn(object *unstructured.Unstructured, err error) []Conflict {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil {
		return nil
	}
	var out []Conflict
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		c := Conflict{Object: kind.Describe(object), Field: strings.TrimPrefix(cause.Field, "."), Manager: cause.Message}
		if match := managerIn.FindStringSubmatch(cause.Message); match != nil {
			c.Manager = match[1]
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Conflict) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// Contest is how conflicts over the fields of an object end.
type Contest struct {
	// Forced are the fields that are taken back; Yielded those that are left to another manager; Reported those that are, and
	// should not be the other's.
	Forced, Yielded, Reported []Conflict
}

// Settle decides conflicts over object by the policies of the owner's kind, and takes the fields that are left to others out of
// object.
func (o Owner) Settle(object *unstructured.Unstructured, conflicts []Conflict) Contest {
	var end Contest
	for _, c := range conflicts {
		switch o.Kind.Policies.ConflictOf(object.GroupVersionKind().GroupKind(), c.Field, c.Manager) {
		case kind.ConflictYield:
			end.Yielded = append(end.Yielded, c)
			c.removeFrom(object)
		case kind.ConflictReport:
			end.Reported = append(end.Reported, c)
			c.removeFrom(object)
		default:
			end.Forced = append(end.Forced, c)
		}
	}
	return end
}

// removeFrom takes the field out of o. Only fields that policies can name, struct by struct, get here.
func (c Conflict) removeFrom(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, strings.Split(c.Field, ".")...)
}
