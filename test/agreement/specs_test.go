package agreement_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cuelang.org/go/cue/cuecontext"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/schema"
	"github.com/example/memcached-operator/reconciler/validate"
)

const (
	connections = 4
	// mostTold is how many disagreements a test prints.
	mostTold = 20
)

// gaps are what the operator refuses and the API server does not: by the name that docs/custom-resources.md has for it, with what the
// operator says.
var gaps = []struct {
	name    string
	message *regexp.Regexp
}{
	{"The size of a spec", regexp.MustCompile(`^(has \d+ (fields|entries|bytes), \d+ are allowed|has more than \d+ (fields and list entries|bytes)|is nested deeper)`)},
}

// TestGapsAreDocumented: each gap stands in the documentation, and is one.
func TestGapsAreDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/custom-resources.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(docs), "\n## Who checks what\n")
	for _, gap := range gaps {
		if !strings.Contains(section, "**"+gap.name+"**") {
			t.Errorf("docs/custom-resources.md does not tell of %q", gap.name)
		}
	}
	k := everything()
	c := newComparison(t, k)
	many := map[string]any{}
	for i := range 1001 {
		many[fmt.Sprint("a", i)] = 1
	}
	spec, err := json.Marshal(map[string]any{"must": "a", "numbers": map[string]any{"one": 1}, "open": many})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.compareSpec(1, "x", spec); err != nil {
		t.Fatal(err)
	}
	if c.report(); c.documented != 1 {
		t.Errorf("a spec with 1001 fields is refused by the operator alone: got %v", c.byGap)
	}
}

// TestSpecsAgree makes specs, and asks the API server, the reconciler and opctl vet what they say.
func TestSpecsAgree(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.Names.Kind, func(t *testing.T) {
			count := *specs
			if !slices.Contains(embedded, k) { // what they have in common with the others is asked enough
				count = max(1, count/10)
			}
			t.Logf("%d specs of seed %d", count, *seed)
			known, err := schema.Gaps(k)
			if err != nil {
				t.Fatal(err)
			}
			for _, gap := range known {
				t.Errorf("%s: only the operator checks this: %s", gap.Path, gap.Rule)
			}
			c := newComparison(t, k)
			c.all(count)
			c.vet()
			c.report()
		})
	}
}

// comparison is of the answers about one kind's specs.
type comparison struct {
	t         *testing.T
	kind      *kind.Kind
	generator *generator
	server    *server
	folder    string // of the files for opctl

	mutex                         sync.Mutex
	accepted, refused, documented int
	byGap                         map[string]int
	vetted                        map[string]answer // by file
	disagreements                 map[string][]string
}

// answer is what the reconciler says of a spec.
type answer struct {
	text string
	err  error
}

func newComparison(t *testing.T, k *kind.Kind) *comparison {
	root, err := schema.Of(k)
	if err != nil {
		t.Fatal(err)
	}
	spec := root.Properties["spec"]
	return &comparison{
		t: t, kind: k, generator: &generator{kind: k, spec: &spec, seed: *seed}, server: newServer(t, k), folder: t.TempDir(),
		byGap: map[string]int{}, vetted: map[string]answer{}, disagreements: map[string][]string{},
	}
}

// all compares the answers about so many specs.
func (c *comparison) all(count int) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range connections {
		workers.Go(func() {
			for number := int(next.Add(1)); number <= count && !c.t.Failed(); number = int(next.Add(1)) {
				if err := c.compare(number); err != nil {
					c.t.Errorf("spec %d: %v", number, err)
				}
			}
		})
	}
	workers.Wait()
}

func (c *comparison) compare(number int) error {
	name, spec := c.generator.make(number)
	return c.compareSpec(number, name, spec)
}

func (c *comparison) compareSpec(number int, name string, text json.RawMessage) error {
	object := fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q}, "spec": %s}`, c.kind.GVK().GroupVersion(), c.kind.Names.Kind, name, text)
	var spec any
	if err := utiljson.Unmarshal(text, &spec); err != nil {
		return err
	}
	stored, refusal, err := c.server.create(asKubectlSends(object))
	if err != nil {
		return err
	}
	_, invalid := validate.Spec(c.kind, name, spec)
	if invalid != nil && !validate.IsInvalid(invalid) {
		return invalid
	}
	if err := c.keepForVet(number, object, invalid); err != nil {
		return err
	}
	switch {
	case invalid == nil && refusal != "":
		c.disagree("the API server alone refuses", refusal, object)
	case invalid != nil && refusal == "":
		c.operatorAlone(invalid, object)
	case invalid != nil:
		c.count(&c.refused)
	default:
		c.count(&c.accepted)
		want, err := completed(c.kind, name, spec)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, simplified(stored)); diff != "" {
			c.disagree("the API server fills in something else than CUE (-CUE +API server)", diff, object)
		}
	}
	return nil
}

// asKubectlSends returns object as clients do that decode it before, in which 1.0 becomes 1. (The field that `kubectl scale` sets is
// the one in which the API server itself would refuse 1.0.)
func asKubectlSends(object string) string {
	var decoded any
	err := utiljson.Unmarshal([]byte(object), &decoded)
	if err != nil {
		panic(err) // it was made here
	}
	data, err := json.Marshal(decoded)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func (c *comparison) count(what *int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	*what++
}

// operatorAlone notes that the operator alone refuses a spec, which is fine if it is for what the documentation names.
func (c *comparison) operatorAlone(err error, object string) {
	invalid, _ := errors.AsType[*validate.InvalidError](err)
	for _, gap := range gaps {
		named := true
		for _, f := range invalid.Fields {
			named = named && gap.message.MatchString(f.Message)
		}
		if named {
			c.count(&c.documented)
			c.mutex.Lock()
			c.byGap[gap.name]++
			c.mutex.Unlock()
			return
		}
	}
	c.disagree("the operator alone refuses", err.Error(), object)
}

var variable = regexp.MustCompile(`[0-9]+|"[^"]*"`)

