package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/example/memcached-operator/test/cluster"
)

// kindsTest is a test of an operator that follows a folder of kinds, on a cluster of its own.
type kindsTest struct {
	*test
	dir string // the folder
}

// start starts the operator, with more workers than usual.
func (e *kindsTest) start() {
	e.t.Helper()
	e.Expect(e.env.startOperator("--kinds-dir", e.dir, "--max-concurrent-reconciles=10",
		"--metrics-bind-address", e.env.metrics.address, "--metrics-cert-dir", e.env.metrics.dir)).To(Succeed())
}

// stop ends the operator.
func (e *kindsTest) stop() {
	e.t.Helper()
	pid, err := pidOf(e.env.manager)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(syscall.Kill(pid, syscall.SIGTERM)).To(Succeed())
	e.Expect(e.env.Wait(e.t.Context())).To(MatchError(ContainSubstring("operator has ended")))
}

func (e *kindsTest) write(path, content string) {
	e.t.Helper()
	file := filepath.Join(e.dir, path)
	e.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	e.Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
}

func (e *kindsTest) read(path string) string {
	e.t.Helper()
	content, err := os.ReadFile(filepath.Join(e.dir, path))
	e.Expect(err).NotTo(HaveOccurred())
	return string(content)
}

func (e *kindsTest) remove(paths ...string) {
	e.t.Helper()
	for _, path := range paths {
		e.Expect(os.RemoveAll(filepath.Join(e.dir, path))).To(Succeed())
	}
}

// install lets the cluster know a kind, and grants the operator its rights, with what opctl prints.
func (e *kindsTest) install(kind string) {
	e.t.Helper()
	for _, args := range [][]string{
		{"generate", "crd", "--kinds-dir", e.dir, kind},
		{"generate", "rbac", "--kinds-dir", e.dir, kind, "--name", strings.ToLower(kind) + "-operator", "--service-account", operatorNamespace + "/" + operatorAccount},
	} {
		printed, err := exec.CommandContext(e.t.Context(), filepath.Join(programs, "opctl"), args...).Output()
		e.Expect(err).NotTo(HaveOccurred())
		_, err = e.env.KubectlInput(e.t.Context(), string(printed), "apply", "--server-side", "-f", "-")
		e.Expect(err).NotTo(HaveOccurred())
	}
}

// refused waits until the operator has said by event and metric why it does not serve the present files of a folder.
func (e *kindsTest) refused(folder, definition string, words ...string) {
	e.t.Helper()
	series := fmt.Sprintf(`memcached_operator_kind_load_failed{folder=%q}`, folder)
	e.Eventually(func() float64 { return e.metric(series) }, soon, 500*time.Millisecond).Should(BeEquivalentTo(1))
	for _, word := range words {
		e.Eventually(func() string { return e.eventsOf(definition, "KindRefused") }, soon, 200*time.Millisecond).Should(ContainSubstring(word))
	}
}

func (e *kindsTest) mended(folder string) {
	e.t.Helper()
	series := fmt.Sprintf(`memcached_operator_kind_load_failed{folder=%q}`, folder)
	e.Eventually(func() float64 { return e.metric(series) }, soon, 500*time.Millisecond).Should(BeZero())
}

// TestKindsFromAFolder takes a folder of kinds through its life, with one operator.
func TestKindsFromAFolder(t *testing.T) {
	t.Parallel()
	env := startOwnCluster(t, cluster.Options{Nodes: 2, CRDs: []string{"../../config/crd/bases"}, Audit: true})
	var err error
	if env.metrics, err = newEndpoint(filepath.Join(t.TempDir(), "metrics")); err != nil {
		t.Fatal(err)
	}
	if err := env.allowMetrics(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := &kindsTest{newTestOn(t, env), t.TempDir()}
	e.kubectl("label", "namespace", e.namespace, "pod-security.kubernetes.io/enforce-") // the docs' example leaves that to its reader
	e.Expect(os.Mkdir(filepath.Join(e.dir, "schemas"), 0o755)).To(Succeed())
	e.start()
	for _, step := range []struct {
		name string
		do   func(*kindsTest)
	}{
		{"the example of the docs", exampleOfTheDocs},
		{"in place of a built-in kind", inPlaceOfABuiltInKind},
		{"changes under load", changesUnderLoad},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			step.do(&kindsTest{&test{WithT: NewWithT(t), t: t, env: env, namespace: e.namespace}, e.dir})
		}) {
			return
		}
	}
}

