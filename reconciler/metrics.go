package reconciler

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
)

// metricsNamespace is what the names of all metrics begin with.
var metricsNamespace = strings.ReplaceAll(kind.Manager, "-", "_")

// outcome is how a reconciliation ended.
type outcome string

// The outcomes.
const (
	outcomeReconciled   outcome = "reconciled"    // all steps were done
	outcomeInvalid      outcome = "invalid"       // the spec breaks its schema
	outcomeRenderFailed outcome = "render_failed" // the chart fails on a valid spec
	outcomeConflict     outcome = "conflict"      // a field or an object is another's
	outcomeApplyFailed  outcome = "apply_failed"  // the API server refused an object for another reason
	outcomePaused       outcome = "paused"        // left alone on demand
	outcomeDeleted      outcome = "deleted"       // the custom resource is gone or going
	outcomeError        outcome = "error"         // anything else: no fault of the custom resource
)

// action is what was done about an object.
type action string

// The actions.
const (
	actionCreated   action = "created"
	actionUpdated   action = "updated"
	actionUnchanged action = "unchanged" // it was so already: no call
	actionAdopted   action = "adopted"   // it was there before and had no owner
	actionRecreated action = "recreated" // deleted and created anew, since the change cannot be made in place
	actionPruned    action = "pruned"    // deleted, since it is not rendered any more
)

// resolution is what was done about a field that another manager has set to another value.
type resolution string

// The resolutions.
const (
	resolutionForced   resolution = "forced"
	resolutionYielded  resolution = "yielded"
	resolutionReported resolution = "reported"
)

// What became of the files of a kind.
const (
	loadLoaded  = "loaded"
	loadRefused = "refused"
)

var (
	outcomes    = []outcome{outcomeReconciled, outcomeInvalid, outcomeRenderFailed, outcomeConflict, outcomeApplyFailed, outcomePaused, outcomeDeleted, outcomeError}
	actions     = []action{actionCreated, actionUpdated, actionUnchanged, actionAdopted, actionRecreated, actionPruned}
	resolutions = []resolution{resolutionForced, resolutionYielded, resolutionReported}

	stepBuckets  = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	readyBuckets = []float64{1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}
)

// metrics counts what the operator does, by kind. Nothing is counted by custom resource, so that the number of series grows with
// the kinds alone. It is safe for concurrent use.
type metrics struct {
	reconciles, objects, conflicts, drift, loops *prometheus.CounterVec
	validate, render, ready                      *prometheus.HistogramVec
	info, loadFailed                             *prometheus.GaugeVec
	loads                                        *prometheus.CounterVec
	resources, inventory                         *prometheus.Desc

	mu    sync.RWMutex
	kinds map[schema.GroupKind]*kindMetrics
}

// newMetrics returns metrics that reg exposes. Registering them twice is a programmer's error and panics.
func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: metricsNamespace, Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: metricsNamespace, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: metricsNamespace, Name: name, Help: help, Buckets: buckets}, labels)
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", name), help, labels, nil)
	}
	m := &metrics{
		reconciles: counter("reconciles_total", "Reconciliations, by how they ended.", "kind", "outcome"),
		objects:    counter("objects_total", "Objects looked at, by what was done about them.", "kind", "action"),
		conflicts:  counter("conflicts_total", "Fields that another manager had set to another value, by what was done about them.", "kind", "resolution"),
		drift:      counter("drift_total", "Objects that others had changed.", "kind"),
		loops:      counter("apply_loops_total", "Objects that were let alone for a while, since somebody undid every apply of them.", "kind"),
		validate:   histogram("validate_seconds", "Time to validate a spec.", stepBuckets, "kind"),
		render:     histogram("render_seconds", "Time to render a chart.", stepBuckets, "kind"),
		ready:      histogram("ready_seconds", "Time from a custom resource's creation, or from when it was last ready, until it is ready.", readyBuckets, "kind"),
		info:       gauge("kind_info", "The kinds that are served; always 1.", "kind", "version", "digest", "source"),
		loads:      counter("kind_loads_total", "Attempts to load the files of a kind, by how they ended.", "folder", "outcome"),
		loadFailed: gauge("kind_load_failed", "1 while the newest files of a kind are refused; the last good ones, if any, go on serving.", "folder"),
		resources:  desc("resources", "Custom resources, by each condition's status.", "kind", "condition", "status"),
		inventory:  desc("inventory_objects", "Objects in the inventories of custom resources.", "kind"),
		kinds:      map[schema.GroupKind]*kindMetrics{},
	}
	reg.MustRegister(m.reconciles, m.objects, m.conflicts, m.drift, m.loops, m.validate, m.render, m.ready, m.info, m.loads, m.loadFailed, m)
	return m
}

