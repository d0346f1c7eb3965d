package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
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

const roleHeader = `# Made by "opctl generate rbac": exactly what the operator does. It watches custom resources and writes their status, applies
# the objects that the charts render, deletes those that they no longer render, and watches them with their pods. Server-side
# apply is a patch, and asks for create where the object does not exist yet; before that the operator gets it, lest it takes over
# somebody else's. Updating finalizers is the right to set owner references that block their owner's deletion.
`

type rbacOptions struct {
	kindsDir       string
	files          []string
	name           string
	serviceAccount string
}

func newGenerateRBACCommand() *cobra.Command {
	var o rbacOptions
	cmd := &cobra.Command{
		Use:   "rbac [KIND…]",
		Short: "Print the operator's ClusterRole",
		Long: `Print the ClusterRole with the rights that the operator needs to serve the named kinds, KIND or PLURAL.GROUP, and no
other; all kinds without a name.

The rights follow from what the kinds' samples render, so that these should turn on all that a chart can render. Custom
resources in files count as further samples.`,
		Example: `  opctl generate rbac
  opctl generate rbac --kinds-dir ./my-kinds MyKind --name my-kind --service-account NAMESPACE/NAME | kubectl apply -f -`,
		ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, names []string) error {
			return generateRBAC(cmd, names, o)
		},
	}
	addFilesFlag(cmd, &o.files)
	addKindsDirFlag(cmd, &o.kindsDir)
	cmd.Flags().StringVar(&o.name, "name", "manager-role", "name of the ClusterRole, and of the binding")
	cmd.Flags().StringVar(&o.serviceAccount, "service-account", "", "namespace/name of the operator's ServiceAccount: prints a ClusterRoleBinding for it, too")
	return cmd
}

func generateRBAC(cmd *cobra.Command, names []string, o rbacOptions) error {
	namespace, account, isPair := strings.Cut(o.serviceAccount, "/")
	if o.serviceAccount != "" && (!isPair || namespace == "" || account == "") {
		return fmt.Errorf("--service-account %q is not NAMESPACE/NAME", o.serviceAccount)
	}
	all, err := loadKinds(o.kindsDir)
	if err != nil {
		return err
	}
	kinds, err := kind.Select(all, names)
	if err != nil {
		return err
	}
	objects, granted, err := rendered(kinds, cmd.InOrStdin(), o.files)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), roleHeader); err != nil {
		return err
	}
	if err := printYAML(cmd, role(o.name, append(serving(kinds, objects), granted...))); err != nil || o.serviceAccount == "" {
		return err
	}
	return printYAML(cmd, &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: o.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: o.name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	})
}

// rendered returns the kinds of the objects that the samples of kinds, and the custom resources in files, render, and the
// rights that rendered roles grant: who has not a right himself may not grant it.
func rendered(kinds []*kind.Kind, stdin io.Reader, files []string) (map[schema.GroupVersionKind]bool, rules, error) {
	objects, granted := map[schema.GroupVersionKind]bool{}, rules{}
	add := func(_ *kind.Kind, m *render.Manifest) error {
		for _, o := range m.Objects {
			objects[o.GroupVersionKind()] = true
			if o.GroupVersionKind().Group != rbacv1.GroupName || !strings.HasSuffix(o.GetKind(), "Role") {
				continue
			}
			var r rbacv1.ClusterRole // whose rules a Role's are, too
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &r); err != nil {
				return fmt.Errorf("reading %s: %w", kind.Describe(o), err)
			}
			for _, rule := range r.Rules {
				if !slices.ContainsFunc(granted, func(known rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(known, rule) }) {
					granted = append(granted, rule)
				}
			}
		}
		return nil
	}
	for _, k := range kinds {
		for _, name := range slices.Sorted(maps.Keys(k.Samples)) {
			m, _, err := plan.Make(k, plan.Sample(k, name, defaultPlace.namespace), defaultPlace.kubeVersion)
			if err == nil {
				err = add(k, m)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("sample %s of %s: %w", name, k.Names.Kind, err)
			}
		}
	}
	return objects, granted, renderFiles(kinds, stdin, files, defaultPlace, add)
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

func role(name string, r rules) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      r,
	}
}
