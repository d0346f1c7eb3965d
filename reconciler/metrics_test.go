package reconciler

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/plan"
)

var teapots = schema.GroupKind{Group: "kitchen.example.com", Kind: "Teapot"}

// exercise calls every method once, so that reg has every metric.
func exercise(reg *prometheus.Registry) *metrics {
	m := newMetrics(reg)
	k := m.of(teapots)
	for _, o := range outcomes {
		k.reconciled(o)
	}
	for i, a := range actions {
		k.did(a, i)
	}
	for i, r := range resolutions {
		k.resolved(r, i)
	}
	k.drifted(2)
	k.applied(apply.Result{})
	k.planned(plan.Took{Validate: time.Millisecond, Render: time.Millisecond})
	k.serves("v1", "0123456789abcdef", "embedded")
	k.observe(types.NamespacedName{Namespace: "n", Name: "brown-betty"}, nil, 3)
	k.transitioned(metav1.Time{}, nil, []metav1.Condition{{Type: conditionApplied, Status: metav1.ConditionFalse, Reason: apply.ReasonApplyLoop}})
	m.loaded("teapot", nil)
	return m
}

func value(t *testing.T, reg prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			var values []string
			for _, l := range s.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() == metricsNamespace+"_"+name && slices.Equal(values, labels) {
				return s.GetCounter().GetValue() + s.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no %s with %q", name, labels)
	return 0
}

func TestMetricsKeepTheConventions(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	exercise(reg)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func TestMetricsCount(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := exercise(reg)
	const gk = "Teapot.kitchen.example.com"
	for i, a := range actions {
		if got := value(t, reg, "objects_total", string(a), gk); got != float64(i) {
			t.Errorf("%s: %v", a, got)
		}
	}
	if got := value(t, reg, "reconciles_total", gk, "conflict"); got != 1 {
		t.Errorf("reconciles: %v", got)
	}
	if got := value(t, reg, "conflicts_total", gk, "yielded"); got != 1 {
		t.Errorf("conflicts: %v", got)
	}
	if got := value(t, reg, "drift_total", gk); got != 2 {
		t.Errorf("drift: %v", got)
	}
	if got := value(t, reg, "apply_loops_total", gk); got != 1 {
		t.Errorf("loops: %v", got)
	}
	if got := value(t, reg, "kind_info", "0123456789ab", gk, "embedded", "v1"); got != 1 {
		t.Errorf("info: %v", got)
	}
	m.of(teapots).serves("v2", "fedcba9876543210", "/kinds/teapot")
	if got := testutil.CollectAndCount(m.info); got != 1 {
		t.Errorf("%d infos of one kind", got)
	}
}

// TestASeriesBeginsAtZero is for rules: an increase from nothing to one is none to Prometheus.
func TestASeriesBeginsAtZero(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	newMetrics(reg).of(teapots)
	if got := value(t, reg, "reconciles_total", "Teapot.kitchen.example.com", "error"); got != 0 {
		t.Error(got)
	}
	if got := value(t, reg, "resources", "Ready", "Teapot.kitchen.example.com", "False"); got != 0 {
		t.Error(got)
	}
}

func TestMetricsOfLoads(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := newMetrics(reg)
	m.loaded("teapot", nil)
	m.loaded("teapot", errors.New("does not compile"))
	if got := value(t, reg, "kind_load_failed", "teapot"); got != 1 {
		t.Errorf("after a refusal: %v", got)
	}
	if got := value(t, reg, "kind_loads_total", "teapot", "refused"); got != 1 {
		t.Errorf("refused: %v", got)
	}
	m.loaded("teapot", nil)
	if got := value(t, reg, "kind_load_failed", "teapot"); got != 0 {
		t.Errorf("after it was mended: %v", got)
	}
	if got := value(t, reg, "kind_loads_total", "teapot", "loaded"); got != 2 {
		t.Errorf("loaded: %v", got)
	}
	m.forgetFolder("teapot")
	if n, err := testutil.GatherAndCount(reg); n != 0 || err != nil {
		t.Errorf("a folder that is gone leaves %d series: %v", n, err)
	}
}

func TestAKindThatIsGoneLeavesNoSeries(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := exercise(reg)
	m.forgetFolder("teapot")
	m.forgetKind(teapots)
	if n, err := testutil.GatherAndCount(reg); n != 0 || err != nil {
		t.Errorf("%d series are left: %v", n, err)
	}
}

func TestResourcesAreCountedByCondition(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	k := newMetrics(reg).of(teapots)
	is := func(condition string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: condition, Status: status}
	}
	name := func(s string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: s} }
	k.observe(name("new"), nil, 0)
	k.observe(name("fine"), nil, 0)
	k.observe(name("fine"), []metav1.Condition{is("Ready", "True"), is("Valid", "True"), is("Applied", "True"), is("Available", "True")}, 4)
	k.observe(name("stalled"), []metav1.Condition{is("Ready", "False"), is("Valid", "False"), is("Stalled", "True"), is("Descaled", "True")}, 3)
	k.observe(name("gone"), []metav1.Condition{is("Ready", "True")}, 3)
	k.forget(name("gone"))

	want := map[string]float64{
		"Ready True": 1, "Ready False": 1, "Ready Unknown": 1,
		"Valid True": 1, "Valid False": 1, "Valid Unknown": 1,
		"Applied True": 1, "Applied Unknown": 2,
		"Available True": 1, "Available Unknown": 2,
		"Reconciling False": 3,
		"Stalled True":      1, "Stalled False": 2,
		"Paused False": 3,
	}
	got := map[string]float64{}
	for _, c := range countedConditions {
		for _, s := range countedStatuses {
			if n := value(t, reg, "resources", c, "Teapot.kitchen.example.com", string(s)); n != 0 {
				got[c+" "+string(s)] = n
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := value(t, reg, "inventory_objects", "Teapot.kitchen.example.com"); got != 7 {
		t.Errorf("inventory: %v", got)
	}
}

func TestTimeToReady(t *testing.T) {
	at := func(second int64) metav1.Time { return metav1.Unix(second, 0) }
	ready := func(status metav1.ConditionStatus, since int64) []metav1.Condition {
		return []metav1.Condition{{Type: "Valid", Status: "True", LastTransitionTime: at(1)}, {Type: "Ready", Status: status, LastTransitionTime: at(since)}}
	}
	for reason, c := range map[string]struct {
		created       int64
		before, after []metav1.Condition
		counted       bool
		seconds       float64
	}{
		"a new one counts from its creation":         {10, nil, ready("True", 14), true, 4},
		"an old one counts from when it broke":       {10, ready("False", 50), ready("True", 80), true, 30},
		"unknown is not ready":                       {10, ready("Unknown", 50), ready("True", 51), true, 1},
		"no time is negative, though clocks differ":  {10, nil, ready("True", 9), true, 0},
		"ready as before":                            {10, ready("True", 14), ready("True", 14), false, 0},
		"not ready":                                  {10, ready("True", 14), ready("False", 20), false, 0},
		"nothing was written, or nothing is known":   {10, nil, nil, false, 0},
		"Ready was taken away, which is no readying": {10, ready("True", 14), nil, false, 0},
	} {
		reg := prometheus.NewPedanticRegistry()
		newMetrics(reg).of(teapots).transitioned(at(c.created), c.before, c.after)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == metricsNamespace+"_ready_seconds" })
		h := families[i].GetMetric()[0].GetHistogram()
		if (h.GetSampleCount() == 1) != c.counted || h.GetSampleSum() != c.seconds {
			t.Errorf("%s: %d times %v s", reason, h.GetSampleCount(), h.GetSampleSum())
		}
	}
}

// TestMetricsServeManyAtATime is for the race detector.
func TestMetricsServeManyAtATime(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := newMetrics(reg)
	var workers errgroup.Group
	for w := range 8 {
		gk := schema.GroupKind{Group: "kitchen.example.com", Kind: fmt.Sprintf("Pot%d", w%3)}
		name := types.NamespacedName{Name: fmt.Sprint(w)}
		workers.Go(func() error {
			for i := range 200 {
				k := m.of(gk)
				k.serves("v1", fmt.Sprint(i), "embedded")
				k.observe(name, []metav1.Condition{{Type: "Ready", Status: "True"}}, i)
				k.reconciled(outcomeReconciled)
				k.forget(name)
				m.loaded(gk.Kind, nil)
				if i%50 == 0 {
					m.forgetKind(gk)
					m.forgetFolder(gk.Kind)
				}
			}
			return nil
		})
		workers.Go(func() error {
			for range 50 {
				if _, err := reg.Gather(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		t.Fatal(err)
	}
}

const monitoringDoc = "../docs/monitoring.md"

// metricRow is the row of a metric in monitoringDoc.
var metricRow = regexp.MustCompile("^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\|")

// TestEveryMetricIsDocumented checks the tables of docs/monitoring.md, from which the tests of alerts and dashboard in turn
// take what there is.
func TestEveryMetricIsDocumented(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	exercise(reg)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(monitoringDoc)
	if err != nil {
		t.Fatal(err)
	}
	var own, foreign []string
	for row := range strings.Lines(string(content)) {
		name := metricRow.FindStringSubmatch(row)
		switch {
		case name == nil:
		case strings.HasPrefix(name[1], metricsNamespace+"_"):
			own = append(own, strings.TrimSpace(row))
		default:
			foreign = append(foreign, name[1])
		}
	}
	var want []string
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp()))
	}
	if len(foreign) == 0 {
		t.Errorf("%s has no table of the libraries' metrics", monitoringDoc)
	}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Errorf("the first table of %s, in which these rows are to be as the code says:\n%s", monitoringDoc, diff)
	}

	registered := registeredNames(t)
	for _, name := range foreign {
		if !slices.Contains(registered, name) {
			t.Errorf("%s names %s, which nothing registers", monitoringDoc, name)
		}
	}
}

// registeredNames returns the names of the metrics that come with controller-runtime and client-go, whether or not they have
// series yet.
func registeredNames(t *testing.T) []string {
	t.Helper()
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		ctrlmetrics.Registry.(prometheus.Collector).Describe(described)
	}()
	var names []string
	for d := range described {
		if found := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String()); found != nil {
			names = append(names, found[1])
		}
	}
	if len(names) == 0 {
		t.Fatal("controller-runtime registers nothing")
	}
	return names
}

