package observe

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phases of a Job.
const (
	jobPending   = "Pending"
	jobRunning   = "Running"
	jobSuspended = "Suspended"
	jobComplete  = "Complete"
	jobFailed    = "Failed"
)

func jobOf(j *batchv1.Job) Job {
	out := Job{Name: j.Name, StartTime: timestamp(j.Status.StartTime), CompletionTime: timestamp(j.Status.CompletionTime), Phase: jobPending}
	if c := metav1.GetControllerOfNoCopy(j); c != nil && c.Kind == cronJobs.Kind {
		out.Owner = c.Name
	}
	switch {
	case j.Spec.Suspend != nil && *j.Spec.Suspend:
		out.Phase = jobSuspended
	case j.Status.Active+j.Status.Succeeded+j.Status.Failed > 0:
		out.Phase = jobRunning
	}
	for _, c := range j.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			out.Phase = jobComplete
		case c.Type == batchv1.JobFailed:
			out.Phase, out.Reason, out.Message = jobFailed, c.Reason, bounded(c.Message)
		}
	}
	return out
}

func timestamp(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