// disagree notes a disagreement. Those that differ in values alone are told once.
func (c *comparison) disagree(who, why, object string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	kindOf := who + variable.ReplaceAllString(why, "…")
	c.disagreements[kindOf] = append(c.disagreements[kindOf], fmt.Sprintf("%s: %s\n%s", who, why, kind.Shorten(object, 2000)))
}

// completed returns spec with the defaults that CUE fills in.
func completed(k *kind.Kind, name string, spec any) (any, error) {
	data, err := kind.Evaluate(k, "the defaults", func(p *kind.Program) ([]byte, error) {
		object := map[string]any{"metadata": map[string]any{"name": name}}
		if spec != nil {
			object["spec"] = simplified(spec)
		}
		var all struct{ Spec map[string]any }
		if err := p.Object.Unify(cuecontext.New().Encode(object)).Decode(&all); err != nil {
			return nil, err
		}
		return json.Marshal(all.Spec)
	})
	if err != nil {
		return nil, err
	}
	var out any
	return out, utiljson.Unmarshal(data, &out)
}

// simplified returns v without null fields, and with 1 for 1.0.
func simplified(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if value != nil {
				out[key] = simplified(value)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			out = append(out, simplified(value))
		}
		return out
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

// keepForVet writes a file for opctl vet, which looks at all of them at once.
func (c *comparison) keepForVet(number int, object string, invalid error) error {
	file := filepath.Join(c.folder, fmt.Sprintf("%06d.json", number))
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.vetted[file] = answer{object, invalid}
	return os.WriteFile(file, []byte(object), 0o600)
}

// vet asks opctl vet about the files that were kept.
func (c *comparison) vet() {
	out, err := exec.CommandContext(c.t.Context(), opctl, "vet", "--kinds-dir", kindsDir, "-o", "json", c.folder).Output()
	if exit, isExit := errors.AsType[*exec.ExitError](err); err != nil && (!isExit || exit.ExitCode() != 1) {
		c.t.Errorf("opctl vet: %v", err)
		if isExit {
			c.t.Errorf("%s", exit.Stderr)
		}
		return
	}
	var problems []struct{ File, Path, Message string }
	if err := json.Unmarshal(out, &problems); err != nil {
		c.t.Errorf("opctl vet: %v", err)
		return
	}
	found := map[string]string{}
	for _, p := range problems {
		found[p.File] += p.Path + ": " + p.Message + "; "
	}
	for file, a := range c.vetted {
		switch {
		case a.err == nil && found[file] != "":
			c.disagree("opctl vet alone refuses", found[file], a.text)
		case a.err != nil && found[file] == "":
			c.disagree("opctl vet does not refuse", a.err.Error(), a.text)
		}
	}
}

func (c *comparison) report() {
	total := 0
	for _, examples := range c.disagreements {
		if total++; total <= mostTold {
			c.t.Errorf("%d× %s", len(examples), shortest(examples))
		}
	}
	if total > mostTold {
		c.t.Errorf("and %d more", total-mostTold)
	}
	c.t.Logf("%s: accepted by both %d, refused by both %d, documented gaps %d %v; %d of them vetted", c.kind.Names.Kind, c.accepted, c.refused, c.documented, c.byGap, len(c.vetted))
	if all := c.accepted + c.refused; all >= 1000 && (c.accepted < all/5 || c.refused < all/5) {
		c.t.Errorf("the specs are one-sided: they prove too little")
	}
}

func shortest(texts []string) string {
	best := texts[0]
	for _, text := range texts {
		if len(text) < len(best) {
			best = text
		}
	}
	return best
}

// server is the API server as one kind's client sees it.
type server struct {
	client *http.Client
	url    string
}

func newServer(t *testing.T, k *kind.Kind) *server {
	config := env.Admin()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := ""
	if k.Scope == kind.ScopeNamespaced {
		namespace = "/namespaces/" + metav1.NamespaceDefault
	}
	gv := k.GVK().GroupVersion()
	return &server{client, fmt.Sprintf("%s/apis/%s%s/%s?dryRun=All&fieldValidation=Strict", config.Host, gv, namespace, k.Names.Plural)}
}

// create tells what the API server would store, or why it refuses that.
func (s *server) create(object string) (spec any, refusal string, err error) {
	response, err := s.client.Post(s.url, "application/json", strings.NewReader(object))
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, "", err
	}
	var answer struct {
		Spec    any    `json:"spec"`
		Message string `json:"message"`
	}
	if err := utiljson.Unmarshal(body, &answer); err != nil {
		return nil, "", fmt.Errorf("%s: %w: %s", response.Status, err, bytes.TrimSpace(body))
	}
	switch response.StatusCode {
	case http.StatusCreated:
		return answer.Spec, "", nil
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return nil, answer.Message, nil
	}
	return nil, "", fmt.Errorf("%s: %s", response.Status, answer.Message)
}
