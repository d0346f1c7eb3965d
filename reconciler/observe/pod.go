package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of a pod whose probes do not succeed; Kubernetes has no word for it.
const (
	reasonStartupProbe   = "StartupProbeFailing"
	reasonReadinessProbe = "ReadinessProbeFailing"
)

// severity orders the reasons of troubles: what someone must mend before what may mend itself. Others rank below these, and
// probes, which may only be slow, below all.
var severity = []string{
	"InvalidImageName", "ErrImageNeverPull", "ImagePullBackOff", "CreateContainerConfigError", "RunContainerError",
	"QuotaExceeded", "FailedCreate", "OOMKilled", "CrashLoopBackOff", "Unschedulable",
}

func rank(reason string) int {
	if i := slices.Index(severity, reason); i >= 0 {
		return i
	}
	if isProbe(reason) {
		return len(severity) + 1
	}
	return len(severity)
}

func isProbe(reason string) bool {
	return reason == reasonStartupProbe || reason == reasonReadinessProbe
}

func podOf(p *corev1.Pod) Pod {
	out := Pod{Name: p.Name, Phase: string(p.Status.Phase), Terminating: p.DeletionTimestamp != nil, Workload: workloadOf(p)}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
	}
	for _, c := range containersOf(p) {
		out.Restarts += int64(c.RestartCount)
	}
	if !out.Ready && !out.Terminating {
		t := troubleOf(p)
		out.Reason, out.Message = t.reason, bounded(t.message)
	}
	return out
}

// workloadOf returns the pod's controller, or the Deployment behind it: a ReplicaSet of one is named after it and the hash.
func workloadOf(p *corev1.Pod) Workload {
	c := metav1.GetControllerOfNoCopy(p)
	if c == nil {
		return Workload{}
	}
	if hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; c.Kind == "ReplicaSet" && hash != "" {
		if deployment, found := strings.CutSuffix(c.Name, "-"+hash); found {
			return Workload{deployments.Kind, deployment}
		}
	}
	return Workload{c.Kind, c.Name}
}

// containersOf yields the init containers and then the others, with what people call them.
func containersOf(p *corev1.Pod) func(yield func(string, *corev1.ContainerStatus) bool) {
	return func(yield func(string, *corev1.ContainerStatus) bool) {
		for i := range p.Status.InitContainerStatuses {
			if !yield("init container", &p.Status.InitContainerStatuses[i]) {
				return
			}
		}
		for i := range p.Status.ContainerStatuses {
			if !yield("container", &p.Status.ContainerStatuses[i]) {
				return
			}
		}
	}
}

// trouble is why something does not serve; an empty one is none.
type trouble struct{ reason, message string }

// troubleOf says why a pod that is not Ready is not, or nothing while it is on its way. The wording stays the same for as long
// as the trouble does: the kubelet alternates between ErrImagePull and ImagePullBackOff, and between a crashed, a waiting
// and a running container, and a status that followed would be written over and over.
func troubleOf(p *corev1.Pod) trouble {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return trouble{}
	case corev1.PodFailed:
		if p.Status.Reason != "" {
			return trouble{p.Status.Reason, p.Status.Message} // Evicted, DeadlineExceeded, NodeAffinity, …
		}
		return failure(p)
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return trouble{cmp.Or(c.Reason, corev1.PodReasonUnschedulable), c.Message}
		}
	}
	var worst trouble
	for what, c := range containersOf(p) {
		if t := containerTrouble(what, c); t.reason != "" && (worst.reason == "" || rank(t.reason) < rank(worst.reason)) {
			worst = t
		}
	}
	if worst.reason != "" {
		return worst
	}
	for i := range p.Status.Conditions {
		// A readiness gate, or a node that is lost. That containers are not ready is no news.
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady && c.Reason != "ContainersNotReady" {
			return trouble{c.Reason, c.Message}
		}
	}
	return trouble{}
}

// failure says how a pod ended whose containers are not started again, in the program's own words if it left any.
func failure(p *corev1.Pod) trouble {
	for what, c := range containersOf(p) {
		if end := c.State.Terminated; end != nil && end.ExitCode != 0 {
			if t := endTrouble(what, c.Name, end); t.reason != "CrashLoopBackOff" {
				return t
			}
			message := fmt.Sprintf("%s %s ended with %s", what, c.Name, exit(end))
			if words := strings.TrimSpace(end.Message); words != "" {
				message += ": " + bounded(words)
			}
			return trouble{"PodFailed", message}
		}
	}
	return trouble{"PodFailed", "all containers have ended"}
}

func containerTrouble(what string, c *corev1.ContainerStatus) trouble {
	if c.Ready {
		return trouble{}
	}
	end := c.State.Terminated
	if end == nil {
		end = c.LastTerminationState.Terminated
	}
	if w := c.State.Waiting; w != nil {
		switch w.Reason {
		case "", "ContainerCreating", "PodInitializing", "CrashLoopBackOff":
		case "ErrImagePull", "ImagePullBackOff":
			return trouble{"ImagePullBackOff", fmt.Sprintf("%s %s: image %q cannot be pulled", what, c.Name, c.Image)}
		case "RunContainerError":
			if end == nil || !cannotStart(end) {
				return trouble{w.Reason, fmt.Sprintf("%s %s cannot start: %s", what, c.Name, w.Message)}
			}
		default: // CreateContainerConfigError, InvalidImageName, …
			return trouble{w.Reason, fmt.Sprintf("%s %s: %s", what, c.Name, w.Message)}
		}
	}
	switch {
	case end != nil && end.ExitCode != 0:
		return endTrouble(what, c.Name, end)
	case c.State.Running == nil || c.Started == nil || what != "container": // an init container may run for a while
		return trouble{}
	case !*c.Started:
		return trouble{reasonStartupProbe, fmt.Sprintf("container %s runs, but its startup probe fails", c.Name)}
	default:
		return trouble{reasonReadinessProbe, fmt.Sprintf("container %s runs, but its readiness probe fails", c.Name)}
	}
}

// endTrouble says why a container ends that should run.
func endTrouble(what, name string, end *corev1.ContainerStateTerminated) trouble {
	switch {
	case cannotStart(end):
		return trouble{"RunContainerError", fmt.Sprintf("%s %s cannot start: %s", what, name, end.Message)}
	case end.Reason == "OOMKilled":
		return trouble{"OOMKilled", fmt.Sprintf("%s %s needs more memory than its limit", what, name)}
	default:
		return trouble{"CrashLoopBackOff", fmt.Sprintf("%s %s ends with %s", what, name, exit(end))}
	}
}

// cannotStart tells whether the container runtime could not even start the program. Its message is the runtime's.
func cannotStart(end *corev1.ContainerStateTerminated) bool {
	return end.Reason == "StartError" || end.Reason == "ContainerCannotRun"
}

// signals are those that end programs, by their numbers on Linux: not where the operator runs, but where the pods do.
var signals = map[int32]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
	11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 31: "SIGSYS",
}

// exit returns "exit code 139 (SIGSEGV)". An exit code above 128 stands for a signal.
func exit(end *corev1.ContainerStateTerminated) string {
	if signal := signals[cmp.Or(end.Signal, end.ExitCode-128)]; signal != "" {
		return fmt.Sprintf("exit code %d (%s)", end.ExitCode, signal)
	}
	return fmt.Sprintf("exit code %d", end.ExitCode)
}
