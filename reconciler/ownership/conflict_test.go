package ownership

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
)

// answer is what the API server answers to an apply that conflicts: a message and a field for each cause, in pairs.
func answer(pairs ...string) error {
	var causes []metav1.StatusCause
	for i := 0; i < len(pairs); i += 2 {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: pairs[i], Field: pairs[i+1]})
	}
	return apierrors.NewApplyConflict(causes, "Apply failed with conflicts")
}

// The messages are those of a Kubernetes 1.36 API server.
func TestConflictsInAnAnswer(t *testing.T) {
	web := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "web"}}}
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"none":            {nil, nil},
		"another error":   {errors.New("conflict with \"x\""), nil},
		"another answer":  {apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("the object has been modified")), nil},
		"an edit":         {answer(`conflict with "kubectl-edit" using apps/v1`, ".spec.replicas"), []string{"spec.replicas (kubectl-edit)"}},
		"an apply":        {answer(`conflict with "helm"`, ".data.key"), []string{"data.key (helm)"}},
		"a subresource":   {answer(`conflict with "kube-controller-manager" with subresource "scale" using apps/v1`, ".spec.replicas"), []string{"spec.replicas (kube-controller-manager)"}},
		"a list":          {answer(`conflict with "kubectl" using apps/v1`, `.spec.template.spec.containers[name="web"].image`), []string{`spec.template.spec.containers[name="web"].image (kubectl)`}},
		"sorted, once":    {answer(`conflict with "b"`, ".spec.y", `conflict with "b"`, ".spec.x", `conflict with "b"`, ".spec.y", `conflict with "a"`, ".spec.y"), []string{"spec.x (b)", "spec.y (a)", "spec.y (b)"}},
		"wrapped":         {fmt.Errorf("applying: %w", answer(`conflict with "x"`, ".spec.y")), []string{"spec.y (x)"}},
		"unknown wording": {answer("some other words", ".spec.y"), []string{"spec.y (some other words)"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, conflict := range ConflictsIn(web, c.err) {
				got = append(got, conflict.String())
				if conflict.Object != "Deployment web" {
					t.Errorf("the object is %s", conflict.Object)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMessageNamesAFewConflicts(t *testing.T) {
	var conflicts []Conflict
	for _, field := range []string{"a", "b", "c", "d", "e"} {
		conflicts = append(conflicts, Conflict{Field: field, Manager: "x"})
	}
	if got := DescribeConflicts(conflicts); got != "a (x), b (x), c (x), and 2 more" {
		t.Error(got)
	}
	if got := DescribeConflicts(conflicts[:3]); got != "a (x), b (x), c (x)" {
		t.Error(got)
	}
}

func TestWhatIsLeftToOthersIsTakenOut(t *testing.T) {
	deployment := kind.FieldPolicy{Kind: "Deployment.apps", Path: "spec.replicas", Conflict: kind.ConflictYield, Managers: []string{"scaler"}}
	paused := kind.FieldPolicy{Kind: "Deployment.apps", Path: "spec.paused", Conflict: kind.ConflictReport}
	owner := Owner{Kind: &kind.Kind{Policies: kind.Policies{Fields: []kind.FieldPolicy{deployment, paused}}}}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{"replicas": int64(2), "paused": true, "minReadySeconds": int64(1)},
	}}
	scaled, edited := Conflict{Field: "spec.replicas", Manager: "scaler"}, Conflict{Field: "spec.replicas", Manager: "kubectl-edit"}
	stopped := Conflict{Field: "spec.paused", Manager: "kubectl-edit"}
	want := Contest{Yielded: []Conflict{scaled}, Reported: []Conflict{stopped}, Forced: []Conflict{edited}}
	if diff := cmp.Diff(want, owner.Settle(o, []Conflict{edited, stopped, scaled})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"minReadySeconds": int64(1)}, o.Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
