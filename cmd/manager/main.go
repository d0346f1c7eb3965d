// Command manager is the operator's process: flags, a controller-runtime manager, and the kinds registered with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/example/memcached-operator/reconciler"
	"github.com/example/memcached-operator/reconciler/gate"
	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/version"
)

func main() {
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		ctrl.Log.WithName("setup").Error(err, "Manager stopped")
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var (
		metricsAddr, metricsCertDir, probeAddr string
		secureMetrics, leaderElect             bool
		leaderElectionNamespace, namespaceList string
		kindList, kindsDir                     string
		concurrency                            int
		resync                                 time.Duration
		pprofAddr                              string
	)
	// What a user got wrong is an error, too, and a stack tells nothing of it.
	logOptions := zap.Options{StacktraceLevel: zapcore.PanicLevel}
	flag.StringVar(&metricsAddr, "metrics-bind-address", ":8443", "Address of the metrics endpoint; 0 turns it off.")
	flag.BoolVar(&secureMetrics, "metrics-secure", true, "Serve metrics over HTTPS, to callers whom the API server authenticates and authorizes.")
	flag.StringVar(&metricsCertDir, "metrics-cert-dir", "", "Folder with tls.crt and tls.key of the metrics endpoint; empty means a self-signed certificate.")
	flag.StringVar(&probeAddr, "health-probe-bind-address", ":8081", "Address of the endpoints /healthz and /readyz; 0 turns them off.")
	flag.BoolVar(&leaderElect, "leader-elect", false, "Work only while holding a lease, so that of several managers one works.")
	flag.StringVar(&leaderElectionNamespace, "leader-election-namespace", "", "Namespace of the lease; the manager's own in a cluster.")
	flag.StringVar(&namespaceList, "watch-namespaces", "", "Namespaces whose custom resources are served, separated by commas; empty means all.")
	flag.StringVar(&kindList, "kinds", "", "Kinds to serve, separated by commas, each as Kind or as plural.group; empty means all.")
	flag.StringVar(&kindsDir, "kinds-dir", "", "Folder with more kinds (schemas/<kind>, charts/<chart>), which stand beside the built-in ones or in their place and are loaded again when they change.")
	flag.IntVar(&concurrency, "max-concurrent-reconciles", 4, "How many custom resources are worked on at a time.")
	flag.DurationVar(&resync, "resync-period", time.Hour, "About how often each custom resource is looked at without a reason, as a safety net.")
	flag.StringVar(&pprofAddr, "pprof-bind-address", "", "Address of the endpoint /debug/pprof/, which asks nobody who they are; empty turns it off.")
	logOptions.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logOptions)))
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: the manager takes flags only", flag.Arg(0))
	}
	boundGarbage()
	ctrl.Log.WithName("setup").Info("Starting manager", "version", version.String())

	library, err := kind.OpenLibrary(kind.LibraryOptions{Dir: kindsDir, Names: split(kindList), Check: gate.Check})
	if err != nil {
		return err
	}
	debug.FreeOSMemory() // trying the kinds out takes more than a small cluster's custom resources ever do
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding a cluster: %w", err)
	}
	namespaces := split(namespaceList)
	metrics := metricsserver.Options{BindAddress: metricsAddr, SecureServing: secureMetrics, CertDir: metricsCertDir}
	if secureMetrics {
		metrics.FilterProvider = forReaders
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme.Scheme,
		Cache:                   reconciler.CacheOptions(namespaces),
		Client:                  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                 metrics,
		HealthProbeBindAddress:  probeAddr,
		PprofBindAddress:        pprofAddr,
		LeaderElection:          leaderElect,
		LeaderElectionID:        version.Domain,
		LeaderElectionNamespace: leaderElectionNamespace,
		// The process ends right after the manager, so that the lease may be given up at once.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	if err := reconciler.Register(mgr, reconciler.Options{Library: library, Namespaces: namespaces, MaxConcurrentReconciles: concurrency, Resync: resync}); err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("cache", cacheSynced(mgr))); err != nil {
		return err
	}
	debug.FreeOSMemory() // loading the kinds took more than serving them does
	return mgr.Start(ctx)
}

// cacheSynced is ready once the manager has seen the cluster.
func cacheSynced(mgr ctrl.Manager) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not filled yet")
		}
		return nil
	}
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
