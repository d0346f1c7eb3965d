package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// The markers between which writeBlock writes.
const (
	beginMarker = "<!-- bench: begin -->"
	endMarker   = "<!-- bench: end -->"
)

// objectsEach is how many objects a Memcached has, pods apart: Deployment, Service and ServiceAccount.
const objectsEach = 3

// row is a figure of a run. value has none (false) if its part was not measured.
type row struct {
	title  string
	budget string  // "" if there is none
	limit  float64 // with a budget
	format string
	value  func(*run) (float64, bool)
}

// rows are those of the table. The budgets are what the project aims for; nothing fails that misses one.
var rows = []row{
	{"**Creation**: CPU per custom resource until all are Ready, ms", "7", 7, "%.1f", ofCreation(func(r *run, c *creation) float64 { return 1000 * c.CPUSeconds / float64(r.Count) })},
	{"all Ready after, s", "", 0, "%.1f", ofCreation(func(_ *run, c *creation) float64 { return c.Seconds })},
	{"reconciliations per custom resource", "", 0, "%.1f", func(r *run) (float64, bool) {
		return perCR(r, r.Create.Reconciles), r.Create.Reconciles > 0
	}},
	{"writes per object", "1", 1, "%.2f", ofCreation(func(r *run, c *creation) float64 { return perCR(r, c.Calls.ObjectWrites) / objectsEach })},
	{"status writes per custom resource", "3", 3, "%.2f", ofCreation(func(r *run, c *creation) float64 { return perCR(r, c.Calls.StatusWrites) })},
	{"reads per custom resource", "", 0, "%.2f", ofCreation(func(r *run, c *creation) float64 { return perCR(r, c.Calls.Reads) })},
	{"events per custom resource", "", 0, "%.2f", ofCreation(func(r *run, c *creation) float64 { return perCR(r, c.Calls.Events) })},
	{"conflicts (409), in all", "", 0, "%.0f", ofCreation(func(_ *run, c *creation) float64 { return float64(c.Calls.Conflicts) })},
	{"**At rest**, %REST%: writes", "0", 0, "%.0f", ofUsage(rest, func(u *usage) float64 { return float64(u.Calls.writes() + u.Calls.Events) })},
	{"reads", "0", 0, "%.0f", ofUsage(rest, func(u *usage) float64 { return float64(u.Calls.Reads) })},
	{"CPU, s", "", 0, "%.2f", ofUsage(rest, func(u *usage) float64 { return u.CPUSeconds })},
	{"**Restart**: writes", "0", 0, "%.0f", ofUsage(restart, func(u *usage) float64 { return float64(u.Calls.writes()) })},
	{"events", "", 0, "%.0f", ofUsage(restart, func(u *usage) float64 { return float64(u.Calls.Events) })},
	{"reads", "", 0, "%.0f", ofUsage(restart, func(u *usage) float64 { return float64(u.Calls.Reads) })},
	{"quiet after, s", "15", 15, "%.1f", ofUsage(restart, func(u *usage) float64 { return u.Seconds })},
	{"CPU, s", "", 0, "%.2f", ofUsage(restart, func(u *usage) float64 { return u.CPUSeconds })},
	{"**Drift**: %DRIFTED% Deployments scaled away, all mended after, s", "1", 1, "%.2f", ofDrift(func(d *drift) float64 { return d.AllSeconds })},
	{"the median one after, s", "", 0, "%.2f", ofDrift(func(d *drift) float64 { return d.MedianSeconds })},
	{"the slowest one after, s", "", 0, "%.2f", ofDrift(func(d *drift) float64 { return d.MaxSeconds })},
	{"**Memory**, resident: without custom resources, MiB", "50", 50, "%.0f", func(r *run) (float64, bool) { return r.Idle.RSS, true }},
	{"with all of them, settled, MiB", "120", 120, "%.0f", func(r *run) (float64, bool) { return r.Settled.RSS, true }},
	{"most until then, MiB", "", 0, "%.0f", func(r *run) (float64, bool) { return r.Settled.Peak, true }},
	{"live heap then, MiB", "", 0, "%.0f", func(r *run) (float64, bool) { return r.Settled.Heap, true }},
	{"at the end, MiB", "", 0, "%.0f", func(r *run) (float64, bool) { return r.Finished.RSS, true }},
}

func rest(r *run) *usage    { return r.Rest }
func restart(r *run) *usage { return r.Restart }

func perCR(r *run, n int) float64 { return float64(n) / float64(r.Count) }

func ofCreation(f func(*run, *creation) float64) func(*run) (float64, bool) {
	return func(r *run) (float64, bool) {
		if r.Create == nil {
			return 0, false
		}
		return f(r, r.Create), true
	}
}

