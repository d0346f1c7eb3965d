// Package apply delivers objects by server-side apply. It is the only room of the house that writes them. An object that
// already is what we would apply costs no call: the last application is remembered on the object itself, in an annotation, so
// that a restart of the operator writes nothing either.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/reconciler/kind"
)

// DigestAnnotation holds the digest of what was last applied to an object: 32 hexadecimal digits.
const DigestAnnotation = "memcached-operator.example.com/applied-digest"

// Applier applies the objects of custom resources. It is safe for concurrent use, one custom resource at a time.
type Applier struct {
	client client.Client // reads from the cache
	live   client.Reader // reads from the API server

	mu sync.Mutex
	// recent holds, by custom resource and object, what the cache cannot tell: see memory.
	recent map[objectID]map[objectID]memory
}

// objectID names an object in the cluster.
type objectID struct {
	schema.GroupKind
	types.NamespacedName
}

// memory is what an apply taught us about an object. It is kept while the cache has not seen that apply, and for good only if
// the API server stores a field otherwise than we wrote it.
type memory struct {
	digest          string
	resourceVersion string
	residue         []string // the differences that the API server left, which are no drift
}

// New returns an Applier that writes through c, looks at objects in c's cache, and asks live where the cache cannot know.
func New(c client.Client, live client.Reader) *Applier {
	return &Applier{client: c, live: live, recent: map[objectID]map[objectID]memory{}}
}

// Result is what Apply found and did.
type Result struct {
	// Live are the objects as the cluster has them now, as far as they could be applied.
	Live []*unstructured.Unstructured
	// Created and Updated name the objects that were written ("Deployment cache"), in the order of the writes.
	Created, Updated []string
}

// Apply makes the cluster's objects what objects say, in their order, with owner as their controller. Fields of other
// managers stay; fields that objects set are taken back from whoever changed them. An object that is not owner's is left
// alone. It goes on after an object that fails, unless the namespace is on its way out; the error joins one *Error for each
// that failed.
func (a *Applier) Apply(ctx context.Context, owner *unstructured.Unstructured, objects []*unstructured.Unstructured) (Result, error) {
	var result Result
	var errs []error
	for _, o := range objects {
		live, done, err := a.applyOne(ctx, owner, o)
		if err != nil {
			failure := NewError(kind.Describe(o), err)
			errs = append(errs, failure)
			if failure.Reason == ReasonNamespaceTerminating {
				break
			}
			continue
		}
		result.Live = append(result.Live, live)
		switch done {
		case created:
			result.Created = append(result.Created, kind.Describe(o))
		case updated:
			result.Updated = append(result.Updated, kind.Describe(o))
		}
	}
	return result, errors.Join(errs...)
}

// Forget drops what is remembered of a custom resource that is gone.
func (a *Applier) Forget(owner schema.GroupKind, name types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.recent, objectID{owner, name})
}

type outcome int

const (
	unchanged outcome = iota
	created
	updated
)

func (a *Applier) applyOne(ctx context.Context, owner, object *unstructured.Unstructured) (live *unstructured.Unstructured, done outcome, err error) {
	if err := a.checkScope(object); err != nil {
		return nil, unchanged, err
	}
	want, digest, err := prepare(owner, object)
	if err != nil {
		return nil, unchanged, err
	}
	live, err = a.cached(ctx, want)
	if err != nil {
		return nil, unchanged, err
	}
	if live == nil {
		// Not there, not labelled as ours, or not yet seen by the cache.
		if live, err = a.uncached(ctx, want); err != nil {
			return nil, unchanged, err
		}
	}
	done = created
	if live != nil {
		done = updated
		if live.GetDeletionTimestamp() != nil || isLeftover(owner, live) {
			return nil, unchanged, errTerminating
		}
		if !metav1.IsControlledBy(live, owner) {
			return nil, unchanged, &notOursError{live}
		}
		drift := a.drift(owner, want, live, digest)
		if len(drift) == 0 {
			return live, unchanged, nil
		}
		logf.FromContext(ctx).V(1).Info("Found drift", "object", kind.Describe(want), "fields", drift)
	}
	applied := want.DeepCopy()
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(kind.Manager), client.ForceOwnership); err != nil {
		return nil, unchanged, err
	}
	applied.SetManagedFields(nil)
	a.remember(owner, want, memory{digest, applied.GetResourceVersion(), differences(want.Object, applied.Object)})
	logf.FromContext(ctx).Info("Applied object", "object", kind.Describe(want), "created", done == created)
	return applied, done, nil
}

// checkScope refuses kinds that the API server does not know or that live outside namespaces.
func (a *Applier) checkScope(object *unstructured.Unstructured) error {
	namespaced, err := a.client.IsObjectNamespaced(object)
	if err != nil {
		return err
	}
	if !namespaced {
		return fmt.Errorf("%s is cluster-scoped: a custom resource can only have objects in its own namespace", object.GetKind())
	}
	return nil
}

