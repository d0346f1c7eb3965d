package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/example/memcached-operator/reconciler/observe"
	"github.com/example/memcached-operator/reconciler/ownership"
)

// report tells how a custom resource fares. Its JSON form is what opctl status -o json prints.
type report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Ready is the status of the condition Ready: True, False or Unknown. It is of ObservedGeneration.
	Ready              string `json:"ready"`
	Generation         int64  `json:"generation"`
	ObservedGeneration int64  `json:"observedGeneration"`
	// Terminating is true while the custom resource is being deleted.
	Terminating bool               `json:"terminating,omitempty"`
	Conditions  []metav1.Condition `json:"conditions"`
	Objects     []*node            `json:"objects"`
	// Events are the latest about the custom resource, its objects and their pods, the oldest first.
	Events []event `json:"events"`
	// Unknown names what could not be listed, and why.
	Unknown []string `json:"unknown,omitempty"`
}

// node is an object, a pod or a job, and what it brings about.
type node struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Status is Current, InProgress, Failed or Terminating; Missing, or Unknown if it could not be read; of a pod and a job its
	// phase. Reason and Message say what is wrong.
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Ready and Restarts are a pod's.
	Ready    *bool   `json:"ready,omitempty"`
	Restarts *int64  `json:"restarts,omitempty"`
	Children []*node `json:"children,omitempty"`

	uid types.UID
}

