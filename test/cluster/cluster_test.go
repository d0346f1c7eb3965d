package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/example/memcached-operator/test/cluster"
)

// patience is for what happens on its own, on a machine as busy as may be.
const patience = 2 * time.Minute

// blockVariable has the test binary start a cluster, print its data folder and wait to be killed.
const blockVariable = "CLUSTER_TEST_BLOCK"

func TestMain(m *testing.M) {
	if os.Getenv(blockVariable) == "" {
		os.Exit(m.Run())
	}
	c, err := cluster.Start(context.Background(), cluster.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Dir())
	select {}
}

func TestAPIOnly(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "")
	ctx := t.Context()
	c := cluster.StartForTest(t, cluster.Options{Audit: true})
	admin := clients(t, c.Admin())

	t.Run("objects can be created", func(t *testing.T) {
		created, err := admin.CoreV1().ConfigMaps("default").Create(ctx, configMap("created"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if created.UID == "" {
			t.Error("the created ConfigMap has no UID")
		}
	})

	t.Run("RBAC decides what a user may do", func(t *testing.T) {
		config, err := c.ConfigFor("nobody")
		if err != nil {
			t.Fatal(err)
		}
		nobody := clients(t, config)
		list := func() error {
			_, err := nobody.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
			return err
		}
		if err := list(); !apierrors.IsForbidden(err) {
			t.Fatalf("list before the RoleBinding: got %v, want Forbidden", err)
		}
		for _, args := range []string{"role reader --verb=list --resource=configmaps", "rolebinding nobody-reads --role=reader --user=nobody"} {
			if out, err := c.Kubectl(ctx, append([]string{"create"}, strings.Fields(args)...)...); err != nil {
				t.Fatal(out, err)
			}
		}
		gomega.NewWithT(t).Eventually(list, patience).Should(gomega.Succeed())
	})

	t.Run("a service account has its groups", func(t *testing.T) {
		config, err := c.ServiceAccount("apps", "operator")
		if err != nil {
			t.Fatal(err)
		}
		review, err := clients(t, config).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := authenticationv1.UserInfo{
			Username: "system:serviceaccount:apps:operator",
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:apps", "system:authenticated"},
		}
		if diff := cmp.Diff(want, review.Status.UserInfo, cmpopts.IgnoreFields(authenticationv1.UserInfo{}, "Extra")); diff != "" {
			t.Errorf("identity (-want +got):\n%s", diff)
		}
	})

	t.Run("requests are audited", func(t *testing.T) {
		var ofNobody []cluster.AuditEvent
		gomega.NewWithT(t).Eventually(func() (code int) {
			events, err := c.AuditEvents()
			if err != nil {
				t.Fatal(err)
			}
			ofNobody = slices.DeleteFunc(events, func(e cluster.AuditEvent) bool { return e.User != "nobody" })
			return ofNobody[len(ofNobody)-1].Code
		}, patience).Should(gomega.Equal(200))
		want := cluster.AuditEvent{
			User: "nobody", Verb: "list", Path: "/api/v1/namespaces/default/configmaps", Resource: "configmaps", Namespace: "default", Code: 403,
		}
		if diff := cmp.Diff(want, ofNobody[0], cmpopts.IgnoreFields(cluster.AuditEvent{}, "Time")); diff != "" {
			t.Errorf("first request (-want +got):\n%s", diff)
		}
		if last := ofNobody[len(ofNobody)-1]; last.Time.Before(ofNobody[0].Time) {
			t.Errorf("times: got %s after %s", last.Time, ofNobody[0].Time)
		}

		log, err := c.OpenAuditLog("nobody")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = log.Close() }()
		first, err := log.Next()
		if diff := cmp.Diff(ofNobody, first); err != nil || diff != "" {
			t.Errorf("one user's requests: %v (-want +got):\n%s", err, diff)
		}
		if again, err := log.Next(); err != nil || len(again) > 0 {
			t.Errorf("read again without new requests: got %v, %v", again, err)
		}
	})

	t.Run("kubectl reads its input and tells its errors", func(t *testing.T) {
		manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: piped}}"
		if out, err := c.KubectlInput(ctx, manifest, "apply", "-f", "-"); err != nil || out != "configmap/piped created\n" {
			t.Errorf("kubectl apply: got %q, %v", out, err)
		}
		if _, err := c.Kubectl(ctx, "get", "configmap", "missing"); err == nil || !strings.Contains(err.Error(), `"missing" not found`) {
			t.Errorf("kubectl get: got %v, want an error with kubectl's words", err)
		}
	})

	t.Run("a kubeconfig stands for its configuration", func(t *testing.T) {
		content, err := cluster.Kubeconfig(c.Admin())
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(content)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.Admin().TLSClientConfig, config.TLSClientConfig); diff != "" || config.Host != c.Admin().Host {
			t.Errorf("host %s, TLS (-want +got):\n%s", config.Host, diff)
		}
	})

	t.Run("another cluster beside it, although its ports are taken first", func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "kept")
		other, err := cluster.Start(ctx, cluster.Options{Dir: folder}.WithPorts(c.Ports()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clients(t, other.Admin()).CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		_, err = clients(t, other.Admin()).CoreV1().ConfigMaps("default").Get(ctx, "created", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("the first cluster's ConfigMap in the other one: got %v, want NotFound", err)
		}
		if _, err := other.AuditEvents(); err == nil {
			t.Error("AuditEvents without Options.Audit: got no error")
		}
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
		if got := processes(t, folder); len(got) > 0 {
			t.Errorf("processes left after Stop: %q", got)
		}
		if _, err := os.Stat(filepath.Join(folder, "logs", "kube-apiserver.log")); err != nil {
			t.Errorf("a given folder keeps its logs: %v", err)
		}
		if _, err := admin.CoreV1().ConfigMaps("default").Get(ctx, "created", metav1.GetOptions{}); err != nil {
			t.Errorf("the first cluster after the other's Stop: %v", err)
		}
	})
}

