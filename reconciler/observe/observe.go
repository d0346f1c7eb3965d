// Package observe decides what the objects, pods and jobs of a custom resource amount to. It is given what the cluster has and
// asks nobody, not even the clock: the same world is always observed, judged and reported alike.
//
//	World ── Observe ──▶ Observation ──┬─ Judge ───▶ Health: how the workload fares
//	                                   └─ Report ──▶ what the kind says of it in the status, through CUE
package observe

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/kind"
)

// World is what the cluster holds of a custom resource.
type World struct {
	// Objects are the rendered objects, as the cluster has them.
	Objects []*unstructured.Unstructured
	// Pods and Jobs are those that bear the owner label. They may be shared with a cache: they are not changed.
	Pods []corev1.Pod
	Jobs []batchv1.Job
}

// Observation is what is known of a custom resource's objects. Its JSON form is #Observation in schemas/kind, which says what
// each field means. Lists are sorted by name and never nil. What JSON leaves out is for Judge alone.
type Observation struct {
	Objects  []Object  `json:"objects"`
	Pods     []Pod     `json:"pods"`
	Jobs     []Job     `json:"jobs"`
	CronJobs []CronJob `json:"cronJobs"`
}

// Object is an object that was rendered and applied.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	// Status is Current, InProgress, Failed or Terminating; Message says what is missing and is empty while Current.
	Status  string `json:"status"`
	Message string `json:"message"`

	// Reason goes with Message: Progressing, WorkloadFailed, QuotaExceeded or why else pods are refused.
	Reason string `json:"-"`
	// Serving is the Available condition; without one, that Status is Current.
	Serving bool `json:"-"`
	// Rolling is true while a rollout is under way that has not missed its deadline.
	Rolling bool `json:"-"`
}

// Pod is one pod.
type Pod struct {
	Name string `json:"name"`
	// Phase is Pending, Running, Succeeded, Failed or Unknown.
	Phase       string `json:"phase"`
	Ready       bool   `json:"ready"`
	Terminating bool   `json:"terminating"`
	// Restarts sums the restarts of all containers.
	Restarts int64 `json:"restarts"`
	// Reason and Message say what keeps the pod from serving; empty while nothing does, or nothing worth a word. Neither holds
	// what changes by itself: a time, a count, a back-off.
	Reason  string `json:"reason"`
	Message string `json:"message"`

	// Workload is what the pod belongs to.
	Workload Workload `json:"-"`
}

// Workload names what brings pods about: a Deployment, a StatefulSet, a Job.
type Workload struct{ Kind, Name string }

// Job is one run of a Job. Times are as in 2006-01-02T15:04:05Z, empty while unknown.
type Job struct {
	Name string `json:"name"`
	// Owner is the name of the CronJob that made it, if one did.
	Owner string `json:"owner"`
	// Phase is Pending, Running, Suspended, Complete or Failed.
	Phase          string `json:"phase"`
	StartTime      string `json:"startTime"`
	CompletionTime string `json:"completionTime"`
	// Reason and Message say why it failed.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// CronJob is a CronJob that was rendered and applied. Times are as in 2006-01-02T15:04:05Z, empty while unknown.
type CronJob struct {
	Name               string `json:"name"`
	Suspended          bool   `json:"suspended"`
	Active             int64  `json:"active"`
	LastScheduleTime   string `json:"lastScheduleTime"`
	LastSuccessfulTime string `json:"lastSuccessfulTime"`
	NextScheduleTime   string `json:"nextScheduleTime"`
}

// maxMessage bounds, in bytes, a message that is in others' words.
const maxMessage = 512

// Observe sums up a world. Pods and Jobs without a controller are left out: whoever made them by hand gave them the label. An
// error is about an object whose status has not the form that kstatus expects.
func Observe(w World) (Observation, error) {
	o := Observation{
		Objects:  make([]Object, 0, len(w.Objects)),
		Pods:     make([]Pod, 0, len(w.Pods)),
		Jobs:     make([]Job, 0, len(w.Jobs)),
		CronJobs: []CronJob{},
	}
	for _, u := range w.Objects {
		object, err := objectOf(u)
		if err != nil {
			return Observation{}, err
		}
		o.Objects = append(o.Objects, object)
		if isCronJob(u) {
			o.CronJobs = append(o.CronJobs, cronJobOf(u))
		}
	}
	slices.SortFunc(o.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	slices.SortStableFunc(o.CronJobs, func(a, b CronJob) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range controlled[corev1.Pod](w.Pods) {
		o.Pods = append(o.Pods, podOf(p))
	}
	for _, j := range controlled[batchv1.Job](w.Jobs) {
		o.Jobs = append(o.Jobs, jobOf(j))
	}
	return o, nil
}

// controlled returns the objects that have a controller, sorted by name and namespace.
func controlled[T any, P interface {
	*T
	metav1.Object
}](objects []T) []P {
	out := make([]P, 0, len(objects))
	for i := range objects {
		if metav1.GetControllerOfNoCopy(P(&objects[i])) != nil {
			out = append(out, P(&objects[i]))
		}
	}
	slices.SortFunc(out, func(a, b P) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetNamespace(), b.GetNamespace()))
	})
	return out
}

// bounded returns what others say in one line of bounded length.
func bounded(message string) string { return kind.Shorten(message, maxMessage) }
