package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestTutorial is the walk that tutorials of this operator take.
func TestTutorial(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	e.Expect(e.apply("example-memcached", "{size: 3}")).To(Succeed())
	e.eventuallyServes("example-memcached", 3)

	e.Expect(e.apply("example-memcached", "{size: 4}")).To(Succeed())
	e.eventuallyServes("example-memcached", 4)

	e.kubectl("patch", "memcached", "example-memcached", "-p", `{"spec":{"size": 5}}`, "--type", "merge")
	e.eventuallyServes("example-memcached", 5)

	e.kubectl("scale", "memcached/example-memcached", "--replicas=2")
	e.eventuallyServes("example-memcached", 2)

	e.Expect(e.apply("memcached-for-wordpress", "{size: 1}")).To(Succeed())
	e.Expect(e.apply("memcached-for-drupal", "{size: 2}")).To(Succeed())
	e.eventuallyServes("memcached-for-wordpress", 1)
	e.eventuallyServes("memcached-for-drupal", 2)
	e.eventuallyServes("example-memcached", 2)

	e.kubectl("delete", "memcached", "--all")
	e.eventuallyGone("deployments,services,replicasets,pods")
	e.eventuallyGone("serviceaccounts", "-l", "app=memcached")
}

// TestRecreatedUnderTheSameName: the objects of the deleted one are in the way until the garbage collector has come.
func TestRecreatedUnderTheSameName(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	e.Expect(e.apply("cache", "{size: 2}")).To(Succeed())
	e.eventuallyServes("cache", 2)
	before := e.get("deployment/cache", "{.metadata.uid}")
	e.kubectl("delete", "memcached", "cache")
	e.Expect(e.apply("cache", "{size: 3}")).To(Succeed())
	e.Eventually(func() string {
		out, _ := e.try("get", "deployment/cache", "-o", "jsonpath={.metadata.uid}")
		return out
	}, soon).
		ShouldNot(Or(BeEmpty(), Equal(before)))
	e.eventuallyServes("cache", 3)
	e.Expect(e.kubectl("get", "events", "--field-selector", "reason=Conflict", "-o", "name")).To(BeEmpty())
}

func TestScaledToZeroIsReady(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	e.Expect(e.apply("cache", "{size: 0}")).To(Succeed())
	e.eventuallyCondition("cache", "Ready", HavePrefix("True"))
	e.Expect(e.nodes("cache")).To(BeEmpty())
}

func TestStatusFollowsPods(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	e.Expect(e.apply("cache", "{size: 3}")).To(Succeed())
	e.eventuallyServes("cache", 3)

	victim := e.nodes("cache")[0]
	e.kubectl("delete", "pod", victim)
	deleted := time.Now()
	e.Eventually(func() []string { return e.nodes("cache") }, soon, 50*time.Millisecond).Should(And(HaveLen(3), Not(ContainElement(victim))))
	t.Logf("status.nodes named the new pod %v after the old one was deleted", time.Since(deleted).Round(10*time.Millisecond))
	e.eventuallyServes("cache", 3)
}

