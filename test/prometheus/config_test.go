package prometheus

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const doc = "../../docs/monitoring.md"

var promql = parser.NewParser(parser.Options{})

// object is what these tests look at in any object.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct {
		Groups    json.RawMessage // of a PrometheusRule
		JobLabel  string          // of a ServiceMonitor, as are the next two
		Endpoints []struct{ Port string }
		Selector  json.RawMessage         // of a ServiceMonitor or a Service
		Ports     []struct{ Name string } // of a Service
	}
	Data map[string]string
}

// build returns the one object of a kind that the kustomization in dir has.
func build(t *testing.T, dir, kind string) object {
	t.Helper()
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []object
	for _, r := range objects.Resources() {
		if r.GetKind() != kind {
			continue
		}
		var o object
		content, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(content, &o); err != nil {
			t.Fatal(err)
		}
		found = append(found, o)
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d objects of kind %s", dir, len(found), kind)
	}
	return found[0]
}

// ruleFile returns the rules of the PrometheusRule as a rule file.
func ruleFile(t *testing.T) []byte {
	t.Helper()
	content, err := yaml.Marshal(map[string]any{"groups": build(t, "../../config/prometheus", "PrometheusRule").Spec.Groups})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// alerts returns the rules, which are checked on the way.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(ruleFile(t), false, model.LegacyValidation, promql, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	var rules []rulefmt.Rule
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	if len(rules) == 0 {
		t.Fatal("no rules")
	}
	return rules
}

func TestServiceMonitorFindsTheService(t *testing.T) {
	monitor, service := build(t, "../../config/prometheus", "ServiceMonitor"), build(t, "../../config/default", "Service")
	if monitor.Metadata.Namespace != service.Metadata.Namespace {
		t.Errorf("the monitor is in %s, the Service in %s", monitor.Metadata.Namespace, service.Metadata.Namespace)
	}
	var selector struct{ MatchLabels map[string]string }
	if err := json.Unmarshal(monitor.Spec.Selector, &selector); err != nil {
		t.Fatal(err)
	}
	for k, v := range selector.MatchLabels {
		if service.Metadata.Labels[k] != v {
			t.Errorf("the monitor selects %s=%s, the Service has %v", k, v, service.Metadata.Labels)
		}
	}
	if got, want := monitor.Spec.Endpoints[0].Port, service.Spec.Ports[0].Name; got != want {
		t.Errorf("the monitor's port is %s, the Service's %s", got, want)
	}
	if got := service.Metadata.Labels[monitor.Spec.JobLabel]; got != "memcached-operator" {
		t.Errorf("the job is named %q, which rules and dashboard do not know", got)
	}
}

var heading = regexp.MustCompile(`(?m)^### (\w+)$`)

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	content, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(string(content), -1) {
		sections[found[1]] = true
	}
	for _, a := range alerts(t) {
		if !sections[a.Alert] {
			t.Errorf("%s has no section in %s", a.Alert, doc)
		}
		delete(sections, a.Alert)
		if want := "docs/monitoring.md#" + strings.ToLower(a.Alert); !strings.HasSuffix(a.Annotations["runbook_url"], want) {
			t.Errorf("%s: the runbook is at …%s", a.Alert, want)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s lacks summary or description", a.Alert)
		}
		if a.For == 0 {
			t.Errorf("%s fires at once", a.Alert)
		}
		if s := a.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s has severity %q", a.Alert, s)
		}
	}
	for s := range sections {
		t.Errorf("%s has a section on %s, which is no alert", doc, s)
	}
}

// dashboard is what these tests look at in a Grafana dashboard.
type dashboard struct {
	UID    string
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr string }
	}
}

// variables are what Grafana replaces in queries, and a value for each.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$kind", "Memcached.cache.example.com")

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	source := build(t, "../../config/prometheus", "ConfigMap")
	if source.Metadata.Labels["grafana_dashboard"] != "1" {
		t.Error("Grafana's sidecar does not see the ConfigMap")
	}
	var d dashboard
	for name, content := range source.Data {
		if err := json.Unmarshal([]byte(content), &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return d
}

func TestDashboardIsWellFormed(t *testing.T) {
	d := readDashboard(t)
	ids, cells := map[int]string{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if other := ids[p.ID]; other != "" {
			t.Errorf("%s and %s have the same id", p.Title, other)
		}
		ids[p.ID] = p.Title
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies outside or over %s", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
	if d.UID == "" || len(d.Panels) == 0 {
		t.Error("no dashboard")
	}
}

// metricRow is the row of a metric in doc, of which the operator's own tests see to it that they say what is exported.
var metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\|")

// documented returns the names of all series that doc names.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"up": true} // Prometheus' own
	for _, row := range metricRow.FindAllStringSubmatch(string(content), -1) {
		if row[2] == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				names[row[1]+suffix] = true
			}
			continue
		}
		names[row[1]] = true
	}
	return names
}

// names returns the names of the series that a query asks for.
func names(t *testing.T, where, query string) []string {
	t.Helper()
	expr, err := promql.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil
	}
	var names []string
	for _, selector := range parser.ExtractSelectors(expr) {
		for _, m := range selector {
			if m.Name == labels.MetricName && m.Type == labels.MatchEqual {
				names = append(names, m.Value)
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("%s asks for no metric by name: %s", where, query)
	}
	return names
}

func TestQueriesUseMetricsThatExist(t *testing.T) {
	known := documented(t)
	unused := maps.Clone(known)
	check := func(where, query string) {
		for _, name := range names(t, where, query) {
			if !known[name] {
				t.Errorf("%s: %s is not in %s", where, name, doc)
			}
			delete(unused, name)
		}
	}
	for _, a := range alerts(t) {
		check(a.Alert, a.Expr)
	}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			check(p.Title, variables.Replace(target.Expr))
		}
	}
	for name := range unused {
		if !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			t.Errorf("%s is in %s, but neither an alert nor the dashboard uses it", name, doc)
		}
	}
}