func TestNodes(t *testing.T) {
	ctx, g := t.Context(), gomega.NewWithT(t)
	c := cluster.StartForTest(t, cluster.Options{Nodes: 3, CRDs: []string{"testdata/crd.yaml"}})
	admin := clients(t, c.Admin())

	nodes, err := admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	zones := map[string]string{}
	for _, node := range nodes.Items {
		zones[node.Name] = node.Labels[corev1.LabelTopologyZone]
	}
	if diff := cmp.Diff(map[string]string{"node-0": "zone-a", "node-1": "zone-b", "node-2": "zone-c"}, zones); diff != "" {
		t.Errorf("zones of the nodes (-want +got):\n%s", diff)
	}

	if out, err := c.Kubectl(ctx, "create", "deployment", "web", "--image=web", "--replicas=3"); err != nil {
		t.Fatal(out, err)
	}
	g.Eventually(func(g gomega.Gomega) {
		web, err := admin.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(web.Status.ReadyReplicas).To(gomega.Equal(int32(3)))
	}, patience).Should(gomega.Succeed())

	// A thing that owns a ConfigMap: the garbage collector knows kinds of CRDs as well.
	uid, err := c.KubectlInput(ctx, "{apiVersion: example.com/v1, kind: Thing, metadata: {name: owner}}", "create", "-f", "-", "-o=jsonpath={.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	owned := configMap("owned")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Thing", Name: "owner", UID: types.UID(uid)}}
	if _, err := admin.CoreV1().ConfigMaps("default").Create(ctx, owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	if out, err := c.Kubectl(ctx, "delete", "deployment/web", "thing/owner"); err != nil {
		t.Fatal(out, err)
	}
	g.Eventually(func(g gomega.Gomega) {
		_, err := admin.CoreV1().ConfigMaps("default").Get(ctx, "owned", metav1.GetOptions{})
		g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "the owned ConfigMap: %v", err)
		pods, err := admin.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(pods.Items).To(gomega.BeEmpty())
	}, patience).Should(gomega.Succeed())

	if got := processes(t, c.Dir()); len(got) != 6 {
		t.Errorf("processes of a running cluster: got %q, want the guard and five components", got)
	}
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	assertGone(t, c.Dir())
}

func TestNothingOutlivesAKilledProgram(t *testing.T) {
	// The clusters of a program with envtest's binaries are made of these.
	binaries, err := cluster.Binaries(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	assets := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(filepath.Join(binaries, name), filepath.Join(assets, name)); err != nil {
			t.Fatal(err)
		}
	}

	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), blockVariable+"=1", "KUBEBUILDER_ASSETS="+assets)
	program.Stderr = os.Stderr
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("reading the data folder that the program prints: %v", err)
	}
	dir := strings.TrimSpace(line)
	if got := processes(t, dir); len(got) != 3 {
		t.Errorf("processes before the kill: got %q, want the guard, etcd and kube-apiserver", got)
	}
	if got := processes(t, assets); len(got) != 2 {
		t.Errorf("processes of KUBEBUILDER_ASSETS: got %q, want etcd and kube-apiserver", got)
	}

	if err := program.Process.Kill(); err != nil { // SIGKILL: the program cannot clean up
		t.Fatal(err)
	}
	_ = program.Wait() // its error is the kill
	gomega.NewWithT(t).Eventually(func() []string { return processes(t, dir) }, patience).Should(gomega.BeEmpty())
	assertGone(t, dir)
}

func TestStartTellsWhatFailed(t *testing.T) {
	dir := t.TempDir()
	_, err := cluster.Start(t.Context(), cluster.Options{Dir: dir, Nodes: 1}.WithPorts([3]int{70000, 0, 0}))
	if err == nil {
		t.Fatal("got no error although port 70000 does not exist")
	}
	for _, want := range []string{"kube-apiserver has ended: exit status 1", "--secure-port"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %q, want %q in it", err, want)
		}
	}
	if got := processes(t, dir); len(got) > 0 {
		t.Errorf("processes left: %q", got)
	}
}

func clients(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// processes returns the command lines that contain word, such as a data folder: each of a cluster's processes names it.
func processes(t *testing.T, word string) (found []string) {
	t.Helper()
	all, err := exec.Command("ps", "-A", "-ww", "-o", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		if strings.Contains(line, word) {
			found = append(found, line)
		}
	}
	return found
}

func assertGone(t *testing.T, dir string) {
	t.Helper()
	if got := processes(t, dir); len(got) > 0 {
		t.Errorf("processes left: %q", got)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the temporary data folder: got %v, want %v", err, fs.ErrNotExist)
	}
}
