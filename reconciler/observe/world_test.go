package observe

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// object is a rendered object as the cluster has it, with fields beside its metadata.
func object(apiVersion, kind, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": "default", "generation": int64(1), "creationTimestamp": "2026-01-01T00:00:30Z"},
	}}
	maps.Copy(u.Object, fields)
	return u
}

// condition as an object has it.
func conditionOf(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
}

var rolledOut = conditionOf("Progressing", "True", "NewReplicaSetAvailable", `ReplicaSet "cache-5" has successfully progressed.`)

// deploymentStatus is spec and status of a Deployment; conditions beside Available and, if there are none, rolledOut.
func deploymentStatus(available string, replicas, ready int64, conditions ...map[string]any) map[string]any {
	if len(conditions) == 0 {
		conditions = []map[string]any{rolledOut}
	}
	all := []any{conditionOf("Available", available, "", "")}
	for _, c := range conditions {
		all = append(all, c)
	}
	return map[string]any{
		"spec": map[string]any{"replicas": replicas, "progressDeadlineSeconds": int64(600)},
		"status": map[string]any{
			"observedGeneration": int64(1), "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready,
			"conditions": all,
		},
	}
}

// pod belongs to a workload; to nobody if that is empty.
func pod(name, ownerKind, owner string, status corev1.PodStatus) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "x"}}, Status: status}
	apiVersion := "apps/v1"
	switch ownerKind {
	case "":
		return p
	case "Deployment":
		p.Labels["pod-template-hash"] = "5d8"
		ownerKind, owner = "ReplicaSet", owner+"-5d8"
	case "Job":
		apiVersion = "batch/v1"
	}
	p.OwnerReferences = []metav1.OwnerReference{controller(apiVersion, ownerKind, owner)}
	return p
}

func controller(apiVersion, kind, name string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &yes}
}
