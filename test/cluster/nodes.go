package cluster

import (
	"context"
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// zones are given to the nodes in turn.
var zones = []string{"zone-a", "zone-b", "zone-c"}

// createNodes creates the nodes node-0, node-1 and so on, each with 32 CPUs, 256Gi of memory and room for 1000 pods.
func createNodes(ctx context.Context, clients kubernetes.Interface, count int) error {
	for i := range count {
		node := newNode(fmt.Sprintf("node-%d", i), zones[i%len(zones)])
		if _, err := clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating %s: %w", node.Name, err)
		}
	}
	return nil
}

func newNode(name, zone string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("1000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:     name,
				corev1.LabelOSStable:     "linux",
				corev1.LabelArchStable:   runtime.GOARCH,
				corev1.LabelTopologyZone: zone,
			},
			Annotations: map[string]string{fakeNode: fakeNodeValue},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// nodesTakePods returns an error that names a node on which no pod would be scheduled yet: one that is not Ready, or whose
// taint for that has not been removed.
func nodesTakePods(ctx context.Context, clients kubernetes.Interface, count int) error {
	nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(nodes.Items) < count {
		return fmt.Errorf("%d of %d nodes exist", len(nodes.Items), count)
	}
	for _, node := range nodes.Items {
		if !ready(node) || len(node.Spec.Taints) > 0 {
			return fmt.Errorf("%s is not ready", node.Name)
		}
	}
	return nil
}

func ready(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
