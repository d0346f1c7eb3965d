package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/ownership"
)

// typed returns a value from YAML.
func typed[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// fleet is a custom resource with all that a tree can show.
const fleet = `
apiVersion: test.example.com/v1
kind: Fleet
metadata: {name: f, namespace: ns, uid: u-f, generation: 3}
status:
  observedGeneration: 2
  conditions:
    - {type: Ready, status: "False", reason: ImagePullBackOff, message: "first line\nsecond line", lastTransitionTime: "2026-01-01T00:00:00Z"}
    - {type: Valid, status: "True", reason: SpecValid, message: "", lastTransitionTime: "2025-12-31T00:00:00Z"}
  inventory:
    - {apiVersion: v1, kind: Secret, namespace: ns, name: hidden}
    - {apiVersion: v1, kind: ConfigMap, namespace: elsewhere, name: c}
    - {apiVersion: v1, kind: Pod, namespace: ns, name: bare}
    - {apiVersion: v1, kind: Service, namespace: ns, name: gone}
    - {apiVersion: apps/v1, kind: Deployment, namespace: ns, name: d}
    - {apiVersion: batch/v1, kind: CronJob, namespace: ns, name: cron}
`

func fleetWorld(t *testing.T) *world {
	t.Helper()
	entry := func(apiVersion, kind, namespace, name string) ownership.Entry {
		return ownership.Entry{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	}
	w := &world{
		failed:  map[ownership.Entry]error{entry("v1", "Secret", "ns", "hidden"): errors.New("secrets \"hidden\" is forbidden")},
		unknown: []string{"jobs: forbidden"},
	}
	w.objects = map[ownership.Entry]*unstructured.Unstructured{
		entry("v1", "ConfigMap", "elsewhere", "c"): read(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: elsewhere, uid: u-c}}`),
		entry("v1", "Pod", "ns", "bare"):           read(t, `{apiVersion: v1, kind: Pod, metadata: {name: bare, namespace: ns, uid: u-b}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`),
		entry("apps/v1", "Deployment", "ns", "d"):  read(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, uid: u-d, generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "False", message: too few}]}}`),
		entry("batch/v1", "CronJob", "ns", "cron"): read(t, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: cron, namespace: ns, uid: u-cron}}`),
	}
	pod := func(name, kind, owner, status string) corev1.Pod {
		return typed[corev1.Pod](t, fmt.Sprintf(`{metadata: {name: %s, namespace: ns, uid: u-%s, labels: {pod-template-hash: h}, ownerReferences: [{apiVersion: apps/v1, kind: %s, name: %s, uid: x, controller: true}]}, status: %s}`, name, name, kind, owner, status))
	}
	w.pods = []corev1.Pod{
		pod("d-h-1", "ReplicaSet", "d-h", `{phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: x, image: x, imageID: x, ready: true, restartCount: 1}]}`),
		pod("d-h-2", "ReplicaSet", "d-h", `{phase: Pending, containerStatuses: [{name: x, image: "x:1", imageID: x, ready: false, restartCount: 0, state: {waiting: {reason: ErrImagePull}}}]}`),
		pod("cron-1-a", "Job", "cron-1", `{phase: Succeeded}`),
		pod("stray", "ReplicaSet", "other-h", `{phase: Running}`),
		pod("bare", "Fleet", "f", `{phase: Running}`),
	}
	w.jobs = []batchv1.Job{
		typed[batchv1.Job](t, `{metadata: {name: cron-1, namespace: ns, uid: u-j, ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: cron, uid: u-cron, controller: true}]}, status: {conditions: [{type: Failed, status: "True", reason: DeadlineExceeded, message: took too long}]}}`),
		typed[batchv1.Job](t, `{metadata: {name: other, namespace: ns, ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: other, uid: x, controller: true}]}}`),
	}
	event := func(version int, kind, name, uid, rest string) corev1.Event {
		return typed[corev1.Event](t, fmt.Sprintf(`{metadata: {name: e, namespace: ns, resourceVersion: "%d"}, involvedObject: {kind: %s, name: %s, namespace: ns, uid: %s}, type: Normal, %s}`, version, kind, name, uid, rest))
	}
	w.events = []corev1.Event{
		event(20, "Pod", "d-h-2", "u-d-h-2", `reason: Failed, message: "no image\n", lastTimestamp: "2026-01-01T00:59:00Z", count: 3`),
		event(19, "ReplicaSet", "d-h", "u-rs", `reason: FailedCreate, message: quota, lastTimestamp: "2026-01-01T00:59:00Z"`),
		event(18, "Fleet", "f", "u-f", `reason: Applied, message: created, eventTime: "2026-01-01T00:30:00.000000Z"`),
		event(17, "Fleet", "f", "u-before", `reason: Stranger, message: a namesake's, lastTimestamp: "2026-01-01T00:59:00Z"`),
		event(16, "ReplicaSet", "other-h", "u-rs", `reason: Stranger, message: another's, lastTimestamp: "2026-01-01T00:59:00Z"`),
	}
	for i := range 9 {
		w.events = append(w.events, event(i+1, "CronJob", "cron", "u-cron", fmt.Sprintf(`reason: Old, message: "%d", lastTimestamp: "2026-01-01T00:0%d:00Z"`, i, i)))
	}
	return w
}

