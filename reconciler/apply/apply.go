// Package apply delivers objects by server-side apply. It is the only room of the house that writes them.
//
//	apply.go      the objects of a custom resource, one after another
//	wish.go       an object as it is to be applied
//	known.go      what is remembered of objects, and when there is nothing to do
//	inventory.go  the deletion of objects that are no longer wanted
//	reason.go     errors
//
// An object that already is what we would apply costs no call: the last application is remembered on the object itself, in
// an annotation, so that a restart of the operator writes nothing either.
package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
)

// Applier applies and deletes the objects of custom resources. It is safe for concurrent use, one custom resource at a time.
type Applier struct {
	client client.Client // reads from the cache
	live   client.Reader // reads from the API server
	now    func() time.Time

	mu    sync.Mutex
	known map[objectID]*record // by custom resource
}

// objectID names an object in the cluster.
type objectID struct {
	schema.GroupKind
	types.NamespacedName
}

// New returns an Applier that writes through c, looks at objects in c's cache, and asks live where the cache cannot know.
func New(c client.Client, live client.Reader) *Applier {
	return &Applier{client: c, live: live, now: time.Now, known: map[objectID]*record{}}
}

// Result is what Apply found and did. Objects are named as in "Deployment cache", in the order of the writes.
type Result struct {
	// Live are the objects as the cluster has them now, as far as they are ours: typed where the client's scheme knows them.
	// They may be the cache's own and are not to be changed.
	Live []client.Object
	// Unchanged is how many objects needed no call. Behind is how many more we wrote lately that the cache does not yet show as
	// we left them; an event will follow.
	Unchanged, Behind int
	// Created, Updated, Adopted and Recreated name the objects that were written. One that was recreated is deleted at first;
	// its end brings the custom resource back.
	Created, Updated, Adopted, Recreated []string
	// Skipped names the objects whose kind the cluster does not know and that may be left out. Apply is not given these.
	Skipped []string
	// Drifted is how many objects somebody had changed that ought to be as we left them.
	Drifted int
	// Forced are the fields that were taken back just now; Yielded those that are left to another manager. How many of those, and
	// of those that should not be another's, are news is in NewlyYielded and NewlyReported.
	Forced, Yielded             []Conflict
	NewlyYielded, NewlyReported int
}

// Apply makes the cluster's objects what objects say, in their order, as the custom resource's own. Fields that objects do not
// set stay as they are; fields that they set are taken back from whoever changed them, unless the kind's policies say
// otherwise. An object that is not the custom resource's is left alone. Apply goes on after an object that fails, unless the
// namespace is on its way out; the error joins one *Error for each that failed.
func (a *Applier) Apply(ctx context.Context, owner Owner, objects []*unstructured.Unstructured) (Result, error) {
	var result Result
	var errs []error
	for _, o := range objects {
		err := a.applyOne(ctx, owner, o, &result)
		if err == nil {
			continue
		}
		failure := NewError(kind.Describe(o), err)
		errs = append(errs, failure)
		if failure.Reason == ReasonNamespaceTerminating {
			break
		}
	}
	return result, errors.Join(errs...)
}

func (a *Applier) applyOne(ctx context.Context, owner Owner, object *unstructured.Unstructured, result *Result) error {
	if err := a.checkScope(owner, object); err != nil {
		return err
	}
	w, err := newWish(owner, object)
	if err != nil {
		return err
	}
	live, err := a.cached(ctx, w.object.GroupVersionKind(), w.id().NamespacedName)
	if err != nil {
		return err
	}
	if live == nil {
		// Not there, not labelled as ours, or not yet seen by the cache.
		created, err := a.create(ctx, w)
		if err == nil {
			result.Created = append(result.Created, w.String())
			result.Live = append(result.Live, created)
			return nil
		}
		if !isTaken(err) {
			return err
		}
		taken := err
		if live, err = a.uncached(ctx, w); apierrors.IsNotFound(err) {
			return taken // a conflict of another sort, such as over the counters of a quota
		} else if err != nil {
			return err
		}
	}
	return a.update(ctx, w, live, result)
}

// create applies w if no object of that name exists, in one call: a resource version that no object can have makes the API
// server refuse the change of an existing one, see isTaken.
func (a *Applier) create(ctx context.Context, w *wish) (*unstructured.Unstructured, error) {
	applied := w.object.DeepCopy()
	applied.SetResourceVersion("1") // etcd's first revision is never an object's
	if err := a.send(ctx, applied, client.ForceOwnership); err != nil {
		return nil, err
	}
	a.learn(w, applied, knowledge{digest: w.digest, residue: differences(w.object.Object, applied.Object)})
	logf.FromContext(ctx).Info("Created object", "object", w.String())
	return applied, nil
}

// isTaken tells whether create failed since an object of that name exists.
func isTaken(err error) bool { return apierrors.IsConflict(err) }

