package observe

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
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
	if p.Status.Phase == corev1.PodFailed { // only then do last words count; a transform may be called twice
		stripped.Spec.InitContainers, stripped.Spec.Containers = policies(p.Spec.InitContainers), policies(p.Spec.Containers)
	}
	stripped.Status.InitContainerStatuses = stripContainers(p.Status.InitContainerStatuses, stripped.Spec.InitContainers)
	stripped.Status.ContainerStatuses = stripContainers(p.Status.ContainerStatuses, stripped.Spec.Containers)
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
	var annotations map[string]string
	if owner, ok := m.Annotations[kind.OwnerAnnotation]; ok {
		annotations = map[string]string{kind.OwnerAnnotation: owner}
	}
	return metav1.ObjectMeta{
		Annotations:       annotations,
		Name:              m.Name,
		Namespace:         m.Namespace,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		Labels:            ownLabels(m.Labels),
		OwnerReferences:   m.OwnerReferences,
		DeletionTimestamp: m.DeletionTimestamp,
	}
}

// ownLabels returns the labels that may be owner labels, and the one that leads to a pod's Deployment.
func ownLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if kind.MayBeOwnerLabel(key) || key == appsv1.DefaultDeploymentUniqueLabelKey {
			out[key] = value
		}
	}
	return out
}

func stripContainers(containers []corev1.ContainerStatus, specs []corev1.Container) []corev1.ContainerStatus {
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
			State:                stripState(c.State, leavesWords(specs, c.Name)),
			LastTerminationState: stripState(c.LastTerminationState, false),
		}
	}
	return out
}

// policies returns of containers what leavesWords looks at.
func policies(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for i := range containers {
		out = append(out, corev1.Container{Name: containers[i].Name, TerminationMessagePolicy: containers[i].TerminationMessagePolicy})
	}
	return out
}

// leavesWords tells whether a container's last message is what its program wrote there on purpose. It may else be the end of
// its log, which can hold anything, Secrets included.
func leavesWords(specs []corev1.Container, name string) bool {
	return slices.ContainsFunc(specs, func(c corev1.Container) bool {
		return c.Name == name && c.TerminationMessagePolicy == corev1.TerminationMessageReadFile
	})
}

func stripState(s corev1.ContainerState, words bool) corev1.ContainerState {
	switch {
	case s.Waiting != nil:
		return corev1.ContainerState{Waiting: s.Waiting}
	case s.Running != nil:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	case s.Terminated != nil:
		end := &corev1.ContainerStateTerminated{Reason: s.Terminated.Reason, ExitCode: s.Terminated.ExitCode, Signal: s.Terminated.Signal}
		if words || cannotStart(s.Terminated) {
			end.Message = s.Terminated.Message
		}
		return corev1.ContainerState{Terminated: end}
	}
	return corev1.ContainerState{}
}
