// Package e2e runs the operator as users do: its program, under the rights of config/rbac, on a real control plane with
// simulated nodes, driven by kubectl.
package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/example/memcached-operator/test/cluster"
)

// The operator's ServiceAccount in config/default.
const (
	operatorNamespace = "memcached-operator-system"
	operatorAccount   = "memcached-operator-controller-manager"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":" + operatorAccount
)

// buildFlags are those with which the operator is built.
var buildFlags []string

// soon is how long the cluster may take for what it does by itself; the machine may be slow.
const soon = 2 * time.Minute

// env is the cluster and the operator that tests share. Those that count what the operator does, or take it something, come one
// after another; the others are parallel, and so come after them all.
var env *environment

type environment struct {
	*cluster.Cluster
	manager string    // the operator's program
	metrics *endpoint // of the operator
}

// programs is the folder of the operator's program and its CLI's.
var programs string

// startSharedOperator runs the operator that all tests share.
func (e *environment) startSharedOperator() error {
	return e.startOperator("--leader-elect", "--leader-election-namespace", operatorNamespace,
		"--metrics-bind-address", e.metrics.address, "--metrics-cert-dir", e.metrics.dir)
}

// startOperator runs the operator as its ServiceAccount.
func (e *environment) startOperator(flags ...string) error {
	config, err := e.ServiceAccount(operatorNamespace, operatorAccount)
	if err != nil {
		return err
	}
	file, err := e.WriteKubeconfig("operator", config)
	if err != nil {
		return err
	}
	return e.Run("operator", e.manager, append([]string{"--kubeconfig", file, "--health-probe-bind-address=0"}, flags...)...)
}

// operatorLog returns what the operators of this cluster have logged.
func (e *environment) operatorLog() string {
	log, _ := os.ReadFile(filepath.Join(e.Dir(), "logs", "operator.log"))
	return string(log)
}

// trouble returns the end of the operator's log, and the race that it ended on.
func (e *environment) trouble() string {
	text := fmt.Sprintf("The operator's log ends:\n%s\n", e.LogTail("operator"))
	if _, report, found := strings.Cut(e.operatorLog(), "WARNING: DATA RACE"); found {
		text += fmt.Sprintf("The operator ended on a data race:%s\n", report)
	}
	return text
}

// startOwnCluster starts a cluster for one test, on which no operator runs yet.
func startOwnCluster(t *testing.T, o cluster.Options) *environment {
	t.Helper()
	c := cluster.StartForTest(t, o)
	e := &environment{Cluster: c, manager: filepath.Join(t.TempDir(), "manager")}
	if err := os.Link(env.manager, e.manager); err != nil { // so that its process has a name of its own
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(e.trouble())
		}
	})
	if _, err := c.Kubectl(t.Context(), "apply", "-k", "../../config/sandbox"); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	programs = dir
	build := exec.Command("go", slices.Concat([]string{"build"}, buildFlags, []string{"-o", dir, "../../cmd/manager", "../../cmd/opctl"})...)
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the operator: %w\n%s", err, out)
	}
	// An operator that finds a race ends with a report, and the tests with it.
	if err := os.Setenv("GORACE", "halt_on_error=1"); err != nil {
		return 0, err
	}
	c, err := cluster.Start(ctx, cluster.Options{Nodes: 3, CRDs: []string{"../../config/crd/bases"}, Audit: true, Progress: os.Stderr})
	if err != nil {
		return 0, err
	}
	env = &environment{Cluster: c, manager: filepath.Join(dir, "manager")}
	defer func() {
		if code != 0 || err != nil {
			fmt.Fprint(os.Stderr, env.trouble())
		}
		err = errors.Join(err, c.Stop())
	}()
	if _, err := c.Kubectl(ctx, "apply", "-k", "../../config/sandbox"); err != nil {
		return 0, err
	}
	if env.metrics, err = newEndpoint(filepath.Join(dir, "metrics")); err != nil {
		return 0, err
	}
	if err := env.allowMetrics(ctx); err != nil {
		return 0, err
	}
	if err := env.startSharedOperator(); err != nil {
		return 0, err
	}
	// Tests mostly wait, so that more may run at a time than there are processors. The command line comes later, and wins.
	if err := flag.Set("test.parallel", "5"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// test is one test's view of the cluster: a namespace of its own, which accepts only pods that keep the restricted standard.
type test struct {
	*WithT
	t         *testing.T
	env       *environment
	namespace string
}

// newTest begins a test on the shared cluster.
func newTest(t *testing.T) *test {
	t.Helper()
	return newTestOn(t, env)
}

func newTestOn(t *testing.T, env *environment) *test {
	t.Helper()
	e := &test{WithT: NewWithT(t), t: t, env: env, namespace: strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))}
	if len(e.namespace) > 50 {
		e.namespace = e.namespace[:50]
	}
	e.kubectl("create", "namespace", e.namespace)
	e.kubectl("label", "namespace", e.namespace, "pod-security.kubernetes.io/enforce=restricted")
	t.Cleanup(func() {
		// Waiting for its end keeps what the operator does then out of the next test.
		if _, err := env.Kubectl(context.Background(), "delete", "namespace", e.namespace, "--timeout=3m"); err != nil {
			t.Error(err)
		}
	})
	return e
}