// update makes live, an existing object, what w says.
func (a *Applier) update(ctx context.Context, w *wish, live client.Object, result *Result) error {
	if err := w.owner.Objection(live); err != nil {
		return err
	}
	known := a.recall(w)
	if known.digest == w.digest {
		switch known.isNews(live) {
		case nothing:
			result.unchanged(live, known)
			return known.err()
		case outdated:
			result.Behind++
			return known.err()
		}
	}
	content, err := a.unstructured(live)
	if err != nil {
		return err
	}
	drift := differences(w.object.Object, content.Object)
	if known.explains(w, drift) {
		if len(drift) == 0 { // whatever others have set is what we want, too
			known.yielded, known.reported = nil, nil
		}
		known.digest = w.digest
		a.learn(w, live, known)
		result.unchanged(live, known)
		return known.err()
	}
	if err := known.tooOften(a.now(), w, drift); err != nil {
		result.Live = append(result.Live, live)
		return err
	}
	logf.FromContext(ctx).V(1).Info("Found drift", "object", w.String(), "fields", fieldsOf(drift))
	written, err := a.write(ctx, w, content, &known, result)
	if err != nil {
		result.Live = append(result.Live, live)
		return a.recreateIfAllowed(ctx, w, content, drift, err, result)
	}
	result.Live = append(result.Live, written)
	isLeft := written == content // all that differs is left to others
	if isLeft {
		result.Unchanged++
	} else {
		known.mended(a.now(), w, drift)
	}
	known.digest, known.residue = w.digest, differences(w.object.Object, written.Object)
	a.learn(w, written, known)
	if isLeft {
		return known.err()
	}
	if content.GetAnnotations()[ownership.DigestAnnotation] == w.digest {
		result.Drifted++
	}
	name, isAdopted := w.String(), !w.owner.Owns(live)
	if isAdopted {
		result.Adopted = append(result.Adopted, name)
	} else {
		result.Updated = append(result.Updated, name)
	}
	logf.FromContext(ctx).Info("Updated object", "object", name, "adopted", isAdopted)
	return known.err()
}

func (r *Result) unchanged(live client.Object, known knowledge) {
	r.Live = append(r.Live, live)
	r.Unchanged++
	r.Yielded = append(r.Yielded, known.yielded...)
}

// write applies w over live and returns what is there then: live itself if all that differs is left to other managers. It asks
// first and forces later, so that what is taken from others is known by name.
func (a *Applier) write(ctx context.Context, w *wish, live *unstructured.Unstructured, known *knowledge, result *Result) (*unstructured.Unstructured, error) {
	known.yielded, known.reported, known.forced = nil, nil, nil
	applied := w.object.DeepCopy()
	// The object could be deleted, and another of its name made, between our look and our write.
	applied.SetUID(live.GetUID())
	err := a.send(ctx, applied)
	conflicts := ownership.ConflictsIn(w.object, err)
	if len(conflicts) == 0 {
		return applied, err
	}
	applied = w.object.DeepCopy()
	applied.SetUID(live.GetUID())
	end := w.owner.Settle(applied, conflicts)
	known.yielded, known.reported, known.forced = end.Yielded, end.Reported, end.Forced
	result.Forced = append(result.Forced, end.Forced...)
	result.Yielded = append(result.Yielded, known.yielded...)
	result.NewlyYielded += len(known.yielded)
	result.NewlyReported += len(known.reported)
	if len(end.Forced) == 0 && len(differences(applied.Object, live.Object)) == 0 {
		return live, nil
	}
	return applied, a.send(ctx, applied, client.ForceOwnership)
}

// send applies o, which becomes what the API server made of it.
func (a *Applier) send(ctx context.Context, o *unstructured.Unstructured, options ...client.ApplyOption) error {
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), append(options, client.FieldOwner(kind.Manager))...); err != nil {
		return err
	}
	o.SetManagedFields(nil)
	return nil
}

// recreateIfAllowed deletes live if err is the refusal of a change of an immutable field, and an annotation of the object or, if
// it is ours already, the kind allows it; the object is created anew once it is gone. Else it returns err with the fields that
// differ.
func (a *Applier) recreateIfAllowed(ctx context.Context, w *wish, live *unstructured.Unstructured, drift []string, err error, result *Result) error {
	if reasonOf(err) != ReasonImmutable {
		return err
	}
	if !w.owner.MayRecreate(live.GroupVersionKind().GroupKind(), live) {
		return &immutableError{err, drift}
	}
	uid := live.GetUID()
	if err := a.client.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting it in order to create it anew: %w", err)
	}
	result.Recreated = append(result.Recreated, w.String())
	logf.FromContext(ctx).Info("Deleted object in order to create it anew", "object", w.String(), "fields", fieldsOf(drift))
	return ownership.ErrTerminating
}

// checkScope refuses cluster-scoped objects, unless the kind allows them.
func (a *Applier) checkScope(owner Owner, object *unstructured.Unstructured) error {
	if namespaced, err := a.client.IsObjectNamespaced(object); namespaced || err != nil {
		return err
	}
	return owner.RefuseClusterScoped(object)
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

// cached returns the object from the cache, nil if it is not there. It is the cache's own.
func (a *Applier) cached(ctx context.Context, gvk schema.GroupVersionKind, name types.NamespacedName) (client.Object, error) {
	object := NewObject(a.client.Scheme(), gvk)
	if err := a.client.Get(ctx, name, object, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}

// uncached returns the object from the API server.
func (a *Applier) uncached(ctx context.Context, w *wish) (client.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.object.GroupVersionKind())
	return u, a.live.Get(ctx, client.ObjectKeyFromObject(w.object), u)
}

// unstructured returns o in its unstructured form.
func (a *Applier) unstructured(o client.Object) (*unstructured.Unstructured, error) {
	return Unstructured(a.client.Scheme(), o)
}

// Unstructured returns o, whose kind scheme knows unless it is unstructured already, in its unstructured form.
func Unstructured(scheme *runtime.Scheme, o client.Object) (*unstructured.Unstructured, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u, nil
	}
	gvks, _, err := scheme.ObjectKinds(o)
	if err != nil {
		return nil, fmt.Errorf("finding the kind of a %T: %w", o, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("converting: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvks[0])
	return u, nil
}
