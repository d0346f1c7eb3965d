package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
)

// maxNote is the API server's bound on an event's note, in bytes, less a margin for the ellipsis.
const maxNote = 1000

// recorder tells of what happened to a custom resource, once each time.
//
// It is client-go's older recorder. The newer one, of the events.k8s.io API, remembers each event for some ten minutes by the
// version of the object that it is about, so that its memory grows with the number of changes; this one's has a bound.
type recorder struct {
	record.EventRecorder
}

// maxRecent is how many events are remembered, in order to count those that come again; each takes about a KiB.
const maxRecent = 1024

// newRecorder returns a recorder that sends to mgr's cluster while mgr runs.
func newRecorder(mgr manager.Manager) (*recorder, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := typedcorev1.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating a client for events: %w", err)
	}
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{LRUCacheSize: maxRecent})
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.Events(metav1.NamespaceAll)})
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		broadcaster.Shutdown()
		return nil
	}))
	return &recorder{broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: kind.Manager})}, err
}

// applied tells which objects were written, and what was taken back from whom.
func (r *recorder) applied(cr *unstructured.Unstructured, result apply.Result) {
	var parts []string
	for _, done := range []struct {
		what    string
		objects []string
	}{
		{"created ", result.Created}, {"updated ", result.Updated}, {"adopted ", result.Adopted}, {"deleted, to create anew, ", result.Recreated},
	} {
		if len(done.objects) > 0 {
			parts = append(parts, done.what+strings.Join(done.objects, ", "))
		}
	}
	for _, c := range result.Forced {
		parts = append(parts, fmt.Sprintf("took %s of %s back from %s", c.Field, c.Object, c.Manager))
	}
	if len(parts) > 0 {
		r.record(cr, corev1.EventTypeNormal, "Applied", strings.Join(parts, "; "))
	}
}

// pruned tells which objects were deleted.
func (r *recorder) pruned(cr *unstructured.Unstructured, objects []string) {
	if len(objects) > 0 {
		r.record(cr, corev1.EventTypeNormal, "Pruned", "deleted "+strings.Join(objects, ", "))
	}
}

// transition tells that a condition changed for the worse, or that all is well again.
func (r *recorder) transition(cr *unstructured.Unstructured, to metav1.Condition) {
	eventType := corev1.EventTypeWarning
	if to.Status == metav1.ConditionTrue {
		eventType = corev1.EventTypeNormal
	}
	r.record(cr, eventType, to.Reason, to.Message)
}

func (r *recorder) record(cr *unstructured.Unstructured, eventType, reason, note string) {
	if note == "" {
		note = fmt.Sprintf("%s %s is %s", cr.GetKind(), cr.GetName(), strings.ToLower(reason))
	}
	r.Event(cr, eventType, reason, kind.Shorten(note, maxNote))
}

// passing are reasons that are no news: what they say ends by itself, and a namespace on its way out takes no events.
var passing = []string{reasonApplying, observe.ReasonProgressing, apply.ReasonTerminating, apply.ReasonNamespaceTerminating}

// transitions returns the conditions worth an event: each that became false or false for another reason, and Ready once it
// becomes true again after such a reason. When Ready becomes false it repeats the reason of another.
func transitions(before, after []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range after {
		old := meta.FindStatusCondition(before, c.Type)
		if old != nil && old.Status == c.Status && old.Reason == c.Reason {
			continue
		}
		switch c.Type {
		case conditionReady:
			if c.Status == metav1.ConditionTrue && old != nil && !slices.Contains(passing, old.Reason) {
				out = append(out, c)
			}
		case conditionPaused:
			out = append(out, c)
		case conditionValid, conditionApplied, conditionAvailable:
			if c.Status == metav1.ConditionFalse && !slices.Contains(passing, c.Reason) {
				out = append(out, c)
			}
		}
	}
	return out
}
