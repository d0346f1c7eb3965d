package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/cert"

	"github.com/example/memcached-operator/test/cluster"
)

// endpoint is an HTTPS endpoint that the operator will serve.
type endpoint struct {
	address string // host:port
	dir     string // with tls.crt and tls.key
	client  *http.Client
}

func newEndpoint(dir string) (*endpoint, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel chooses a free port
	if err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return &endpoint{
		address: listener.Addr().String(),
		dir:     dir,
		client:  &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 10 * time.Second},
	}, nil
}

// get returns the status code and the body of /metrics, asked for with a bearer token unless that is empty.
func (e *endpoint) get(token string) (code int, body string, err error) {
	request, err := http.NewRequest(http.MethodGet, "https://"+e.address+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// metricsReader is a ServiceAccount that may read the shared operator's metrics.
const metricsReader = "metrics-reader"

func (e *environment) allowMetrics(ctx context.Context) error {
	if _, err := e.Kubectl(ctx, "-n", operatorNamespace, "create", "serviceaccount", metricsReader); err != nil {
		return err
	}
	_, err := e.Kubectl(ctx, "create", "clusterrolebinding", metricsReader, "--clusterrole=memcached-operator-metrics-reader",
		"--serviceaccount="+operatorNamespace+":"+metricsReader)
	return err
}

// metric returns the value of a series of the operator's metrics, written as name{label="value",…}; 0 if it is not there.
func (e *test) metric(series string) float64 {
	e.t.Helper()
	token := e.kubectl("-n", operatorNamespace, "create", "token", metricsReader)
	_, body, err := e.env.metrics.get(token)
	e.Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(body) {
		if rest, found := strings.CutPrefix(line, series+" "); found {
			value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			e.Expect(err).NotTo(HaveOccurred())
			return value
		}
	}
	return 0
}

func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	e := newTest(t)
	e.kubectl("create", "serviceaccount", "prometheus")
	token := e.kubectl("create", "token", "prometheus")
	code := func(token string) func() (int, error) {
		return func() (int, error) {
			code, _, err := env.metrics.get(token)
			return code, err
		}
	}
	e.Eventually(code(""), soon).Should(Equal(http.StatusUnauthorized))
	e.Expect(code("not a token")()).To(BeNumerically(">=", 400))
	e.Expect(code(token)()).To(Equal(http.StatusForbidden))

	binding := e.namespace
	e.kubectl("create", "clusterrolebinding", binding, "--clusterrole=memcached-operator-metrics-reader", "--serviceaccount="+e.namespace+":prometheus")
	e.Eventually(code(e.kubectl("create", "token", "prometheus")), soon, time.Second).Should(Equal(http.StatusOK))
	_, body, err := env.metrics.get(e.kubectl("create", "token", "prometheus"))
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(body).To(ContainSubstring(`controller_runtime_reconcile_total{controller="memcached-operator"`))
	e.kubectl("delete", "clusterrolebinding", binding)
}

// TestWatchNamespaces runs another operator, on another cluster, that serves one namespace and has no right outside of it; at
// first it lacks those to Deployments altogether.
func TestWatchNamespaces(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	other := startOwnCluster(t, cluster.Options{Nodes: 1, CRDs: []string{"../../config/crd/bases"}, Audit: true})
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := other.Kubectl(t.Context(), args...)
		g.Expect(err).NotTo(HaveOccurred())
		return out
	}
	apply := func(format string, args ...any) {
		t.Helper()
		_, err := other.KubectlInput(t.Context(), fmt.Sprintf(format, args...), "apply", "-f", "-")
		g.Expect(err).NotTo(HaveOccurred())
	}
	rules := kubectl("get", "clusterrole/memcached-operator-manager-role", "-o", "jsonpath={.rules}")
	kubectl("delete", "clusterrolebinding", "memcached-operator-manager-rolebinding", "memcached-operator-metrics-auth-rolebinding")
	kubectl("delete", "clusterrole", "memcached-operator-manager-role")
	for _, ns := range []string{"served", "ignored"} {
		kubectl("create", "namespace", ns)
		apply("{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {name: cache, namespace: %s}, spec: {size: 2}}", ns)
		apply("{apiVersion: demo.k8s.io/v1alpha1, kind: WebServer, metadata: {name: web, namespace: %s}, spec: {replicas: 2, route: {parentRefs: [{name: public}]}}}", ns)
		apply("{apiVersion: ops.cloudista.io/v1alpha1, kind: Backup, metadata: {name: nightly, namespace: %s}, %s}", ns, backupOf("@daily"))
	}
	grant := func(rules string) {
		t.Helper()
		apply(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: operator, namespace: served}, rules: %s}`, rules)
	}
	grant(strings.Replace(rules, `"apps"`, `"other.example.com"`, 1))
	kubectl("-n", "served", "create", "rolebinding", "operator", "--role=operator", "--serviceaccount="+operatorNamespace+":"+operatorAccount)
	g.Expect(other.startOperator("--watch-namespaces=served", "--metrics-bind-address=0")).To(Succeed())

	g.Eventually(func() string {
		return kubectl("-n", "served", "get", "memcached", "cache", "-o", `jsonpath={range .status.conditions[?(@.type=="Applied")]}{.status} {.reason} {.message}{end}`)
	}, soon).Should(And(HavePrefix("False Forbidden Deployments: "), ContainSubstring(`cannot list resource "deployments"`)))
	grant(rules)

	kinds := []string{"memcached/cache", "webserver/web", "backup/nightly"}
	for _, object := range kinds {
		g.Eventually(func() string {
			return kubectl("-n", "served", "get", object, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		}, soon).Should(Equal("True"), object)
	}
	g.Eventually(func() string { return kubectl("-n", "served", "get", "events", "-o", "jsonpath={.items[*].message}") }, soon).
		Should(ContainSubstring("Service cache, Deployment cache"), "events are allowed, too")
	for _, object := range kinds {
		g.Expect(kubectl("-n", "ignored", "get", object, "-o", "jsonpath={.status}")).To(BeEmpty())
	}
	g.Expect(kubectl("-n", "ignored", "get", "deployments,cronjobs", "-o", "name")).To(BeEmpty())

	requests, err := other.AuditEvents()
	g.Expect(err).NotTo(HaveOccurred())
	for _, r := range requests {
		if r.User != operatorUser || r.Resource == "" { // discovery is for everybody
			continue
		}
		if r.Namespace != "served" || r.Code == http.StatusForbidden && r.Resource != "deployments" {
			t.Errorf("an operator of one namespace sent: %+v", r)
		}
	}
}

// TestARestartWritesNothing ends the operator and starts it again, with custom resources about that are ready: one of them with a
// field that is left to somebody else, one with an object whose kind is not installed.
func TestARestartWritesNothing(t *testing.T) {
	e := newTest(t)
	for _, name := range []string{"a", "b", "yielding"} {
		e.Expect(e.apply(name, "{size: 2}")).To(Succeed())
	}
	e.applyWebServer("web", "{replicas: 1, route: {parentRefs: [{name: public}]}}")
	e.Expect(e.applyObject("ops.cloudista.io/v1alpha1", "Backup", "nightly", backupOf("@daily"))).To(Succeed())
	for _, name := range []string{"a", "b", "yielding"} {
		e.eventuallyServes(name, 2)
	}
	e.kubectl("patch", "deployment", "yielding", "--field-manager=kube-controller-manager", "-p", `{"spec":{"replicas":3}}`)
	e.eventuallyCondition("yielding", "Applied", HaveSuffix("is left to kube-controller-manager"))
	e.eventually("memcached/yielding", "{.status.readyReplicas}", 3)
	e.eventuallyCondition("webserver/web", "Applied", HaveSuffix("is left out, as the cluster does not know its kind"))
	for _, object := range []string{"memcached/yielding", "webserver/web", "backup/nightly"} {
		e.eventuallyCondition(object, "Ready", HavePrefix("True"))
	}
	time.Sleep(2 * time.Second) // the last events go out
	pid, err := pidOf(env.manager)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(syscall.Kill(pid, syscall.SIGTERM)).To(Succeed())
	e.Expect(env.Wait(t.Context())).To(MatchError(ContainSubstring("operator has ended")))

	restarted := time.Now()
	e.Expect(env.startSharedOperator()).To(Succeed())
	e.Expect(e.apply("new", "{size: 1}")).To(Succeed())
	e.eventuallyServes("new", 1) // so the others have had their turn, too
	events, err := env.AuditEvents()
	e.Expect(err).NotTo(HaveOccurred())
	asked := 0
	for _, event := range events {
		isRead := event.Verb == "get" || event.Verb == "list" || event.Verb == "watch"
		ofNew := event.Namespace == e.namespace && strings.HasPrefix(event.Name, "new")
		if event.User != operatorUser || event.Time.Before(restarted) || isRead || event.Resource == "leases" || event.Namespace == operatorNamespace || ofNew {
			continue
		}
		// Whose a field is cannot be seen without asking for it.
		if event.Resource == "deployments" && event.Name == "yielding" && event.Code == http.StatusConflict {
			asked++
			continue
		}
		t.Errorf("after a restart the operator wrote: %+v", event)
	}
	e.Expect(asked).To(BeNumerically("<=", 1), "one question is enough")
}

// pidOf finds the process that runs program, in /proc.
func pidOf(program string) (int, error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return 0, err
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == program {
			return strconv.Atoi(filepath.Base(filepath.Dir(link)))
		}
	}
	return 0, fmt.Errorf("no process runs %s", program)
}
