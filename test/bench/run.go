package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/example/memcached-operator/test/cluster"
)

// namespace holds the custom resources.
const namespace = "bench"

// clientConcurrency is how many requests this program sends at a time.
const clientConcurrency = 4

var memcacheds = schema.GroupVersionResource{Group: "cache.example.com", Version: "v1alpha1", Resource: "memcacheds"}

// bench is a control plane with an operator.
type bench struct {
	options
	cluster  *cluster.Cluster
	clients  kubernetes.Interface
	objects  dynamic.ResourceInterface // the Memcacheds
	dynamic  dynamic.Interface
	audit    *audit
	operator *operator
}

// with runs do on a new control plane, whose end it waits for. It tells all which operator it was.
func with(ctx context.Context, o options, all *results, do func(context.Context, *bench) error) (err error) {
	step("Starting a control plane with %d nodes", o.nodes)
	c, err := cluster.Start(ctx, cluster.Options{Nodes: o.nodes, CRDs: []string{"config/crd/bases"}, Audit: true, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if _, err := c.Kubectl(ctx, "apply", "-k", "config/sandbox"); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	b := &bench{options: o, cluster: c}
	if b.clients, err = kubernetes.NewForConfig(c.Admin()); err != nil {
		return err
	}
	if b.dynamic, err = dynamic.NewForConfig(c.Admin()); err != nil {
		return err
	}
	b.objects = b.dynamic.Resource(memcacheds).Namespace(namespace)
	log, err := c.OpenAuditLog(operatorUser)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	b.audit = &audit{log: log}
	if err := b.start(ctx); err != nil {
		return err
	}
	defer func() { b.operator.meter.stop() }()
	all.Operator = b.operator.version()
	return do(ctx, b)
}

// start starts the operator and returns when it is quiet.
func (b *bench) start(ctx context.Context) (err error) {
	if b.operator, err = startOperator(ctx, b.cluster, b.manager, b.audit); err != nil {
		return err
	}
	_, err = b.operator.meter.quiet(ctx, b.operator.started, b.timeout)
	return err
}

// measureRun does the parts that were asked for, on count custom resources.
func measureRun(ctx context.Context, o options, all *results, count int) (*run, error) {
	r := &run{Count: count, Size: o.size}
	return r, with(ctx, o, all, func(ctx context.Context, b *bench) (err error) {
		if r.Idle, err = b.operator.memory(ctx); err != nil {
			return err
		}
		step("Creating %d Memcacheds of size %d", count, o.size)
		if r.Create, err = b.create(ctx, count); err != nil {
			return err
		}
		if o.does("rest") {
			step("Looking at the operator at rest for %s", o.rest)
			if r.Rest, err = b.rested(ctx); err != nil {
				return err
			}
		}
		if r.Settled, err = b.operator.memory(ctx); err != nil {
			return err
		}
		if o.does("restart") {
			step("Restarting the operator")
			if r.Restart, err = b.restart(ctx); err != nil {
				return err
			}
		}
		if o.does("drift") {
			step("Scaling %d Deployments away", min(o.drifted, count))
			if r.Drift, err = b.drift(ctx, min(o.drifted, count)); err != nil {
				return err
			}
		}
		r.Finished, err = b.operator.memory(ctx)
		return err
	})
}

// create measures from the first create until the operator is quiet.
func (b *bench) create(ctx context.Context, count int) (*creation, error) {
	ready := &tally{at: map[string]time.Time{}}
	stop, err := watch(ctx, b.memcachedInformer(), func(o any) {
		if cr, ok := o.(*unstructured.Unstructured); ok && isReady(cr, b.size) {
			ready.add(cr.GetName())
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	collect := b.startProfile(ctx)
	start, err := sampleOf(b.operator.pid)
	if err != nil {
		return nil, err
	}
	result := &creation{}
	b.operator.meter.recorded(func(s sample) {
		result.Series = append(result.Series, point{
			Seconds: s.time.Sub(start.time).Seconds(), CPUSeconds: (s.cpu - start.cpu).Seconds(), RSS: s.rss, Ready: ready.len(),
		})
	})
	if err := b.createMemcacheds(ctx, count, b.size); err != nil {
		return nil, err
	}
	err = await(ctx, b.timeout, "all Memcacheds to be ready", func() (bool, error) { return ready.len() == count, b.operator.meter.failed() })
	if err != nil {
		return nil, fmt.Errorf("%w: %d of %d are", err, ready.len(), count)
	}
	all, err := sampleOf(b.operator.pid)
	if err != nil {
		return nil, err
	}
	if err := collect(); err != nil {
		return nil, err
	}
	quiet, err := b.operator.meter.quiet(ctx, all.time, b.timeout)
	if err != nil {
		return nil, err
	}
	b.operator.meter.recorded(nil)
	if result.Reconciles, err = b.operator.reconciles(ctx); err != nil { // there were none before
		return nil, err
	}
	result.Series = thin(result.Series, 150)
	result.Seconds, result.CPUSeconds = ready.latest().Sub(start.time).Seconds(), (all.cpu - start.cpu).Seconds()
	result.QuietSeconds = quiet.Sub(start.time).Seconds()
	result.Calls, err = b.audit.calls(start.time, time.Now())
	return result, err
}

// createMemcacheds creates m-0, m-1 and so on.
func (b *bench) createMemcacheds(ctx context.Context, count, size int) error {
	return forEach(ctx, count, clientConcurrency, func(ctx context.Context, i int) error {
		cr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(size)}}}
		cr.SetGroupVersionKind(memcacheds.GroupVersion().WithKind("Memcached"))
		cr.SetName(fmt.Sprintf("m-%d", i))
		if _, err := b.objects.Create(ctx, cr, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating Memcached %s: %w", cr.GetName(), err)
		}
		return nil
	})
}

// rested measures a time in which nothing happens.
func (b *bench) rested(ctx context.Context) (*usage, error) {
	start, err := sampleOf(b.operator.pid)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(b.rest):
	}
	end, err := sampleOf(b.operator.pid)
	if err != nil {
		return nil, err
	}
	return b.used(start, end)
}

// restart measures from the new process's start until it is quiet.
func (b *bench) restart(ctx context.Context) (*usage, error) {
	if err := b.operator.stop(ctx); err != nil {
		return nil, err
	}
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	now, err := sampleOf(b.operator.pid)
	if err != nil {
		return nil, err
	}
	u, err := b.used(sample{time: b.operator.started}, now)
	if err != nil {
		return nil, err
	}
	if u.Reconciles, err = b.operator.reconciles(ctx); err != nil {
		return nil, err
	}
	quiet, err := b.operator.meter.quiet(ctx, b.operator.started, b.timeout)
	u.Seconds = quiet.Sub(b.operator.started).Seconds()
	return u, err
}

func (b *bench) used(start, end sample) (*usage, error) {
	c, err := b.audit.calls(start.time, end.time)
	return &usage{Seconds: end.time.Sub(start.time).Seconds(), CPUSeconds: (end.cpu - start.cpu).Seconds(), Calls: c}, err
}

// drift scales Deployments to nothing, as kubectl scale does, and measures how long each stays so.
func (b *bench) drift(ctx context.Context, count int) (*drift, error) {
	began := make([]time.Time, count)
	index := map[string]int{}
	for i := range count {
		index[fmt.Sprintf("m-%d", i)] = i
	}
	// The informer's events come one after the other: mended is read once all are in.
	gone, mended := &tally{at: map[string]time.Time{}}, &tally{at: map[string]time.Time{}}
	informer := informers.NewSharedInformerFactoryWithOptions(b.clients, 0, informers.WithNamespace(namespace)).Apps().V1().Deployments().Informer()
	stop, err := watch(ctx, informer, func(o any) {
		d, ok := o.(*appsv1.Deployment)
		if _, ours := index[d.GetName()]; !ok || !ours {
			return
		}
		if *d.Spec.Replicas != int32(b.size) {
			gone.add(d.Name)
		} else if gone.has(d.Name) {
			mended.add(d.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	start := time.Now()
	err = forEach(ctx, count, count, func(ctx context.Context, i int) error {
		began[i] = time.Now()
		_, err := b.clients.AppsV1().Deployments(namespace).Patch(ctx, fmt.Sprintf("m-%d", i), types.MergePatchType,
			[]byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{FieldManager: "kubectl"}, "scale")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("scaling Deployments: %w", err)
	}
	err = await(ctx, b.timeout, "the Deployments' replicas", func() (bool, error) { return mended.len() == count, b.operator.meter.failed() })
	if err != nil {
		return nil, fmt.Errorf("%w: %d of %d are back", err, mended.len(), count)
	}
	var took []time.Duration
	for name, i := range index {
		took = append(took, mended.at[name].Sub(began[i]))
	}
	slices.Sort(took)
	if _, err := b.operator.meter.quiet(ctx, mended.latest(), b.timeout); err != nil {
		return nil, err
	}
	c, err := b.audit.calls(start, time.Now())
	return &drift{
		Deployments: count, MedianSeconds: took[count/2].Seconds(), MaxSeconds: took[count-1].Seconds(),
		AllSeconds: mended.latest().Sub(start).Seconds(), Calls: c,
	}, err
}

// tally is what has happened, and when it first did.
type tally struct {
	mu   sync.Mutex
	at   map[string]time.Time
	last time.Time
}

func (t *tally) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, found := t.at[name]; !found {
		t.last = time.Now()
		t.at[name] = t.last
	}
}

func (t *tally) has(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, found := t.at[name]
	return found
}

func (t *tally) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.at)
}

func (t *tally) latest() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

func (b *bench) memcachedInformer() cache.SharedIndexInformer {
	return dynamicinformer.NewFilteredDynamicSharedInformerFactory(b.dynamic, 0, namespace, nil).ForResource(memcacheds).Informer()
}

// isReady tells whether the operator has reported the whole of a Memcached, as it is specified now, to be ready.
func isReady(cr *unstructured.Unstructured, size int) bool {
	ready, _, _ := unstructured.NestedInt64(cr.Object, "status", "readyReplicas")
	conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	return ready == int64(size) && slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Ready" && m["status"] == "True"
	})
}

// watch calls changed, from one goroutine, with what an informer sees, first what is there. It returns when that is done.
func watch(ctx context.Context, informer cache.SharedIndexInformer, changed func(any)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, o any) { changed(o) },
	})
	if err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		stop()
		return nil, context.Cause(ctx)
	}
	return stop, nil
}

// forEach calls do with 0 to count-1, so many at a time, and returns the first error, after which it begins no more.
func forEach(ctx context.Context, count, concurrency int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(count, concurrency) {
		workers.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < count && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// step tells what takes long.
func step(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
