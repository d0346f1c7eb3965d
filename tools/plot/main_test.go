package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestTheSameResultsYieldTheSameDrawings draws the results of the documentation twice.
func TestTheSameResultsYieldTheSameDrawings(t *testing.T) {
	first, second := draw(t), draw(t)
	if len(first) != 5 {
		t.Errorf("drawings: got %d, want 5", len(first))
	}
	for name, content := range first {
		if !bytes.HasPrefix(content, []byte("<?xml")) {
			t.Errorf("%s is no SVG: it begins %.40q", name, content)
		}
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s differs when it is drawn again", name)
		}
	}
}

func draw(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	if err := run([]string{"-results", "../../docs/performance.json", "-output", dir}, io.Discard); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	drawings := map[string][]byte{}
	for _, file := range files {
		if drawings[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return drawings
}
