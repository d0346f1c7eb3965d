package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/memcached-operator/test/cluster"
)

func TestCountSortsRequestsIntoClasses(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := start.Add(time.Minute)
	event := func(verb, group, resource, subresource string, code int) cluster.AuditEvent {
		return cluster.AuditEvent{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Code: code, Time: start}
	}
	before, after := event("patch", "apps", "deployments", "", 200), event("patch", "apps", "deployments", "", 200)
	before.Time, after.Time = start.Add(-1), end
	dryRun := event("patch", "", "services", "", 200)
	dryRun.Path = "/api/v1/namespaces/a/services/a?dryRun=All"
	got := count([]cluster.AuditEvent{
		before, after, dryRun,
		event("patch", "apps", "deployments", "", 201),
		event("patch", "apps", "deployments", "", 409),
		event("delete", "", "services", "", 200),
		event("patch", "cache.example.com", "memcacheds", "status", 200),
		event("get", "cache.example.com", "memcacheds", "status", 200),
		event("list", "", "pods", "", 200),
		event("watch", "", "pods", "", 200),
		event("create", "authorization.k8s.io", "selfsubjectaccessreviews", "", 201),
		event("create", "events.k8s.io", "events", "", 201),
		event("update", "coordination.k8s.io", "leases", "", 409),
		{Verb: "get", Path: "/version?timeout=1s", Code: 200, Time: start},
	}, start, end)
	want := calls{
		ObjectWrites: 3, StatusWrites: 1, Reads: 5, Events: 1, Leases: 1, Watches: 1, Conflicts: 2,
		By: map[string]int{
			"patch deployments.apps": 2, "patch services": 1, "delete services": 1,
			"patch memcacheds.cache.example.com/status": 1, "get memcacheds.cache.example.com/status": 1,
			"list pods": 1, "watch pods": 1, "create selfsubjectaccessreviews.authorization.k8s.io": 1,
			"create events.events.k8s.io": 1, "update leases.coordination.k8s.io": 1, "get /version": 1,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestTheDocumentationShowsItsResults is about docs/performance.md, which is written from docs/performance.json.
func TestTheDocumentationShowsItsResults(t *testing.T) {
	docs, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(copied, docs, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := execute(t.Context(), []string{"-from", "../../docs/performance.json", "-docs", copied}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(docs)); diff != "" {
		t.Errorf("run go run ./test/bench -from docs/performance.json -docs docs/performance.md (-want +got):\n%s", diff)
	}
}

func TestABudgetThatIsMissedIsInBold(t *testing.T) {
	r := &results{Runs: []*run{{Count: 100, Create: &creation{usage: usage{CPUSeconds: 0.7}}}, {Count: 1000, Create: &creation{usage: usage{CPUSeconds: 7.1}}}}}
	if want := "all are Ready, ms | 7 | 7.0 | **7.1** |\n"; !strings.Contains(r.markdown(), want) {
		t.Errorf("want a line that ends %q, got:\n%s", want, r.markdown())
	}
}

func TestThinKeepsBothEnds(t *testing.T) {
	var series []point
	for i := range 1000 {
		series = append(series, point{Ready: i})
	}
	got := thin(series, 10)
	if len(got) != 10 || got[0].Ready != 0 || got[9].Ready != 999 {
		t.Errorf("got %d points, from %d to %d", len(got), got[0].Ready, got[len(got)-1].Ready)
	}
	if got := thin(series[:5], 10); len(got) != 5 {
		t.Errorf("of 5 points: got %d", len(got))
	}
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	for args, want := range map[string]string{
		"-counts 0":          `"0" is no count`,
		"-parts create,fast": `unknown "fast", there are create, rest`,
		"200":                `unexpected argument "200"`,
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("bench %s: got %v, want an error with %s", args, err, want)
		}
	}
}

func TestTheProcessClock(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Skip(err) // not on Linux
	}
	for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
		continue
	}
	after, err := cpuTime(os.Getpid())
	if used := after - before; err != nil || used < time.Millisecond || used > 5*time.Second {
		t.Errorf("50 ms of work: got %s, %v", used, err)
	}
}
