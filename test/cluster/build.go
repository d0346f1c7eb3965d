package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// binariesFolder and guardFolder hold the sources of the programs, below the root of this module.
const (
	binariesFolder = "test/cluster/binaries"
	guardFolder    = "test/cluster/guard"
)

// progressInterval is how often a build tells that it is still at it.
const progressInterval = 10 * time.Second

// Binaries returns the folder that holds the programs etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
// kubectl, kwok and guard, and kwok's stages as stages.yaml. The folder is .cache/cluster/<version>-<key> below the root
// of this module, which is found from the working directory; the key stands for the sources, the Go release and the
// platform, so that it is compiled anew only when one of them changes. Entries with other keys stay: another test run may
// be using them.
//
// When the folder is complete, Binaries runs nothing. Otherwise it compiles, which takes about 15 CPU-minutes with an empty
// Go build cache, and reports to progress (which may be nil). Concurrent calls, also of other processes, compile once.
// Cancelling ctx stops the compiler. The error of a failed build carries the end of the compiler's output.
func Binaries(ctx context.Context, progress io.Writer) (dir string, err error) {
	s, err := findSources()
	if err != nil {
		return "", err
	}
	dir = s.cache(s.version)
	return dir, buildOnce(ctx, dir, progress, func() error { return s.buildAll(ctx, dir, progress) })
}

// Version returns the Kubernetes version of the control plane, such as v1.36.3: the one in the binaries' go.mod.
func Version() (string, error) {
	s, err := findSources()
	if err != nil {
		return "", err
	}
	return s.version, nil
}

// apiBinaries returns the folders of etcd and kube-apiserver, and of guard. The former is KUBEBUILDER_ASSETS if that has
// both, so that a machine with envtest's binaries compiles no control plane; kubectl may then be missing.
func apiBinaries(ctx context.Context, progress io.Writer) (components, guard string, err error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	for _, name := range []string{etcd, apiserver} {
		if _, err := os.Stat(filepath.Join(assets, name)); assets == "" || err != nil {
			dir, err := Binaries(ctx, progress)
			return dir, dir, err
		}
	}
	s, err := findSources()
	if err != nil {
		return "", "", err
	}
	guard = s.cache("guard")
	return assets, guard, buildOnce(ctx, guard, progress, func() error { return s.buildGuard(ctx, guard) })
}

