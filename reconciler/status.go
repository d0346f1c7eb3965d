package reconciler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
	"github.com/example/memcached-operator/reconciler/ownership"
	"github.com/example/memcached-operator/reconciler/validate"
	"github.com/example/memcached-operator/version"
)

// The types of the conditions. Reconciling and Stalled, which follow kstatus, and Paused are there only while true.
const (
	conditionReady       = "Ready"
	conditionValid       = "Valid"
	conditionApplied     = "Applied"
	conditionAvailable   = "Available"
	conditionReconciling = "Reconciling"
	conditionStalled     = "Stalled"
	conditionPaused      = "Paused"
)

// reasonApplying says that objects are about to be applied for the first time.
const reasonApplying = "Applying"

// reasonRenderFailed says that the chart fails on a valid spec.
const reasonRenderFailed = "RenderFailed"

// maxMessage bounds a condition's message, in bytes.
const maxMessage = 1024

// The operator's own fields of a status, beside the kind's.
const (
	fieldConditions         = "conditions"
	fieldObservedGeneration = "observedGeneration"
	fieldInventory          = "inventory"
	fieldHandled            = "lastHandledReconcileAt"
)

// reconcileAnnotation of a custom resource makes the operator look at everything anew when its value changes. The value that was
// handled last is in status.lastHandledReconcileAt.
const reconcileAnnotation = version.Domain + "/reconcile-now"

// status is the status in the making. The steps state facts; what follows from them is computed.
type status struct {
	generation int64
	observed   int64 // the generation that the status tells of
	conditions []metav1.Condition
	fields     map[string]any // the kind's own
	inventory  apply.Inventory
	handled    string        // the last value of reconcileAnnotation
	result     *apply.Result // of this reconciliation, nil if it did not come to that
	isFrozen   bool          // what runs is not to be looked at
	ended      bool          // there is nobody to write to
}

// newStatus starts from the status that cr has.
func newStatus(cr *unstructured.Unstructured) *status {
	s := &status{generation: cr.GetGeneration(), observed: cr.GetGeneration()}
	content, _, _ := unstructured.NestedFieldNoCopy(cr.Object, "status")
	fields, _ := content.(map[string]any)
	s.fields = maps.Clone(fields)
	own := ownFields(cr)
	s.conditions, s.inventory, s.handled = own.Conditions, own.Inventory, own.Handled
	for _, field := range []string{fieldConditions, fieldObservedGeneration, fieldInventory, fieldHandled} {
		delete(s.fields, field)
	}
	return s
}

// own are the operator's fields of a status.
type own struct {
	Conditions []metav1.Condition `json:"conditions"`
	Inventory  apply.Inventory    `json:"inventory"`
	Handled    string             `json:"lastHandledReconcileAt"`
	Observed   int64              `json:"observedGeneration"`
}

// ownFields returns the operator's fields of cr's status. What has another form than ours is nothing of ours: it is written anew.
func ownFields(cr *unstructured.Unstructured) own {
	var typed struct {
		Status own `json:"status"`
	}
	status := map[string]any{"status": cr.Object["status"]}
	if status["status"] == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(status, &typed) != nil {
		return own{}
	}
	return typed.Status
}

func conditionsOf(cr *unstructured.Unstructured) []metav1.Condition { return ownFields(cr).Conditions }

// pausedBy tells whether the custom resource's annotation says so.
func (s *status) pausedBy(owner apply.Owner) bool {
	if owner.GetAnnotations()[ownership.PausedAnnotation] != "true" {
		s.remove(conditionPaused)
		return false
	}
	s.set(conditionPaused, metav1.ConditionTrue, "PausedByAnnotation", "nothing is validated, applied or reported until the annotation "+ownership.PausedAnnotation+" goes")
	s.isFrozen, s.observed = true, ownFields(owner.Unstructured).Observed
	return true
}

