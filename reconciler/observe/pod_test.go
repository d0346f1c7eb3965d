package observe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func terminated(reason string, code int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: reason, ExitCode: code, Message: message, ContainerID: "containerd://1", FinishedAt: metav1.Now(),
	}}
}

var (
	none    = corev1.ContainerState{}
	running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
)

func container(state, last corev1.ContainerState) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "main", Image: "server:x", ImageID: "sha256:1", State: state, LastTerminationState: last, RestartCount: 3}
}

func started(c corev1.ContainerStatus, yes bool) corev1.ContainerStatus {
	c.Started = &yes
	return c
}

func ready(c corev1.ContainerStatus) corev1.ContainerStatus {
	c.Ready = true
	return c
}

// phase is a pod's status with some containers.
func phase(phase corev1.PodPhase, containers ...corev1.ContainerStatus) corev1.PodStatus {
	return corev1.PodStatus{Phase: phase, ContainerStatuses: containers, Conditions: []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: "True"},
		{Type: corev1.PodScheduled, Status: "True"},
		{Type: corev1.PodReady, Status: "False", Reason: "ContainersNotReady", Message: "containers with unready status: [main]"},
	}}
}

func initializing(c corev1.ContainerStatus) corev1.PodStatus {
	s := phase(corev1.PodPending, container(waiting("PodInitializing", ""), none))
	s.InitContainerStatuses = []corev1.ContainerStatus{c}
	return s
}

func withCondition(s corev1.PodStatus, kind corev1.PodConditionType, reason, message string) corev1.PodStatus {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			s.Conditions[i] = corev1.PodCondition{Type: kind, Status: "False", Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
		}
	}
	return s
}

