package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example/memcached-operator/test/cluster"
)

// The operator's ServiceAccount in config/default.
const (
	operatorNamespace = "memcached-operator-system"
	operatorAccount   = "memcached-operator-controller-manager"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":" + operatorAccount
)

// operatorName is that of its log, and how the cluster's errors begin that are about it.
const operatorName = "operator"

// operator is the running program.
type operator struct {
	cluster *cluster.Cluster
	pid     int
	started time.Time
	metrics string // URL
	pprof   string // URL; "" if the program has no such flag
	meter   *meter
}

// startOperator runs the operator as config/manager does, but for metrics, which are served to everyone: what TLS and
// access reviews cost is no part of what is measured.
func startOperator(ctx context.Context, c *cluster.Cluster, manager string, audit *audit) (*operator, error) {
	config, err := c.ServiceAccount(operatorNamespace, operatorAccount)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.WriteKubeconfig(operatorName, config)
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	o := &operator{cluster: c, started: time.Now(), metrics: "http://" + address + "/metrics"}
	args := []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect", "--leader-election-namespace=" + operatorNamespace,
		"--health-probe-bind-address=0", "--metrics-secure=false", "--metrics-bind-address=" + address,
	}
	if hasFlag(ctx, manager, "pprof-bind-address") {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		o.pprof = "http://" + address + "/debug/pprof/"
		args = append(args, "--pprof-bind-address="+address)
	}
	if err := c.Run(operatorName, manager, args...); err != nil {
		return nil, err
	}
	err = await(ctx, time.Minute, "the operator's process", func() (found bool, err error) {
		o.pid, found = findProcess(manager, kubeconfig)
		return found, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w; its log ends:\n%s", err, c.LogTail(operatorName))
	}
	o.meter = startMeter(o.pid, audit, func() string { return c.LogTail(operatorName) })
	return o, nil
}

// version is what the operator's log says when it starts.
func (o *operator) version() string {
	log, _ := os.ReadFile(filepath.Join(o.cluster.Dir(), "logs", operatorName+".log"))
	for line := range bytes.Lines(log) {
		var entry struct {
			Version string `json:"version"`
		}
		if json.Unmarshal(line, &entry) == nil && entry.Version != "" {
			return entry.Version
		}
	}
	return "of unknown version"
}

// hasFlag tells whether a Go program's usage names a flag.
func hasFlag(ctx context.Context, program, flag string) bool {
	usage, _ := exec.CommandContext(ctx, program, "-help").CombinedOutput() // which may end with an error
	return strings.Contains(string(usage), "-"+flag)
}

// stop ends the operator as a pod's deletion does, and returns when it is gone.
func (o *operator) stop(ctx context.Context) error {
	o.meter.stop()
	if err := unix.Kill(o.pid, unix.SIGTERM); err != nil {
		return fmt.Errorf("stopping the operator: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	switch err := o.cluster.Wait(ctx); {
	case err == nil && ctx.Err() != nil:
		return fmt.Errorf("stopping the operator: %w", context.Cause(ctx))
	case err != nil && !strings.HasPrefix(err.Error(), operatorName+" has ended"):
		return err
	}
	return nil
}

// memory reads the kernel's and the runtime's figures.
func (o *operator) memory(ctx context.Context) (m memory, err error) {
	if m.RSS, m.Peak, err = memoryOf(o.pid); err != nil {
		return m, err
	}
	heap, err := o.metric(ctx, "go_gc_heap_live_bytes")
	m.Heap = heap / (1 << 20)
	return m, err
}

// reconciles returns how many reconciliations the operator has done.
func (o *operator) reconciles(ctx context.Context) (int, error) {
	n, err := o.metric(ctx, "controller_runtime_reconcile_total")
	return int(n), err
}

// metric returns the sum of the metric's series, 0 if it has none.
func (o *operator) metric(ctx context.Context, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.metrics, http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("reading the operator's metrics: %s", resp.Status)
	}
	var sum float64
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), name)
		if !found || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("reading the operator's metric %s: %w", name, err)
		}
		sum += value
	}
	return sum, lines.Err()
}

// await polls until done, for as long as timeout; what names what is waited for.
func await(ctx context.Context, timeout time.Duration, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("it takes more than "+timeout.String()))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