// event is what was told about an object.
type event struct {
	Time    metav1.Time `json:"time"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Object  string      `json:"object"` // "Pod cache-0"
	Message string      `json:"message"`
	Count   int32       `json:"count,omitempty"`

	version string // orders what was told within a second
}

// Statuses of a node beside those of package observe.
const (
	statusMissing     = "Missing"
	statusUnknown     = "Unknown"
	statusTerminating = "Terminating"
)

// maxEvents is how many events a report holds.
const maxEvents = 10

func (r *report) isReady() bool {
	return r.Ready == string(metav1.ConditionTrue) && r.ObservedGeneration == r.Generation && !r.Terminating
}

// reportOf sums up what is known of cr.
func reportOf(cr *unstructured.Unstructured, w *world) *report {
	status := statusOf(cr)
	r := &report{
		APIVersion: cr.GetAPIVersion(), Kind: cr.GetKind(), Namespace: cr.GetNamespace(), Name: cr.GetName(),
		Ready:      string(metav1.ConditionUnknown),
		Generation: cr.GetGeneration(), ObservedGeneration: status.Observed, Terminating: cr.GetDeletionTimestamp() != nil,
		Conditions: append([]metav1.Condition{}, status.Conditions...),
		Objects:    []*node{}, Events: []event{}, Unknown: w.unknown,
	}
	if ready := meta.FindStatusCondition(status.Conditions, "Ready"); ready != nil {
		r.Ready = string(ready.Status)
	}
	for _, e := range status.Inventory {
		r.Objects = append(r.Objects, objectNode(e, w))
	}
	for i := range w.jobs {
		r.addJob(&w.jobs[i])
	}
	for i := range w.pods {
		r.addPod(&w.pods[i])
	}
	r.addEvents(cr.GetUID(), w.events)
	return r
}

// objectNode returns the node of an object of the inventory.
func objectNode(e ownership.Entry, w *world) *node {
	n := &node{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
	o := w.objects[e]
	if err := w.failed[e]; err != nil {
		n.Status, n.Message = statusUnknown, err.Error()
		return n
	}
	if o == nil {
		n.Status = statusMissing
		return n
	}
	n.uid = o.GetUID()
	observed, err := observe.Observe(observe.World{Objects: []*unstructured.Unstructured{o}})
	if err != nil {
		n.Status, n.Message = statusUnknown, err.Error()
		return n
	}
	n.Status, n.Reason, n.Message = observed.Objects[0].Status, observed.Objects[0].Reason, observed.Objects[0].Message
	return n
}

// addJob puts a job below the CronJob that made it. Others are objects of the inventory, or nobody's.
func (r *report) addJob(j *batchv1.Job) {
	observed, err := observe.Observe(observe.World{Jobs: []batchv1.Job{*j}})
	if err != nil || len(observed.Jobs) == 0 {
		return
	}
	if parent := r.find("CronJob", j.Namespace, observed.Jobs[0].Owner); parent != nil {
		job := observed.Jobs[0]
		parent.Children = append(parent.Children, &node{
			APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: j.Namespace, Name: j.Name, uid: j.UID,
			Status: job.Phase, Reason: job.Reason, Message: job.Message,
		})
	}
}

// addPod puts a pod below the workload that it belongs to, however many controllers are between them. A pod without one that is
// known stands by itself, unless it is an object of the inventory.
func (r *report) addPod(p *corev1.Pod) {
	stripped, err := observe.StripPod(p) // the end of a log may hold anything
	if err != nil {
		return
	}
	p = stripped.(*corev1.Pod)
	observed, err := observe.Observe(observe.World{Pods: []corev1.Pod{*p}})
	if err != nil || len(observed.Pods) == 0 || r.find("Pod", p.Namespace, p.Name) != nil {
		return
	}
	pod := observed.Pods[0]
	n := &node{
		APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Namespace: p.Namespace, Name: p.Name, uid: p.UID,
		Status: pod.Phase, Reason: pod.Reason, Message: pod.Message, Ready: &pod.Ready, Restarts: &pod.Restarts,
	}
	if pod.Terminating {
		n.Status = statusTerminating
	}
	if parent := r.find(pod.Workload.Kind, p.Namespace, pod.Workload.Name); parent != nil {
		parent.Children = append(parent.Children, n)
		return
	}
	r.Objects = append(r.Objects, n)
}

// find returns the node of an object, or of one that it brings about; nil if there is none.
func (r *report) find(kind, namespace, name string) *node {
	for n := range r.nodes() {
		if n.Kind == kind && n.Namespace == namespace && n.Name == name {
			return n
		}
	}
	return nil
}

// nodes yields all nodes.
func (r *report) nodes() func(yield func(*node) bool) {
	return func(yield func(*node) bool) {
		rest := slices.Clone(r.Objects)
		for len(rest) > 0 {
			n := rest[0]
			if !yield(n) {
				return
			}
			rest = append(rest[1:], n.Children...)
		}
	}
}

// addEvents keeps the latest events about the custom resource, whose UID is owner, and about its objects.
func (r *report) addEvents(owner types.UID, events []corev1.Event) {
	known := map[types.UID]bool{owner: true}
	for n := range r.nodes() {
		known[n.uid] = n.uid != ""
	}
	for i := range events {
		e := &events[i]
		about := e.InvolvedObject
		if !known[about.UID] && !r.isReplicaSet(about) {
			continue
		}
		r.Events = append(r.Events, event{
			Time: timeOf(e), Type: e.Type, Reason: e.Reason, Object: about.Kind + " " + about.Name,
			Message: strings.TrimSpace(e.Message), Count: countOf(e),
			version: e.ResourceVersion,
		})
	}
	slices.SortStableFunc(r.Events, func(a, b event) int {
		later, _ := resourceversion.CompareResourceVersion(a.version, b.version)
		return cmp.Or(a.Time.Truncate(time.Second).Compare(b.Time.Truncate(time.Second)), later)
	})
	r.Events = r.Events[max(0, len(r.Events)-maxEvents):]
}

// isReplicaSet tells whether o is a ReplicaSet of one of the Deployments, which is named after it and a hash. It is the one to tell
// of pods that are refused.
func (r *report) isReplicaSet(o corev1.ObjectReference) bool {
	end := strings.LastIndex(o.Name, "-")
	return o.Kind == "ReplicaSet" && end > 0 && r.find("Deployment", o.Namespace, o.Name[:end]) != nil
}

// timeOf returns when an event was last seen, whichever of the two APIs it came by.
func timeOf(e *corev1.Event) metav1.Time {
	times := []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time}
	if e.Series != nil {
		times = append([]time.Time{e.Series.LastObservedTime.Time}, times...)
	}
	return metav1.NewTime(cmp.Or(times...).UTC())
}

func countOf(e *corev1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return e.Count
}

// label names a node for people, with the namespace if that is not the custom resource's.
func (n *node) label(namespace string) string {
	if n.Namespace != "" && n.Namespace != namespace {
		return fmt.Sprintf("%s %s/%s", n.Kind, n.Namespace, n.Name)
	}
	return n.Kind + " " + n.Name
}

// fares says in a line how a node fares.
func (n *node) fares() string {
	text := n.Status
	if n.Ready != nil && n.Status == string(corev1.PodRunning) {
		if *n.Ready {
			text += ", ready"
		} else {
			text += ", not ready"
		}
	}
	if n.Restarts != nil {
		text += ", " + plural(*n.Restarts, "restart")
	}
	trouble := strings.Join(slices.DeleteFunc([]string{n.Reason, n.Message}, func(s string) bool { return s == "" }), ": ")
	if n.Reason == observe.ReasonProgressing || n.Reason == observe.ReasonFailed { // which say what the status says
		trouble = n.Message
	}
	if trouble != "" {
		text += ", " + oneLine(trouble)
	}
	return text
}

func plural(count int64, what string) string {
	if count != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", count, what)
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
