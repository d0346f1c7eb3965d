package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	"github.com/example/memcached-operator/test/cluster"
)

// A module with small programs in the places of the large ones compiles in a second or two.
const smallProgram = `package main

import "fmt"

func main() { fmt.Println("kind: Stage") }
`

func TestBinariesBuildsOnce(t *testing.T) {
	root := smallModule(t, smallProgram)
	var dirs [2]string
	var progress [2]bytes.Buffer
	var calls sync.WaitGroup
	for i := range dirs {
		calls.Go(func() {
			dir, err := cluster.Binaries(t.Context(), &progress[i])
			if err != nil {
				t.Error(err)
			}
			dirs[i] = dir
		})
	}
	calls.Wait()
	if dirs[0] != dirs[1] || !strings.HasPrefix(dirs[0], filepath.Join(root, ".cache", "cluster", "v1.99.7-")) {
		t.Errorf("folders: got %q, want the same one below %s", dirs, root)
	}
	if told := progress[0].String() + progress[1].String(); strings.Count(told, "Building the control plane") != 1 {
		t.Errorf("progress: got %q, want one build", told)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"} {
		if out, err := exec.Command(filepath.Join(dirs[0], name)).Output(); err != nil || string(out) != "kind: Stage\n" {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
	}

	t.Setenv("PATH", "") // no compiler: whatever is run fails
	if dir, err := cluster.Binaries(t.Context(), nil); dir != dirs[0] || err != nil {
		t.Errorf("another call: got %s, %v, want %s", dir, err, dirs[0])
	}
}

func TestBinariesTellsWhatFailed(t *testing.T) {
	t.Run("no sources", func(t *testing.T) {
		dir := t.TempDir()
		t.Chdir(dir)
		if _, err := cluster.Binaries(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "test/cluster/binaries/go.mod") {
			t.Errorf("got %v, want an error that names the missing file", err)
		}
	})
	t.Run("sources that do not compile", func(t *testing.T) {
		smallModule(t, "package main\n\nfunc main() { missing() }\n")
		if _, err := cluster.Binaries(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "undefined: missing") {
			t.Errorf("got %v, want an error with the compiler's words", err)
		}
	})
}

func TestCancellingABuildStopsTheCompiler(t *testing.T) {
	root := smallModule(t, smallProgram)
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	// A compiler that never ends, in two processes whose command lines name its folder. The guard is compiled as ever.
	slow := filepath.Join(t.TempDir(), "go")
	script := "#!/bin/sh\ncase \"$*\" in *test/cluster/guard) exec '" + compiler + "' \"$@\";; esac\n(while :; do sleep 1; done)\n"
	if err := os.WriteFile(slow, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(slow)+string(filepath.ListSeparator)+os.Getenv("PATH"))

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := cluster.Binaries(ctx, nil)
		ended <- err
	}()
	g := gomega.NewWithT(t)
	g.Eventually(func() []string { return processes(t, slow) }, patience).Should(gomega.HaveLen(2))
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	g.Eventually(func() []string { return processes(t, slow) }, patience).Should(gomega.BeEmpty())
	if got := processes(t, root); len(got) > 0 {
		t.Errorf("processes left: %q", got)
	}
}

// smallModule writes a module with program in the place of kubernetes and kwok, and the guard as it is, and makes a folder
// in it the working directory. It returns its root.
func smallModule(t *testing.T, program string) (root string) {
	t.Helper()
	root = t.TempDir()
	write := func(path, content string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/small\n\ngo 1.26\n")
	binaries := "test/cluster/binaries"
	write(binaries+"/go.mod", "module example.com/small/binaries\n\ngo 1.26\n\nexclude (\n\tk8s.io/kubernetes v1.99.7\n)\n")
	write(binaries+"/kubernetes/main.go", program)
	write(binaries+"/kwok/main.go", program)
	if err := os.CopyFS(filepath.Join(root, "test/cluster/guard"), os.DirFS("guard")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, binaries))
	return root
}
