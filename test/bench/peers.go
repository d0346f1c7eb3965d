package main

import (
	"fmt"
	"strings"
)

// peersCount is the count of custom resources that the peers were measured with.
const peersCount = 200

// peers were measured once, by hand, with 200 Memcacheds of size 3 on this control plane, on a busy machine with two cores.
var peers = []struct {
	title string
	ours  func(*run) string
	them  [5]string
}{
	{"operator", func(*run) string { return "**this one** (3 objects)" },
		[5]string{"operator-sdk's Go sample (1 object)", "C5C3 memcached-operator", "kro 0.9 (2 objects)", "helm-operator-plugins (2 objects)", "Flux helm-controller 1.6 (2 objects)"}},
	{"CPU a custom resource, creation to served, ms", func(r *run) string { return fmt.Sprintf("%.1f", 1000*r.Create.CPUSeconds/float64(r.Count)) },
		[5]string{"7.2", "22", "31", "191", "191"}},
	{"API writes / reads a custom resource", func(r *run) string {
		return fmt.Sprintf("%.1f / %.1f", perCR(r, r.Create.Calls.writes()+r.Create.Calls.Events), perCR(r, r.Create.Calls.Reads))
	}, [5]string{"5.2 / 0", "20 / 0", "9 / 12", "6 / 16.5", "16 / 30"}},
	{"all served after, s", func(r *run) string { return fmt.Sprintf("%.0f", r.Create.Seconds) },
		[5]string{"32", "36", "78", "51", "115"}},
	{"CPU at rest, s", atRest(func(u *usage) string { return fmt.Sprintf("%.1f", u.CPUSeconds) }),
		[5]string{"0.1 in 40 s", "0.6 in 40 s", "0.0 in 20 s", "62 in 40 s", "0.0 in 20 s"}},
	{"API calls in that time", atRest(func(u *usage) string { return fmt.Sprint(u.Calls.writes() + u.Calls.Events + u.Calls.Reads) }),
		[5]string{"106", "645", "0", "3,674", "0"}},
	{"writes at a restart", func(r *run) string {
		if r.Restart == nil {
			return "–"
		}
		return fmt.Sprint(r.Restart.Calls.writes() + r.Restart.Calls.Events)
	}, [5]string{"203", "1,498", "623", "0 (1,286 reads)", "1,481"}},
	{"drift of 20 Deployments mended after, s", func(r *run) string {
		if r.Drift == nil {
			return "–"
		}
		return fmt.Sprintf("%.1f", r.Drift.AllSeconds)
	}, [5]string{"4.9", "3.8", "6.8", "63", "not within 90"}},
	{"memory idle / peak, MiB", func(r *run) string { return fmt.Sprintf("%.0f / %.0f", r.Idle.RSS, r.Settled.Peak) },
		[5]string{"49 / 60", "46 / 62", "56 / 61", "53 / 105", "91 / 219"}},
}

func atRest(f func(*usage) string) func(*run) string {
	return func(r *run) string {
		if r.Rest == nil {
			return "–"
		}
		return fmt.Sprintf("%s in %.0f s", f(r.Rest), r.Rest.Seconds)
	}
}

// peerTable sets the run with as many custom resources beside the peers.
func (r *results) peerTable(b *strings.Builder) {
	for _, run := range r.Runs {
		if run.Count != peersCount || run.Create == nil {
			continue
		}
		_, _ = fmt.Fprintf(b, "\n### Beside other operators, %d custom resources\n\n", peersCount)
		for i, p := range peers {
			if i == 0 {
				p.title = ""
			}
			_, _ = fmt.Fprintf(b, "| %s | %s | %s |\n", p.title, p.ours(run), strings.Join(p.them[:], " | "))
			if i == 0 {
				b.WriteString("|---|" + strings.Repeat("---|", 1+len(p.them)) + "\n")
			}
		}
	}
}
