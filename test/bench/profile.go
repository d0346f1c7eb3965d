package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

// profileSeconds is how long one CPU profile is. A profile that is cut short is lost, so that a creation has many.
const profileSeconds = 4

// startProfile begins to profile the operator, if that was asked for and is possible. The function it returns ends that, and
// leaves cpu.pb.gz and heap.pb.gz in the folder.
func (b *bench) startProfile(ctx context.Context) (collect func() error) {
	switch {
	case b.profile == "":
		return func() error { return nil }
	case b.operator.pprof == "":
		step("There will be no profile: the operator has no flag --pprof-bind-address")
		return func() error { return nil }
	}
	over, ended := make(chan struct{}), make(chan error, 1)
	var parts []string
	go func() {
		for {
			part := filepath.Join(b.profile, fmt.Sprintf("cpu-%d.pb.gz", len(parts)))
			if err := b.fetchProfile(ctx, fmt.Sprintf("profile?seconds=%d", profileSeconds), part); err != nil {
				ended <- err
				return
			}
			parts = append(parts, part)
			select {
			case <-over:
				ended <- nil
				return
			default:
			}
		}
	}()
	return func() error {
		close(over)
		if err := <-ended; err != nil {
			return err
		}
		return errors.Join(b.mergeProfiles(ctx, parts), b.fetchProfile(ctx, "heap", filepath.Join(b.profile, "heap.pb.gz")))
	}
}

func (b *bench) fetchProfile(ctx context.Context, what, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.operator.pprof+what, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("profiling the operator: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profiling the operator: %s", resp.Status)
	}
	if err := os.MkdirAll(b.profile, 0o755); err != nil {
		return fmt.Errorf("profiling the operator: %w", err)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("profiling the operator: %w", err)
	}
	_, err = io.Copy(file, resp.Body)
	return errors.Join(err, file.Close())
}

// mergeProfiles puts the profiles of a creation together.
func (b *bench) mergeProfiles(ctx context.Context, parts []string) error {
	merged := filepath.Join(b.profile, "cpu.pb.gz")
	args := append([]string{"tool", "pprof", "-proto", "-output=" + merged, b.manager}, parts...)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("merging profiles: %w\n%s", err, out)
	}
	for _, part := range parts {
		if err := os.Remove(part); err != nil {
			return err
		}
	}
	step("Saved %s", merged)
	return nil
}
