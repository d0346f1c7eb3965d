package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func runOf(cronJob string, status batchv1.JobStatus) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "nightly-1", Namespace: "default", OwnerReferences: []metav1.OwnerReference{controller("batch/v1", "CronJob", cronJob)},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager"}},
		},
		Spec:   batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "node-a"}}},
		Status: status,
	}
}

func TestJobs(t *testing.T) {
	east := time.FixedZone("east", 3600)
	start, end := metav1.Date(2026, 1, 1, 1, 0, 0, 0, east), metav1.Date(2026, 1, 1, 1, 5, 0, 0, east)
	suspended := runOf("nightly", batchv1.JobStatus{})
	suspend := true
	suspended.Spec.Suspend = &suspend
	rendered := runOf("nightly", batchv1.JobStatus{Active: 1})
	rendered.OwnerReferences = []metav1.OwnerReference{controller("cache.example.com/v1", "Cache", "cache")}
	bare := runOf("", batchv1.JobStatus{})
	bare.OwnerReferences = nil
	for name, c := range map[string]struct {
		reason string
		job    *batchv1.Job
		want   []Job
	}{
		"new":       {"its controller has not seen it", runOf("nightly", batchv1.JobStatus{}), []Job{{Owner: "nightly", Phase: "Pending"}}},
		"refused":   {"started, but a quota takes no pod", runOf("nightly", batchv1.JobStatus{StartTime: &start}), []Job{{Owner: "nightly", Phase: "Pending", StartTime: "2026-01-01T00:00:00Z"}}},
		"running":   {"a pod is there", runOf("nightly", batchv1.JobStatus{StartTime: &start, Active: 1}), []Job{{Owner: "nightly", Phase: "Running", StartTime: "2026-01-01T00:00:00Z"}}},
		"trying":    {"it backs off between two pods", runOf("nightly", batchv1.JobStatus{StartTime: &start, Failed: 1}), []Job{{Owner: "nightly", Phase: "Running", StartTime: "2026-01-01T00:00:00Z"}}},
		"suspended": {"its spec says so", suspended, []Job{{Owner: "nightly", Phase: "Suspended"}}},
		"complete": {
			"its condition says so, and when", runOf("nightly", batchv1.JobStatus{StartTime: &start, CompletionTime: &end, Succeeded: 1, Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: "True", Reason: "CompletionsReached"}, {Type: batchv1.JobComplete, Status: "True", Reason: "CompletionsReached"},
			}}),
			[]Job{{Owner: "nightly", Phase: "Complete", StartTime: "2026-01-01T00:00:00Z", CompletionTime: "2026-01-01T00:05:00Z"}},
		},
		"failed": {
			"its condition says why", runOf("nightly", batchv1.JobStatus{StartTime: &start, Failed: 7, Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobFailureTarget, Status: "True", Reason: "Early"},
				{Type: batchv1.JobFailed, Status: "True", Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit", LastProbeTime: end},
			}}),
			[]Job{{Owner: "nightly", Phase: "Failed", StartTime: "2026-01-01T00:00:00Z", Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"}},
		},
		"rendered": {"no CronJob made it", rendered, []Job{{Phase: "Running"}}},
		"nobody's": {"someone made it by hand", bare, []Job{}},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.want {
				c.want[i].Name = "nightly-1"
			}
			observed := func(j *batchv1.Job) []Job {
				o, err := Observe(World{Jobs: []batchv1.Job{*j}})
				if err != nil {
					t.Fatal(err)
				}
				return o.Jobs
			}
			if diff := cmp.Diff(c.want, observed(c.job)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			stripped, err := StripJob(c.job.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, observed(stripped.(*batchv1.Job))); diff != "" {
				t.Errorf("the stripped Job tells another story (-want +got):\n%s", diff)
			}
			if got := stripped.(*batchv1.Job); got.ManagedFields != nil || (got.Spec.Template.Spec.NodeName == "") != (name != "rendered" && name != "nobody's") {
				t.Errorf("only the runs of CronJobs are stripped, since drift is found in all of a rendered Job; got %+v", got)
			}
		})
	}
}

func TestNextScheduleTime(t *testing.T) {
	for name, c := range map[string]struct{ reason, schedule, zone, after, want string }{
		"daily":             {"later on that day", "0 3 * * *", "", "2026-01-01T00:00:30Z", "2026-01-01T03:00:00Z"},
		"at that very time": {"the first time after it", "0 3 * * *", "", "2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z"},
		"hourly":            {"a descriptor", "@hourly", "", "2026-01-01T00:00:30Z", "2026-01-01T01:00:00Z"},
		"every":             {"an interval", "@every 90m", "", "2026-01-01T00:00:30Z", "2026-01-01T01:30:30Z"},
		"zone in winter":    {"Berlin is one hour ahead", "0 3 * * *", "Europe/Berlin", "2026-01-01T00:00:30Z", "2026-01-01T02:00:00Z"},
		"zone in summer":    {"Berlin is two hours ahead", "0 3 * * *", "Europe/Berlin", "2026-07-01T00:00:30Z", "2026-07-01T01:00:00Z"},
		"no such zone":      {"nothing can be said", "0 3 * * *", "Europe/Nowhere", "2026-01-01T00:00:30Z", ""},
		"host's zone":       {"it would depend on the host", "0 3 * * *", "Local", "2026-01-01T00:00:30Z", ""},
		"no such schedule":  {"nothing can be said", "0 25 * * *", "", "2026-01-01T00:00:30Z", ""},
		"no schedule":       {"nothing can be said", "", "", "2026-01-01T00:00:30Z", ""},
		"zone in schedule":  {"the API server refuses it, and cron panics", "TZ=UTC", "", "2026-01-01T00:00:30Z", ""},
		"never":             {"there is no such day", "0 0 30 2 *", "", "2026-01-01T00:00:30Z", ""},
		"no start":          {"it was not created yet", "0 3 * * *", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(c.schedule, c.zone, c.after); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestCronJobs(t *testing.T) {
	spec := func(suspend bool) map[string]any {
		return map[string]any{"schedule": "0 3 * * *", "timeZone": "Etc/UTC", "suspend": suspend}
	}
	ran := map[string]any{"active": []any{map[string]any{"name": "b-1"}}, "lastScheduleTime": "2026-02-01T03:00:00Z", "lastSuccessfulTime": "2026-01-31T03:10:00Z"}
	o, err := Observe(World{Objects: []*unstructured.Unstructured{
		object("batch/v1", "CronJob", "c-suspended", map[string]any{"spec": spec(true), "status": ran}),
		object("batch/v1", "CronJob", "b-ran", map[string]any{"spec": spec(false), "status": ran}),
		object("batch/v1", "CronJob", "a-new", map[string]any{"spec": spec(false), "status": map[string]any{}}),
		object("other/v1", "CronJob", "d-other", map[string]any{"spec": spec(false)}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []CronJob{
		{Name: "a-new", NextScheduleTime: "2026-01-01T03:00:00Z"},
		{Name: "b-ran", Active: 1, LastScheduleTime: "2026-02-01T03:00:00Z", LastSuccessfulTime: "2026-01-31T03:10:00Z", NextScheduleTime: "2026-02-02T03:00:00Z"},
		{Name: "c-suspended", Suspended: true, Active: 1, LastScheduleTime: "2026-02-01T03:00:00Z", LastSuccessfulTime: "2026-01-31T03:10:00Z"},
	}
	if diff := cmp.Diff(want, o.CronJobs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if h := Judge(o); !h.Settled || !h.Serving {
		t.Errorf("a CronJob is always settled, got %+v", h)
	}
}
