package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const tag = "registry.example.com/memcached-operator:v0.1.0"

func TestImageOfTheBinaryAlone(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	binary := compile(t, "linux", "amd64")
	first, second := filepath.Join(t.TempDir(), "image.tar"), filepath.Join(t.TempDir(), "image.tar")
	args := []string{"-binary", binary, "-arch", "amd64", "-base", "scratch", "-tag", tag, "-version", "v0.1.0", "-revision", "3f2a1bc"}
	printed := mustRun(t, append(args, "-output", first)...)

	img, digest := load(t, first)
	if want := tag + "@" + digest + "\n"; printed != want {
		t.Errorf("printed %q, want %q", printed, want)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, got, want string }{
		{"entrypoint", fmt.Sprint(config.Config.Entrypoint), "[/manager]"},
		{"command", fmt.Sprint(config.Config.Cmd), "[]"},
		{"user", config.Config.User, "65532:65532"},
		{"platform", config.Platform().String(), "linux/amd64"},
		{"created", config.Created.String(), "1970-01-01 00:00:00 +0000 UTC"},
		{"version", config.Config.Labels["org.opencontainers.image.version"], "v0.1.0"},
		{"revision", config.Config.Labels["org.opencontainers.image.revision"], "3f2a1bc"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, c.got, c.want)
		}
	}
	checkFiles(t, img, binary)

	// A later build of a copy, so that neither the clock nor the file's own time or mode is in the image.
	later := filepath.Join(t.TempDir(), "copy")
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(later, content, 0o600); err != nil {
		t.Fatal(err)
	}
	args[1] = later
	if again := mustRun(t, append(args, "-output", second)...); again != printed {
		t.Errorf("the second build is %q, the first %q", again, printed)
	}
	a, errA := os.ReadFile(first)
	b, errB := os.ReadFile(second)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("the files of two builds differ")
	}

	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	dated := mustRun(t, append(args, "-output", second)...)
	if dated == printed {
		t.Error("SOURCE_DATE_EPOCH changed nothing")
	}
}

func TestBaseFromARegistryAndPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	binary := compile(t, "linux", "arm64")

	// Any image does as a base; this one has a layer and labels of its own.
	base := host + "/base:v1"
	mustRun(t, "-binary", binary, "-arch", "arm64", "-base", "scratch", "-tag", base, "-version", "v1", "-push")
	output := filepath.Join(t.TempDir(), "image.tar")
	printed := mustRun(t, "-binary", binary, "-arch", "arm64", "-base", base, "-tag", host+"/operator:v2", "-version", "v2", "-push", "-output", output)

	ref, err := name.ParseReference(strings.TrimSpace(printed))
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		t.Fatalf("the printed name is not in the registry: %v", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Config.Labels["org.opencontainers.image.version"]; got != "v2" {
		t.Errorf("version: got %q, want v2", got)
	}
	if got := config.Config.Labels["org.opencontainers.image.base.name"]; got != base {
		t.Errorf("base: got %q, want %q", got, base)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 2 {
		t.Errorf("got %d layers, want the base's and the manager's", len(layers))
	}

	_, err = build(t.Context(), contents{Binary: compile(t, "linux", "amd64"), Arch: "amd64", Base: base})
	wantError(t, err, "is for linux/arm64, not for linux/amd64")
}

func TestRefusals(t *testing.T) {
	linux := compile(t, "linux", "amd64")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(nil)
	server.Close()
	gone := strings.TrimPrefix(server.URL, "http://") + "/base:v1"

	tests := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"NoBinary":      {"The file does not exist.", []string{"-binary", filepath.Join(t.TempDir(), "manager")}, []string{"there is no binary", "make build"}},
		"NoFlag":        {"Nothing names a binary.", nil, []string{"-binary is missing"}},
		"Nowhere":       {"Neither file nor registry.", []string{"-binary", linux, "-output", ""}, []string{"-output FILE.tar"}},
		"BadTag":        {"A name is lower case.", []string{"-binary", linux, "-tag", "Operator:v1"}, []string{"reading -tag"}},
		"NoExecutable":  {"A script needs a shell.", []string{"-binary", text}, []string{"no executable for linux", "CGO_ENABLED=0"}},
		"OtherMachine":  {"It would not start.", []string{"-binary", linux, "-arch", "arm64"}, []string{"EM_X86_64", "GOARCH=arm64"}},
		"OtherSystem":   {"It would not start.", []string{"-binary", compile(t, "freebsd", "amd64")}, []string{"ELFOSABI_FREEBSD", "GOOS=linux"}},
		"UnknownArch":   {"A typing error.", []string{"-binary", linux, "-arch", "x86_64"}, []string{`unknown architecture "x86_64"`}},
		"RegistryGone":  {"There is a way without one.", []string{"-binary", linux, "-base", gone}, []string{gone, "-base scratch"}},
		"NoOutputDir":   {"The path is the user's.", []string{"-binary", linux, "-output", filepath.Join(t.TempDir(), "none", "image.tar")}, []string{"writing the image", "no such file"}},
		"ExtraArgument": {"A forgotten dash.", []string{"push"}, []string{`unexpected argument "push"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"-base", "scratch", "-arch", "amd64", "-output", filepath.Join(t.TempDir(), "image.tar")}, tc.args...)
			err := run(t.Context(), args, io.Discard)
			wantError(t, err, tc.want...)
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestDynamicBinaryIsRefused(t *testing.T) {
	// The Go command links dynamically with an explicit loader, so that no C compiler is needed to have such a binary.
	binary := compile(t, "linux", runtime.GOARCH, "-ldflags=-I /lib/ld.so -linkmode=internal", "-buildmode=pie")
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, checkStatic(content, runtime.GOARCH), "linked dynamically")
}

// compile returns the path of a tiny program.
func compile(t *testing.T, goos, goarch string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte("package main; func main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"build", "-o", binary}, flags, []string{source})...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compiling: %v\n%s", err, out)
	}
	return binary
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// load reads a file that docker would load.
func load(t *testing.T, path string) (v1.Image, string) {
	t.Helper()
	ref, err := name.NewTag(tag)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(path, &ref)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return img, digest.String()
}

// checkFiles checks that the manager is all there is in img.
func checkFiles(t *testing.T, img v1.Image, binary string) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 {
		t.Fatalf("got %d layers, want 1", len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close() //nolint:errcheck // It was only read.
	archive := tar.NewReader(content)
	header, err := archive.Next()
	if err != nil {
		t.Fatal(err)
	}
	if header.Name != "manager" || header.Mode != 0o755 || header.Uid != 0 || header.Gid != 0 || header.ModTime.Unix() != 0 {
		t.Errorf("got %s of mode %o, owner %d:%d and time %s", header.Name, header.Mode, header.Uid, header.Gid, header.ModTime)
	}
	got, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the manager is not the binary")
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more than the manager: %v", err)
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q has no %q", err, part)
		}
	}
}
