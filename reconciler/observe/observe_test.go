package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/kind"
)

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func terminated(reason string, code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}}
}

func container(state, last corev1.ContainerState) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "memcached", Image: "memcached:x", State: state, LastTerminationState: last, RestartCount: 3},
	}}
}

func TestTroubleKeepsItsWordsWhileItLasts(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	crashed := [2]string{"CrashLoopBackOff", "container memcached ends with exit code 71"}
	noImage := [2]string{"ImagePullBackOff", `container memcached: image "memcached:x" cannot be pulled`}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   [2]string
	}{
		"starting":                 {container(waiting("ContainerCreating", ""), corev1.ContainerState{}), [2]string{}},
		"running, not yet ready":   {container(running, corev1.ContainerState{}), [2]string{}},
		"pull failed":              {container(waiting("ErrImagePull", "rpc error 1"), corev1.ContainerState{}), noImage},
		"pull backs off":           {container(waiting("ImagePullBackOff", "Back-off 20s"), corev1.ContainerState{}), noImage},
		"crashed":                  {container(terminated("Error", 71), corev1.ContainerState{}), crashed},
		"crash backs off":          {container(waiting("CrashLoopBackOff", "back-off 40s"), terminated("Error", 71)), crashed},
		"restarted after a crash":  {container(running, terminated("Error", 71)), crashed},
		"out of memory":            {container(running, terminated("OOMKilled", 137)), [2]string{"OOMKilled", "container memcached needs more memory than its limit"}},
		"restarted after an end":   {container(running, terminated("Completed", 0)), [2]string{}},
		"config error":             {container(waiting("CreateContainerConfigError", "secret x not found"), corev1.ContainerState{}), [2]string{"CreateContainerConfigError", "container memcached: secret x not found"}},
		"evicted":                  {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}, [2]string{"Evicted", "low on memory"}},
		"no node":                  {corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: "False", Reason: "Unschedulable", Message: "0/3 nodes"}}}, [2]string{"Unschedulable", "0/3 nodes"}},
		"nothing known of the pod": {corev1.PodStatus{}, [2]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: c.status}
			stripped, err := StripPod(pod)
			if err != nil {
				t.Fatal(err)
			}
			got := podOf(stripped.(*corev1.Pod))
			if diff := cmp.Diff(podOf(pod), got); diff != "" {
				t.Errorf("the stripped pod tells another story (-pod +stripped):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, [2]string{got.Reason, got.Message}); diff != "" {
				t.Errorf("trouble (-want +got):\n%s", diff)
			}
		})
	}
}

func deployment(available string, replicas, ready int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "cache", "generation": int64(1)},
		"spec":     map[string]any{"replicas": replicas},
		"status": map[string]any{
			"observedGeneration": int64(1), "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready,
			"conditions": []any{map[string]any{"type": "Available", "status": available}},
		},
	}}
}

func TestJudge(t *testing.T) {
	fresh := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "cache", "generation": int64(1)}, "spec": map[string]any{"replicas": int64(3)},
	}}
	account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "cache"}}}
	crash := Pod{Name: "cache-a", Reason: "CrashLoopBackOff", Message: "container memcached ends with exit code 71"}
	noImage := Pod{Name: "cache-b", Reason: "ImagePullBackOff", Message: "no such image"}
	for name, c := range map[string]struct {
		reason string
		object *unstructured.Unstructured
		pods   []Pod
		want   Health
	}{
		"served":   {"all pods are available", deployment("True", 3, 3), nil, Health{Serving: true, Settled: true, Reason: ReasonServing}},
		"zero":     {"none is promised", deployment("True", 0, 0), nil, Health{Serving: true, Settled: true, Reason: ReasonServing}},
		"fresh":    {"the controller has not seen it", fresh, nil, Health{Reason: ReasonProgressing, Message: "Deployment cache: Replicas: 0/3"}},
		"rolling":  {"it serves all the while", deployment("True", 3, 2), nil, Health{Serving: true, Reason: ReasonProgressing, Message: "Deployment cache: Available: 2/3"}},
		"hanging":  {"the gravest pod says why", deployment("False", 3, 1), []Pod{crash, noImage}, Health{Reason: "ImagePullBackOff", Message: "Pod cache-b: no such image"}},
		"leftover": {"a failed pod that was replaced is history", deployment("True", 3, 3), []Pod{{Name: "cache-x", Reason: "Evicted"}}, Health{Serving: true, Settled: true, Reason: ReasonServing}},
		"going":    {"a pod on its way out is no trouble", deployment("False", 3, 1), []Pod{{Name: "cache-a", Reason: "CrashLoopBackOff", Terminating: true}}, Health{Reason: ReasonProgressing, Message: "Deployment cache: Available: 1/3"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Judge([]*unstructured.Unstructured{account, c.object}, Observation{Pods: c.pods})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestReportOfMemcached(t *testing.T) {
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	observed := Observation{Pods: []Pod{
		{Name: "cache-a", Phase: "Running", Ready: true},
		{Name: "cache-b", Phase: "Pending"},
		{Name: "cache-c", Phase: "Running", Ready: true, Terminating: true},
		{Name: "cache-d", Phase: "Failed", Reason: "Evicted"},
	}}
	got, err := Report(kinds[0], "default", "cache", observed)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"nodes": []any{"cache-a", "cache-b"}, "replicas": int64(2), "readyReplicas": int64(1), "selector": "app=memcached,memcached_cr=cache"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the pods that are there or coming are counted (-want +got):\n%s", diff)
	}
}

func TestStripPodLeavesOthersAlone(t *testing.T) {
	in := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}
	out, err := StripPod(in)
	if err != nil || out != any(in) {
		t.Errorf("got %v, %v", out, err)
	}
}

func BenchmarkReport(b *testing.B) {
	kinds, err := kind.Embedded()
	if err != nil {
		b.Fatal(err)
	}
	observed := Observation{Pods: []Pod{{Name: "cache-a", Phase: "Running", Ready: true}, {Name: "cache-b"}, {Name: "cache-c"}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Report(kinds[0], "default", "cache", observed); err != nil {
			b.Fatal(err)
		}
	}
}
