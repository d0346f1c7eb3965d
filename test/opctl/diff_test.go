package opctl_test

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestDiffOfWhatIsThere compares a custom resource that is applied, in the two ways of kubectl, with itself and with others.
func TestDiffOfWhatIsThere(t *testing.T) {
	e := newTest(t)
	e.apply(memcached("client", "{size: 1, image: {tag: 1.6.40}}"))
	e.apply(memcached("server", "{size: 1, image: {tag: 1.6.40}}"), "--server-side")
	for _, name := range []string{"client", "server"} {
		e.eventuallyReady("memcached/" + name)

		same := e.diff(memcached(name, "{size: 1, image: {tag: 1.6.40}}"))
		e.Expect(same).To(Equal(result{}))
		e.Expect(e.opctl(e.kubectl("get", "memcached", name, "-o", "yaml"), "diff", "-f", "-")).To(Equal(result{}), "as the API server has it")

		// What is no longer in the file goes from the custom resource, too, and its default comes back.
		other := e.diff(memcached(name, "{size: 2}"))
		e.Expect(other.code).To(Equal(1), "%+v", other)
		e.Expect(other.err).To(BeEmpty())
		e.Expect(other.changes()).To(Equal([]string{
			"--- live/cache.example.com.v1alpha1.Memcached." + e.namespace + "." + name,
			"+++ wanted/cache.example.com.v1alpha1.Memcached." + e.namespace + "." + name,
			"-    tag: 1.6.40", "+    tag: 1.6.45", "-  size: 1", "+  size: 2",
			"--- live/apps.v1.Deployment." + e.namespace + "." + name,
			"+++ wanted/apps.v1.Deployment." + e.namespace + "." + name,
			"-  replicas: 1", "+  replicas: 2",
			"-        image: docker.io/library/memcached:1.6.40", "+        image: docker.io/library/memcached:1.6.45",
		}), other.out)
	}
	e.Expect(e.kubectl("get", "memcacheds", "-o", "jsonpath={.items[*].spec.size}")).To(Equal("1 1"), "nothing is written")
}

// TestDiffOfDrift shows what the operator would put back, if it were not paused.
func TestDiffOfDrift(t *testing.T) {
	e := newTest(t)
	e.apply(memcached("cache", "{size: 1}"))
	e.eventuallyReady("memcached/cache")
	e.pause("memcached/cache")
	e.kubectl("scale", "deployment", "cache", "--replicas=3")
	e.kubectl("annotate", "service", "cache", "mine=stays")
	e.kubectl("delete", "serviceaccount", "cache")

	got := e.diff(memcached("cache", "{size: 1}"))
	e.Expect(got.code).To(Equal(1), "%+v", got)
	e.Expect(got.out).To(ContainSubstring("-  replicas: 3\n+  replicas: 1\n"))
	e.Expect(got.out).To(ContainSubstring("--- /dev/null\n+++ wanted/v1.ServiceAccount." + e.namespace + ".cache\n"))
	e.Expect(got.out).To(MatchRegexp(`\+    name: cache\n\+    uid: [0-9a-f-]{36}\n`), "the owner is known")
	e.Expect(got.out).NotTo(ContainSubstring("Service."))
	e.Expect(strings.Split(strings.TrimSpace(got.err), "\n")).To(ConsistOf(
		"# Memcached cache is paused: nothing is applied until the annotation memcached-operator.example.com/paused goes",
		"# spec.replicas of Deployment cache is taken back from kubectl",
	))
	e.Expect(e.kubectl("get", "deployment", "cache", "-o", "jsonpath={.spec.replicas}")).To(Equal("3"), "nothing is written")
	e.Expect(e.kubectl("get", "serviceaccount", "cache", "--ignore-not-found")).To(BeEmpty())
}

// TestDiffLeavesToOthersWhatIsTheirs: an autoscaler's replicas are no difference, neither before nor after the operator saw them.
func TestDiffLeavesToOthersWhatIsTheirs(t *testing.T) {
	e := newTest(t)
	e.apply(memcached("cache", "{size: 1}"))
	e.eventuallyReady("memcached/cache")
	e.kubectl("patch", "deployment", "cache", "--field-manager=kube-controller-manager", "-p", `{"spec":{"replicas":2}}`)
	left := result{err: "# spec.replicas of Deployment cache is left to kube-controller-manager\n"}
	e.Expect(e.diff(memcached("cache", "{size: 1}"))).To(Equal(left))
	e.eventually("memcached/cache", `{.status.conditions[?(@.type=="Applied")].message}`, "spec.replicas of Deployment cache is left to kube-controller-manager")
	e.Expect(e.diff(memcached("cache", "{size: 1}"))).To(Equal(left))

	got := e.diff(memcached("cache", "{size: 1, image: {tag: 1.6.40}}"))
	e.Expect(got.out).To(ContainSubstring("+        image: docker.io/library/memcached:1.6.40"))
	e.Expect(got.out).NotTo(MatchRegexp(`[-+] +replicas:`))
}

