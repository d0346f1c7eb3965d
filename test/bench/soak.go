package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// soakInterval is how often the soak looks at memory.
const soakInterval = 2 * time.Second

// measureSoak changes the same custom resources over and over, so that what the operator keeps of each change shows. There are
// no controllers, which would take most of the machine.
func measureSoak(ctx context.Context, o options, all *results) (*soak, error) {
	s := &soak{Keys: o.keys}
	o.nodes = 0
	return s, with(ctx, o, all, func(ctx context.Context, b *bench) error {
		step("Changing %d Memcacheds until there are %d reconciliations", o.keys, o.soak)
		return b.soak(ctx, s)
	})
}

func (b *bench) soak(ctx context.Context, s *soak) error {
	if err := b.createMemcacheds(ctx, b.keys, 0); err != nil {
		return err
	}
	if _, err := b.operator.meter.quiet(ctx, time.Now(), b.timeout); err != nil {
		return err
	}
	start, err := sampleOf(b.operator.pid)
	if err != nil {
		return err
	}
	before, err := b.operator.reconciles(ctx)
	if err != nil {
		return err
	}
	var changed atomic.Int64
	changing, stop, err := b.keepChanging(ctx, &changed)
	if err != nil {
		return err
	}
	defer stop()
	deadline := start.time.Add(b.soakTime)
	for s.Reconciles < b.options.soak && time.Now().Before(deadline) {
		select {
		case <-changing.Done():
			return context.Cause(changing)
		case <-time.After(soakInterval):
		}
		reconciles, err := b.operator.reconciles(ctx)
		if err != nil {
			return err
		}
		now, err := sampleOf(b.operator.pid)
		if err != nil {
			return err
		}
		m, err := b.operator.memory(ctx)
		if err != nil {
			return err
		}
		s.Reconciles = reconciles - before
		s.Seconds, s.CPUSeconds = now.time.Sub(start.time).Seconds(), (now.cpu - start.cpu).Seconds()
		s.Series = append(s.Series, point{Seconds: s.Seconds, CPUSeconds: s.CPUSeconds, RSS: m.RSS, Heap: m.Heap, Reconciles: s.Reconciles})
		s.Last.Peak = m.Peak
	}
	stop()
	s.Changes = int(changed.Load())
	third := len(s.Series) / 3
	s.First.RSS, s.First.Heap = mean(s.Series[:max(1, third)])
	s.Last.RSS, s.Last.Heap = mean(s.Series[len(s.Series)-max(1, third):])
	s.Series = thin(s.Series, 150)
	s.Calls, err = b.audit.calls(start.time, time.Now())
	return err
}

// keepChanging changes the Memcacheds' pod templates, each again once the operator has reported its last change, so that every
// change is reconciled. It ends when stop is called, or with the context that it returns, whose cause is the change that failed.
func (b *bench) keepChanging(ctx context.Context, changed *atomic.Int64) (changing context.Context, stop func(), err error) {
	type reported struct {
		name       string
		generation int64
	}
	next := make(chan reported, b.keys) // one for each, so that writing to it never blocks
	latest := map[string]int64{}
	stopWatch, err := watch(ctx, b.memcachedInformer(), func(o any) {
		cr, ok := o.(*unstructured.Unstructured)
		if !ok {
			return
		}
		seen, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
		if seen == cr.GetGeneration() && seen > latest[cr.GetName()] {
			latest[cr.GetName()] = seen
			next <- reported{cr.GetName(), seen}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	changing, cancel := context.WithCancelCause(ctx)
	var workers sync.WaitGroup
	for range clientConcurrency {
		workers.Go(func() {
			for {
				select {
				case <-changing.Done():
					return
				case r := <-next:
					patch := fmt.Appendf(nil, `{"spec":{"resources":{"requests":{"cpu":"%dm"}}}}`, 101+r.generation%7)
					if _, err := b.objects.Patch(ctx, r.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
						cancel(fmt.Errorf("changing Memcached %s: %w", r.name, err))
					}
					changed.Add(1)
				}
			}
		})
	}
	return changing, func() {
		cancel(nil)
		workers.Wait()
		stopWatch()
	}, nil
}

func mean(series []point) (rss, heap float64) {
	for _, p := range series {
		rss += p.RSS
		heap += p.Heap
	}
	n := float64(len(series))
	return rss / n, heap / n
}
