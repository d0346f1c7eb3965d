package observe

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Health is how the objects of a custom resource fare.
type Health struct {
	// Serving is true while every workload has as many available pods as it promises.
	Serving bool
	// Settled is true once every object is as its spec says: no rollout is under way. Then Serving is true, too.
	Settled bool
	// Reason and Message say what is missing while Settled is false: the gravest trouble of a pod, else the object that is
	// furthest from its spec. Reason has the form of a condition's.
	Reason, Message string
}

// Reasons of a Health without a pod in trouble.
const (
	ReasonServing     = "Serving"
	ReasonProgressing = "Progressing"
	ReasonFailed      = "WorkloadFailed"
)

// Judge decides how the objects and pods of an observation fare. Pods matter only to the objects that they belong to, and
// only while these are not settled. The runs of CronJobs do not matter: the next one may succeed.
func Judge(o Observation) Health {
	h := Health{Serving: true, Settled: true, Reason: ReasonServing}
	var worst *Object
	for i := range o.Objects {
		object := &o.Objects[i]
		h.Serving = h.Serving && object.Serving
		if object.Status == statusCurrent {
			continue
		}
		h.Settled = false
		if worst == nil || gravity(object) < gravity(worst) {
			worst = object
		}
	}
	if worst == nil {
		return h
	}
	h.Reason, h.Message = worst.Reason, fmt.Sprintf("%s %s: %s", worst.Kind, worst.Name, worst.Message)
	pods := o.blamed()
	if len(pods) == 0 || isRefused(worst) && rank(worst.Reason) < rank(pods[0].Reason) {
		return h
	}
	h.Reason, h.Message = pods[0].Reason, fmt.Sprintf("Pod %s: %s", pods[0].Name, pods[0].Message)
	if others := len(pods) - 1; others > 0 {
		h.Message = fmt.Sprintf("Pod %s and %d more: %s", pods[0].Name, others, pods[0].Message)
	}
	return h
}

// gravity orders objects that are not settled, the worst first.
func gravity(o *Object) int {
	switch {
	case isRefused(o):
		return 0
	case o.Status == statusFailed:
		return 1
	case o.Status == statusInProgress:
		return 2
	default:
		return 3
	}
}

// isRefused tells whether the API server does not take an object's pods.
func isRefused(o *Object) bool {
	return o.Reason != ReasonProgressing && o.Reason != ReasonFailed
}

// blamed returns the pods with the gravest trouble that keeps an object from being settled, by name.
func (o *Observation) blamed() []*Pod {
	var out []*Pod
	for i := range o.Pods {
		p := &o.Pods[i]
		if !o.blames(p) {
			continue
		}
		if len(out) > 0 && out[0].Reason != p.Reason {
			// Of two reasons with the same rank the first by name stays, whatever the order of the pods.
			if cmp.Or(cmp.Compare(rank(out[0].Reason), rank(p.Reason)), cmp.Compare(out[0].Reason, p.Reason)) < 0 {
				continue
			}
			out = out[:0]
		}
		out = append(out, p)
	}
	return out
}

// blames tells whether a pod's trouble keeps its workload from being settled.
func (o *Observation) blames(p *Pod) bool {
	if p.Reason == "" || p.Terminating {
		return false
	}
	i := slices.IndexFunc(o.Objects, func(object Object) bool {
		return object.Kind == p.Workload.Kind && object.Name == p.Workload.Name
	})
	isRun := p.Workload.Kind == jobs.Kind
	if i < 0 {
		return !isRun
	}
	object := &o.Objects[i]
	switch {
	case object.Status == statusCurrent:
		return false
	case object.Status == statusFailed && isRun: // The Job's own word is the last one.
		return false
	case object.Rolling:
		// Every pod starts before its probes succeed, and pods that failed before the rollout are history.
		return !isProbe(p.Reason) && p.Phase != string(corev1.PodFailed)
	default:
		return true
	}
}
