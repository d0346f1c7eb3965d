package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // a kubeconfig may ask for it
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/example/memcached-operator/version"
)

// requestTimeout is how long an API server may take for one answer.
const requestTimeout = 30 * time.Second

// clusterFlags say which cluster is meant, as kubectl's do.
type clusterFlags struct {
	kubeconfig, context, namespace string
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; without it those of KUBECONFIG, or ~/.kube/config")
	cmd.Flags().StringVar(&f.context, "context", "", "context of the kubeconfig; the current one without it")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of custom resources that name none; the context's without it")
}

// cluster is a cluster as the user of a kubeconfig may see it.
type cluster struct {
	namespace string // where the user is
	versions  discovery.ServerVersionInterface
	objects   dynamic.Interface
	mapper    meta.RESTMapper
}

// open prepares to talk to the cluster that the flags mean, and asks it nothing yet. The API server's warnings go to warnings.
func (f *clusterFlags) open(warnings io.Writer) (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("finding a cluster: no kubeconfig names one: set --kubeconfig or KUBECONFIG")
	} else if err != nil {
		return nil, fmt.Errorf("finding a cluster: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding a namespace: %w", err)
	}
	config.UserAgent = "opctl/" + version.Version
	config.Timeout = requestTimeout
	config.QPS, config.Burst = 50, 300 // kubectl's
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	asker, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return &cluster{
		namespace: namespace,
		versions:  asker,
		objects:   objects,
		mapper:    restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(asker)),
	}, nil
}

// kubeVersion returns the API server's version, such as v1.36.3.
func (c *cluster) kubeVersion() (string, error) {
	v, err := c.versions.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking the API server for its version: %w", err)
	}
	return v.GitVersion, nil
}

// in returns the objects of a kind in a namespace, in all of them if it is "". namespaced is false for a kind whose objects are in
// none. A kind that is not installed gives an error that notInstalled knows.
func (c *cluster) in(gvk schema.GroupVersionKind, namespace string) (objects dynamic.ResourceInterface, namespaced bool, err error) {
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, false, err
	}
	all := c.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return all, false, nil
	}
	return all.Namespace(namespace), true, nil
}

// notInstalled tells whether err says that the cluster does not know a kind.
func notInstalled(err error) bool { return meta.IsNoMatchError(err) }

// get returns an object, nil if it is not there. A kind that is not installed gives an error that notInstalled knows.
func (c *cluster) get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	objects, _, err := c.in(gvk, namespace)
	if err != nil {
		return nil, err
	}
	return getFrom(ctx, objects, name)
}

func getFrom(ctx context.Context, objects dynamic.ResourceInterface, name string) (*unstructured.Unstructured, error) {
	o, err := objects.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}
