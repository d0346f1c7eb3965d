package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// BenchmarkMemcacheds creates 200 Memcacheds of size 3 at once and reports, by custom resource from creation to the last one
// Ready: the operator's requests, from the audit log (leases and events apart), and its CPU time. Run it with
//
//	go test ./test/e2e -run '^$' -bench Memcacheds -benchtime 1x
func BenchmarkMemcacheds(b *testing.B) {
	const count = 200
	g := NewWithT(b)
	pid, err := pidOf(env.manager)
	g.Expect(err).NotTo(HaveOccurred())
	for b.Loop() {
		const namespace = "benchmark"
		kubectl := func(stdin string, args ...string) string {
			out, err := env.KubectlInput(b.Context(), stdin, append([]string{"-n", namespace}, args...)...)
			g.Expect(err).NotTo(HaveOccurred())
			return out
		}
		kubectl("", "create", "namespace", namespace)
		var manifests strings.Builder
		for i := range count {
			_, _ = fmt.Fprintf(&manifests, "---\napiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: m%d}\nspec: {size: 3}\n", i)
		}
		start, cpu := time.Now(), cpuOf(g, pid)
		kubectl(manifests.String(), "create", "-f", "-")
		g.Eventually(func() int {
			return strings.Count(kubectl("", "get", "memcacheds", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`), "True")
		}, 5*time.Minute, time.Second).Should(Equal(count))
		b.ReportMetric(time.Since(start).Seconds(), "s/all")
		b.ReportMetric((cpuOf(g, pid)-cpu).Seconds()*1000/count, "cpu-ms/cr")
		b.ReportMetric(float64(memoryOf(g, pid)), "peak-MiB")

		events, err := env.AuditEvents()
		g.Expect(err).NotTo(HaveOccurred())
		requests := map[string]float64{}
		for _, e := range events {
			if e.User != operatorUser || e.Time.Before(start) || e.Resource == "leases" || e.Resource == "events" || e.Verb == "watch" {
				continue
			}
			kind := "writes"
			switch {
			case e.Verb == "get" || e.Verb == "list":
				kind = "reads"
			case e.Subresource == "status":
				kind = "status-writes"
			}
			requests[kind]++
		}
		for kind, n := range requests {
			b.ReportMetric(n/count, kind+"/cr")
		}
		kubectl("", "delete", "namespace", namespace, "--timeout=5m")
	}
}

// pidOf finds the process that runs program, in /proc.
func pidOf(program string) (int, error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return 0, err
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == program {
			return strconv.Atoi(filepath.Base(filepath.Dir(link)))
		}
	}
	return 0, fmt.Errorf("no process runs %s", program)
}

// cpuOf returns the user and system time of a process, in the kernel's ticks of 10 ms.
func cpuOf(g *WithT, pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	g.Expect(err).NotTo(HaveOccurred())
	_, after, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	var ticks int
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		g.Expect(err).NotTo(HaveOccurred())
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memoryOf returns the most memory that a process has had, in MiB.
func memoryOf(g *WithT, pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	g.Expect(err).NotTo(HaveOccurred())
	_, after, found := strings.Cut(string(data), "VmHWM:")
	g.Expect(found).To(BeTrue())
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	g.Expect(err).NotTo(HaveOccurred())
	return kib / 1024
}
