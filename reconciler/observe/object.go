package observe

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
)

// How far an object is.
const (
	statusCurrent     = string(status.CurrentStatus)
	statusInProgress  = string(status.InProgressStatus)
	statusFailed      = string(status.FailedStatus)
	statusTerminating = string(status.TerminatingStatus)
)

var (
	deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	jobs        = schema.GroupKind{Group: "batch", Kind: "Job"}
	cronJobs    = schema.GroupKind{Group: "batch", Kind: "CronJob"}
	barePods    = schema.GroupKind{Kind: "Pod"}
)

// objectOf judges an object by kstatus' rules but for these: a Job is not done while it runs, a pod is judged without the clock
// and has failed if its phase says so, and an object that says it is not available is not current.
func objectOf(u *unstructured.Unstructured) (Object, error) {
	o := Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	gk := u.GroupVersionKind().GroupKind()
	conditions := conditionsOf(u)
	switch {
	case text(u, "metadata", "deletionTimestamp") != "":
		o.Status, o.Message = statusTerminating, "is being deleted"
	case gk == jobs:
		o.Status, o.Message = jobStatus(u, conditions)
	case gk == barePods:
		o.Status, o.Message = podStatus(u, conditions)
	default:
		result, err := status.Compute(u)
		if err != nil {
			return Object{}, fmt.Errorf("computing the status of %s: %w", kind.Describe(u), err)
		}
		o.Status, o.Message = string(result.Status), result.Message
	}
	available := conditions.find("Available")
	if o.Status == statusCurrent && available.status == "False" {
		o.Status, o.Message = statusInProgress, available.message
	}
	o.Serving = available.status == "True" || available.status == "" && o.Status == statusCurrent
	o.Rolling = gk == deployments && isRolling(u, conditions)
	switch o.Status {
	case statusCurrent:
		o.Message = ""
		return o, nil
	case statusFailed:
		o.Reason = ReasonFailed
	default:
		o.Reason = ReasonProgressing
	}
	if refused := conditions.find("ReplicaFailure"); refused.status == "True" {
		o.Reason, o.Message = refusal(refused)
	}
	o.Message = bounded(o.Message)
	return o, nil
}

func jobStatus(u *unstructured.Unstructured, conditions conditions) (status, message string) {
	suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend")
	failed := conditions.find("Failed")
	switch {
	case failed.status == "True":
		return statusFailed, failed.reason + ": " + failed.message
	case conditions.find("Complete").status == "True" || suspended:
		return statusCurrent, ""
	default:
		return statusInProgress, "has not completed yet"
	}
}

func podStatus(u *unstructured.Unstructured, conditions conditions) (status, message string) {
	switch phase := text(u, "status", "phase"); {
	case phase == "Succeeded" || phase == "Running" && conditions.find("Ready").status == "True":
		return statusCurrent, ""
	case phase == "Failed":
		return statusFailed, "has failed"
	default:
		return statusInProgress, "is not ready yet"
	}
}

// isRolling tells whether a Deployment is on its way to what its spec says. Once a rollout is through, Progressing stays true
// with the reason NewReplicaSetAvailable, also while pods come and go later.
func isRolling(u *unstructured.Unstructured, conditions conditions) bool {
	generation, _, _ := unstructured.NestedInt64(u.Object, "metadata", "generation")
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	progressing := conditions.find("Progressing")
	return generation != observed || progressing.reason != "NewReplicaSetAvailable" && progressing.reason != "ProgressDeadlineExceeded"
}

var (
	// A refused pod is named at random, and anew with each try.
	refusedPod = regexp.MustCompile(`^[Pp]ods? "[^"]*" (?:is|are) (forbidden|invalid): `)
	// What others use of a quota changes all the time.
	quotaUsed = regexp.MustCompile(`, used: \S*,`)
)

// refusal says why the API server takes no pods: a quota, Pod Security, a webhook.
func refusal(c condition) (reason, message string) {
	reason = cmp.Or(c.reason, "FailedCreate")
	if strings.Contains(c.message, "exceeded quota: ") {
		reason = "QuotaExceeded"
	}
	return reason, quotaUsed.ReplaceAllString(refusedPod.ReplaceAllString(c.message, "pods are $1: "), ",")
}

// condition is an entry of status.conditions.
type condition struct{ kind, status, reason, message string }

type conditions []condition

func conditionsOf(u *unstructured.Unstructured) conditions {
	found, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := found.([]any)
	if len(list) == 0 {
		return nil
	}
	out := make(conditions, 0, len(list))
	for _, c := range list {
		if m, ok := c.(map[string]any); ok {
			field := func(name string) string { s, _ := m[name].(string); return s }
			out = append(out, condition{field("type"), field("status"), field("reason"), field("message")})
		}
	}
	return out
}

// find returns the condition of a type, an empty one if there is none.
func (cs conditions) find(kind string) condition {
	for _, c := range cs {
		if c.kind == kind {
			return c
		}
	}
	return condition{}
}

// text returns the string at path, empty if there is none.
func text(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}