// prepare returns object as it is to be applied and the digest that it bears.
func prepare(owner, object *unstructured.Unstructured) (*unstructured.Unstructured, string, error) {
	want := object.DeepCopy()
	isController, blockDeletion := true, true
	want.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion:         owner.GetAPIVersion(),
		Kind:               owner.GetKind(),
		Name:               owner.GetName(),
		UID:                owner.GetUID(),
		Controller:         &isController,
		BlockOwnerDeletion: &blockDeletion,
	}})
	data, err := json.Marshal(want.Object)
	if err != nil {
		return nil, "", fmt.Errorf("encoding: %w", err)
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:16])
	annotations := want.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[DigestAnnotation] = digest
	want.SetAnnotations(annotations)
	return want, digest, nil
}

// NewObject returns an empty object in the form in which the cache holds its kind: typed if scheme knows it, which is smaller
// and decoded from protobuf. Whoever watches a kind must ask for the same form, or the cache holds it twice.
func NewObject(scheme *runtime.Scheme, gvk schema.GroupVersionKind) client.Object {
	if typed, err := scheme.New(gvk); err == nil {
		if object, ok := typed.(client.Object); ok {
			return object
		}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// cached returns the object from the cache, nil if it is not there.
func (a *Applier) cached(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := want.GroupVersionKind()
	object := NewObject(a.client.Scheme(), gvk)
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(want), object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// uncached returns the object from the API server, nil if it is not there.
func (a *Applier) uncached(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(want.GroupVersionKind())
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(want), u); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return u, nil
}

// drift returns the fields of live that are not as we want them, the digest of all of them among these. There are none if live
// is older than our own last apply of the same, or differs by no more than what that apply left.
func (a *Applier) drift(owner, want, live *unstructured.Unstructured, digest string) []string {
	m := a.recall(owner, want)
	if m.digest == digest && older(live.GetResourceVersion(), m.resourceVersion) {
		return nil // the cache is about to see it
	}
	found := differences(want.Object, live.Object)
	if len(found) == 0 && m.digest != "" {
		a.remember(owner, want, memory{})
	}
	if m.digest == digest && slices.Equal(found, m.residue) {
		return nil
	}
	return found
}

// older tells whether resource version v comes before w.
func older(v, w string) bool {
	order, err := resourceversion.CompareResourceVersion(v, w)
	return err == nil && order < 0
}

func id(o *unstructured.Unstructured) objectID {
	return objectID{o.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(o)}
}

func (a *Applier) recall(owner, object *unstructured.Unstructured) memory {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.recent[id(owner)][id(object)]
}

// remember keeps m for object; an empty m drops what was kept.
func (a *Applier) remember(owner, object *unstructured.Unstructured, m memory) {
	a.mu.Lock()
	defer a.mu.Unlock()
	objects := a.recent[id(owner)]
	switch {
	case m.digest != "" && objects == nil:
		a.recent[id(owner)] = map[objectID]memory{id(object): m}
	case m.digest != "":
		objects[id(object)] = m
	default:
		delete(objects, id(object))
		if len(objects) == 0 {
			delete(a.recent, id(owner))
		}
	}
}

// isLeftover tells whether live belongs to a deleted namesake of owner. The garbage collector is about to delete it.
func isLeftover(owner, live *unstructured.Unstructured) bool {
	c := metav1.GetControllerOfNoCopy(live)
	return c != nil && c.APIVersion == owner.GetAPIVersion() && c.Kind == owner.GetKind() && c.Name == owner.GetName() && c.UID != owner.GetUID()
}

// errTerminating says that an object is on its way out. Its end is an event that brings the custom resource back.
var errTerminating = errors.New("is being deleted; it will be applied again once it is gone")

// notOursError says that an object exists which its custom resource does not own.
type notOursError struct{ live *unstructured.Unstructured }

func (e *notOursError) Error() string {
	owner := "nobody"
	if c := metav1.GetControllerOf(e.live); c != nil {
		owner = c.Kind + " " + c.Name
	}
	return fmt.Sprintf("exists already and belongs to %s: delete or rename it, or rename the custom resource", owner)
}

// Error says why one object could not be applied.
type Error struct {
	// Object names it: "Deployment cache".
	Object string
	// Reason is a condition's reason: the API server's own (Forbidden, Invalid …) or one of Conflict, Terminating,
	// QuotaExceeded, Immutable, KindNotInstalled, NamespaceTerminating and ApplyFailed.
	Reason string
	// Err is the cause.
	Err error
}

// Error returns the object and the cause.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Object, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NewError gives err, an API server's answer or one of this package's, the reason that it stands for.
func NewError(object string, err error) *Error {
	reason := "ApplyFailed"
	_, notOurs := errors.AsType[*notOursError](err)
	switch {
	case notOurs:
		reason = "Conflict"
	case errors.Is(err, errTerminating):
		reason = ReasonTerminating
	case meta.IsNoMatchError(err):
		reason = "KindNotInstalled"
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		reason = reasonOf(err)
	}
	return &Error{Object: object, Reason: reason, Err: err}
}