func TestDriftIsPutBack(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	e.Expect(e.apply("cache", "{size: 2}")).To(Succeed())
	e.eventuallyServes("cache", 2)
	image := e.get("deployment/cache", "{.spec.template.spec.containers[0].image}")

	e.kubectl("scale", "deployment/cache", "--replicas=7")
	e.eventually("deployment/cache", "{.spec.replicas}", 2)

	e.kubectl("set", "image", "deployment/cache", "memcached=example.com/other:1")
	e.eventually("deployment/cache", "{.spec.template.spec.containers[0].image}", image)

	for _, label := range []string{"app", `app\.kubernetes\.io/managed-by`, `cache\.example\.com/memcached`} {
		before := e.get("deployment/cache", "{.metadata.labels."+label+"}")
		key := strings.ReplaceAll(label, `\`, "")
		e.kubectl("label", "deployment/cache", key+"-")
		e.eventually("deployment/cache", "{.metadata.labels."+label+"}", before)
		e.kubectl("label", "--overwrite", "deployment/cache", key+"=other")
		e.eventually("deployment/cache", "{.metadata.labels."+label+"}", before)
	}

	e.kubectl("delete", "service", "cache")
	e.eventually("service/cache", "{.spec.clusterIP}", "None")
	e.eventuallyServes("cache", 2)

	// What nobody but its maker set stays.
	e.kubectl("annotate", "deployment/cache", "example.com/note=mine")
	e.kubectl("patch", "memcached", "cache", "-p", `{"spec":{"size": 3}}`, "--type", "merge")
	e.eventuallyServes("cache", 3)
	e.Expect(e.get("deployment/cache", `{.metadata.annotations.example\.com/note}`)).To(Equal("mine"))
}

func TestInvalidSpecs(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	e.Expect(e.apply("cache", "{size: 2}")).To(Succeed())
	e.eventuallyServes("cache", 2)
	before := e.get("deployment/cache", "{.metadata.resourceVersion}")

	for spec, want := range map[string]string{
		`{size: -1}`:                                `spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0`,
		`{size: 1001}`:                              `spec.size in body should be less than or equal to 1000`,
		`{size: "three"}`:                           `spec.size: Invalid value: "string": spec.size in body must be of type integer`,
		`{siez: 3}`:                                 `unknown field "spec.siez"`,
		`{image: {repository: "not an image"}}`:     `spec.image.repository: Invalid value: "not an image": must be an image name without tag and digest`,
		`{image: {tag: "a b"}}`:                     `spec.image.tag: Invalid value: "a b": must be an image tag, such as 1.6.45`,
		`{resources: {limits: {memory: 64Mi}}}`:     `memory must be at least 120Mi`,
		`{resources: {limits: {memory: plenty}}}`:   `spec.resources.limits.memory: Invalid value: "plenty": must be an amount of memory`,
		`{image: {pullPolicy: Sometimes}}`:          `spec.image.pullPolicy: Unsupported value: "Sometimes"`,
		`{image: {pullSecrets: [{name: "A B"}]}}`:   `spec.image.pullSecrets[0].name: Invalid value: "A B": must be the name of an object`,
		`{image: {digest: "sha256:abc"}, size: -3}`: `spec.image.digest: Invalid value: "sha256:abc": must be an image digest`,
	} {
		e.Expect(e.apply("cache", spec)).To(MatchError(ContainSubstring(want)), spec)
	}
	e.Expect(e.apply("1cache", "{size: 1}")).To(MatchError(ContainSubstring("metadata.name must start with a lower-case letter")))

	// What an older definition in the cluster lets through is reported, and what runs stays untouched.
	e.kubectl("patch", "crd", "memcacheds.cache.example.com", "--type", "json", "-p", `[{"op": "remove", "path":
		"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/resources/properties/limits/properties/cpu/x-kubernetes-validations"}]`)
	e.Eventually(func() error {
		_, err := e.try("patch", "memcached", "cache", "--dry-run=server", "--type", "merge", "-p", `{"spec":{"resources":{"limits":{"cpu":5000}}}}`)
		return err
	}, soon).Should(Succeed())
	e.kubectl("patch", "memcached", "cache", "--type", "merge", "-p", `{"spec":{"size":4,"resources":{"limits":{"cpu":5000}}}}`)
	e.eventuallyCondition("cache", "Valid", Equal("False InvalidSpec spec.resources.limits.cpu: invalid value 5000: must be an amount of CPU, such as 250m, 0.5 or 2"))
	e.eventuallyCondition("cache", "Stalled", HavePrefix("True InvalidSpec"))
	e.eventuallyCondition("cache", "Ready", HavePrefix("False InvalidSpec"))
	e.Eventually(func() string {
		return e.kubectl("get", "events", "--field-selector", "reason=InvalidSpec,type=Warning", "-o", "jsonpath={.items[*].message}")
	}, soon).Should(ContainSubstring("spec.resources.limits.cpu"))
	e.Expect(e.get("deployment/cache", "{.metadata.resourceVersion}")).To(Equal(before))

	// The status goes on following the pods.
	victim := e.nodes("cache")[0]
	e.kubectl("delete", "pod", victim)
	e.Eventually(func() []string { return e.nodes("cache") }, soon).Should(And(HaveLen(2), Not(ContainElement(victim))))

	e.kubectl("patch", "memcached", "cache", "--type", "merge", "-p", `{"spec":{"resources":{"limits":{"cpu":2}}}}`)
	e.eventuallyCondition("cache", "Valid", HavePrefix("True SpecValid"))
	e.eventuallyServes("cache", 4)
	e.Expect(e.condition("cache", "Stalled")).To(BeEmpty())

	// When all is well again without a rollout, an event says so.
	e.kubectl("patch", "memcached", "cache", "--type", "merge", "-p", `{"spec":{"resources":{"limits":{"cpu":5000}}}}`)
	e.eventuallyCondition("cache", "Ready", HavePrefix("False InvalidSpec"))
	e.kubectl("patch", "memcached", "cache", "--type", "merge", "-p", `{"spec":{"resources":{"limits":{"cpu":2}}}}`)
	e.eventuallyCondition("cache", "Ready", HavePrefix("True"))
	e.Eventually(func() string { return e.eventsOf("cache", "Ready") }, soon).Should(ContainSubstring("Memcached cache is ready"))
}

func TestForeignObjectIsNotTakenOver(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	e.kubectl("create", "deployment", "cache", "--image=example.com/somebody-elses:1", "--replicas=0")
	before := e.get("deployment/cache", "{.metadata.uid}{.spec}{.metadata.labels}")
	e.Expect(e.apply("cache", "{size: 1}")).To(Succeed())
	e.eventuallyCondition("cache", "Applied", Equal("False Conflict Deployment cache: exists already and belongs to nobody: "+
		"delete or rename it, rename the custom resource, or annotate the object with memcached-operator.example.com/adopt=<name of the custom resource>"))
	e.Expect(e.get("deployment/cache", "{.metadata.uid}{.spec}{.metadata.labels}")).To(Equal(before))

	e.kubectl("delete", "deployment", "cache")
	e.eventuallyServes("cache", 1)
}

func TestMissingRightsAreNamedAndRecoveredFrom(t *testing.T) {
	e := newTest(t)
	const role = "clusterrole/memcached-operator-manager-role"
	index := -1
	for i, groups := range strings.Fields(e.get(role, "{range .rules[*]}{.apiGroups}{'\\n'}{end}")) {
		if groups == `["apps"]` {
			index = i
		}
	}
	e.Expect(index).To(BeNumerically(">=", 0))
	path := fmt.Sprintf("/rules/%d/verbs", index)
	verbs := e.get(role, fmt.Sprintf("{.rules[%d].verbs}", index))
	e.kubectl("patch", role, "--type=json", "-p", fmt.Sprintf(`[{"op":"replace","path":%q,"value":["list","watch"]}]`, path))
	restore := fmt.Sprintf(`[{"op":"replace","path":%q,"value":%s}]`, path, verbs)
	t.Cleanup(func() { _, _ = env.Kubectl(context.Background(), "patch", role, "--type=json", "-p", restore) })

	e.Expect(e.apply("cache", "{size: 1}")).To(Succeed())
	e.eventuallyCondition("cache", "Applied", And(HavePrefix("False Forbidden Deployment cache: "), ContainSubstring(operatorUser)))
	e.eventually("service/cache", "{.spec.clusterIP}", "None") // what may be applied is

	e.kubectl("patch", role, "--type=json", "-p", restore)
	e.eventuallyServes("cache", 1)
}

func TestPodTroubleIsReported(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	// More than any node has.
	e.Expect(e.apply("cache", "{size: 2, resources: {requests: {memory: 900Gi}, limits: {memory: 900Gi}}}")).To(Succeed())
	e.eventuallyCondition("cache", "Available", And(HavePrefix("False Unschedulable Pod cache-"), ContainSubstring("Insufficient memory")))
	e.eventuallyCondition("cache", "Ready", HavePrefix("False Unschedulable"))
	e.Expect(e.nodes("cache")).To(HaveLen(2))
	e.Expect(e.get("memcached/cache", "{.status.readyReplicas}")).To(Equal("0"))

	e.Expect(e.apply("cache", "{size: 2, resources: {requests: {memory: 1Gi}, limits: {memory: 1Gi}}}")).To(Succeed())
	e.eventuallyServes("cache", 2)
}

// TestNothingHappensAtRest counts the operator's requests in the API server's audit log.
func TestNothingHappensAtRest(t *testing.T) {
	e := newTest(t)
	for _, name := range []string{"a", "b", "c"} {
		e.Expect(e.apply(name, "{size: 2}")).To(Succeed())
	}
	for _, name := range []string{"a", "b", "c"} {
		e.eventuallyServes(name, 2)
	}
	time.Sleep(5 * time.Second) // let the last events go out: they are what is not counted
	start := time.Now()
	time.Sleep(time.Minute)
	events, err := env.AuditEvents()
	e.Expect(err).NotTo(HaveOccurred())
	seen := 0
	for _, event := range events {
		if event.User != operatorUser {
			continue
		}
		seen++
		// A watch is renewed every few minutes, and the lease is leader election's heartbeat.
		if event.Time.After(start) && event.Verb != "watch" && event.Resource != "leases" {
			t.Errorf("at rest the operator sent: %+v", event)
		}
	}
	e.Expect(seen).To(BeNumerically(">", 0), "the audit log must hold the operator's requests")
}

// TestDefaultManifestsAreAccepted installs config/default as `make deploy` does, as far as that goes without its image: the
// API server accepts every object, and a pod of the operator's Deployment keeps the restricted standard.
func TestDefaultManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	manifests := e.kubectl("kustomize", "../../config/default")
	_, err := env.KubectlInput(t.Context(), manifests, "apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(manifests).NotTo(ContainSubstring(`'*'`))

	for _, object := range strings.Split(manifests, "\n---\n") {
		if !strings.Contains(object, "\nkind: Deployment\n") {
			continue
		}
		object = strings.ReplaceAll(object, operatorNamespace, e.namespace)
		_, err := env.KubectlInput(t.Context(), object, "apply", "-f", "-")
		e.Expect(err).NotTo(HaveOccurred())
		e.kubectl("create", "serviceaccount", operatorAccount)
		e.Eventually(func() string { return e.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}") }, soon).Should(Equal("Running"))
		return
	}
	t.Fatal("config/default has no Deployment")
}