// askedFor tells whether the custom resource's annotation asks for a reconciliation, and takes note of it.
func (s *status) askedFor(owner apply.Owner) bool {
	asked := owner.GetAnnotations()[reconcileAnnotation]
	if asked == s.handled {
		return false
	}
	s.handled = asked
	return asked != ""
}

// isDelivered tells whether the status says that all objects of this generation were applied.
func (s *status) isDelivered() bool {
	for _, c := range []string{conditionValid, conditionApplied} {
		found := meta.FindStatusCondition(s.conditions, c)
		if found == nil || found.Status != metav1.ConditionTrue || found.ObservedGeneration != s.generation {
			return false
		}
	}
	return true
}

// isFresh tells whether objects were written just now, and all of them could be.
func (s *status) isFresh() bool {
	return s.isDelivered() && s.result != nil && len(s.result.Created)+len(s.result.Updated)+len(s.result.Adopted) > 0
}

// live takes what an apply found and did.
func (s *status) live(result apply.Result) { s.result = &result }

// report takes what the kind says of what was observed.
func (s *status) report(fields map[string]any) { s.fields = fields }

// begun says that objects are about to be applied for the first time.
func (s *status) begun() { s.reconciling(reasonApplying, "objects are being applied") }

// done says that the custom resource is about to be gone, and takes no status.
func (s *status) done() { s.ended = true }

// deletionBlocked says what holds up the deletion of the custom resource.
func (s *status) deletionBlocked(err error) error {
	s.isFrozen = true
	s.reconciling("DeletionBlocked", err.Error())
	return err
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
	s.set(conditionApplied, metav1.ConditionFalse, reasonRenderFailed, err.Error())
	s.stalled(reasonRenderFailed, err.Error())
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

// applied says that the objects are as rendered, but for what is left to others and what the cluster does not know.
func (s *status) applied(result apply.Result) {
	s.live(result)
	var parts []string
	for _, c := range result.Yielded {
		parts = append(parts, fmt.Sprintf("%s of %s is left to %s", c.Field, c.Object, c.Manager))
	}
	for _, object := range result.Skipped {
		parts = append(parts, object+" is left out, as the cluster does not know its kind")
	}
	slices.Sort(parts) // objects come in any order
	s.set(conditionApplied, metav1.ConditionTrue, "ObjectsApplied", strings.Join(parts, "; "))
}

// outcome is how the reconciliation ended, err being what it returned.
func (s *status) outcome(err error) outcome {
	is := func(condition string) string {
		if c := meta.FindStatusCondition(s.conditions, condition); c != nil && c.Status == metav1.ConditionFalse {
			return c.Reason
		}
		return ""
	}
	switch {
	case s.isFresh():
		return outcomeReconciled
	case s.ended, meta.FindStatusCondition(s.conditions, conditionReconciling) != nil && s.isFrozen:
		return outcomeDeleted
	case s.isFrozen:
		return outcomePaused
	case is(conditionValid) != "":
		return outcomeInvalid
	case is(conditionApplied) == reasonRenderFailed:
		return outcomeRenderFailed
	case is(conditionApplied) == apply.ReasonConflict:
		return outcomeConflict
	case is(conditionApplied) != "":
		return outcomeApplyFailed
	case err != nil:
		return outcomeError
	}
	return outcomeReconciled
}

// health says how the workload fares.
func (s *status) health(h observe.Health) {
	if h.Serving {
		s.set(conditionAvailable, metav1.ConditionTrue, observe.ReasonServing, "")
	} else {
		s.set(conditionAvailable, metav1.ConditionFalse, h.Reason, h.Message)
	}
	switch {
	case !s.isDelivered(): // which matters more
	case h.Settled:
		s.settled()
	default:
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
	if meta.FindStatusCondition(s.conditions, conditionPaused) == nil {
		s.summarize()
	}
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
	content[fieldObservedGeneration] = s.observed
	content[fieldConditions] = conditions
	if s.handled != "" {
		content[fieldHandled] = s.handled
	}
	if len(s.inventory) > 0 {
		content[fieldInventory] = s.inventory.Unstructured()
	}
	return content, nil
}
