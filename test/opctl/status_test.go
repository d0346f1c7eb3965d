package opctl_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func TestStatusOfWhatIsReady(t *testing.T) {
	e := newTest(t)
	e.apply(memcached("cache", "{size: 2}"))
	e.eventuallyReady("memcached/cache")
	for _, words := range [][]string{{"cache"}, {"memcached/cache"}, {"Memcached", "cache"}, {"mc", "cache"}, {"memcacheds.cache.example.com/cache"}} {
		got := e.opctl("", append([]string{"status"}, words...)...)
		e.Expect(got.code).To(Equal(0), "%+v", got)
		e.Expect(got.err).To(BeEmpty())
		e.Expect(got.out).To(MatchRegexp(`^Memcached `+e.namespace+`/cache  Ready=True  generation 1 \(observed 1\)
├─ conditions
(│  ├─ \w+ +True +\w+ +\w+.*\n)+│  └─ \w+ +True +\w+ +\w+.*
├─ Service cache  +Current
├─ ServiceAccount cache  +Current
├─ Deployment cache  +Current
│  ├─ Pod cache-\w+-\w+  Running, ready, 0 restarts
│  └─ Pod cache-\w+-\w+  Running, ready, 0 restarts
└─ events
(   ├─ .*\n)+   └─ .*
$`), got.out)
		e.Expect(got.out).To(MatchRegexp(`─ \w+ +Normal +Applied +Memcached cache +created ServiceAccount cache, Service cache, Deployment cache\n`))
	}
	var asJSON, asYAML map[string]any
	e.Expect(json.Unmarshal([]byte(e.opctl("", "status", "cache", "-o", "json").out), &asJSON)).To(Succeed())
	e.Expect(yaml.Unmarshal([]byte(e.opctl("", "status", "cache", "-o", "yaml").out), &asYAML)).To(Succeed())
	e.Expect(asJSON).To(Equal(asYAML))
	e.Expect(asJSON).To(And(HaveKeyWithValue("ready", "True"), HaveKeyWithValue("kind", "Memcached"), HaveKeyWithValue("objects", HaveLen(3))))
}

// TestStatusOfTrouble: a pod that finds no node, an object that is gone, and a custom resource that is invalid.
func TestStatusOfTrouble(t *testing.T) {
	e := newTest(t)
	e.apply(memcached("big", `{size: 1, resources: {requests: {cpu: "9999"}}}`))
	e.Eventually(func() string { return e.opctl("", "status", "big").out }, soon, time.Second).Should(And(
		HavePrefix("Memcached "+e.namespace+"/big  Ready=False  generation 1 (observed 1)\n"),
		MatchRegexp(`─ Deployment big  +InProgress, .*\n│  └─ Pod big-\w+-\w+  Pending, 0 restarts, Unschedulable: .*Insufficient cpu`),
	))
	e.Expect(e.opctl("", "status", "big").code).To(Equal(1))
	e.pause("memcached/big")
	e.kubectl("delete", "service", "big")
	e.Expect(e.opctl("", "status", "big").out).To(MatchRegexp(`─ Service big  +Missing\n`))

	e.apply(object("test.example.com/v1", "Strongbox", "bad", "spec: {edition: -1}"))
	e.eventually("strongbox/bad", `{.status.conditions[?(@.type=="Ready")].status}`, "False")
	bad := e.opctl("", "status", "bad")
	e.Expect(bad.code).To(Equal(1), "%+v", bad)
	e.Expect(bad.out).To(MatchRegexp(`─ Valid +False +InvalidSpec +\w+ +spec: edition must be above 0\n`))

	// A quota refuses pods, of which the ReplicaSet tells.
	e.kubectl("create", "quota", "none", "--hard=pods=0")
	e.apply(memcached("refused", "{size: 1}"))
	e.Eventually(func() string { return e.opctl("", "status", "refused").out }, soon, time.Second).Should(
		MatchRegexp(`Warning +FailedCreate +ReplicaSet refused-\w+ +.*exceeded quota`))
}

