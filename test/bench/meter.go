package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/example/memcached-operator/test/cluster"
)

// sampleInterval is how often the operator is looked at. It is the error of all times until quiet.
const sampleInterval = 200 * time.Millisecond

// An operator is quiet when for quietTime it has sent no request, leases apart, and never used more than quietCPU of one core.
// Renewing its lease and collecting its garbage take less.
const (
	quietTime = 4 * time.Second
	quietCPU  = 0.05
)

// audit holds the operator's requests.
type audit struct {
	mu     sync.Mutex
	log    *cluster.AuditLog
	events []cluster.AuditEvent
}

// poll reads what is new, and returns the time of the latest request that is no lease's.
func (a *audit) poll() (latest time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	added, err := a.log.Next()
	for _, e := range added {
		// A watch's time is that of its begin, and a watch that ends is no work.
		if e.Resource != "leases" && e.Verb != "watch" && e.Time.After(latest) {
			latest = e.Time
		}
	}
	a.events = append(a.events, added...)
	return latest, err
}

// calls returns those between two times that are past. A request is logged once it is answered.
func (a *audit) calls(start, end time.Time) (calls, error) {
	time.Sleep(time.Second)
	if _, err := a.poll(); err != nil {
		return calls{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return count(a.events, start, end), nil
}

// meter samples one process of the operator.
type meter struct {
	stop func() // further calls do nothing

	mu     sync.Mutex
	latest sample
	active time.Time // when it last did something
	err    error
	record func(sample) // may be nil
}

// sample is what the operator has used since it began.
type sample struct {
	time time.Time
	cpu  time.Duration
	rss  float64
}

func startMeter(pid int, a *audit, logTail func() string) *meter {
	done, ended := make(chan struct{}), make(chan struct{})
	m := &meter{active: time.Now(), latest: sample{time: time.Now()}}
	m.stop = sync.OnceFunc(func() {
		close(done)
		<-ended
	})
	go func() {
		defer close(ended)
		tick := time.NewTicker(sampleInterval)
		defer tick.Stop()
		for {
			if err := m.sample(pid, a); err != nil {
				m.mu.Lock()
				m.err = fmt.Errorf("%w; the operator's log ends:\n%s", err, logTail())
				m.mu.Unlock()
				return
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return m
}

func (m *meter) sample(pid int, a *audit) error {
	requested, err := a.poll()
	if err != nil {
		return err
	}
	s, err := sampleOf(pid)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if requested.After(m.active) {
		m.active = requested
	}
	if float64(s.cpu-m.latest.cpu) > quietCPU*float64(s.time.Sub(m.latest.time)) {
		m.active = s.time
	}
	m.latest = s
	if m.record != nil {
		m.record(s)
	}
	return nil
}

// sampleOf looks now.
func sampleOf(pid int) (s sample, err error) {
	s.time = time.Now()
	if s.cpu, err = cpuTime(pid); err != nil {
		return s, err
	}
	s.rss, _, err = memoryOf(pid)
	return s, err
}

// recorded calls f with each sample from now on; nil ends that.
func (m *meter) recorded(f func(sample)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record = f
}

// failed returns why there are no samples any more, nil if there are.
func (m *meter) failed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// quiet waits until the operator is quiet and returns since when. What was before start does not count.
func (m *meter) quiet(ctx context.Context, start time.Time, timeout time.Duration) (since time.Time, err error) {
	err = await(ctx, timeout, "the operator to be quiet", func() (bool, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		since = m.active
		if start.After(since) {
			since = start
		}
		return m.latest.time.Sub(since) >= quietTime, m.err
	})
	return since, err
}