// TestDiffHidesSecrets changes a Secret's value, and a ConfigMap that is immutable and may be made anew.
func TestDiffHidesSecrets(t *testing.T) {
	e := newTest(t)
	strongbox := func(spec string) string { return object("test.example.com/v1", "Strongbox", "box", "spec: "+spec) }
	hides := func(r result) {
		t.Helper()
		for _, secret := range []string{"12345", "mauve", "MTIzNDU", "bWF1dmU"} {
			e.Expect(r.out + r.err).NotTo(ContainSubstring(secret))
		}
	}
	created := e.diff(strongbox("{edition: 1}"))
	e.Expect(created.code).To(Equal(1), "%+v", created)
	e.Expect(created.out).To(ContainSubstring("+  colour: '***'\n+  combination: '***'\n"))
	hides(created)

	e.apply(strongbox("{edition: 1}"))
	e.eventuallyReady("strongbox/box")
	e.Expect(e.diff(strongbox("{edition: 1}"))).To(Equal(result{}))

	changed := e.diff(strongbox("{edition: 2}"))
	e.Expect(changed.code).To(Equal(1), "%+v", changed)
	e.Expect(changed.changes()).To(Equal([]string{
		"--- live/test.example.com.v1.Strongbox." + e.namespace + ".box", "+++ wanted/test.example.com.v1.Strongbox." + e.namespace + ".box",
		"-  edition: 1", "+  edition: 2",
		"--- live/v1.ConfigMap." + e.namespace + ".box", "+++ wanted/v1.ConfigMap." + e.namespace + ".box",
		`-  edition: "1"`, `+  edition: "2"`,
		"--- live/v1.Secret." + e.namespace + ".box", "+++ wanted/v1.Secret." + e.namespace + ".box",
		"-  combination: '*** (before)'", "+  combination: '*** (after)'",
	}), changed.out)
	e.Expect(changed.err).To(Equal("# ConfigMap box is deleted and created anew, as the change is refused\n"))
	hides(changed)

	// kubectl keeps a copy of what it applied.
	e.pause("strongbox/box")
	e.apply(object("v1", "Secret", "box", "stringData: {combination: 12345-drift, extra: mauve}"))
	hides(e.diff(strongbox("{edition: 1}")))
}

// TestDiffOfWhatIsNotThere creates, prunes and leaves out.
func TestDiffOfWhatIsNotThere(t *testing.T) {
	e := newTest(t)
	shop := func(spec string) string { return object("demo.k8s.io/v1alpha1", "WebServer", "shop", "spec: "+spec) }
	created := e.diff(shop("{replicas: 1, route: {parentRefs: [{name: public}]}}"))
	e.Expect(created.code).To(Equal(1), "%+v", created)
	e.Expect(strings.Count(created.out, "--- /dev/null\n")).To(Equal(strings.Count(created.out, "--- ")))
	e.Expect(created.out).To(ContainSubstring("+++ wanted/apps.v1.Deployment." + e.namespace + ".shop\n"))
	for _, noise := range []string{"uid:", "resourceVersion", "generation:", "creationTimestamp: \"", "managedFields", "status:", "applied-digest"} {
		e.Expect(created.out).NotTo(ContainSubstring(noise))
	}
	e.Expect(created.err).To(Equal("# HTTPRoute shop (gateway.networking.k8s.io/v1) is left out, as the cluster does not know its kind\n"))

	e.apply(shop("{replicas: 1, ingress: {host: www.example.com}}"))
	e.eventuallyReady("webserver/shop")
	pruned := e.diff(shop("{replicas: 1}"))
	e.Expect(pruned.code).To(Equal(1), "%+v", pruned)
	e.Expect(pruned.out).To(ContainSubstring("--- live/networking.k8s.io.v1.Ingress." + e.namespace + ".shop\n+++ /dev/null\n"))
	e.Expect(strings.Count(pruned.out, "--- ")).To(Equal(2), pruned.out)

	// What bears our name and is not ours is not pruned, and so is no difference.
	e.kubectl("label", "ingress", "shop", "demo.k8s.io/webserver=other", "--overwrite")
	e.pause("webserver/shop")
	e.kubectl("label", "ingress", "shop", "demo.k8s.io/webserver=other", "--overwrite")
	e.Expect(e.diff(shop("{replicas: 1}")).out).NotTo(ContainSubstring("+++ /dev/null"))
}

