package observe

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// trouble says why a pod that is not Ready is not, or nothing while it is on its way. The wording stays the same for as long
// as the trouble does: the kubelet alternates between ErrImagePull and ImagePullBackOff, and between a crashed, a waiting
// and a running container, and a status that followed would be written over and over.
func trouble(p *corev1.Pod) (reason, message string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, c.Message
		}
	}
	if p.Status.Phase == corev1.PodFailed {
		if p.Status.Reason == "" {
			return "PodFailed", "all containers have ended"
		}
		return p.Status.Reason, p.Status.Message // Evicted, NodeAffinity, …
	}
	for _, c := range containersOf(p) {
		if reason, message = containerTrouble(&c); reason != "" {
			return reason, message
		}
	}
	return "", ""
}

func containerTrouble(c *corev1.ContainerStatus) (reason, message string) {
	if c.Ready {
		return "", ""
	}
	if w := c.State.Waiting; w != nil {
		switch w.Reason {
		case "", "ContainerCreating", "PodInitializing", "CrashLoopBackOff":
		case "ErrImagePull", "ImagePullBackOff":
			return "ImagePullBackOff", fmt.Sprintf("container %s: image %q cannot be pulled", c.Name, c.Image)
		default: // CreateContainerConfigError, InvalidImageName, …
			return w.Reason, fmt.Sprintf("container %s: %s", c.Name, w.Message)
		}
	}
	end := c.State.Terminated
	if end == nil {
		end = c.LastTerminationState.Terminated
	}
	if end == nil || end.ExitCode == 0 {
		return "", ""
	}
	if end.Reason == "OOMKilled" {
		return "OOMKilled", fmt.Sprintf("container %s needs more memory than its limit", c.Name)
	}
	return "CrashLoopBackOff", fmt.Sprintf("container %s ends with exit code %d", c.Name, end.ExitCode)
}