// docsFile finds a file in docs/kinds.md: its path in backquotes, and a block of code.
var docsFile = regexp.MustCompile("(?ms)`([a-zA-Z/.-]+)`:\n\n```[a-z]+\n(.*?)^```$")

// exampleOfTheDocs follows docs/kinds.md, at first with the files before the definition and the rights, then the other way round.
func exampleOfTheDocs(e *kindsTest) {
	const schema, template, definition = "schemas/redis/redis.cue", "charts/redis/templates/server.yaml", "redises.data.example.com"
	docs, err := os.ReadFile("../../docs/kinds.md")
	e.Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for _, found := range docsFile.FindAllStringSubmatch(string(docs), -1) {
		files[found[1]] = found[2]
	}
	custom := strings.Replace(files["my-redis.yaml"], "namespace: default", "namespace: "+e.namespace, 1)
	delete(files, "my-redis.yaml")
	e.Expect(files).To(And(HaveLen(3), HaveKey(template)))
	create := func() {
		e.t.Helper()
		e.Eventually(func() error {
			_, err := e.env.KubectlInput(e.t.Context(), custom, "apply", "-f", "-")
			return err
		}, soon).Should(Succeed())
		e.eventuallyCondition("redis/my-redis", "Ready", HavePrefix("True"))
		e.eventually("redis/my-redis", "{.status.server}", "my-redis-0")
	}

	// The files come first; what is missing is no trouble.
	for path, content := range files {
		e.write(path, content)
	}
	e.eventuallyLogs(0, "Waiting for the CustomResourceDefinition", "Redis.data.example.com")
	e.install("Redis")
	create()

	// An edit of the template reaches what runs.
	const tick = "periodSeconds: "
	edit := func(seconds int) {
		e.write(template, strings.Replace(files[template], "            tcpSocket:\n", fmt.Sprintf("            %s%d\n            tcpSocket:\n", tick, seconds), 1))
	}
	const seconds = "{.spec.template.spec.containers[0].readinessProbe.periodSeconds}"
	edit(7)
	e.eventually("statefulset/my-redis", seconds, 7)
	e.eventuallyCondition("redis/my-redis", "Ready", HavePrefix("True"))
	e.eventually("pod/my-redis-0", "{.spec.containers[0].readinessProbe.periodSeconds}", 7)

	// One that breaks it does not, and is told with file and line.
	before := e.get("statefulset/my-redis", "{.metadata.generation}")
	e.write(template, strings.Replace(e.read(template), "{{ .Values.memory | quote }}", "{{ .Values.memory | quot }}", 1))
	e.refused("redis", definition, fmt.Sprintf("server.yaml:%d", lineOf(e.read(template), "quot }}")), `function "quot" not defined`)
	e.write(schema, strings.Replace(files[schema], `tag: *"`, `tag: *`, 1))
	e.refused("redis", definition, fmt.Sprintf("redis.cue:%d", lineOf(files[schema], `tag: *"`)))
	e.kubectl("delete", "service", "my-redis") // the last good kind goes on serving
	e.eventually("service/my-redis", "{.spec.clusterIP}", "None")
	e.Expect(e.get("statefulset/my-redis", "{.metadata.generation}")).To(Equal(before))
	e.write(schema, files[schema])
	edit(9)
	e.mended("redis")
	e.eventually("statefulset/my-redis", seconds, 9)
	e.eventuallyCondition("redis/my-redis", "Ready", HavePrefix("True"))

	// A restart finds everything in place.
	e.eventually("pod/my-redis-0", "{.spec.containers[0].readinessProbe.periodSeconds}", 9)
	time.Sleep(2 * time.Second)
	e.stop()
	restarted := time.Now()
	e.start()
	e.Eventually(func() bool { return strings.Contains(e.env.operatorLog(), "Began watch") }, soon).Should(BeTrue())
	custom = strings.ReplaceAll(custom, "my-redis", "your-redis")
	_, err = e.env.KubectlInput(e.t.Context(), custom, "apply", "-f", "-")
	e.Expect(err).NotTo(HaveOccurred())
	e.eventuallyCondition("redis/your-redis", "Ready", HavePrefix("True"))
	for _, write := range e.writes(restarted) {
		if !strings.HasPrefix(write.Name, "your-redis") {
			e.t.Errorf("after a restart the operator wrote: %+v", write)
		}
	}

	// Without its files the kind is retired, and what runs stays until somebody deletes it.
	logged := len(e.env.operatorLog())
	e.remove("schemas/redis", "charts/redis")
	e.eventuallyLogs(logged, "Retired kind", "Redis.data.example.com")
	e.Expect(e.metric(`memcached_operator_kind_load_failed{folder="redis"}`)).To(BeZero())
	e.kubectl("scale", "statefulset/my-redis", "--replicas=2")
	e.kubectl("delete", "redis", "your-redis")
	e.eventuallyGone("statefulsets,services,pods", "-l", `data.example.com/redis=your-redis`)
	e.Expect(e.get("statefulset/my-redis", "{.spec.replicas}")).To(Equal("2"), "nobody looks after it any more")

	// It comes back with its files, now that the definition and the rights are there.
	for path, content := range files {
		e.write(path, content)
	}
	e.eventually("statefulset/my-redis", seconds, "10") // the API server's default
	e.eventuallyCondition("redis/my-redis", "Ready", HavePrefix("True"))
	e.kubectl("delete", "redis", "my-redis")
	e.eventuallyGone("statefulsets,services,pods")
}