func TestTroubleKeepsItsWordsWhileItLasts(t *testing.T) {
	type want struct{ Reason, Message string }
	crashed := want{"CrashLoopBackOff", "container main ends with exit code 71"}
	noImage := want{"ImagePullBackOff", `container main: image "server:x" cannot be pulled`}
	noSecret := `secret "credentials" not found`
	noProgram := `exec: "serve": executable file not found in $PATH`
	cannotRun := want{"RunContainerError", "container main cannot start: " + noProgram}
	nodes := "0/3 nodes are available: 3 Insufficient memory."
	for name, c := range map[string]struct {
		reason string
		status corev1.PodStatus
		want   want
	}{
		"starting":               {"nothing is wrong yet", phase(corev1.PodPending, container(waiting("ContainerCreating", ""), none)), want{}},
		"pull failed":            {"as while it backs off", phase(corev1.PodPending, container(waiting("ErrImagePull", "rpc error 1"), none)), noImage},
		"pull backs off":         {"without the back-off", phase(corev1.PodPending, container(waiting("ImagePullBackOff", "Back-off 20s"), none)), noImage},
		"no such name":           {"the kubelet's words", phase(corev1.PodPending, container(waiting("InvalidImageName", `couldn't parse image name "A B"`), none)), want{"InvalidImageName", `container main: couldn't parse image name "A B"`}},
		"secret missing":         {"the kubelet says which", phase(corev1.PodPending, container(waiting("CreateContainerConfigError", noSecret), none)), want{"CreateContainerConfigError", "container main: " + noSecret}},
		"crashed":                {"as while it backs off", phase(corev1.PodRunning, container(terminated("Error", 71, "secret"), none)), crashed},
		"crash backs off":        {"without the back-off", phase(corev1.PodRunning, container(waiting("CrashLoopBackOff", "back-off 40s"), terminated("Error", 71, "secret"))), crashed},
		"restarted":              {"it will crash again", phase(corev1.PodRunning, started(container(running, terminated("Error", 71, "")), true)), crashed},
		"killed by a signal":     {"128 and the signal", phase(corev1.PodRunning, container(waiting("CrashLoopBackOff", ""), terminated("Error", 139, ""))), want{"CrashLoopBackOff", "container main ends with exit code 139 (SIGSEGV)"}},
		"out of memory":          {"not only a crash", phase(corev1.PodRunning, container(running, terminated("OOMKilled", 137, ""))), want{"OOMKilled", "container main needs more memory than its limit"}},
		"restarted after an end": {"it did what it should", phase(corev1.PodRunning, container(running, terminated("Completed", 0, ""))), want{}},
		"no such program":        {"the runtime's words", phase(corev1.PodRunning, container(terminated("StartError", 128, noProgram), none)), cannotRun},
		"start fails":            {"as after the end", phase(corev1.PodRunning, container(waiting("RunContainerError", "failed to start: "+noProgram), terminated("StartError", 128, noProgram))), cannotRun},
		"start backs off":        {"as after the end", phase(corev1.PodRunning, container(waiting("CrashLoopBackOff", "back-off 10s"), terminated("StartError", 128, noProgram))), cannotRun},
		"readiness probe":        {"the kubelet has no word", phase(corev1.PodRunning, started(container(running, none), true)), want{"ReadinessProbeFailing", "container main runs, but its readiness probe fails"}},
		"startup probe":          {"the kubelet has no word", phase(corev1.PodRunning, started(container(running, none), false)), want{"StartupProbeFailing", "container main runs, but its startup probe fails"}},
		"gravest container":      {"a probe may only be slow", phase(corev1.PodRunning, started(container(running, none), true), container(waiting("CrashLoopBackOff", ""), terminated("Error", 71, ""))), crashed},
		"init container runs":    {"it may take its time", initializing(started(container(running, none), false)), want{}},
		"init container crashes": {"it is called what it is", initializing(container(waiting("CrashLoopBackOff", ""), terminated("Error", 1, ""))), want{"CrashLoopBackOff", "init container main ends with exit code 1"}},
		"evicted":                {"the kubelet's words", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}, want{"Evicted", "The node was low on resource: memory."}},
		"failed":                 {"it is not started again", phase(corev1.PodFailed, container(terminated("Error", 3, ""), none)), want{"PodFailed", "container main ended with exit code 3"}},
		"failed with words":      {"the program says more", phase(corev1.PodFailed, container(terminated("Error", 2, "wrong key\n"), none)), want{"PodFailed", "container main ended with exit code 2: wrong key"}},
		"failed out of memory":   {"more than an exit code", phase(corev1.PodFailed, container(terminated("OOMKilled", 137, ""), none)), want{"OOMKilled", "container main needs more memory than its limit"}},
		"failed without a word":  {"nothing is known", corev1.PodStatus{Phase: corev1.PodFailed}, want{"PodFailed", "all containers have ended"}},
		"succeeded":              {"not ready, but well", withCondition(phase(corev1.PodSucceeded, container(terminated("Completed", 0, ""), none)), corev1.PodReady, "PodCompleted", ""), want{}},
		"no node":                {"the scheduler's words", withCondition(phase(corev1.PodPending), corev1.PodScheduled, "Unschedulable", nodes), want{"Unschedulable", nodes}},
		"readiness gate":         {"its containers are ready", withCondition(phase(corev1.PodRunning, ready(started(container(running, none), true))), corev1.PodReady, "ReadinessGatesNotReady", "gate x is false"), want{"ReadinessGatesNotReady", "gate x is false"}},
		"long-winded":            {"a message is bounded", withCondition(phase(corev1.PodPending), corev1.PodScheduled, "Unschedulable", strings.Repeat("x", 600)), want{"Unschedulable", strings.Repeat("x", 512) + "…"}},
		"nothing known":          {"no status yet", corev1.PodStatus{}, want{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("cache-a", "Deployment", "cache", c.status)
			p.Spec.Containers = []corev1.Container{{Name: "main", TerminationMessagePolicy: corev1.TerminationMessageReadFile}}
			want := Pod{Name: "cache-a", Phase: string(c.status.Phase), Reason: c.want.Reason, Message: c.want.Message, Workload: Workload{"Deployment", "cache"}}
			for _, s := range append(c.status.InitContainerStatuses, c.status.ContainerStatuses...) {
				want.Restarts += int64(s.RestartCount)
			}
			if diff := cmp.Diff([]Pod{want}, observePods(t, p)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			stripped, err := StripPod(p.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(observePods(t, p), observePods(t, stripped.(*corev1.Pod))); diff != "" {
				t.Errorf("the stripped pod tells another story (-pod +stripped):\n%s", diff)
			}
			if again, _ := StripPod(stripped); cmp.Diff(stripped, again) != "" {
				t.Errorf("stripped twice:\n%s", cmp.Diff(stripped, again))
			}
		})
	}
}

func observePods(t *testing.T, pods ...*corev1.Pod) []Pod {
	t.Helper()
	var w World
	for _, p := range pods {
		w.Pods = append(w.Pods, *p)
	}
	o, err := Observe(w)
	if err != nil {
		t.Fatal(err)
	}
	return o.Pods
}

func TestATerminatingPodIsInNoTrouble(t *testing.T) {
	p := pod("cache-a", "StatefulSet", "cache", phase(corev1.PodRunning, container(terminated("Error", 137, ""), none)))
	p.DeletionTimestamp = &metav1.Time{}
	want := []Pod{{Name: "cache-a", Phase: "Running", Terminating: true, Restarts: 3, Workload: Workload{"StatefulSet", "cache"}}}
	if diff := cmp.Diff(want, observePods(t, p)); diff != "" {
		t.Errorf("it was killed because it is to go (-want +got):\n%s", diff)
	}
}

func TestPodsAreSortedAndNobodysLeftOut(t *testing.T) {
	b, a, mine := pod("b", "Deployment", "cache", corev1.PodStatus{}), pod("a", "Deployment", "cache", corev1.PodStatus{}), pod("c", "", "", corev1.PodStatus{})
	var names []string
	for _, p := range observePods(t, b, mine, a) {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStripPod(t *testing.T) {
	fields := []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	rendered := pod("cache", "", "", corev1.PodStatus{})
	rendered.OwnerReferences = []metav1.OwnerReference{controller("cache.example.com/v1", "Cache", "cache")}
	rendered.Spec.NodeName = "node-a"
	whole := rendered.DeepCopy()
	rendered.ManagedFields = fields
	run := pod("cache", "Job", "cache", corev1.PodStatus{PodIP: "::1"})
	bare := run.DeepCopy()
	bare.Status.PodIP = ""
	bare.Labels = map[string]string{}
	run.Spec.NodeName, run.ManagedFields, run.Annotations = "node-a", fields, map[string]string{"a": "b"}
	service := &corev1.Service{}
	ended := func(policy corev1.TerminationMessagePolicy, words string) *corev1.Pod {
		end := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: words}}
		p := pod("cache", "Job", "cache", corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: end}}})
		p.Labels = map[string]string{}
		p.Spec.Containers = []corev1.Container{{Name: "main", TerminationMessagePolicy: policy}}
		return p
	}
	for name, c := range map[string]struct {
		reason   string
		in, want any
	}{
		"of a workload": {"what is not looked at takes memory", run, bare},
		"last words":    {"the program wrote them on purpose", ended(corev1.TerminationMessageReadFile, "wrong key"), ended(corev1.TerminationMessageReadFile, "wrong key")},
		"end of a log":  {"it may hold anything", ended(corev1.TerminationMessageFallbackToLogsOnError, "key: 123"), ended(corev1.TerminationMessageFallbackToLogsOnError, "")},
		"rendered":      {"drift is found in all of it", rendered, whole},
		"no pod":        {"it is somebody else's", service, service},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := StripPod(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
