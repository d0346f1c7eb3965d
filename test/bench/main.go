// Command bench measures what the operator costs: its program as users build it, under the rights of config/rbac, on the
// embedded control plane with simulated nodes. Each count of custom resources gets a control plane of its own, and so does
// the soak. It reports and judges nothing; it needs Linux, whose /proc tells what a process uses.
//
//	make bench                                                  # everything, into docs/performance.md
//	go run ./test/bench -counts 200 -parts create,restart       # a part, after make build
//	go run ./test/bench -counts 200 -parts create -profile bin/profile
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	manager  string
	counts   []int
	size     int
	nodes    int
	parts    []string
	rest     time.Duration
	drifted  int
	keys     int
	soak     int
	soakTime time.Duration
	timeout  time.Duration
	results  string
	docs     string
	from     string
	profile  string
	note     string
}

// allParts are the names that -parts knows. Memory is measured along with each.
var allParts = []string{"create", "rest", "restart", "drift", "soak"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := execute(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	r := &results{Note: o.note}
	if o.from != "" {
		content, err := os.ReadFile(o.from)
		if err != nil {
			return fmt.Errorf("reading results: %w", err)
		}
		if err := json.Unmarshal(content, r); err != nil {
			return fmt.Errorf("reading results: %s: %w", o.from, err)
		}
	} else if err := measure(ctx, o, r); err != nil {
		return err
	}
	fmt.Printf("\n%s", r.markdown())
	if o.docs != "" {
		return writeBlock(o.docs, r.markdown())
	}
	return nil
}

// parse reads the flags and checks what the flag package does not.
func parse(args []string) (options, error) {
	var (
		o             options
		counts, parts string
	)
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.manager, "manager", "bin/manager", "The operator's program.")
	flags.StringVar(&counts, "counts", "200,1000", "How many custom resources to measure with, one after the other.")
	flags.StringVar(&parts, "parts", strings.Join(allParts, ","), "What to measure. All but soak need the custom resources, which are created all the same.")
	flags.IntVar(&o.size, "size", 3, "The size of each Memcached.")
	flags.IntVar(&o.nodes, "nodes", 10, "Simulated nodes, each with room for 1000 pods.")
	flags.DurationVar(&o.rest, "rest", 5*time.Minute, "How long to look at the operator at rest.")
	flags.IntVar(&o.drifted, "drifted", 20, "How many Deployments are scaled away at once.")
	flags.IntVar(&o.keys, "soak-keys", 80, "Custom resources of the soak.")
	flags.IntVar(&o.soak, "soak-reconciles", 20000, "Reconciliations of the soak.")
	flags.DurationVar(&o.soakTime, "soak-time", 15*time.Minute, "When the soak ends before it has its reconciliations.")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "How long any wait may take.")
	flags.StringVar(&o.results, "results", "bin/bench.json", "Write the results to this file.")
	flags.StringVar(&o.docs, "docs", "", "Write the tables into this Markdown file, between its markers.")
	flags.StringVar(&o.from, "from", "", "Measure nothing, and take the results from this file.")
	flags.StringVar(&o.note, "note", "", "A sentence for the readers of the results, such as what else kept the machine busy.")
	flags.StringVar(&o.profile, "profile", "", "Save CPU profiles of the creation and a heap profile in this folder; for an operator with --pprof-bind-address.")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: there are flags only", flags.Arg(0))
	}
	for _, text := range strings.Split(counts, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 {
			return o, fmt.Errorf("-counts: %q is no count of custom resources", text)
		}
		o.counts = append(o.counts, n)
	}
	for _, part := range strings.Split(parts, ",") {
		if !slices.Contains(allParts, part) {
			return o, fmt.Errorf("-parts: unknown %q, there are %s", part, strings.Join(allParts, ", "))
		}
		o.parts = append(o.parts, part)
	}
	return o, nil
}

// does tells whether a part was asked for.
func (o *options) does(part string) bool { return slices.Contains(o.parts, part) }

// measure fills r and writes it after each run, so that little is lost when a later one fails.
func measure(ctx context.Context, o options, r *results) (err error) {
	if o.manager, err = filepath.Abs(o.manager); err != nil {
		return err
	}
	if _, err := os.Stat(o.manager); err != nil {
		return fmt.Errorf("finding the operator: %w: run make build", err)
	}
	if err := r.describe(); err != nil {
		return err
	}
	if slices.ContainsFunc(o.parts, func(part string) bool { return part != "soak" }) {
		for _, count := range o.counts {
			run, err := measureRun(ctx, o, r, count)
			if err != nil {
				return fmt.Errorf("measuring %d custom resources: %w", count, err)
			}
			r.Runs = append(r.Runs, run)
			if err := r.write(o.results); err != nil {
				return err
			}
		}
	}
	if !o.does("soak") {
		return nil
	}
	if r.Soak, err = measureSoak(ctx, o, r); err != nil {
		return fmt.Errorf("soaking: %w", err)
	}
	return r.write(o.results)
}