// lineOf returns the number of the line that has the first part in text.
func lineOf(text, part string) int {
	before, _, _ := strings.Cut(text, part)
	return strings.Count(before, "\n") + 1
}

// inPlaceOfABuiltInKind serves Memcached from a copy with a change, from a broken copy, and from the operator's own again.
func inPlaceOfABuiltInKind(e *kindsTest) {
	const template, definition = "charts/memcached/templates/service.yaml", "memcacheds.cache.example.com"
	const port = "{.spec.ports[0].port}"
	e.Expect(e.apply("cache", "{size: 2}")).To(Succeed())
	e.eventuallyServes("cache", 2)
	deployment := e.get("deployment/cache", "{.metadata.resourceVersion}")

	for _, folder := range []string{"schemas/memcached", "charts/memcached"} {
		e.Expect(os.CopyFS(filepath.Join(e.dir, folder), os.DirFS("../../"+folder))).To(Succeed())
	}
	own := e.read(template)
	changed := strings.Replace(own, "port: 11211", "port: 11212", 1)
	e.write(template, changed)
	e.eventually("service/cache", port, 11212)

	e.write(template, "{{ if }}\n"+changed)
	e.refused("memcached", definition, "service.yaml:1")
	e.Expect(e.get("service/cache", port)).To(Equal("11212"))

	e.remove("schemas/memcached", "charts/memcached")
	e.eventually("service/cache", port, 11211)
	e.mended("memcached")
	e.eventuallyServes("cache", 2)
	e.Expect(e.get("deployment/cache", "{.metadata.resourceVersion}")).To(Equal(deployment), "nothing of it was to change")
	e.kubectl("delete", "memcached", "cache")
	e.eventuallyGone("deployments,services,pods")
}