// TestStatusOfJobs puts pods below jobs, and jobs below their CronJob.
func TestStatusOfJobs(t *testing.T) {
	e := newTest(t)
	e.apply(object("ops.cloudista.io/v1alpha1", "Backup", "nightly", `spec:
  schedule: "@yearly"
  target: {kind: StatefulSet, name: mydb}
  destination: {s3Bucket: mydb-backups}`))
	e.eventuallyReady("backup/nightly")
	e.kubectl("create", "job", "by-hand", "--from="+e.kubectl("get", "cronjobs", "-o", "name"))
	e.Eventually(func() string { return e.opctl("", "status", "backup", "nightly").out }, soon, time.Second).Should(
		MatchRegexp(`─ CronJob \S+ +Current\n[│ ]+└─ Job by-hand  \w+\n[│ ]+└─ Pod by-hand-\w+  \w+`))
}

// TestStatusOfNamesakes shows custom resources of several kinds.
func TestStatusOfNamesakes(t *testing.T) {
	e := newTest(t)
	e.apply(object("test.example.com/v1", "Strongbox", "same", "spec: {}") + memcached("same", "{size: 1}"))
	e.eventuallyReady("strongbox/same")
	e.eventuallyReady("memcached/same")
	both := e.opctl("", "status", "same")
	e.Expect(both.code).To(Equal(0), "%+v", both)
	e.Expect(both.out).To(MatchRegexp(`(?s)^Memcached \S+/same  Ready=True.*\nStrongbox \S+/same  Ready=True.*─ Secret same +Current\n`))
	e.pause("memcached/same")
	e.apply(memcached("same", "{size: 2}"))
	stale := e.opctl("", "status", "same")
	e.Expect(stale.out).To(ContainSubstring("/same  Ready=True  generation 2 (observed 1)\n"))
	e.Expect(stale.code).To(Equal(1), "what Ready says is of the generation before")
}

// TestStatusOfWhatMayNotBeRead shows the rest.
func TestStatusOfWhatMayNotBeRead(t *testing.T) {
	e := newTest(t)
	e.apply(memcached("cache", "{size: 1}"))
	e.eventuallyReady("memcached/cache")
	e.as("status-reader", "get memcacheds,deployments.apps")
	got := e.opctl("", "status", "memcached", "cache")
	e.Expect(got.code).To(Equal(0), "%+v", got)
	e.Expect(got.out).To(MatchRegexp(`─ Service cache  +Unknown, .*User "status-reader" cannot get resource "services"`))
	e.Expect(got.out).To(MatchRegexp(`─ Deployment cache  +Current\n`))
	e.Expect(got.out).To(MatchRegexp(`└─ unknown
   ├─ pods: .*User "status-reader" cannot list resource "pods".*
   └─ events: .*User "status-reader" cannot list resource "events".*
$`))
	all := e.opctl("", "status", "cache")
	e.Expect(all.code).To(Equal(0), "%+v", all)
	e.Expect(all.err).To(ContainSubstring(`cannot get resource "webservers"`))

	e.as("nobody")
	none := e.opctl("", "status", "mc/cache")
	e.Expect(none.code).To(Equal(2))
	e.Expect(none.out).To(BeEmpty())
	e.Expect(none.err).To(HavePrefix(`Error: getting Memcached cache: memcacheds.cache.example.com "cache" is forbidden: User "nobody" cannot get`))
}

func TestStatusOfNothing(t *testing.T) {
	e := newTest(t)
	e.Expect(e.opctl("", "status", "memcached/absent")).To(Equal(result{code: 2, err: "Error: there is no Memcached absent in namespace " + e.namespace + "\n"}))
	got := e.opctl("", "status", "absent")
	e.Expect(got.code).To(Equal(2))
	e.Expect(got.err).To(MatchRegexp(`^Error: there is no Memcached, .*Tenant absent in namespace `))
}

// TestNoCluster is about commands that nobody answers.
func TestNoCluster(t *testing.T) {
	e := newTest(t)
	e.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	const nowhere = `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x}}], clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]}`
	e.Expect(os.WriteFile(e.kubeconfig, []byte(nowhere), 0o600)).To(Succeed())
	for _, got := range []result{e.diff(memcached("cache", "{size: 1}")), e.opctl("", "status", "cache"), e.opctl("", "status", "mc", "cache", "-o", "json")} {
		e.Expect(got.code).To(Equal(2), "%+v", got)
		e.Expect(got.out).To(BeEmpty())
		e.Expect(got.err).To(ContainSubstring("connection refused"), fmt.Sprint(got))
	}
}