func TestTree(t *testing.T) {
	const want = `
Fleet ns/f  Ready=False  generation 3 (observed 2)
├─ conditions
│  ├─ Ready  False  ImagePullBackOff  60m  first line; second line
│  └─ Valid  True   SpecValid         25h
├─ Secret hidden          Unknown, secrets "hidden" is forbidden
├─ ConfigMap elsewhere/c  Current
├─ Pod bare               Current
├─ Service gone           Missing
├─ Deployment d           InProgress, Available: 1/2
│  ├─ Pod d-h-1  Running, ready, 1 restart
│  └─ Pod d-h-2  Pending, 0 restarts, ImagePullBackOff: container x: image "x:1" cannot be pulled
├─ CronJob cron           Current
│  └─ Job cron-1  Failed, DeadlineExceeded: took too long
│     └─ Pod cron-1-a  Succeeded, 0 restarts
├─ Pod stray              Running, not ready, 0 restarts
├─ events
│  ├─ 58m       Normal  Old           CronJob cron    2
│  ├─ 57m       Normal  Old           CronJob cron    3
│  ├─ 56m       Normal  Old           CronJob cron    4
│  ├─ 55m       Normal  Old           CronJob cron    5
│  ├─ 54m       Normal  Old           CronJob cron    6
│  ├─ 53m       Normal  Old           CronJob cron    7
│  ├─ 52m       Normal  Old           CronJob cron    8
│  ├─ 30m       Normal  Applied       Fleet f         created
│  ├─ 60s       Normal  FailedCreate  ReplicaSet d-h  quota
│  └─ 60s (x3)  Normal  Failed        Pod d-h-2       no image
└─ unknown
   └─ jobs: forbidden
`
	var got strings.Builder
	report := reportOf(read(t, fleet), fleetWorld(t))
	if err := report.tree(time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)).write(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestReady is of the present generation alone.
func TestReady(t *testing.T) {
	const ready = `{type: Ready, status: "True"}`
	for name, c := range map[string]struct {
		cr   string
		want bool
	}{
		"ready":       {`{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [` + ready + `]}}`, true},
		"not yet":     {`{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "False"}]}}`, false},
		"no status":   {`{metadata: {generation: 2}}`, false},
		"odd status":  {`{metadata: {generation: 2}, status: {conditions: x}}`, false},
		"stale":       {`{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [` + ready + `]}}`, false},
		"terminating": {`{metadata: {generation: 2, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {observedGeneration: 2, conditions: [` + ready + `]}}`, false},
	} {
		if got := reportOf(read(t, c.cr), &world{}).isReady(); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
