// Package opctl runs the CLI's commands that need a cluster, against a real control plane on which the operator runs.
package opctl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/example/memcached-operator/test/cluster"
)

// kinds is a folder of kinds that are not built in.
const kinds = "testdata/kinds"

// soon is how long the cluster may take for what it does by itself; the machine may be slow.
const soon = 2 * time.Minute

// The cluster and the program that tests share. It is left as it was found, but for namespaces.
var (
	shared *cluster.Cluster
	opctl  string
)

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
	dir, err := os.MkdirTemp("", "opctl-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if out, err := exec.Command("go", "build", "-o", dir, "../../cmd/manager", "../../cmd/opctl").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	opctl = filepath.Join(dir, "opctl")
	definitions, err := exec.Command(opctl, "generate", "crd", "--kinds-dir", kinds, "Strongbox", "Tenant").Output()
	if err != nil {
		return 0, fmt.Errorf("making the definitions: %w", err)
	}
	file := filepath.Join(dir, "definitions.yaml")
	if err := os.WriteFile(file, definitions, 0o600); err != nil {
		return 0, err
	}
	if shared, err = cluster.Start(ctx, cluster.Options{Nodes: 1, CRDs: []string{"../../config/crd/bases", file}, Progress: os.Stderr}); err != nil {
		return 0, err
	}
	defer func() {
		if code != 0 {
			fmt.Fprintf(os.Stderr, "The operator's log ends:\n%s\n", shared.LogTail("operator"))
		}
		err = errors.Join(err, shared.Stop())
	}()
	// Its rights are the business of other tests.
	if err := shared.Run("operator", filepath.Join(dir, "manager"), "--kubeconfig", shared.KubeconfigPath(), "--kinds-dir", kinds,
		"--metrics-bind-address=0", "--health-probe-bind-address=0"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// tests counts the tests: the namespace of one that ran before may still be on its way out.
var tests atomic.Int32

// test is one test's view of the cluster: a namespace of its own.
type test struct {
	*WithT
	t          *testing.T
	namespace  string
	kubeconfig string // of who runs opctl
}

func newTest(t *testing.T) *test {
	t.Helper()
	t.Parallel()
	e := &test{WithT: NewWithT(t), t: t, namespace: fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), tests.Add(1)), kubeconfig: shared.KubeconfigPath()}
	e.kubectl("create", "namespace", e.namespace)
	t.Cleanup(func() {
		if _, err := shared.Kubectl(context.Background(), "delete", "namespace", e.namespace, "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	return e
}

// kubectl runs kubectl in the test's namespace and returns what it printed.
func (e *test) kubectl(args ...string) string {
	e.t.Helper()
	out, err := shared.Kubectl(e.t.Context(), append([]string{"-n", e.namespace}, args...)...)
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// apply applies objects as kubectl does.
func (e *test) apply(objects string, flags ...string) {
	e.t.Helper()
	if _, err := shared.KubectlInput(e.t.Context(), objects, append([]string{"-n", e.namespace, "apply", "-f", "-"}, flags...)...); err != nil {
		e.t.Fatal(err)
	}
}

// eventually waits until a field of an object is want.
func (e *test) eventually(object, path, want string) {
	e.t.Helper()
	e.Eventually(func() (string, error) {
		return shared.Kubectl(e.t.Context(), "-n", e.namespace, "get", object, "-o", "jsonpath="+path)
	}, soon, 100*time.Millisecond).Should(Equal(want), "%s %s", object, path)
}

// eventuallyReady waits until the present generation of a custom resource is ready.
func (e *test) eventuallyReady(object string) {
	e.t.Helper()
	e.eventually(object, `{.status.conditions[?(@.type=="Ready")].status}`, "True")
	e.eventually(object, `{.status.observedGeneration}`, e.kubectl("get", object, "-o", "jsonpath={.metadata.generation}"))
}

// pause keeps the operator's hands off a custom resource.
func (e *test) pause(object string) {
	e.t.Helper()
	e.kubectl("annotate", object, "memcached-operator.example.com/paused=true")
	e.eventually(object, `{.status.conditions[?(@.type=="Paused")].status}`, "True")
}

// result is what a command printed, and how it ended.
type result struct {
	out, err string
	code     int
}

// opctl runs opctl in the test's namespace.
func (e *test) opctl(stdin string, args ...string) result {
	e.t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(e.t.Context(), opctl, append(args, "-n", e.namespace, "--kinds-dir", kinds)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.kubeconfig)
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		e.t.Fatal(err)
	}
	return result{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// diff runs opctl diff on objects.
func (e *test) diff(objects string) result {
	e.t.Helper()
	return e.opctl(objects, "diff", "-f", "-")
}

// changes returns the lines of a difference that say what changes, and of what.
func (r result) changes() []string {
	lines := []string{}
	for line := range strings.Lines(r.out) {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// as lets another user, who may do only what rules allow in the test's namespace, run opctl from now on.
func (e *test) as(user string, rules ...string) {
	e.t.Helper()
	for i, rule := range rules {
		name := fmt.Sprintf("%s-%d", user, i)
		verbs, resources, _ := strings.Cut(rule, " ")
		e.kubectl("create", "role", name, "--verb="+verbs, "--resource="+resources)
		e.kubectl("create", "rolebinding", name, "--role="+name, "--user="+user)
	}
	config, err := shared.ConfigFor(user)
	if err != nil {
		e.t.Fatal(err)
	}
	if e.kubeconfig, err = shared.WriteKubeconfig(user, config); err != nil {
		e.t.Fatal(err)
	}
}

// memcached returns a Memcached with a spec in YAML's flow style.
func memcached(name, spec string) string {
	return object("cache.example.com/v1alpha1", "Memcached", name, "spec: "+spec)
}

func object(apiVersion, kind, name, fields string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s}\n%s\n", apiVersion, kind, name, fields)
}
