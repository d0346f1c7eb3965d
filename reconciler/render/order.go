package render

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stages orders kinds by what others need of them: definitions before their objects, namespaces and classes before what is
// in them, identities and settings before the workloads that start with them. What is not named comes after all that is; webhooks come last, when what serves them is there.
var stages = map[string]int{
	"CustomResourceDefinition":       -5,
	"Namespace":                      -4,
	"PriorityClass":                  -4,
	"RuntimeClass":                   -4,
	"StorageClass":                   -4,
	"ServiceAccount":                 -3,
	"ClusterRole":                    -3,
	"ClusterRoleBinding":             -3,
	"Role":                           -3,
	"RoleBinding":                    -3,
	"Secret":                         -2,
	"ConfigMap":                      -2,
	"Service":                        -1,
	"MutatingWebhookConfiguration":   1,
	"ValidatingWebhookConfiguration": 1,
}

// byStage orders objects by stage, kind, namespace and name.
func byStage(a, b *unstructured.Unstructured) int {
	return cmp.Or(
		cmp.Compare(stages[a.GetKind()], stages[b.GetKind()]),
		cmp.Compare(a.GetKind(), b.GetKind()),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()),
		cmp.Compare(a.GetName(), b.GetName()),
	)
}