// kubectl runs kubectl in the test's namespace and returns what it printed.
func (e *test) kubectl(args ...string) string {
	e.t.Helper()
	out, err := e.try(args...)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

func (e *test) try(args ...string) (string, error) {
	out, err := e.env.Kubectl(e.t.Context(), append([]string{"-n", e.namespace}, args...)...)
	return strings.TrimSpace(out), err
}

// apply applies a Memcached with a spec in YAML's flow style, and returns kubectl's error.
func (e *test) apply(name, spec string) error {
	return e.applyObject("cache.example.com/v1alpha1", "Memcached", name, "spec: "+spec)
}

// applyObject applies an object whose fields beside its metadata are in YAML, and returns kubectl's error.
func (e *test) applyObject(apiVersion, kind, name, fields string) error {
	_, err := e.env.KubectlInput(e.t.Context(), fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %s}\n%s\n",
		apiVersion, kind, name, e.namespace, fields), "apply", "-f", "-")
	return err
}

// get returns a field of an object by JSONPath.
func (e *test) get(object, path string) string {
	e.t.Helper()
	return e.kubectl("get", object, "-o", "jsonpath="+path)
}

// eventually waits until a field of an object is want.
func (e *test) eventually(object, path string, want any) {
	e.t.Helper()
	e.Eventually(func() string {
		out, err := e.try("get", object, "-o", "jsonpath="+path)
		if err != nil {
			return err.Error()
		}
		return out
	}, soon, 100*time.Millisecond).Should(BeEquivalentTo(fmt.Sprint(want)), "%s %s", object, path)
}

// eventuallyGone waits until no object of these kinds is left in the namespace.
func (e *test) eventuallyGone(kinds string, selector ...string) {
	e.t.Helper()
	e.Eventually(func() (string, error) { return e.try(append([]string{"get", kinds, "-o", "name"}, selector...)...) },
		soon, 100*time.Millisecond).Should(BeEmpty())
}

// eventuallyServes waits until size pods of a Memcached are ready and reported by name, and the Deployment agrees.
func (e *test) eventuallyServes(name string, size int) {
	e.t.Helper()
	e.eventually("memcached/"+name, "{.status.readyReplicas}/{.spec.size}", fmt.Sprintf("%d/%d", size, size))
	e.eventually("memcached/"+name, `{.status.conditions[?(@.type=="Ready")].status}`, "True")
	e.eventually("deployment/"+name, "{.spec.replicas}", size)
	e.Expect(e.nodes(name)).To(Equal(e.pods(name)))
	e.Expect(e.nodes(name)).To(HaveLen(size))
}

// nodes returns .status.nodes.
func (e *test) nodes(name string) []string {
	e.t.Helper()
	return strings.Fields(e.get("memcached/"+name, "{.status.nodes[*]}"))
}

// pods returns the names of the pods that are not on their way out, as the API server sorts them.
func (e *test) pods(name string) []string {
	e.t.Helper()
	return strings.Fields(e.kubectl("get", "pods", "-l", "app=memcached,memcached_cr="+name,
		"-o", `go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}`))
}

// condition returns "status reason message" of a condition of an object, or of the Memcached of that name.
func (e *test) condition(object, condition string) string {
	e.t.Helper()
	if !strings.Contains(object, "/") {
		object = "memcached/" + object
	}
	return e.get(object, fmt.Sprintf(`{range .status.conditions[?(@.type==%q)]}{.status} {.reason} {.message}{end}`, condition))
}

// eventuallyCondition waits until a condition is as match says, in the form that condition returns.
func (e *test) eventuallyCondition(object, condition string, match types.GomegaMatcher) {
	e.t.Helper()
	e.Eventually(func() string { return e.condition(object, condition) }, soon, 100*time.Millisecond).Should(match)
}

// eventuallyLogs waits until the operator has logged a line that contains all of words, since its log had length from.
func (e *test) eventuallyLogs(from int, words ...string) {
	e.t.Helper()
	e.Eventually(func() bool {
		for line := range strings.Lines(e.env.operatorLog()[from:]) {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
				return true
			}
		}
		return false
	}, soon, 200*time.Millisecond).Should(BeTrue(), "the operator should log %q", words)
}

// eventsOf returns the messages of the events with a reason about the object of that name, in all namespaces.
func (e *test) eventsOf(name, reason string) string {
	e.t.Helper()
	return e.kubectl("get", "events", "-A", "--field-selector", "reason="+reason+",involvedObject.name="+name, "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`)
}

// writes returns the operator's requests in the test's namespace since a time that were to change something, events left aside.
func (e *test) writes(since time.Time) []cluster.AuditEvent {
	e.t.Helper()
	events, err := e.env.AuditEvents()
	e.Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(events, func(a cluster.AuditEvent) bool {
		return a.User != operatorUser || a.Namespace != e.namespace || a.Time.Before(since) || a.Resource == "events" ||
			slices.Contains([]string{"get", "list", "watch"}, a.Verb)
	})
}
