package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/render"
)

const roleHeader = `# Made by "make manifests": exactly what the operator does. It watches custom resources and writes their status, applies the
# objects that the charts render, and watches those and their pods. Server-side apply is a patch, and asks for create where the
# object does not exist yet; before that the operator gets it, lest it takes over somebody else's. Updating finalizers is the
# right to set owner references that block their owner's deletion.
`

func newGenerateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "generate", Short: "Print files that follow from the kinds"}
	cmd.AddCommand(newGenerateRBACCommand())
	return cmd
}

func newGenerateRBACCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:     "rbac -f FILE",
		Short:   "Print the operator's ClusterRole",
		Long:    "Print the ClusterRole with the rights that the operator needs to serve custom resources like the given ones, and no other.",
		Example: "  opctl generate rbac -f config/samples/SAMPLE.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			objects := map[schema.GroupVersionKind]bool{{Version: "v1", Kind: "Pod"}: false}
			kinds := map[string]*kind.Kind{}
			builtin, err := kind.Embedded()
			if err != nil {
				return err
			}
			err = renderFiles(builtin, cmd.InOrStdin(), files, defaultPlace, func(k *kind.Kind, m *render.Manifest) error {
				kinds[k.OwnerLabel()] = k
				for _, o := range m.Objects {
					objects[o.GroupVersionKind()] = true
				}
				return nil
			})
			if err != nil {
				return err
			}
			text, err := yaml.Marshal(role(kinds, objects))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s%s", roleHeader, text)
			return err
		},
	}
	addFilesFlag(cmd, &files)
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// role returns the rights to serve kinds whose charts render objects. The value of an object kind tells whether it is written.
func role(kinds map[string]*kind.Kind, objects map[schema.GroupVersionKind]bool) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "manager-role"},
	}
	add := func(group string, resources []string, verbs ...string) {
		if len(resources) > 0 {
			r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		group, plural := kinds[key].Names.Group, kinds[key].Names.Plural
		add(group, []string{plural}, "list", "watch")
		add(group, []string{plural + "/status"}, "patch")
		add(group, []string{plural + "/finalizers"}, "update")
	}
	written, watched := map[string][]string{}, map[string][]string{}
	for gvk, isWritten := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		resources := watched
		if isWritten {
			resources = written
		}
		resources[gvk.Group] = append(resources[gvk.Group], resource.Resource)
	}
	for _, group := range slices.Sorted(maps.Keys(written)) {
		slices.Sort(written[group])
		add(group, slices.Compact(written[group]), "get", "list", "watch", "create", "patch", "delete")
	}
	for _, group := range slices.Sorted(maps.Keys(watched)) {
		add(group, watched[group], "list", "watch")
	}
	add("", []string{"events"}, "create", "patch")
	return r
}
