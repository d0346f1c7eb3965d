package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
)

// clusterScoped are Kubernetes' own kinds whose objects belong to no namespace. Rendering asks no cluster; of other kinds it
// takes an object without a namespace for one of the custom resource's namespace.
var clusterScoped = map[schema.GroupKind]bool{
	{Kind: "Namespace"}:        true,
	{Kind: "Node"}:             true,
	{Kind: "PersistentVolume"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:                 true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                             true,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:                 true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                       true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}:       true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                      true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  true,
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                                   true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                                      true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                               true,
}

// place puts o into the target's namespace, unless the kind may place it elsewhere and o says where.
func place(k *kind.Kind, o *unstructured.Unstructured, target Target) error {
	var problem string
	belongsToNone := clusterScoped[o.GroupVersionKind().GroupKind()]
	switch namespace := o.GetNamespace(); {
	case belongsToNone && namespace != "":
		return fmt.Errorf("%s is in namespace %q, but its kind has none", kind.Describe(o), namespace)
	case belongsToNone:
		problem = "belongs to no namespace"
	case namespace == "":
		o.SetNamespace(target.Namespace)
		return nil
	case namespace == target.Namespace:
		return nil
	default:
		problem = fmt.Sprintf("is in namespace %q", namespace)
	}
	if k.Policies.Placement == kind.PlacementAnywhere {
		return nil
	}
	return fmt.Errorf("%s %s: the kind's policies.placement, %s, allows only the custom resource's own namespace, %q", kind.Describe(o), problem, k.Policies.Placement, target.Namespace)
}
