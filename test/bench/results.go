package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/cluster"
)

// results are what the file of results holds. Times are seconds and memory is MiB throughout.
type results struct {
	Date       string `json:"date"`
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Operator   string `json:"operator"` // its version, as its log has it
	Kubernetes string `json:"kubernetes"`
	Note       string `json:"note,omitempty"` // what else a reader must know, as a sentence
	Runs       []*run `json:"runs,omitempty"`
	Soak       *soak  `json:"soak,omitempty"`
}

// run is what was measured with one count of custom resources. A part that was not asked for is nil.
type run struct {
	Count    int       `json:"count"`
	Size     int       `json:"size"`
	Idle     memory    `json:"idle"` // before there is any custom resource
	Create   *creation `json:"create,omitempty"`
	Rest     *usage    `json:"rest,omitempty"`
	Restart  *usage    `json:"restart,omitempty"` // until quiet
	Drift    *drift    `json:"drift,omitempty"`
	Settled  memory    `json:"settled"`  // after the creation, or after the rest if there was one
	Finished memory    `json:"finished"` // at the end, of the restarted operator if there was a restart
}

// creation is the time from the first create request to the last custom resource's Ready, and the calls until the operator
// was quiet.
type creation struct {
	usage
	QuietSeconds float64 `json:"quietSeconds"` // from the first create
	Series       []point `json:"series"`
}

// usage is what the operator used in some time.
type usage struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	Reconciles int     `json:"reconciles,omitempty"`
	Calls      calls   `json:"calls"`
}

// drift is the time from each Deployment's change to the change back.
type drift struct {
	Deployments   int     `json:"deployments"`
	MedianSeconds float64 `json:"medianSeconds"`
	MaxSeconds    float64 `json:"maxSeconds"`
	AllSeconds    float64 `json:"allSeconds"` // from the first change to the last one back
	Calls         calls   `json:"calls"`
}

// soak is a long series of changes to the same custom resources. First and Last are the means of its first and last third.
type soak struct {
	Keys       int     `json:"keys"`
	Reconciles int     `json:"reconciles"`
	Changes    int     `json:"changes"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	First      memory  `json:"first"`
	Last       memory  `json:"last"`
	Calls      calls   `json:"calls"`
	Series     []point `json:"series"`
}

// memory is the operator's: resident, the most that was resident, and the heap that the last collection left.
type memory struct {
	RSS  float64 `json:"rss"`
	Peak float64 `json:"peak"`
	Heap float64 `json:"heap"`
}

// point is a sample of a series; a series leaves out what it has none of.
type point struct {
	Seconds    float64 `json:"seconds"`
	Ready      int     `json:"ready,omitempty"`
	Reconciles int     `json:"reconciles,omitempty"`
	CPUSeconds float64 `json:"cpuSeconds"`
	RSS        float64 `json:"rss"`
	Heap       float64 `json:"heap,omitempty"`
}

// describe fills in when and where the results come from.
func (r *results) describe() (err error) {
	if r.Kubernetes, err = cluster.Version(); err != nil {
		return err
	}
	r.Date, r.Cores, r.CPU = time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), cpuModel()
	return nil
}

// cpuModel is "unknown" where the kernel does not tell it.
func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(key) == "model name" {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return "unknown"
}

func (r *results) write(path string) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// thin returns at most n points of a series, among them the first and the last.
func thin(series []point, n int) []point {
	if len(series) <= n {
		return series
	}
	out := make([]point, n)
	for i := range out {
		out[i] = series[i*(len(series)-1)/(n-1)]
	}
	return out
}
