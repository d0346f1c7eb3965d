package agreement_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/schema"
	"github.com/example/memcached-operator/reconciler/validate"
)

var update = flag.Bool("update", false, "write into config/samples/invalid what users are told")

const (
	repository = "../.."
	samples    = "config/samples"
)

// TestInvalidSamples: what is wrong in config/samples/invalid is told by kubectl, opctl vet and the operator, in the words that stand
// at the beginning of each file, and seen by CUE's own program.
func TestInvalidSamples(t *testing.T) {
	t.Parallel()
	files := glob(t, filepath.Join(samples, "invalid", "*.yaml"))
	cue := cueProgram(t)
	said := map[string]string{} // to users of each kind
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			s := readSample(t, file)
			told := s.told(t)
			said[s.kind.Names.Kind] += told
			switch {
			case *update:
				if err := os.WriteFile(filepath.Join(repository, file), []byte(told+s.body), 0o600); err != nil {
					t.Fatal(err)
				}
			case told != s.comments:
				t.Errorf("users are told something else, see -update (-file +now):\n%s", cmp.Diff(s.comments, told))
			}
			if out, err := s.cueVet(t.Context(), cue); err == nil {
				t.Errorf("cue vet takes it: %s", out)
			}
		})
	}
	for _, k := range embedded {
		for _, message := range ruleMessages(t, k) {
			if !strings.Contains(said[k.Names.Kind], message) {
				t.Errorf("no sample of %s breaks the rule %q", k.Names.Kind, message)
			}
		}
	}
}

// TestValidSamples: the other samples are valid to all.
func TestValidSamples(t *testing.T) {
	cue := cueProgram(t)
	for _, file := range glob(t, filepath.Join(samples, "*_*_*.yaml")) {
		s := readSample(t, file)
		if out, err := s.cueVet(t.Context(), cue); err != nil {
			t.Errorf("cue vet %s: %v\n%s", file, err, out)
		}
		if out, err := exec.CommandContext(t.Context(), opctl, "vet", filepath.Join(repository, file)).CombinedOutput(); err != nil {
			t.Errorf("opctl vet %s: %v\n%s", file, err, out)
		}
		s.object.SetNamespace("default")
		text, err := s.object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := env.KubectlInput(t.Context(), string(text), "apply", "--dry-run=server", "-f", "-"); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func glob(t *testing.T, pattern string) (files []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(repository, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files are named %s: %v", pattern, err)
	}
	for _, name := range names {
		file, err := filepath.Rel(repository, name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// sample is a custom resource in a file, below comments that tell of it.
type sample struct {
	file           string // as seen from the repository's root
	comments, body string
	object         *unstructured.Unstructured
	kind           *kind.Kind
}

func readSample(t *testing.T, file string) *sample {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, file))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		at += len(line)
	}
	s := &sample{file: file, comments: string(text[:at]), body: string(text[at:])}
	objects, err := render.Decode(bytes.NewReader(text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("want one object, got %d: %v", len(objects), err)
	}
	s.object = objects[0]
	if s.kind = kind.Find(embedded, s.object.GroupVersionKind()); s.kind == nil {
		t.Fatalf("there is no kind %s", s.object.GroupVersionKind())
	}
	return s
}

// told returns the comments that say what users are told.
func (s *sample) told(t *testing.T) string {
	_, invalid := validate.Spec(s.kind, s.object.GetName(), s.object.Object["spec"])
	if !validate.IsInvalid(invalid) {
		t.Errorf("the operator takes it: %v", invalid)
	}
	return comment("kubectl apply", s.kubectlSays(t)) + comment("opctl vet", s.vetSays(t)) + comment("status", fmt.Sprintf("Valid=False InvalidSpec: %v", invalid))
}

// comment keeps the lines of what somebody says.
func comment(who, what string) string {
	lines := strings.Split(strings.TrimSpace(what), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return "# " + who + ": " + strings.Join(lines, "\n#   ") + "\n"
}

func (s *sample) kubectlSays(t *testing.T) string {
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), env.KubectlPath(), "--kubeconfig", env.KubeconfigPath(), "apply", "--dry-run=server", "-f", s.file)
	cmd.Dir, cmd.Stderr = repository, &out
	cmd.Env = append(os.Environ(), "KUBERC=off", "KUBECACHEDIR="+filepath.Join(env.Dir(), "kubectl-cache"))
	if cmd.Run() == nil {
		t.Error("the API server takes it")
	}
	// The API server tells the faults of one object in any order.
	first, others, _ := strings.Cut(out.String(), "\n")
	lines := strings.Split(strings.TrimSpace(others), "\n")
	slices.Sort(lines)
	return first + "\n" + strings.Join(lines, "\n")
}

// position is where in a file opctl found something.
var position = regexp.MustCompile(`^\S+:\d+:\d+: `)

func (s *sample) vetSays(t *testing.T) string {
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), opctl, "vet", s.file)
	cmd.Dir, cmd.Stderr = repository, &out
	if cmd.Run() == nil {
		t.Error("opctl vet takes it")
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	return position.ReplaceAllLiteralString(first, "")
}

// cueVet asks the program that users of CUE have.
func (s *sample) cueVet(ctx context.Context, program string) (output []byte, err error) {
	cmd := exec.CommandContext(ctx, program, "vet", "-c", "-d", "#"+s.kind.Names.Kind, "./schemas/"+s.kind.Folder, s.file)
	cmd.Dir = repository
	return cmd.CombinedOutput()
}

// cueProgram returns the path of the cue that `make vet` runs.
func cueProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "cue")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-modfile=tools/go.mod", "-o", program, "cuelang.org/go/cmd/cue")
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building cue: %v\n%s", err, out)
	}
	return program
}

// ruleMessages returns the messages of the rules over structs and maps of k, and over its name.
func ruleMessages(t *testing.T, k *kind.Kind) (messages []string) {
	t.Helper()
	root, err := schema.Of(k)
	if err != nil {
		t.Fatal(err)
	}
	var walk func(p *props)
	walk = func(p *props) {
		if p.Type == "object" {
			for _, rule := range p.XValidations {
				messages = append(messages, rule.Message)
			}
		}
		for _, field := range p.Properties {
			walk(&field)
		}
		if p.Items != nil {
			walk(p.Items.Schema)
		}
		if p.AdditionalProperties != nil {
			walk(p.AdditionalProperties.Schema)
		}
	}
	walk(root)
	slices.Sort(messages)
	return slices.Compact(messages)
}