// BenchmarkMetricsOfAReconcile is what one reconciliation spends on metrics: 10,000 custom resources are known.
func BenchmarkMetricsOfAReconcile(b *testing.B) {
	m := newMetrics(prometheus.NewRegistry())
	names := make([]types.NamespacedName, 10_000)
	conditions := []metav1.Condition{{Type: "Ready", Status: "True"}, {Type: "Valid", Status: "True"}, {Type: "Applied", Status: "True"}, {Type: "Available", Status: "True"}}
	for i := range names {
		names[i] = types.NamespacedName{Namespace: "n", Name: fmt.Sprint("teapot-", i)}
		m.of(teapots).observe(names[i], conditions, 4)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		k := m.of(teapots)
		k.planned(plan.Took{Validate: time.Millisecond, Render: time.Millisecond})
		k.did(actionUnchanged, 4)
		k.did(actionUpdated, 0)
		k.observe(names[i%len(names)], conditions, 4)
		k.transitioned(metav1.Time{}, conditions, conditions)
		k.reconciled(outcomeReconciled)
		i++
	}
}

// BenchmarkScrape is what one scrape spends on counting 10,000 custom resources.
func BenchmarkScrape(b *testing.B) {
	reg := prometheus.NewRegistry()
	k := newMetrics(reg).of(teapots)
	for i := range 10_000 {
		k.observe(types.NamespacedName{Name: fmt.Sprint(i)}, nil, 4)
	}
	for b.Loop() {
		k.count()
	}
}