// The Note kind renders one ConfigMap, so that many cost little.
const (
	noteSchema = `package note

import "github.com/example/memcached-operator/schemas/kind"

kind.#Kind & {
	names: {group: "load.example.com", version: "v1", kind: "Note", plural: "notes"}
	chart:   "note"
	observe: []
	object:  #Note
	values:  #Values
	report:  #Report
	samples: small: {text: "hello"}
}

#Note: kind.#Object & {
	apiVersion: "load.example.com/v1"
	kind:       "Note"
	spec: text: *"" | string
	status?: {objects?: int, ...}
}

#Values: {
	#object: #Note
	text:    #object.spec.text
}

#Report: {
	#observed: kind.#Observation
	objects: len(#observed.objects)
}
`
	noteChart    = "apiVersion: v2\nname: note\nversion: 0.1.0\n"
	noteTemplate = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  text: {{ .Values.text | quote }}
  edition: "%d"
`
)

var notes = schema.GroupVersionResource{Group: "load.example.com", Version: "v1", Resource: "notes"}

// loaded is how long changesUnderLoad goes on, and edition how often the template changes in that time.
const (
	loaded  = 30 * time.Second
	edition = 2 * time.Second
)

// changesUnderLoad creates, changes and deletes many custom resources while their kind's template changes.
func changesUnderLoad(e *kindsTest) {
	const count = 50
	client, err := dynamic.NewForConfig(e.env.Admin())
	e.Expect(err).NotTo(HaveOccurred())
	crs := client.Resource(notes).Namespace(e.namespace)
	e.write("schemas/note/note.cue", noteSchema)
	e.write("charts/note/Chart.yaml", noteChart)
	e.write("charts/note/templates/note.yaml", fmt.Sprintf(noteTemplate, 0))
	e.install("Note")
	e.kubectl("wait", "--for=condition=Established", "crd/notes.load.example.com", "--timeout=60s")

	put := func(ctx context.Context, name, text string) error {
		note := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": notes.GroupVersion().String(), "kind": "Note", "metadata": map[string]any{"name": name}, "spec": map[string]any{"text": text},
		}}
		_, err := crs.Create(ctx, note, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		_, err = crs.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"text":%q}}`, text), metav1.PatchOptions{})
		if apierrors.IsNotFound(err) { // another worker has just deleted it
			return nil
		}
		return err
	}
	name := func(i int) string { return fmt.Sprintf("note-%d", i) }

	ctx, cancel := context.WithTimeout(e.t.Context(), loaded)
	defer cancel()
	work, ctx := errgroup.WithContext(ctx)
	var done [4]int
	for worker := range done {
		work.Go(func() error {
			for ctx.Err() == nil {
				var err error
				switch note := name(rand.IntN(count)); rand.IntN(10) {
				case 0:
					err = crs.Delete(ctx, note, metav1.DeleteOptions{})
				default:
					err = put(ctx, note, fmt.Sprintf("%d of worker %d", done[worker], worker))
				}
				if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
					return err
				}
				done[worker]++
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		})
	}
	last := 0
	for ctx.Err() == nil {
		last++
		e.write("charts/note/templates/note.yaml", fmt.Sprintf(noteTemplate, last))
		select {
		case <-time.After(edition):
		case <-ctx.Done():
		}
	}
	e.Expect(work.Wait()).To(Succeed())
	e.t.Logf("%v changes of custom resources by each worker, %d editions of the template", done, last)

	for i := range count {
		e.Eventually(func() error { return put(e.t.Context(), name(i), "final") }, soon).Should(Succeed())
	}
	last++ // one more, for which no custom resource changes
	e.write("charts/note/templates/note.yaml", fmt.Sprintf(noteTemplate, last))
	e.Eventually(func() string {
		return e.kubectl("get", "configmaps", "-l", "load.example.com/note", "-o", `go-template={{range .items}}{{.data.edition}}/{{.data.text}} {{end}}`)
	}, soon, time.Second).Should(Equal(strings.TrimSpace(strings.Repeat(fmt.Sprintf("%d/final ", last), count))))
	e.Eventually(func() string {
		return e.kubectl("get", "notes", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}/{.status.objects} {end}`)
	}, soon, time.Second).Should(Equal(strings.TrimSpace(strings.Repeat("True/1 ", count))))

	_, err = pidOf(e.env.manager)
	e.Expect(err).NotTo(HaveOccurred(), "the operator should have survived")
	e.kubectl("delete", "notes", "--all", "--wait=false")
	e.eventuallyGone("configmaps", "-l", "load.example.com/note")
	e.remove("schemas", "charts")
	e.refused("", "", "") // a folder that is gone for a moment is no end
	if err := os.Mkdir(filepath.Join(e.dir, "schemas"), 0o755); !errors.Is(err, fs.ErrExist) {
		e.Expect(err).NotTo(HaveOccurred())
	}
	e.mended("")
}
