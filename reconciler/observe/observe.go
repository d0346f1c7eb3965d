// Package observe looks at what runs for a custom resource. gather.go reads the pods, once; the rest decides purely:
// health.go how the workload fares, report.go what the kind says of it in the status.
package observe

// Observation is what is known of a custom resource's pods. Its JSON form is #Observation in schemas/kind.
type Observation struct {
	// Pods are the pods of the custom resource's workloads, sorted by name.
	Pods []Pod `json:"pods"`
}

// Pod is one pod.
type Pod struct {
	Name string `json:"name"`
	// Phase is Pending, Running, Succeeded, Failed or Unknown.
	Phase string `json:"phase"`
	// Ready is the pod's Ready condition.
	Ready bool `json:"ready"`
	// Terminating is true once the pod is being deleted.
	Terminating bool `json:"terminating"`
	// Restarts sums the restarts of all containers.
	Restarts int64 `json:"restarts"`
	// Reason and Message say what keeps the pod from serving, in Kubernetes' own words; empty while nothing does, or
	// nothing worth a word. Neither holds what changes by itself: a time, a count, a back-off.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}