// TestDiffAcrossNamespaces is of a kind whose objects are in no namespace, and in one that is not there yet.
func TestDiffAcrossNamespaces(t *testing.T) {
	e := newTest(t)
	acme := e.namespace + "-acme"
	tenant := object("test.example.com/v1", "Tenant", acme, "spec: {greeting: hello}")
	created := e.diff(tenant)
	e.Expect(created.code).To(Equal(1), "%+v", created)
	e.Expect(created.out).To(ContainSubstring("+++ wanted/v1.Namespace." + acme + "\n"))
	e.Expect(created.out).To(ContainSubstring("+++ wanted/v1.ConfigMap." + acme + ".greeting\n"))
	e.Expect(created.out).To(ContainSubstring("+++ wanted/storage.k8s.io.v1.VolumeAttributesClass." + acme + "\n"))
	e.Expect(created.err).To(BeEmpty())

	e.apply(tenant)
	t.Cleanup(func() { _, _ = shared.Kubectl(context.Background(), "delete", "tenant", acme, "--wait=false") })
	e.eventuallyReady("tenant/" + acme)
	e.Expect(e.diff(tenant)).To(Equal(result{}))
	e.Expect(e.diff(strings.ReplaceAll(tenant, "hello", "welcome")).changes()).To(ContainElements("-  greeting: hello", "+  greeting: welcome"))
}

// TestDiffSaysWhatItCannotDo: what is wrong with one object does not keep the others from being shown.
func TestDiffSaysWhatItCannotDo(t *testing.T) {
	e := newTest(t)
	e.apply(object("v1", "ServiceAccount", "taken", ""))
	taken := e.diff(memcached("taken", "{size: 1}"))
	e.Expect(taken.code).To(Equal(2), "%+v", taken)
	e.Expect(taken.err).To(HavePrefix("Error: -: Memcached taken: ServiceAccount taken: exists already and belongs to nobody: delete or rename it"))
	e.Expect(taken.out).To(ContainSubstring("+++ wanted/apps.v1.Deployment." + e.namespace + ".taken"))

	// One definition refuses what the schema does, the other does not know the rule.
	invalid := e.diff(memcached("bad", "{size: -1}") + object("test.example.com/v1", "Strongbox", "box", "spec: {edition: -1}") + memcached("good", "{size: 1}"))
	e.Expect(invalid.code).To(Equal(2), "%+v", invalid)
	e.Expect(invalid.err).To(Equal("Error: -: Memcached bad: spec.size: invalid value -1 (out of bound >=0)\nError: -: Strongbox box: spec: edition must be above 0\n"))
	e.Expect(invalid.out).To(ContainSubstring("+++ wanted/apps.v1.Deployment." + e.namespace + ".good"))

	e.apply(memcached("cache", "{size: 1}"))
	e.eventuallyReady("memcached/cache")
	e.as("diff-reader", "get memcacheds,deployments.apps,services,serviceaccounts")
	forbidden := e.diff(memcached("cache", "{size: 1}"))
	e.Expect(forbidden.code).To(Equal(2), "%+v", forbidden)
	e.Expect(forbidden.err).To(ContainSubstring(`User "diff-reader" cannot patch resource "memcacheds"`))

	e.as("diff-half", "get,patch memcacheds,services,serviceaccounts")
	half := e.diff(memcached("cache", "{size: 2}"))
	e.Expect(half.code).To(Equal(2), "%+v", half)
	e.Expect(half.out).To(ContainSubstring("+  size: 2"))
	e.Expect(half.err).To(ContainSubstring(`Deployment cache: deployments.apps "cache" is forbidden: User "diff-half" cannot get`))
}

// TestDiffAsksForTheDefinition is of a kind that is not installed.
func TestDiffAsksForTheDefinition(t *testing.T) {
	e := newTest(t)
	got := e.diff(object("test.example.com/v1", "Ghost", "one", "spec: {}"))
	e.Expect(got).To(Equal(result{code: 2, err: "Error: -: Ghost one: the cluster does not know test.example.com/v1 Ghost: opctl generate crd Ghost prints its definition\n"}))
	e.Expect(e.opctl("", "status", "ghost", "one")).To(Equal(result{code: 2, err: "Error: the cluster does not know test.example.com/v1 Ghost\n"}))
}
