package gate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
	"github.com/example/memcached-operator/reconciler/plan"
	structural "github.com/example/memcached-operator/reconciler/schema"
	"github.com/example/memcached-operator/reconciler/validate"
)

// ownStatus are the fields of the status that the operator writes for every kind.
var ownStatus = []string{"conditions", "observedGeneration", "inventory", "lastHandledReconcileAt"}

// samples takes each sample the whole way from validation to the report.
func samples(k *kind.Kind, root *structural.Props) (problems []error) {
	rendered := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(k.Samples)) {
		kinds, err := renderTwice(k, name)
		if err == nil {
			err = report(k, root, name)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("schemas/%s: sample %s: %w", k.Folder, name, err))
		}
		for _, gk := range kinds {
			rendered[gk.String()] = true
		}
	}
	if len(problems) > 0 { // what did not render is not missed
		return problems
	}
	return policies(k, rendered)
}

// renderTwice plans a sample twice, the second time strictly, and returns the kinds of its objects.
func renderTwice(k *kind.Kind, name string) ([]schema.GroupKind, error) {
	sample := plan.Sample(k, name, plan.SampleNamespace)
	loose, _, err := plan.Make(k, sample, plan.SampleKubeVersion)
	if err != nil {
		return nil, err
	}
	strict, _, err := plan.MakeStrict(k, sample, plan.SampleKubeVersion)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(strict.Objects, loose.Objects) {
		return nil, fmt.Errorf("charts/%s renders it differently the second time", k.Chart.Name())
	}
	var kinds []schema.GroupKind
	for _, o := range strict.Objects {
		kinds = append(kinds, o.GroupVersionKind().GroupKind())
	}
	return kinds, nil
}

// report computes the status of a sample from each of the observations.
func report(k *kind.Kind, root *structural.Props, name string) error {
	sample := plan.Sample(k, name, plan.SampleNamespace)
	for _, o := range observations {
		status, err := observe.Report(k, sample.GetNamespace(), name, o.observed)
		if err == nil {
			err = reserved(status)
		}
		if err == nil {
			err = declared(root, status)
		}
		if err == nil {
			err = validate.Status(k, sample, status)
		}
		if err != nil {
			return fmt.Errorf("with %s observed: %w", o.what, err)
		}
	}
	return nil
}

func reserved(status map[string]any) error {
	for _, field := range ownStatus {
		if _, found := status[field]; found {
			return fmt.Errorf("report has a field %s, which is the operator's own", field)
		}
	}
	return nil
}

// observations are what a report must be able to make a status of.
var observations = []struct {
	what     string
	observed observe.Observation
}{
	{"nothing", observe.Observation{}},
	{"something of everything", observe.Observation{
		Objects: []observe.Object{
			{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "x", Status: "InProgress", Message: "1 of 2 pods are ready"},
			{APIVersion: "batch/v1", Kind: "CronJob", Namespace: "default", Name: "x", Status: "Current"},
		},
		Pods: []observe.Pod{
			{Name: "x-0", Phase: "Running", Ready: true, Restarts: 1},
			{Name: "x-1", Phase: "Pending", Reason: "Unschedulable", Message: "0/3 nodes are available"},
			{Name: "x-2", Phase: "Running", Terminating: true},
			{Name: "x-3", Phase: "Failed", Reason: "Evicted"},
			{Name: "x-4", Phase: "Succeeded"},
		},
		Jobs: []observe.Job{
			{Name: "x-1", Owner: "x", Phase: "Complete", StartTime: "2006-01-02T15:04:05Z", CompletionTime: "2006-01-02T15:05:05Z"},
			{Name: "x-2", Owner: "x", Phase: "Failed", StartTime: "2006-01-03T15:04:05Z", Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"},
			{Name: "x-3", Owner: "x", Phase: "Running", StartTime: "2006-01-04T15:04:05Z"},
			{Name: "y", Phase: "Pending"},
		},
		CronJobs: []observe.CronJob{
			{Name: "x", Active: 1, LastScheduleTime: "2006-01-04T15:04:05Z", LastSuccessfulTime: "2006-01-02T15:05:05Z", NextScheduleTime: "2006-01-05T15:04:05Z"},
			{Name: "y", Suspended: true},
		},
	}},
}

// policies wants the kinds of objects that policies name to be rendered by a sample: a misspelt one would have no effect.
func policies(k *kind.Kind, rendered map[string]bool) (problems []error) {
	check := func(field, name string) {
		if !rendered[name] {
			problems = append(problems, fmt.Errorf("schemas/%s: policies.%s names %s, which no sample renders: there are %v", k.Folder, field, name, slices.Sorted(maps.Keys(rendered))))
		}
	}
	for _, f := range k.Policies.Fields {
		check("fields", f.Kind)
	}
	for _, name := range k.Policies.Recreate {
		check("recreate", name)
	}
	for _, name := range k.Policies.Optional {
		check("optional", name)
	}
	return problems
}
