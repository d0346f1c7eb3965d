package observe

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StripPod removes from a pod all that Observe does not look at. It is a transform for the cache, where a pod then takes a
// fraction of its memory. A pod that may be a rendered object only loses its managed fields, since the cache is also what
// drift is found by. Other objects pass unchanged.
func StripPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	if c := metav1.GetControllerOfNoCopy(p); c != nil && !makesPods(c) {
		p.ManagedFields = nil
		return p, nil
	}
	stripped := &corev1.Pod{
		ObjectMeta: stripMeta(&p.ObjectMeta),
		Status:     corev1.PodStatus{Phase: p.Status.Phase, Message: p.Status.Message, Reason: p.Status.Reason},
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled {
			stripped.Status.Conditions = append(stripped.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	stripped.Status.InitContainerStatuses = stripContainers(p.Status.InitContainerStatuses)
	stripped.Status.ContainerStatuses = stripContainers(p.Status.ContainerStatuses)
	return stripped, nil
}

// StripJob does for Jobs what StripPod does for pods: it strips the runs of CronJobs, of which there may be many.
func StripJob(object any) (any, error) {
	j, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	if c := metav1.GetControllerOfNoCopy(j); c == nil || c.Kind != cronJobs.Kind {
		j.ManagedFields = nil
		return j, nil
	}
	stripped := &batchv1.Job{
		ObjectMeta: stripMeta(&j.ObjectMeta),
		Spec:       batchv1.JobSpec{Suspend: j.Spec.Suspend},
		Status: batchv1.JobStatus{
			StartTime:      j.Status.StartTime,
			CompletionTime: j.Status.CompletionTime,
			Active:         j.Status.Active,
			Succeeded:      j.Status.Succeeded,
			Failed:         j.Status.Failed,
		},
	}
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
			stripped.Status.Conditions = append(stripped.Status.Conditions, batchv1.JobCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return stripped, nil
}

// makesPods tells whether a controller is one of Kubernetes' own, whose pods no chart renders.
func makesPods(c *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(c.APIVersion)
	return err == nil && (gv.Group == "" || gv.Group == "apps" || gv.Group == "batch")
}

func stripMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              m.Name,
		Namespace:         m.Namespace,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		Labels:            m.Labels,
		OwnerReferences:   m.OwnerReferences,
		DeletionTimestamp: m.DeletionTimestamp,
	}
}

func stripContainers(containers []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(containers) == 0 {
		return nil
	}
	out := make([]corev1.ContainerStatus, len(containers))
	for i := range containers {
		c := &containers[i]
		out[i] = corev1.ContainerStatus{
			Name:                 c.Name,
			Image:                c.Image,
			Ready:                c.Ready,
			Started:              c.Started,
			RestartCount:         c.RestartCount,
			State:                stripState(c.State),
			LastTerminationState: stripState(c.LastTerminationState),
		}
	}
	return out
}

func stripState(s corev1.ContainerState) corev1.ContainerState {
	switch {
	case s.Waiting != nil:
		return corev1.ContainerState{Waiting: s.Waiting}
	case s.Running != nil:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	case s.Terminated != nil:
		end := &corev1.ContainerStateTerminated{Reason: s.Terminated.Reason, ExitCode: s.Terminated.ExitCode, Signal: s.Terminated.Signal}
		if cannotStart(s.Terminated) {
			end.Message = s.Terminated.Message // any other one is the program's own, and may say anything
		}
		return corev1.ContainerState{Terminated: end}
	}
	return corev1.ContainerState{}
}
