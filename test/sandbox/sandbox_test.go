package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// soon is how long the programs may take to be compiled and the sandbox to start; the machine may be slow.
const soon = 10 * time.Minute

// commands finds a block of them in Markdown.
var commands = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestBeginWithACommand types what docs/kinds.md says under that heading, in a copy of this checkout: all of the first block, of which
// the last command goes on, and then the second block in another shell.
func TestBeginWithACommand(t *testing.T) {
	g := NewWithT(t)
	docs, err := os.ReadFile("../../docs/kinds.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, section, _ := strings.Cut(string(docs), "\n## Begin with a command\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := commands.FindAllStringSubmatch(section, -1)
	g.Expect(blocks).To(HaveLen(2))
	checkout := copyOfCheckout(t)
	shell := func(script string) *exec.Cmd {
		cmd := exec.Command("bash", "-c", script)
		cmd.Dir = checkout
		return cmd
	}

	first := strings.Split(strings.TrimSpace(blocks[0][1]), "\n")
	last := len(first) - 1
	for _, line := range first[:last] {
		out, err := shell(line).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s:\n%s", line, out)
	}
	var log bytes.Buffer // read once the sandbox has ended
	sandbox := shell(first[last])
	sandbox.Stdout, sandbox.Stderr = &log, &log
	sandbox.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // for the signal that Ctrl-C would send to all of them
	g.Expect(sandbox.Start()).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- sandbox.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-sandbox.Process.Pid, syscall.SIGTERM)
		if err := <-ended; t.Failed() {
			t.Logf("%s: %v\n%s", first[last], err, log.String())
		}
	})

	g.Eventually(func() (string, error) {
		if len(ended) > 0 {
			return "", StopTrying("the sandbox has ended")
		}
		out, err := shell(blocks[1][1]).CombinedOutput()
		return string(out), err
	}, soon, time.Second).Should(MatchRegexp(`(?m)^redis-sample +2 +2 +True +Ready `), "the sample's status")
}

// copyOfCheckout returns a folder with the files of this checkout, and its control plane, lest that is compiled again.
func copyOfCheckout(t *testing.T) string {
	t.Helper()
	const repository = "../.."
	built := []string{"bin", "dist"}
	checkout := t.TempDir()
	entries, err := os.ReadDir(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		from, to := filepath.Join(repository, e.Name()), filepath.Join(checkout, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), ".") || slices.Contains(built, e.Name()):
			continue
		case e.IsDir():
			err = os.CopyFS(to, os.DirFS(from))
		default:
			var text []byte
			if text, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(to, text, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cache, err := filepath.Abs(filepath.Join(repository, ".cache"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(cache, filepath.Join(checkout, ".cache")); err != nil {
		t.Fatal(err)
	}
	return checkout
}
