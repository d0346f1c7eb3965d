package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
	"github.com/example/memcached-operator/reconciler/validate"
)

// The types of the conditions. Reconciling and Stalled follow kstatus: they are there only while true.
const (
	conditionReady       = "Ready"
	conditionValid       = "Valid"
	conditionApplied     = "Applied"
	conditionAvailable   = "Available"
	conditionReconciling = "Reconciling"
	conditionStalled     = "Stalled"
)

// maxMessage bounds a condition's message, in bytes.
const maxMessage = 1024

// status is the status in the making. The steps state facts; what follows from them is computed.
type status struct {
	generation int64
	conditions []metav1.Condition
	fields     map[string]any // the kind's own
}

// newStatus starts from the status that cr has.
func newStatus(cr *unstructured.Unstructured) *status {
	s := &status{generation: cr.GetGeneration(), conditions: conditionsOf(cr)}
	s.fields, _, _ = unstructured.NestedMap(cr.Object, "status")
	delete(s.fields, "conditions")
	delete(s.fields, "observedGeneration")
	return s
}

func conditionsOf(cr *unstructured.Unstructured) []metav1.Condition {
	var typed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(cr.Object, &typed); err != nil {
		return nil // nothing of ours: it is written anew
	}
	return typed.Status.Conditions
}

// report takes what the kind says of the observed pods.
func (s *status) report(fields map[string]any) {
	s.fields = fields
}

// invalid says that the spec breaks its schema, or that the schema itself failed. The user must act.
func (s *status) invalid(err error) error {
	reason := "SchemaFailed"
	if validate.IsInvalid(err) {
		reason = "InvalidSpec"
	}
	s.set(conditionValid, metav1.ConditionFalse, reason, err.Error())
	s.stalled(reason, err.Error())
	return reconcile.TerminalError(err)
}

func (s *status) valid() {
	s.set(conditionValid, metav1.ConditionTrue, "SpecValid", "")
}

// renderFailed says that the chart cannot be rendered for a valid spec. Whoever wrote the kind must act.
func (s *status) renderFailed(err error) error {
	s.set(conditionApplied, metav1.ConditionFalse, "RenderFailed", err.Error())
	s.stalled("RenderFailed", err.Error())
	return reconcile.TerminalError(err)
}

// applyFailed says that the cluster did not take the objects. It is tried again, unless the namespace is on its way out.
func (s *status) applyFailed(err error) error {
	reason := "ApplyFailed"
	if failure, ok := errors.AsType[*apply.Error](err); ok {
		reason = failure.Reason
	}
	s.set(conditionApplied, metav1.ConditionFalse, reason, err.Error())
	s.reconciling(reason, err.Error())
	if reason == apply.ReasonNamespaceTerminating {
		return nil
	}
	return err
}

func (s *status) applied() {
	s.set(conditionApplied, metav1.ConditionTrue, "ObjectsApplied", "")
}

// health says how the workload fares.
func (s *status) health(h observe.Health) {
	if h.Serving {
		s.set(conditionAvailable, metav1.ConditionTrue, observe.ReasonServing, "")
	} else {
		s.set(conditionAvailable, metav1.ConditionFalse, h.Reason, h.Message)
	}
	if h.Settled {
		s.settled()
	} else {
		s.reconciling(h.Reason, h.Message)
	}
}

func (s *status) settled() {
	s.remove(conditionReconciling, conditionStalled)
}

func (s *status) reconciling(reason, message string) {
	s.remove(conditionStalled)
	s.set(conditionReconciling, metav1.ConditionTrue, reason, message)
}

func (s *status) stalled(reason, message string) {
	s.remove(conditionReconciling)
	s.set(conditionStalled, metav1.ConditionTrue, reason, message)
}

func (s *status) set(condition string, value metav1.ConditionStatus, reason, message string) {
	message = kind.Shorten(strings.ReplaceAll(message, "\n", "; "), maxMessage) // joined errors are lines
	meta.SetStatusCondition(&s.conditions, metav1.Condition{
		Type: condition, Status: value, Reason: reason, Message: message, ObservedGeneration: s.generation,
	})
}

func (s *status) remove(conditions ...string) {
	for _, c := range conditions {
		meta.RemoveStatusCondition(&s.conditions, c)
	}
}

// summarize sets Ready from the other conditions: the first that stands against it gives reason and message.
func (s *status) summarize() {
	for _, c := range []string{conditionValid, conditionApplied, conditionAvailable} {
		if found := meta.FindStatusCondition(s.conditions, c); found != nil && found.Status != metav1.ConditionTrue {
			s.set(conditionReady, metav1.ConditionFalse, found.Reason, found.Message)
			return
		}
	}
	if found := meta.FindStatusCondition(s.conditions, conditionReconciling); found != nil {
		s.set(conditionReady, metav1.ConditionFalse, found.Reason, found.Message)
		return
	}
	if meta.FindStatusCondition(s.conditions, conditionAvailable) != nil {
		s.set(conditionReady, metav1.ConditionTrue, "Ready", "")
	}
}

// content returns the status as it is written.
func (s *status) content() (map[string]any, error) {
	s.summarize()
	conditions := make([]any, 0, len(s.conditions))
	for i := range s.conditions {
		c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.conditions[i])
		if err != nil {
			return nil, fmt.Errorf("converting condition %s: %w", s.conditions[i].Type, err)
		}
		conditions = append(conditions, c)
	}
	content := maps.Clone(s.fields)
	if content == nil {
		content = map[string]any{}
	}
	content["observedGeneration"] = s.generation
	content["conditions"] = conditions
	return content, nil
}

// statusWriter is the one writer of status.
type statusWriter struct {
	client client.Client

	mu sync.Mutex
	// written holds custom resources as our last write left them, until the cache has caught up: a status computed from an
	// older one would undo or miss a change.
	written map[Request]*unstructured.Unstructured
}

func newStatusWriter(c client.Client) *statusWriter {
	return &statusWriter{client: c, written: map[Request]*unstructured.Unstructured{}}
}

// newest returns the newer of cached and what was last written.
func (w *statusWriter) newest(req Request, cached *unstructured.Unstructured) *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	written := w.written[req]
	if written == nil {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.GetResourceVersion())
	if err != nil || order >= 0 || cached.GetUID() != written.GetUID() {
		delete(w.written, req)
		return cached
	}
	return written.DeepCopy()
}

func (w *statusWriter) forget(req Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, req)
}

// write patches the status of cr to s unless it is so already, and returns the conditions before and after. A custom
// resource that is gone needs no status.
func (w *statusWriter) write(ctx context.Context, cr *unstructured.Unstructured, s *status) (before, after []metav1.Condition, err error) {
	content, err := s.content()
	if err != nil {
		return nil, nil, err
	}
	if equality.Semantic.DeepEqual(cr.Object["status"], any(content)) {
		return nil, nil, nil
	}
	before = conditionsOf(cr)
	updated := cr.DeepCopy()
	updated.Object["status"] = content
	if err := w.client.Status().Patch(ctx, updated, client.MergeFrom(cr), client.FieldOwner(kind.Manager)); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("patching status: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written[requestFor(cr)] = updated
	return before, s.conditions, nil
}
