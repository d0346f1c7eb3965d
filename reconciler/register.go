package reconciler

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
)

// Options are the settings of Register.
type Options struct {
	// Library has the kinds to serve.
	Library *kind.Library
	// Namespaces are those whose custom resources are served; all if empty. The manager's cache must know the same.
	Namespaces []string
	// MaxConcurrentReconciles is how many custom resources are worked on at a time; 1 if 0.
	MaxConcurrentReconciles int
	// Resync is about how often each custom resource is looked at without a reason, as a safety net; not at all if 0.
	Resync time.Duration
}

// The back-off of a custom resource that fails starts and ends here. The end is how long it may take until the operator notices
// that a right was granted or a quota raised, of which no watch tells.
const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// reconcileTimeout ends a reconciliation that hangs, such as on an API server that does not answer.
const reconcileTimeout = time.Minute

// Register makes mgr serve the custom resources of some kinds. mgr's cache must have been made with CacheOptions. It asks the
// API server for its version.
func Register(mgr manager.Manager, o Options) error {
	version, err := serverVersion(mgr)
	if err != nil {
		return err
	}
	// Custom resources are not labelled as ours, and their kinds may not be installed, or come and go.
	crs, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:                  mgr.GetHTTPClient(),
		Scheme:                      mgr.GetScheme(),
		Mapper:                      mgr.GetRESTMapper(),
		DefaultNamespaces:           cacheNamespaces(o.Namespaces),
		DefaultTransform:            slim,
		ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return fmt.Errorf("creating the cache of custom resources: %w", err)
	}
	if err := mgr.Add(crs); err != nil {
		return fmt.Errorf("adding the cache of custom resources: %w", err)
	}
	library := newLibrary(o.Library)
	metrics := newMetrics(ctrlmetrics.Registry)
	events, err := newRecorder(mgr)
	if err != nil {
		return err
	}
	applier := apply.New(mgr.GetClient(), mgr.GetAPIReader())
	writer := newWriter(mgr.GetClient(), crs)
	watches := &watches{
		kinds:      library,
		objects:    mgr.GetCache(),
		crs:        crs,
		live:       mgr.GetAPIReader(),
		mapper:     mgr.GetRESTMapper(),
		client:     mgr.GetClient(),
		namespaces: o.Namespaces,
		log:        mgr.GetLogger().WithName("watches"),
		running:    make(chan struct{}),
		seen:       writer.seen,
		afresh:     func(req Request) { applier.Forget(req.GroupKind, req.NamespacedName) },
		uses:       map[Request][]schema.GroupVersionKind{},
		started:    map[schema.GroupVersionKind]*watch{},
		missing:    map[schema.GroupVersionKind]bool{},
		served:     map[schema.GroupKind]*watch{},
	}
	r := &Reconciler{
		kinds:       library,
		crs:         crs,
		client:      mgr.GetClient(),
		applier:     applier,
		watches:     watches,
		writer:      writer,
		reports:     newReports(),
		events:      events,
		metrics:     metrics,
		kubeVersion: version,
		resync:      o.Resync,
	}
	c, err := controller.NewTyped(kind.Manager, mgr, controller.TypedOptions[Request]{
		Reconciler:              r,
		MaxConcurrentReconciles: o.MaxConcurrentReconciles,
		ReconciliationTimeout:   reconcileTimeout,
		LogConstructor: func(req *Request) logr.Logger {
			log := mgr.GetLogger().WithValues("controller", kind.Manager)
			if req != nil {
				log = log.WithValues("kind", req.Kind, "namespace", req.Namespace, "name", req.Name)
			}
			return log
		},
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[Request](minBackoff, maxBackoff),
	})
	if err != nil {
		return fmt.Errorf("creating the controller: %w", err)
	}
	if err := c.Watch(source.TypedFunc[Request](watches.start)); err != nil {
		return fmt.Errorf("watching custom resources: %w", err)
	}
	librarian := &librarian{library: library, watches: watches, metrics: metrics, events: events, log: mgr.GetLogger().WithName("library")}
	if err := mgr.Add(librarian); err != nil {
		return fmt.Errorf("adding the library of kinds: %w", err)
	}
	return nil
}

func serverVersion(mgr manager.Manager) (string, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return "", fmt.Errorf("creating a discovery client: %w", err)
	}
	v, err := d.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking the API server for its version: %w", err)
	}
	return v.GitVersion, nil
}
