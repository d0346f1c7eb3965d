package observe

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
)

// served is a world of n pods that serve, stripped as the cache holds them.
func served(b *testing.B, n int) World {
	b.Helper()
	w := World{Objects: []*unstructured.Unstructured{
		object("apps/v1", "Deployment", "cache", deploymentStatus("True", int64(n), int64(n))),
		object("v1", "Service", "cache", map[string]any{"spec": map[string]any{"type": "ClusterIP"}, "status": map[string]any{"loadBalancer": map[string]any{}}}),
		object("v1", "ServiceAccount", "cache", nil),
	}}
	for i := range n {
		stripped, err := StripPod(pod(fmt.Sprintf("cache-%03d", i), "Deployment", "cache", corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: "True"}, {Type: corev1.PodScheduled, Status: "True"}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "server", Image: "server:x", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
		}))
		if err != nil {
			b.Fatal(err)
		}
		w.Pods = append(w.Pods, *stripped.(*corev1.Pod))
	}
	return w
}

func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{3, 100} {
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) {
			w := served(b, n)
			b.ReportAllocs()
			for b.Loop() {
				o, err := Observe(w)
				if err != nil || !Judge(o).Settled {
					b.Fatal(Judge(o), err)
				}
			}
		})
	}
}

func BenchmarkReport(b *testing.B) {
	kinds, err := kind.Embedded()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{3, 100} {
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) {
			o, err := Observe(served(b, n))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Report(kind.Find(kinds, schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"}), "default", "cache", o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
