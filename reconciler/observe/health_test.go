package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestJudge(t *testing.T) {
	deployment := func(available string, replicas, ready int64, conditions ...map[string]any) *unstructured.Unstructured {
		return object("apps/v1", "Deployment", "cache", deploymentStatus(available, replicas, ready, conditions...))
	}
	rolling := conditionOf("Progressing", "True", "ReplicaSetUpdated", "")
	late := conditionOf("Progressing", "False", "ProgressDeadlineExceeded", `ReplicaSet "cache-5" has timed out progressing.`)
	refused := func(message string) *unstructured.Unstructured {
		return object("apps/v1", "Deployment", "cache", map[string]any{
			"spec": map[string]any{"replicas": int64(3)},
			"status": map[string]any{"observedGeneration": int64(1), "conditions": []any{
				conditionOf("Available", "False", "", ""), rolling, conditionOf("ReplicaFailure", "True", "FailedCreate", message),
			}},
		})
	}
	stateful := object("apps/v1", "StatefulSet", "cache", map[string]any{
		"spec":   map[string]any{"replicas": int64(2)},
		"status": map[string]any{"observedGeneration": int64(1), "replicas": int64(2), "readyReplicas": int64(1)},
	})
	job := func(suspend bool, conditions ...any) *unstructured.Unstructured {
		return object("batch/v1", "Job", "init", map[string]any{
			"spec":   map[string]any{"suspend": suspend},
			"status": map[string]any{"startTime": "2026-01-01T00:01:00Z", "active": int64(1), "conditions": conditions},
		})
	}
	backedOff := conditionOf("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	custom := func(conditions ...any) *unstructured.Unstructured {
		return object("db.example.com/v1", "Database", "cache", map[string]any{"status": map[string]any{"conditions": conditions}})
	}
	terminating := deployment("True", 3, 3)
	terminating.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:02:00Z"

	crashing := phase(corev1.PodRunning, container(waiting("CrashLoopBackOff", ""), terminated("Error", 71, "")))
	unpullable := phase(corev1.PodPending, container(waiting("ImagePullBackOff", ""), none))
	unready := phase(corev1.PodRunning, started(container(running, none), true))
	evicted := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}
	mine := func(name string, s corev1.PodStatus) *corev1.Pod { return pod(name, "Deployment", "cache", s) }

	good := Health{Serving: true, Settled: true, Reason: ReasonServing}
	for name, c := range map[string]struct {
		reason string
		object *unstructured.Unstructured
		pods   []*corev1.Pod
		want   Health
	}{
		"served": {"all pods are available", deployment("True", 3, 3), nil, good},
		"zero":   {"none is promised", deployment("True", 0, 0), nil, good},
		"fresh": {
			"the controller has not seen it", object("apps/v1", "Deployment", "cache", map[string]any{"spec": map[string]any{"replicas": int64(3)}}), nil,
			Health{Reason: ReasonProgressing, Message: "Deployment cache: Replicas: 0/3"},
		},
		"rolling": {"it serves all the while", deployment("True", 3, 2, rolling), nil, Health{Serving: true, Reason: ReasonProgressing, Message: "Deployment cache: Available: 2/3"}},
		"hanging": {
			"the gravest trouble says why", deployment("False", 3, 1, rolling), []*corev1.Pod{mine("cache-a", crashing), mine("cache-b", unpullable)},
			Health{Reason: "ImagePullBackOff", Message: `Pod cache-b: container main: image "server:x" cannot be pulled`},
		},
		"hanging together": {
			"others in the same trouble are counted", deployment("False", 3, 0, rolling), []*corev1.Pod{mine("cache-c", crashing), mine("cache-a", crashing), mine("cache-b", unready), mine("cache-d", crashing)},
			Health{Reason: "CrashLoopBackOff", Message: "Pod cache-a and 2 more: container main ends with exit code 71"},
		},
		"probe while rolling": {
			"every pod starts before its probes succeed", deployment("True", 3, 2, rolling), []*corev1.Pod{mine("cache-a", unready)},
			Health{Serving: true, Reason: ReasonProgressing, Message: "Deployment cache: Available: 2/3"},
		},
		"probe after the deadline": {
			"now it is what hangs", deployment("True", 3, 2, late), []*corev1.Pod{mine("cache-a", unready)},
			Health{Serving: true, Reason: "ReadinessProbeFailing", Message: "Pod cache-a: container main runs, but its readiness probe fails"},
		},
		"probe after the rollout": {
			"a pod that served does so no more", deployment("True", 3, 2), []*corev1.Pod{mine("cache-a", unready)},
			Health{Serving: true, Reason: "ReadinessProbeFailing", Message: "Pod cache-a: container main runs, but its readiness probe fails"},
		},
		"probe without a deadline": {
			"a StatefulSet never says that it is late", stateful, []*corev1.Pod{pod("cache-1", "StatefulSet", "cache", unready)},
			Health{Reason: "ReadinessProbeFailing", Message: "Pod cache-1: container main runs, but its readiness probe fails"},
		},
		"late": {"nothing is known of its pods", deployment("False", 3, 2, late), nil, Health{Reason: ReasonFailed, Message: "Deployment cache: Progress deadline exceeded"}},
		"quota": {
			"neither the refused pod's name nor what others use", refused(`pods "cache-5-x7f2k" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3`), nil,
			Health{Reason: "QuotaExceeded", Message: "Deployment cache: pods are forbidden: exceeded quota: small, requested: pods=1, limited: pods=3"},
		},
		"pod security": {
			"the API server says which rule", refused(`pods "cache-5-x7f2k" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`), nil,
			Health{Reason: "FailedCreate", Message: `Deployment cache: pods are forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`},
		},
		"quota and old pods": {
			"no new pod is the graver trouble", refused(`pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3`), []*corev1.Pod{mine("cache-a", crashing)},
			Health{Reason: "QuotaExceeded", Message: "Deployment cache: pods are forbidden: exceeded quota: small, requested: pods=1, limited: pods=3"},
		},
		"leftover":          {"a failed pod that was replaced is history", deployment("True", 3, 3), []*corev1.Pod{mine("cache-x", evicted)}, good},
		"leftover, rolling": {"still history", deployment("True", 3, 2, rolling), []*corev1.Pod{mine("cache-x", evicted)}, Health{Serving: true, Reason: ReasonProgressing, Message: "Deployment cache: Available: 2/3"}},
		"a run's pods": {
			"the next run of a CronJob may succeed", deployment("True", 3, 2, rolling), []*corev1.Pod{pod("nightly-1-x", "Job", "nightly-1", crashing)},
			Health{Serving: true, Reason: ReasonProgressing, Message: "Deployment cache: Available: 2/3"},
		},
		"job runs":      {"it is not done", job(false), nil, Health{Reason: ReasonProgressing, Message: "Job init: has not completed yet"}},
		"job crashes":   {"its pod says why it is not done", job(false), []*corev1.Pod{pod("init-x", "Job", "init", crashing)}, Health{Reason: "CrashLoopBackOff", Message: "Pod init-x: container main ends with exit code 71"}},
		"job complete":  {"it is done", job(false, conditionOf("Complete", "True", "", "")), nil, good},
		"job suspended": {"so says its spec", job(true), nil, good},
		"job failed": {
			"its own word is the last one", job(false, backedOff), []*corev1.Pod{pod("init-x", "Job", "init", crashing)},
			Health{Reason: ReasonFailed, Message: "Job init: BackoffLimitExceeded: Job has reached the specified backoff limit"},
		},
		"custom, ready":       {"Ready is kstatus' convention", custom(conditionOf("Ready", "True", "", "")), nil, good},
		"custom, not ready":   {"Ready says why", custom(conditionOf("Ready", "False", "Restoring", "restoring a backup")), nil, Health{Reason: ReasonProgressing, Message: "Database cache: restoring a backup"}},
		"custom, stalled":     {"Stalled says why", custom(conditionOf("Stalled", "True", "NoSpace", "disk full")), nil, Health{Reason: ReasonFailed, Message: "Database cache: disk full"}},
		"custom, unavailable": {"kstatus does not know Available", custom(conditionOf("Available", "False", "Missing", "no endpoints")), nil, Health{Reason: ReasonProgressing, Message: "Database cache: no endpoints"}},
		"custom, pods": {
			"pods of an unknown workload count", custom(conditionOf("Ready", "False", "", "")), []*corev1.Pod{pod("cache-0", "Database", "cache", crashing)},
			Health{Reason: "CrashLoopBackOff", Message: "Pod cache-0: container main ends with exit code 71"},
		},
		"terminating": {"it serves until it is gone", terminating, nil, Health{Serving: true, Reason: ReasonProgressing, Message: "Deployment cache: is being deleted"}},
		"pod runs":    {"a rendered pod", object("v1", "Pod", "cache", map[string]any{"status": map[string]any{"phase": "Running", "conditions": []any{conditionOf("Ready", "True", "", "")}}}), nil, good},
		"pod pends":   {"however long", object("v1", "Pod", "cache", map[string]any{"status": map[string]any{"phase": "Unknown"}}), nil, Health{Reason: ReasonProgressing, Message: "Pod cache: is not ready yet"}},
		"pod failed":  {"no controller replaces it", object("v1", "Pod", "cache", map[string]any{"status": map[string]any{"phase": "Failed"}}), nil, Health{Reason: ReasonFailed, Message: "Pod cache: has failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := World{Objects: []*unstructured.Unstructured{object("v1", "ServiceAccount", "cache", nil), c.object}}
			for _, p := range c.pods {
				w.Pods = append(w.Pods, *p)
			}
			o, err := Observe(w)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, Judge(o)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestObjects(t *testing.T) {
	o, err := Observe(World{Objects: []*unstructured.Unstructured{
		object("v1", "Service", "cache", nil),
		object("apps/v1", "Deployment", "cache", map[string]any{"spec": map[string]any{"replicas": int64(2)}}),
		object("v1", "ConfigMap", "a", nil),
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := Observation{
		Objects: []Object{
			{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a", Status: "Current", Serving: true},
			{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "cache", Status: "InProgress", Message: "Replicas: 0/2", Reason: ReasonProgressing, Rolling: true},
			{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "cache", Status: "Current", Serving: true},
		},
		Pods: []Pod{}, Jobs: []Job{}, CronJobs: []CronJob{},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("sorted by name, lists are never nil (-want +got):\n%s", diff)
	}
}
