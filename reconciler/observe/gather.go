package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Gather reads the pods that bear ownerLabel with the value name. A pod without a controller is nobody's workload: whoever
// made it by hand gave it the label, and it is left out.
func Gather(ctx context.Context, reader client.Reader, namespace, ownerLabel, name string) (Observation, error) {
	var list corev1.PodList
	if err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{ownerLabel: name}, client.UnsafeDisableDeepCopy); err != nil {
		return Observation{}, fmt.Errorf("listing pods: %w", err)
	}
	o := Observation{Pods: make([]Pod, 0, len(list.Items))}
	for i := range list.Items {
		if metav1.GetControllerOfNoCopy(&list.Items[i]) != nil {
			o.Pods = append(o.Pods, podOf(&list.Items[i]))
		}
	}
	slices.SortFunc(o.Pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return o, nil
}

// StripPod removes from a pod all that Gather does not look at. It is a transform for the cache, where a pod then takes a
// fraction of its memory; other objects pass unchanged.
func StripPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              p.Name,
			Namespace:         p.Namespace,
			UID:               p.UID,
			ResourceVersion:   p.ResourceVersion,
			Labels:            p.Labels,
			OwnerReferences:   p.OwnerReferences,
			DeletionTimestamp: p.DeletionTimestamp,
		},
		Status: corev1.PodStatus{Phase: p.Status.Phase, Message: p.Status.Message, Reason: p.Status.Reason},
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled {
			stripped.Status.Conditions = append(stripped.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	for i := range p.Status.InitContainerStatuses {
		stripped.Status.InitContainerStatuses = append(stripped.Status.InitContainerStatuses, stripContainer(&p.Status.InitContainerStatuses[i]))
	}
	for i := range p.Status.ContainerStatuses {
		stripped.Status.ContainerStatuses = append(stripped.Status.ContainerStatuses, stripContainer(&p.Status.ContainerStatuses[i]))
	}
	return stripped, nil
}

func stripContainer(c *corev1.ContainerStatus) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name:                 c.Name,
		Image:                c.Image,
		Ready:                c.Ready,
		RestartCount:         c.RestartCount,
		State:                c.State,
		LastTerminationState: c.LastTerminationState,
	}
}

func podOf(p *corev1.Pod) Pod {
	out := Pod{Name: p.Name, Phase: string(p.Status.Phase), Terminating: p.DeletionTimestamp != nil}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
	}
	for _, c := range containersOf(p) {
		out.Restarts += int64(c.RestartCount)
	}
	if !out.Ready {
		out.Reason, out.Message = trouble(p)
	}
	return out
}

func containersOf(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}
