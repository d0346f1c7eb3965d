package prometheus

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

// testFile is a file of testdata.
type testFile struct {
	Tests []testGroup `yaml:"tests"`
}

type testGroup struct {
	Name        string `yaml:"name"`
	InputSeries []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	AlertRuleTests []alertTest `yaml:"alert_rule_test"`
}

type alertTest struct {
	EvalTime  model.Duration `yaml:"eval_time"`
	Alertname string         `yaml:"alertname"`
	ExpAlerts []alert        `yaml:"exp_alerts"`
}

type alert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// interval is the time between two samples of a series, and between two evaluations of the rules.
const interval = time.Minute

// TestAlerts plays series to the rules and sees which alerts fire. Every alert is to be seen firing and not firing.
func TestAlerts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, ruleFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fired, silent := map[string]bool{}, map[string]bool{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var f testFile
		if err := yaml.Unmarshal(content, &f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, g := range f.Tests {
			t.Run(g.Name, func(t *testing.T) { g.run(t, file) })
			for _, a := range g.AlertRuleTests {
				fired[a.Alertname] = fired[a.Alertname] || len(a.ExpAlerts) > 0
				silent[a.Alertname] = silent[a.Alertname] || len(a.ExpAlerts) == 0
			}
		}
	}
	for _, a := range alerts(t) {
		if !fired[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: tests see it firing: %t, and not firing: %t", a.Alert, fired[a.Alert], silent[a.Alert])
		}
	}
}

func (g *testGroup) run(t *testing.T, file string) {
	series := fmt.Sprintf("load %s\n", model.Duration(interval))
	for _, s := range g.InputSeries {
		series += fmt.Sprintf("  %s %s\n", s.Series, s.Values)
	}
	world, err := promqltest.NewLazyLoader(series, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = world.Close() }()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:  rules.EngineQueryFunc(world.QueryEngine(), world.Storage()),
		Appendable: world.Storage(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Context:    t.Context(),
		Logger:     slog.New(slog.DiscardHandler),
		Parser:     promql,
	})
	groups, errs := manager.LoadGroups(interval, labels.EmptyLabels(), "", nil, false, file)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	slices.SortStableFunc(g.AlertRuleTests, func(a, b alertTest) int { return int(a.EvalTime - b.EvalTime) })
	now := time.Unix(0, 0).UTC()
	for _, test := range g.AlertRuleTests {
		for ; !now.After(time.Unix(0, 0).Add(time.Duration(test.EvalTime))); now = now.Add(interval) {
			world.WithSamplesTill(now, func(err error) {
				if err != nil {
					t.Fatal(err)
				}
				for _, group := range groups {
					group.Eval(t.Context(), now)
					for _, r := range group.Rules() {
						if r.LastError() != nil {
							t.Fatalf("%s: %v", r.Name(), r.LastError())
						}
					}
				}
			})
		}
		var got []alert
		for _, group := range groups {
			for _, r := range group.AlertingRules() {
				if r.Name() == test.Alertname {
					got = append(got, firing(t, r)...)
				}
			}
		}
		if diff := cmp.Diff(test.ExpAlerts, got, cmp.Comparer(equal)); diff != "" {
			t.Errorf("%s after %s: -want +got\n%s", test.Alertname, test.EvalTime, diff)
		}
	}
}

// firing returns the alerts of r that fire, in the order of their labels.
func firing(t *testing.T, r *rules.AlertingRule) []alert {
	t.Helper()
	var out []alert
	for _, a := range r.ActiveAlerts() {
		if a.State != rules.StateFiring {
			continue
		}
		got := alert{a.Labels.Map(), a.Annotations.Map()}
		delete(got.Labels, labels.AlertName)
		for name, text := range got.Annotations {
			if strings.Contains(text, "<") { // <error expanding template …>, <no value>
				t.Errorf("%s: %s: %s", r.Name(), name, text)
			}
		}
		out = append(out, got)
	}
	slices.SortFunc(out, func(a, b alert) int { return strings.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)) })
	return out
}

// equal compares labels, and the annotations that both sides have.
func equal(a, b alert) bool {
	for name, text := range a.Annotations {
		if other, ok := b.Annotations[name]; ok && other != text {
			return false
		}
	}
	return cmp.Equal(a.Labels, b.Labels)
}