// Describe implements prometheus.Collector, for what is counted when it is asked for.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.resources
	ch <- m.inventory
}

// Collect implements prometheus.Collector, for what is counted when it is asked for.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for gk, k := range m.kinds {
		counts, inventory := k.count()
		for c, condition := range countedConditions {
			for s, status := range countedStatuses {
				ch <- prometheus.MustNewConstMetric(m.resources, prometheus.GaugeValue, float64(counts[c][s]), gk.String(), condition, string(status))
			}
		}
		ch <- prometheus.MustNewConstMetric(m.inventory, prometheus.GaugeValue, float64(inventory), gk.String())
	}
}

// of returns the metrics of a kind. All its series are there from the first call, at zero, so that no first increase is missed.
func (m *metrics) of(gk schema.GroupKind) *kindMetrics {
	m.mu.RLock()
	k := m.kinds[gk]
	m.mu.RUnlock()
	if k != nil {
		return k
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kinds[gk] == nil {
		m.kinds[gk] = newKindMetrics(m, gk.String())
	}
	return m.kinds[gk]
}

// forgetKind drops the series of a kind that is not served any more.
func (m *metrics) forgetKind(gk schema.GroupKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kinds, gk)
	labels := prometheus.Labels{"kind": gk.String()}
	for _, vec := range []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{m.reconciles, m.objects, m.conflicts, m.drift, m.loops, m.validate, m.render, m.ready, m.info} {
		vec.DeletePartialMatch(labels)
	}
}

// loaded counts an attempt to load the kind in folder; with an error its files were refused.
func (m *metrics) loaded(folder string, err error) {
	result, failed := loadLoaded, 0.0
	if err != nil {
		result, failed = loadRefused, 1
	}
	m.loads.WithLabelValues(folder, result).Inc()
	m.loadFailed.WithLabelValues(folder).Set(failed)
}

// forgetFolder drops the series of a folder that is gone.
func (m *metrics) forgetFolder(folder string) {
	m.loads.DeletePartialMatch(prometheus.Labels{"folder": folder})
	m.loadFailed.DeleteLabelValues(folder)
}

// kindMetrics are the metrics of one kind, with their series looked up once.
type kindMetrics struct {
	name      string
	info      *prometheus.GaugeVec
	outcomes  map[outcome]prometheus.Counter
	actions   map[action]prometheus.Counter
	solutions map[resolution]prometheus.Counter
	drift     prometheus.Counter
	loops     prometheus.Counter
	validate  prometheus.Observer
	render    prometheus.Observer
	ready     prometheus.Observer

	mu sync.Mutex
	// states holds every custom resource of the kind, from its first reconciliation on.
	states map[types.NamespacedName]state
}

func newKindMetrics(m *metrics, name string) *kindMetrics {
	return &kindMetrics{
		name:      name,
		info:      m.info,
		outcomes:  counters(m.reconciles, name, outcomes),
		actions:   counters(m.objects, name, actions),
		solutions: counters(m.conflicts, name, resolutions),
		drift:     m.drift.WithLabelValues(name),
		loops:     m.loops.WithLabelValues(name),
		validate:  m.validate.WithLabelValues(name),
		render:    m.render.WithLabelValues(name),
		ready:     m.ready.WithLabelValues(name),
		states:    map[types.NamespacedName]state{},
	}
}

func counters[T ~string](vec *prometheus.CounterVec, name string, values []T) map[T]prometheus.Counter {
	out := make(map[T]prometheus.Counter, len(values))
	for _, v := range values {
		out[v] = vec.WithLabelValues(name, string(v))
	}
	return out
}

// serves says which files serve the kind: its API version, its digest and where it came from.
func (k *kindMetrics) serves(version, digest, source string) {
	k.info.DeletePartialMatch(prometheus.Labels{"kind": k.name})
	k.info.WithLabelValues(k.name, version, digest[:min(len(digest), 12)], source).Set(1)
}

