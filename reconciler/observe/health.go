package observe

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Health is how the objects of a custom resource fare.
type Health struct {
	// Serving is true while every workload has as many available pods as it promises.
	Serving bool
	// Settled is true once every object is as its spec says: no rollout is under way.
	Settled bool
	// Reason and Message say what is missing while one of the two is false: the worst pod's trouble, else the first object's
	// that is not there yet. Reason has the form of a condition's.
	Reason, Message string
}

// Reasons of a Health without a pod in trouble.
const (
	ReasonServing     = "Serving"
	ReasonProgressing = "Progressing"
	ReasonFailed      = "WorkloadFailed"
)

// severity orders the troubles of pods: what someone must mend before what may mend itself. Others rank below these.
var severity = []string{"InvalidImageName", "ImagePullBackOff", "CreateContainerConfigError", "OOMKilled", "CrashLoopBackOff", "Unschedulable"}

// Judge decides how objects, as the cluster has them, and their pods fare. Objects are judged by kstatus' rules; a workload
// that has an Available condition serves while that is true, any other object once it is settled.
func Judge(objects []*unstructured.Unstructured, observed Observation) (Health, error) {
	h := Health{Serving: true, Settled: true, Reason: ReasonServing}
	for _, o := range objects {
		result, err := status.Compute(o)
		if err != nil {
			return Health{}, fmt.Errorf("computing the status of %s: %w", kind.Describe(o), err)
		}
		settled := result.Status == status.CurrentStatus
		h.Serving = h.Serving && serves(o, settled)
		if h.Settled && !settled {
			h.Settled = false
			h.Reason, h.Message = ReasonProgressing, fmt.Sprintf("%s: %s", kind.Describe(o), result.Message)
			if result.Status == status.FailedStatus {
				h.Reason = ReasonFailed
			}
		}
	}
	if pod, found := worst(observed.Pods); found && !h.Settled {
		h.Reason, h.Message = pod.Reason, fmt.Sprintf("Pod %s: %s", pod.Name, pod.Message)
	}
	return h, nil
}

func serves(o *unstructured.Unstructured, settled bool) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Available" {
			return m["status"] == "True"
		}
	}
	return settled
}

// worst returns the pod with the gravest trouble, the first by name of several.
func worst(pods []Pod) (Pod, bool) {
	rank := func(p Pod) int {
		if i := slices.Index(severity, p.Reason); i >= 0 {
			return i
		}
		return len(severity)
	}
	troubled := slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return p.Reason == "" || p.Terminating })
	if len(troubled) == 0 {
		return Pod{}, false
	}
	return slices.MinFunc(troubled, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	}), true
}
