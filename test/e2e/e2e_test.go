// Package e2e runs the operator as users do: its program, under the rights of config/rbac, on a real control plane with
// simulated nodes, driven by kubectl.
package e2e_test

import (
	"context"
	"errors"
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
const soon = time.Minute

// env is the cluster and the operator that all tests share. They come one after another.
var env *environment

type environment struct {
	*cluster.Cluster
	manager string    // the operator's program
	metrics *endpoint // of the operator
}

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
	manager := filepath.Join(dir, "manager")
	build := exec.Command("go", slices.Concat([]string{"build"}, buildFlags, []string{"-o", manager, "../../cmd/manager"})...)
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
	defer func() {
		if code != 0 || err != nil {
			fmt.Fprintf(os.Stderr, "The operator's log ends:\n%s\n", c.LogTail("operator"))
			log, _ := os.ReadFile(filepath.Join(c.Dir(), "logs", "operator.log"))
			if _, report, found := strings.Cut(string(log), "WARNING: DATA RACE"); found {
				fmt.Fprintf(os.Stderr, "The operator ended on a data race:%s\n", report)
			}
		}
		err = errors.Join(err, c.Stop())
	}()
	env = &environment{Cluster: c, manager: manager}
	if _, err := c.Kubectl(ctx, "apply", "-k", "../../config/sandbox"); err != nil {
		return 0, err
	}
	if env.metrics, err = newEndpoint(filepath.Join(dir, "metrics")); err != nil {
		return 0, err
	}
	if err := env.startSharedOperator(); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// test is one test's view of the cluster: a namespace of its own, which accepts only pods that keep the restricted standard.
type test struct {
	*WithT
	t         *testing.T
	namespace string
}

func newTest(t *testing.T) *test {
	t.Helper()
	e := &test{WithT: NewWithT(t), t: t, namespace: strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))}
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
	out, err := env.Kubectl(e.t.Context(), append([]string{"-n", e.namespace}, args...)...)
	return strings.TrimSpace(out), err
}

// apply applies a Memcached with a spec in YAML's flow style, and returns kubectl's error.
func (e *test) apply(name, spec string) error {
	_, err := env.KubectlInput(e.t.Context(), fmt.Sprintf(`
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: %s, namespace: %s}
spec: %s
`, name, e.namespace, spec), "apply", "-f", "-")
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

// condition returns "status reason message" of a condition.
func (e *test) condition(name, condition string) string {
	e.t.Helper()
	return e.get("memcached/"+name, fmt.Sprintf(`{range .status.conditions[?(@.type==%q)]}{.status} {.reason} {.message}{end}`, condition))
}

// eventuallyCondition waits until a condition is as match says, in the form that condition returns.
func (e *test) eventuallyCondition(name, condition string, match types.GomegaMatcher) {
	e.t.Helper()
	e.Eventually(func() string { return e.condition(name, condition) }, soon, 100*time.Millisecond).Should(match)
}
