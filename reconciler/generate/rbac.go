package generate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
	"github.com/example/memcached-operator/reconciler/render"
)

// Rights are what the operator needs to serve some kinds, and no more.
type Rights struct {
	kinds   []*kind.Kind
	objects map[schema.GroupVersionKind]bool
	granted rules
}

// RightsFor returns the rights to serve kinds, as far as their samples show what the charts render.
func RightsFor(kinds []*kind.Kind) (*Rights, error) {
	kinds = slices.SortedFunc(slices.Values(kinds), func(a, b *kind.Kind) int {
		return cmp.Compare(a.Names.Group+a.Names.Kind, b.Names.Group+b.Names.Kind)
	})
	r := &Rights{kinds: kinds, objects: map[schema.GroupVersionKind]bool{}}
	for _, k := range kinds {
		for _, name := range slices.Sorted(maps.Keys(k.Samples)) {
			m, _, err := plan.Make(k, plan.Sample(k, name, plan.SampleNamespace), plan.SampleKubeVersion)
			if err == nil {
				err = r.Add(m)
			}
			if err != nil {
				return nil, fmt.Errorf("sample %s of %s: %w", name, k.Names.Kind, err)
			}
		}
	}
	return r, nil
}

// Add adds the rights to apply the objects of m, and those that roles among them grant: who has not a right himself may not
// grant it.
func (r *Rights) Add(m *render.Manifest) error {
	for _, o := range m.Objects {
		r.objects[o.GroupVersionKind()] = true
		if o.GroupVersionKind().Group != rbacv1.GroupName || !strings.HasSuffix(o.GetKind(), "Role") {
			continue
		}
		var role rbacv1.ClusterRole // whose rules a Role's are, too
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return fmt.Errorf("reading %s: %w", kind.Describe(o), err)
		}
		for _, rule := range role.Rules {
			if !slices.ContainsFunc(r.granted, func(known rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(known, rule) }) {
				r.granted = append(r.granted, rule)
			}
		}
	}
	return nil
}

// Role returns a ClusterRole with these rights.
func (r *Rights) Role(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      append(serving(r.kinds, r.objects), r.granted...),
	}
}

// NamespacedRole returns a Role with these rights in one namespace. Kinds that put objects elsewhere cannot be served by it.
func (r *Rights) NamespacedRole(name, namespace string) (*rbacv1.Role, error) {
	for _, k := range r.kinds {
		if k.Policies.Placement == kind.PlacementAnywhere {
			return nil, fmt.Errorf("%s may have objects in any namespace, which needs a ClusterRole: name the other kinds", k.Names.Kind)
		}
	}
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Rules:      r.Role(name).Rules,
	}, nil
}

// rules are the rights of a role, in the order in which they are added.
type rules []rbacv1.PolicyRule

// add lets verbs be used on resources of a group, if there are any.
func (r *rules) add(group string, resources []string, verbs ...string) {
	if len(resources) > 0 {
		*r = append(*r, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs})
	}
}

// serving returns the rights to serve kinds whose charts render objects.
func serving(kinds []*kind.Kind, objects map[schema.GroupVersionKind]bool) rules {
	var r rules
	watched := map[string][]string{}
	for _, k := range kinds {
		group, plural := k.Names.Group, k.Names.Plural
		verbs := []string{"list", "watch"}
		if k.Policies.Placement == kind.PlacementAnywhere { // the finalizer is a field of the custom resource itself
			verbs = append(verbs, "patch")
		}
		r.add(group, []string{plural}, verbs...)
		r.add(group, []string{plural + "/status"}, "patch")
		r.add(group, []string{plural + "/finalizers"}, "update")
		if slices.Contains(k.Observe, kind.ObservePods) {
			watched[""] = []string{"pods"}
		}
		if slices.Contains(k.Observe, kind.ObserveJobs) {
			watched["batch"] = []string{"jobs"}
		}
	}
	written := map[string][]string{}
	for gvk := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		written[gvk.Group] = append(written[gvk.Group], resource.Resource)
	}
	for _, group := range slices.Sorted(maps.Keys(written)) {
		slices.Sort(written[group])
		r.add(group, slices.Compact(written[group]), "get", "list", "watch", "create", "patch", "delete")
	}
	for _, group := range slices.Sorted(maps.Keys(watched)) {
		r.add(group, watched[group], "list", "watch")
	}
	r.add("", []string{"events"}, "create", "patch")
	return r
}