// reconciled counts a reconciliation that ended in o.
func (k *kindMetrics) reconciled(o outcome) { k.outcomes[o].Inc() }

// did counts n objects about which a was done.
func (k *kindMetrics) did(a action, n int) { k.actions[a].Add(float64(n)) }

// resolved counts n fields of other managers that were dealt with by r.
func (k *kindMetrics) resolved(r resolution, n int) { k.solutions[r].Add(float64(n)) }

// drifted counts n objects that others had changed.
func (k *kindMetrics) drifted(n int) { k.drift.Add(float64(n)) }

// planned counts how long the steps of a plan took, as far as they were reached.
func (k *kindMetrics) planned(took plan.Took) {
	k.validate.Observe(took.Validate.Seconds())
	if took.Render > 0 {
		k.render.Observe(took.Render.Seconds())
	}
}

// applied counts what an apply found and did.
func (k *kindMetrics) applied(r apply.Result) {
	k.did(actionCreated, len(r.Created))
	k.did(actionUpdated, len(r.Updated))
	k.did(actionAdopted, len(r.Adopted))
	k.did(actionRecreated, len(r.Recreated))
	k.did(actionUnchanged, r.Unchanged)
	k.resolved(resolutionForced, len(r.Forced))
	k.resolved(resolutionYielded, r.NewlyYielded)
	k.resolved(resolutionReported, r.NewlyReported)
	k.drifted(r.Drifted)
}

// transitioned takes the conditions of a custom resource before and after a write of its status, and counts the time to ready
// if it just became ready. Conditions bear whole seconds, so that the time is off by up to one.
func (k *kindMetrics) transitioned(created metav1.Time, before, after []metav1.Condition) {
	for _, c := range transitions(before, after) {
		if c.Reason == apply.ReasonApplyLoop {
			k.loops.Inc()
		}
	}
	is := readyOf(after)
	if is == nil || is.Status != metav1.ConditionTrue {
		return
	}
	since := created
	if was := readyOf(before); was != nil {
		if was.Status == metav1.ConditionTrue {
			return
		}
		since = was.LastTransitionTime
	}
	k.ready.Observe(max(0, is.LastTransitionTime.Sub(since.Time).Seconds()))
}

func readyOf(conditions []metav1.Condition) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == conditionReady {
			return &conditions[i]
		}
	}
	return nil
}

// observe takes the conditions of a custom resource and the number of objects in its inventory.
func (k *kindMetrics) observe(name types.NamespacedName, conditions []metav1.Condition, inventory int) {
	s := newState(conditions, inventory)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.states[name] = s
}

// forget drops a custom resource that is gone.
func (k *kindMetrics) forget(name types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.states, name)
}

// count returns how many custom resources have which status of each counted condition, and the size of all inventories.
func (k *kindMetrics) count() (counts [len(countedConditions)][len(countedStatuses)]int, inventory int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.states {
		for c, status := range s.statuses {
			counts[c][status]++
		}
		inventory += int(s.inventory)
	}
	return counts, inventory
}

// The conditions and the statuses that are counted. The order of the statuses is that of their codes in a state.
var (
	countedConditions = [...]string{conditionReady, conditionValid, conditionApplied, conditionAvailable, conditionReconciling, conditionStalled, conditionPaused}
	countedStatuses   = [...]metav1.ConditionStatus{metav1.ConditionUnknown, metav1.ConditionFalse, metav1.ConditionTrue}
	// passingConditions are there only while they are true: without one it is false, where others are unknown.
	passingConditions = []string{conditionReconciling, conditionStalled, conditionPaused}
)

// state is what is kept of a custom resource: twelve bytes, since there may be many.
type state struct {
	statuses  [len(countedConditions)]uint8 // index in countedStatuses
	inventory uint32
}

// unobserved is the state of a custom resource without conditions.
var unobserved = func() (s state) {
	for c, condition := range countedConditions {
		if slices.Contains(passingConditions, condition) {
			s.statuses[c] = 1 // False
		}
	}
	return s
}()

func newState(conditions []metav1.Condition, inventory int) state {
	s := unobserved
	s.inventory = uint32(inventory)
	for i := range conditions {
		c := slices.Index(countedConditions[:], conditions[i].Type)
		if c < 0 {
			continue
		}
		s.statuses[c] = uint8(max(0, slices.Index(countedStatuses[:], conditions[i].Status)))
	}
	return s
}
