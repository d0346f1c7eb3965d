package reconciler

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/example/memcached-operator/reconciler/apply"
	"github.com/example/memcached-operator/reconciler/kind"
)

// Options are the settings of Register.
type Options struct {
	// Kinds are the kinds to serve.
	Kinds []*kind.Kind
	// Namespaces are those whose custom resources are served; all if empty. The manager's cache must know the same.
	Namespaces []string
	// MaxConcurrentReconciles is how many custom resources are worked on at a time; 1 if 0.
	MaxConcurrentReconciles int
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
	served := kinds{}
	for _, k := range o.Kinds {
		served[k.GVK().GroupKind()] = k
	}
	r := &Reconciler{
		kinds:    served,
		client:   mgr.GetClient(),
		planner:  newPlanner(version),
		applier:  apply.New(mgr.GetClient(), mgr.GetAPIReader()),
		statuses: newStatusWriter(mgr.GetClient()),
		events:   &recorder{mgr.GetEventRecorder(kind.Manager)},
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
	r.watches = &dynamicWatcher{
		controller: c,
		kinds:      served,
		cache:      mgr.GetCache(),
		live:       mgr.GetAPIReader(),
		scheme:     mgr.GetScheme(),
		namespaces: o.Namespaces,
		started:    map[schema.GroupVersionKind]bool{},
	}
	for _, k := range o.Kinds {
		if err := watchKind(c, mgr.GetCache(), k); err != nil {
			return fmt.Errorf("watching %s: %w", k.Names.Plural, err)
		}
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