// sources are what the programs are compiled from.
type sources struct {
	root    string // of this module
	version string // of Kubernetes, vX.Y.Z
	minor   string // Y
	key     string // 12 hex digits that change with the sources, the Go release and the platform
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v1\.(\d+)\.\S+)`)

// findSources looks for the root of this module in the working directory and its parents.
func findSources() (*sources, error) {
	work, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the sources of the control plane: %w", err)
	}
	for root := work; ; root = filepath.Dir(root) {
		mod, err := os.ReadFile(filepath.Join(root, binariesFolder, "go.mod"))
		switch {
		case err == nil:
			return readSources(root, string(mod))
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("finding the sources of the control plane: %w", err)
		case root == filepath.Dir(root):
			return nil, fmt.Errorf("finding the sources of the control plane: neither %s nor a folder above it has %s/go.mod", work, binariesFolder)
		}
	}
}

func readSources(root, mod string) (*sources, error) {
	version := kubernetesVersion.FindStringSubmatch(mod)
	if version == nil {
		return nil, fmt.Errorf("reading %s/go.mod: no version of k8s.io/kubernetes", binariesFolder)
	}
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, runtime.Version(), runtime.GOOS, runtime.GOARCH) // a hash takes everything
	for _, folder := range []string{binariesFolder, guardFolder} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			switch filepath.Ext(path) {
			case ".go", ".mod", ".sum":
			default:
				return err
			}
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			_, _ = fmt.Fprintf(hash, "%s %d %s", entry.Name(), len(content), content)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading the sources of the control plane: %w", err)
		}
	}
	return &sources{root: root, version: version[1], minor: version[2], key: fmt.Sprintf("%x", hash.Sum(nil))[:12]}, nil
}

func (s *sources) cache(name string) string {
	return filepath.Join(s.root, ".cache", "cluster", name+"-"+s.key)
}

// buildOnce calls build unless dir is complete, while no other process does. The marker of completeness is written last.
func buildOnce(ctx context.Context, dir string, progress io.Writer, build func() error) error {
	marker := filepath.Join(dir, ".complete")
	if _, err := os.Stat(marker); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"), progress)
	if err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	defer unlock()
	if _, err := os.Stat(marker); err == nil {
		return nil
	}
	if err := build(); err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	if err := os.WriteFile(marker, nil, 0o644); err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	return nil
}

// lock waits until no other process holds the lock file at path, and takes it.
func lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	type result struct {
		unlock func()
		err    error
	}
	locked := make(chan result, 1)
	go func() {
		unlock, err := lockedfile.MutexAt(path).Lock()
		locked <- result{unlock, err}
	}()
	defer tick(progress, "Waiting for another process that builds the control plane")()
	select {
	case r := <-locked:
		return r.unlock, r.err
	case <-ctx.Done():
		go func() { // the wait for the lock itself cannot be cancelled
			if r := <-locked; r.err == nil {
				r.unlock()
			}
		}()
		return nil, ctx.Err()
	}
}

// tick writes message and the time since its call to progress every now and then, until stop is called.
func tick(progress io.Writer, message string) (stop func()) {
	if progress == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	begin, ticker := time.Now(), time.NewTicker(progressInterval)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				_, _ = fmt.Fprintf(progress, "%s … %s\n", message, time.Since(begin).Round(time.Second))
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-ended
	}
}

// environment makes compilations independent of a caller's own cross-compilation or workspace.
func environment() []string {
	return []string{"CGO_ENABLED=0", "GOWORK=off", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
}

// buildGuard compiles the guard into dir; it has no dependencies and takes a second.
func (s *sources) buildGuard(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-C", s.root, "-trimpath", "-o", filepath.Join(dir, guardName), "./"+guardFolder)
	cmd.Env = append(os.Environ(), environment()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the guard: %w:\n%s", err, lastLines(out))
	}
	return nil
}

// buildAll compiles everything into dir.
func (s *sources) buildAll(ctx context.Context, dir string, progress io.Writer) error {
	if err := s.buildGuard(ctx, dir); err != nil {
		return err
	}
	message := fmt.Sprintf("Building the control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl %s and kwok): first time only, about 15 CPU-minutes", s.version)
	if progress != nil {
		_, _ = fmt.Fprintln(progress, message)
	}
	defer tick(progress, message)()
	if err := s.compile(ctx, dir); err != nil {
		return err
	}
	for _, name := range []string{etcd, apiserver, controllerManager, scheduler, kubectl} {
		link := filepath.Join(dir, name)
		if err := os.RemoveAll(link); err != nil { // of a build that was interrupted
			return err
		}
		if err := os.Symlink("kubernetes", link); err != nil {
			return err
		}
	}
	stages, err := exec.CommandContext(ctx, filepath.Join(dir, kwok), "stages").Output()
	if err != nil {
		return fmt.Errorf("reading kwok's stages: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, stagesFile), stages, 0o644)
}

// compile runs the compiler under a guard, so that it stops with all its children when ctx or this program ends.
func (s *sources) compile(ctx context.Context, dir string) error {
	stamp := func(name, value string) string { return " -X k8s.io/component-base/version." + name + "=" + value }
	flags := "-s -w" + stamp("gitVersion", s.version) + stamp("gitMajor", "1") + stamp("gitMinor", s.minor) + stamp("gitTreeState", "clean")
	path, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	g, err := startGuard(filepath.Join(dir, guardName), filepath.Join(dir, "guard.log"), environment())
	if err != nil {
		return err
	}
	log := filepath.Join(dir, "build.log")
	err = g.start(process{Name: "go build", Path: path, Log: log, Args: []string{"build", "-C", filepath.Join(s.root, binariesFolder),
		"-trimpath", "-ldflags", flags, "-o", dir + string(filepath.Separator), "./kubernetes", "./kwok"}})
	if err != nil {
		return errors.Join(err, g.stop())
	}
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), g.stop())
	case e, ok := <-g.exits:
		if !ok {
			e.Reason = "its guard has ended"
		}
		if ok && e.Code == 0 {
			return g.stop()
		}
		out, _ := os.ReadFile(log)
		return errors.Join(fmt.Errorf("go build: %s:\n%s", e.Reason, lastLines(out)), g.stop())
	}
}
