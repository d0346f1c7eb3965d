package reconciler

import (
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/observe"
)

// CacheOptions returns what the manager's cache holds, in namespaces (all if there are none): of every kind of objects that
// someone asks for, only what bears our label, without managed fields, and pods and jobs without what is not looked at. Custom
// resources are in a cache of their own.
func CacheOptions(namespaces []string) cache.Options {
	return cache.Options{
		DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{kind.ManagedByLabel: kind.Manager}),
		DefaultTransform:            slim,
		DefaultNamespaces:           cacheNamespaces(namespaces),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:  {Transform: both(observe.StripPod, slim)},
			&batchv1.Job{}: {Transform: both(observe.StripJob, slim)},
		},
	}
}

func both(first, second toolscache.TransformFunc) toolscache.TransformFunc {
	return func(o any) (any, error) {
		o, err := first(o)
		if err != nil {
			return o, err
		}
		return second(o)
	}
}

func cacheNamespaces(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	out := map[string]cache.Config{}
	for _, ns := range namespaces {
		out[ns] = cache.Config{}
	}
	return out
}

// maxInterned is the length, in bytes, of the strings that are likely to stand in many objects.
const maxInterned = 64

// slim is a transform for the caches. It takes from an object what nobody looks at, and lets the strings that all objects of a
// kind share, labels above all, be in memory once.
func slim(o any) (any, error) {
	object, ok := o.(client.Object)
	if !ok {
		return o, nil
	}
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation) // kubectl's copy of the object
	object.SetAnnotations(internMap(annotations))
	object.SetLabels(internMap(object.GetLabels()))
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object, _ = intern(u.Object).(map[string]any)
	}
	return o, nil
}

func internMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[internString(key)] = internString(value)
	}
	return out
}

func internString(s string) string {
	if len(s) > maxInterned {
		return s
	}
	return unique.Make(s).Value()
}

func intern(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[internString(key)] = intern(value)
		}
		return out
	case []any:
		for i := range v {
			v[i] = intern(v[i])
		}
	case string:
		return internString(v)
	}
	return v
}
