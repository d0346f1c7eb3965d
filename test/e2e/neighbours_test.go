package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// TestANoisyNeighbour measures how long a change of one custom resource takes while another one changes without a pause, and is as
// large as its definition allows. How long is for the reader of the log; that it is done is for the test.
func TestANoisyNeighbour(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	client, err := dynamic.NewForConfig(e.env.Admin())
	e.Expect(err).NotTo(HaveOccurred())
	memcacheds := client.Resource(schema.GroupVersionResource{Group: "cache.example.com", Version: "v1alpha1", Resource: "memcacheds"}).Namespace(e.namespace)
	webServers := client.Resource(schema.GroupVersionResource{Group: "demo.k8s.io", Version: "v1alpha1", Resource: "webservers"}).Namespace(e.namespace)
	deployments := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(e.namespace)

	e.Expect(e.apply("quiet", "{size: 0}")).To(Succeed())
	e.eventuallyCondition("quiet", "Ready", HavePrefix("True"))
	e.applyWebServer("noisy", "{replicas: 0}")
	e.eventuallyCondition("webserver/noisy", "Ready", HavePrefix("True"))

	// measure changes the quiet one some times, and returns how long the middle one took to reach the Deployment.
	changes := 0
	measure := func() time.Duration {
		var took []time.Duration
		for range 9 {
			changes++
			start, tag := time.Now(), fmt.Sprintf("change-%d", changes)
			_, err := memcacheds.Patch(t.Context(), "quiet", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"image":{"tag":%q}}}`, tag), metav1.PatchOptions{})
			e.Expect(err).NotTo(HaveOccurred())
			e.Eventually(func() (string, error) {
				live, err := deployments.Get(t.Context(), "quiet", metav1.GetOptions{})
				if err != nil {
					return "", err
				}
				text, err := json.Marshal(live.Object["spec"])
				return string(text), err
			}, soon, 5*time.Millisecond).Should(ContainSubstring(":" + tag))
			took = append(took, time.Since(start))
			time.Sleep(200 * time.Millisecond)
		}
		slices.Sort(took)
		return took[len(took)/2].Round(time.Millisecond)
	}
	alone := measure()
	const validations = `memcached_operator_validate_seconds_%s{kind="WebServer.demo.k8s.io"}`
	count, sum := e.metric(fmt.Sprintf(validations, "count")), e.metric(fmt.Sprintf(validations, "sum"))

	enough, noise := make(chan struct{}), make(chan error, 1)
	patches := 0
	go func() {
		for {
			select {
			case <-enough:
				noise <- nil
				return
			default:
			}
			patches++
			if _, err := webServers.Patch(t.Context(), "noisy", types.MergePatchType, largeWebServer(patches), metav1.PatchOptions{}); err != nil {
				noise <- err
				return
			}
		}
	}()
	beside := measure()
	close(enough)
	e.Expect(<-noise).To(Succeed())
	count, sum = e.metric(fmt.Sprintf(validations, "count"))-count, e.metric(fmt.Sprintf(validations, "sum"))-sum
	t.Logf("a change took %v alone, and %v beside a custom resource that changed %d times and was validated %v times, for %.0f ms each",
		alone, beside, patches, count, 1000*sum/max(1, count))
	e.eventuallyCondition("quiet", "Ready", HavePrefix("True"))
	e.eventuallyCondition("webserver/noisy", "Ready", HavePrefix("True"))
	// The last change arrives; the condition may still be that of the one before.
	e.eventually("deployment/noisy", "{.spec.template.spec.imagePullSecrets[0].name}", e.get("webserver/noisy", "{.spec.image.pullSecrets[0].name}"))
}

// largeWebServer returns a patch to a spec with as much of everything as is allowed, which is another one for each n.
func largeWebServer(n int) []byte {
	var secrets, hosts, parents []any
	for i := range 16 {
		secrets = append(secrets, map[string]any{"name": fmt.Sprintf("s%d-%d-%s", n, i, strings.Repeat("s", 200))})
		hosts = append(hosts, fmt.Sprintf("h%d-%d.%sexample.com", n, i, strings.Repeat(strings.Repeat("h", 60)+".", 3)))
	}
	for i := range 8 {
		parents = append(parents, map[string]any{"name": fmt.Sprintf("p%d-%d-%s", n, i, strings.Repeat("p", 200))})
	}
	patch, _ := json.Marshal(map[string]any{"spec": map[string]any{
		"image": map[string]any{"pullSecrets": secrets},
		"route": map[string]any{"parentRefs": parents, "hostnames": hosts},
	}})
	return patch
}
