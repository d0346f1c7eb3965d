package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestAnAutoscalerOfTheDeploymentIsNotFought: a HorizontalPodAutoscaler raises the replicas to its minimum at once, for which it
// needs no metrics.
func TestAnAutoscalerOfTheDeploymentIsNotFought(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	e.Expect(e.apply("cache", "{size: 2}")).To(Succeed())
	e.eventuallyServes("cache", 2)
	e.kubectl("autoscale", "deployment/cache", "--min=4", "--max=6", "--cpu=50%")

	e.eventually("deployment/cache", "{.spec.replicas}", 4)
	e.eventuallyCondition("cache", "Applied", Equal("True ObjectsApplied spec.replicas of Deployment cache is left to kube-controller-manager"))
	e.eventually("memcached/cache", "{.status.readyReplicas}", 4)
	e.eventuallyCondition("cache", "Ready", HavePrefix("True"))

	time.Sleep(3 * time.Second) // what the rollout brought is written by now
	start := time.Now()
	time.Sleep(20 * time.Second) // the autoscaler comes every 15
	e.Expect(e.writes(start)).To(BeEmpty())
	e.Expect(e.get("deployment/cache", "{.spec.replicas}")).To(Equal("4"))

	// Other fields are still ours.
	e.Expect(e.apply("cache", `{size: 2, image: {tag: "1.6.44"}}`)).To(Succeed())
	e.eventually("deployment/cache", "{.spec.template.spec.containers[0].image} {.spec.replicas}", "docker.io/library/memcached:1.6.44 4")
	e.eventually("memcached/cache", "{.status.readyReplicas}/{.status.observedGeneration}", "4/2")
	e.eventuallyCondition("cache", "Applied", HaveSuffix("is left to kube-controller-manager"))
}

// TestAnEditIsUndoneAndTold edits a field as kubectl edit does.
func TestAnEditIsUndoneAndTold(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	e.applyWebServer("web", "{replicas: 1}")
	e.eventuallyCondition("webserver/web", "Ready", HavePrefix("True"))
	const forced = `memcached_operator_conflicts_total{kind="WebServer.demo.k8s.io",resolution="forced"}`
	before := e.metric(forced)

	image := e.get("deployment/web", "{.spec.template.spec.containers[0].image}")
	e.kubectl("patch", "deployment", "web", "--field-manager=kubectl-edit",
		"-p", `{"spec":{"template":{"spec":{"containers":[{"name":"webserver","image":"example.com/other:1"}]}}}}`)
	e.eventually("deployment/web", "{.spec.template.spec.containers[0].image}", image)
	e.Eventually(func() string { return e.eventsOf("web", "Applied") }, soon).
		Should(ContainSubstring(`took spec.template.spec.containers[name="webserver"].image of Deployment web back from kubectl-edit`))
	e.Expect(e.metric(forced)).To(BeNumerically(">=", before+1))
	e.eventuallyCondition("webserver/web", "Ready", HavePrefix("True"))
}