func ofUsage(of func(*run) *usage, f func(*usage) float64) func(*run) (float64, bool) {
	return func(r *run) (float64, bool) {
		u := of(r)
		if u == nil {
			return 0, false
		}
		return f(u), true
	}
}

func ofDrift(f func(*drift) float64) func(*run) (float64, bool) {
	return func(r *run) (float64, bool) {
		if r.Drift == nil {
			return 0, false
		}
		return f(r.Drift), true
	}
}

func (w row) measured(r *run) bool {
	_, found := w.value(r)
	return found
}

// cell is the row's figure in a run, in bold if it misses the budget.
func (w row) cell(r *run) string {
	value, found := w.value(r)
	text := fmt.Sprintf(w.format, value)
	switch {
	case !found:
		return "–"
	case w.budget != "" && value > w.limit:
		return "**" + text + "**"
	}
	return text
}

// markdown returns the tables.
func (r *results) markdown() string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "Measured on %s: operator %s, Kubernetes %s, %s, %d cores.\n",
		r.Date, r.Operator, r.Kubernetes, r.CPU, r.Cores)
	if r.Note != "" {
		_, _ = fmt.Fprintf(&b, "%s\n", r.Note)
	}
	if len(r.Runs) > 0 {
		r.runTable(&b)
		r.peerTable(&b)
		r.callTable(&b)
	}
	if s := r.Soak; s != nil {
		_, _ = fmt.Fprintf(&b, `
### Soak

%s changes of %d custom resources, %s reconciliations in %.0f s, %.1f ms of CPU each.

| | first third | last third | budget |
|---|---|---|---|
| resident, MiB | %.1f | %.1f | no growth |
| live heap, MiB | %.1f | %.1f | no growth |
`, thousands(s.Changes), s.Keys, thousands(s.Reconciles), s.Seconds, 1000*s.CPUSeconds/float64(max(1, s.Reconciles)),
			s.First.RSS, s.Last.RSS, s.First.Heap, s.Last.Heap)
	}
	return b.String()
}

func (r *results) runTable(b *strings.Builder) {
	b.WriteString("\n### Budget and result\n\n| | budget |")
	for _, run := range r.Runs {
		_, _ = fmt.Fprintf(b, " %s |", thousands(run.Count))
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(r.Runs)) + "\n")
	for _, w := range rows {
		if !slices.ContainsFunc(r.Runs, w.measured) {
			continue
		}
		_, _ = fmt.Fprintf(b, "| %s | %s |", r.expand(w.title), w.budget)
		for _, run := range r.Runs {
			_, _ = fmt.Fprintf(b, " %s |", w.cell(run))
		}
		b.WriteString("\n")
	}
	b.WriteString("\nA result that misses its budget is in bold.\n")
}

// expand fills in what was asked for in the runs, which all had the same.
func (r *results) expand(title string) string {
	time, drifted := "", ""
	for _, run := range r.Runs {
		if run.Rest != nil {
			time = fmt.Sprintf("%.0f s", run.Rest.Seconds)
		}
		if run.Drift != nil {
			drifted = fmt.Sprint(run.Drift.Deployments)
		}
	}
	return strings.NewReplacer("%REST%", time, "%DRIFTED%", drifted).Replace(title)
}

// callTable lists the calls of the creation by what was called.
func (r *results) callTable(b *strings.Builder) {
	requests := map[string]bool{}
	b.WriteString("\n### The operator's calls during creation\n\n| |")
	for _, run := range r.Runs {
		_, _ = fmt.Fprintf(b, " %s |", thousands(run.Count))
		for request := range run.Create.Calls.By {
			requests[request] = true
		}
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(r.Runs)) + "\n")
	for _, request := range slices.Sorted(maps.Keys(requests)) {
		_, _ = fmt.Fprintf(b, "| %s |", request)
		for _, run := range r.Runs {
			_, _ = fmt.Fprintf(b, " %d |", run.Create.Calls.By[request])
		}
		b.WriteString("\n")
	}
}

// thousands writes 12345 as 12,345.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// writeBlock puts text between the markers of a file.
func writeBlock(path, text string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("writing the tables: %w", err)
	}
	before, rest, found := strings.Cut(string(content), beginMarker)
	_, after, ends := strings.Cut(rest, endMarker)
	if !found || !ends {
		return fmt.Errorf("writing the tables: %s has no %s followed by %s", path, beginMarker, endMarker)
	}
	content = []byte(before + beginMarker + "\n" + text + endMarker + after)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("writing the tables: %w", err)
	}
	return nil
}
