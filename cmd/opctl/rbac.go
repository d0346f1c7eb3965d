package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/memcached-operator/reconciler/generate"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/render"
)

type rbacOptions struct {
	kindsDir       string
	files          []string
	name           string
	serviceAccount string
	namespace      string
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
	cmd.Flags().StringVar(&o.serviceAccount, "service-account", "", "namespace/name of the operator's ServiceAccount: prints a binding for it, too")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "print a Role in this namespace instead, for an operator that watches it alone (--watch-namespaces)")
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
	rights, err := generate.RightsFor(kinds)
	if err != nil {
		return err
	}
	err = renderFiles(kinds, cmd.InOrStdin(), o.files, defaultPlace, func(_ *kind.Kind, m *render.Manifest) error { return rights.Add(m) })
	if err != nil {
		return err
	}
	if o.namespace != "" {
		return printNamespaced(cmd, rights, o, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account})
	}
	role, err := generate.RoleYAML(rights.Role(o.name))
	if err != nil {
		return err
	}
	if _, err := cmd.OutOrStdout().Write(role); err != nil || o.serviceAccount == "" {
		return err
	}
	return printYAML(cmd, &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: o.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: o.name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	})
}

// printNamespaced prints the rights as a Role in one namespace, and binds it to subject if that has a name.
func printNamespaced(cmd *cobra.Command, rights *generate.Rights, o rbacOptions, subject rbacv1.Subject) error {
	role, err := rights.NamespacedRole(o.name, o.namespace)
	if err != nil {
		return err
	}
	text, err := generate.RoleYAML(role)
	if err != nil {
		return err
	}
	if _, err := cmd.OutOrStdout().Write(text); err != nil || subject.Name == "" {
		return err
	}
	return printYAML(cmd, &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: o.name, Namespace: o.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: o.name},
		Subjects:   []rbacv1.Subject{subject},
	})
}
