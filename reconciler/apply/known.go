package apply

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
)

// An object that is changed back each time we mend it is applied at most maxMends times within mendWindow. Ten edits in five
// minutes are more than a person makes and less than a loop does.
const (
	maxMends   = 10
	mendWindow = 5 * time.Minute
)

// record is what is known of the objects of a custom resource.
type record struct {
	objects map[objectID]knowledge
	// settled names the plan (see Recheck) whose objects are these, all applied, and all others pruned.
	settled string
	skipped []string // see Result
}

// isOf tells whether inventory names the objects of r as we do: in order, each once.
func (r *record) isOf(inventory Inventory) bool {
	for _, e := range inventory {
		if _, ok := r.objects[idOfEntry(e)]; !ok {
			return false
		}
	}
	return len(inventory) == len(r.objects) && inventory.IsSorted()
}

// knowledge is what an apply or a look taught us about an object. All of it can be learnt anew; it spares calls.
type knowledge struct {
	gvk    schema.GroupVersionKind
	digest string // of what was applied, or found to be there
	// resourceVersion, generation and metadata are those at which the object was last known to be as wanted. The cache may lag
	// behind.
	resourceVersion string
	generation      int64
	metadata        uint64
	residue         []string    // differences that are no drift: the API server's own, and those left to other managers
	yielded         []Conflict  // fields that are left to other managers
	reported        []Conflict  // fields that are left to other managers, and should not be theirs
	forced          []Conflict  // what was last taken back
	mends           []time.Time // the latest applies of this digest
}

// news is what an object in the cache tells.
type news int

const (
	// nothing: the object is as it was when it was last known to be as wanted, but for its status.
	nothing news = iota
	// outdated: the object is older than our own last apply, which the cache is about to see.
	outdated
	// changed: someone may have changed a field of ours.
	changed
)

func (k *knowledge) isNews(live client.Object) news {
	switch {
	case live.GetResourceVersion() == k.resourceVersion:
		return nothing
	case older(live.GetResourceVersion(), k.resourceVersion):
		return outdated
	// The API server counts the changes of a spec, where there is one. A status does not count.
	case live.GetGeneration() > 0 && live.GetGeneration() == k.generation && live.GetDeletionTimestamp() == nil && fingerprint(live) == k.metadata:
		return nothing
	}
	return changed
}

// revisionAnnotation is set by the controller of Deployments just after the creation of each.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// fingerprint is a hash of the metadata that an apply can set.
func fingerprint(o client.Object) uint64 {
	hash := fnv.New64a()
	write := func(s string) {
		_, _ = hash.Write([]byte(s)) // a hash takes everything
		_, _ = hash.Write([]byte{0})
	}
	for _, m := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if key != revisionAnnotation {
				write(key)
				write(m[key])
			}
		}
		write("")
	}
	for _, r := range o.GetOwnerReferences() {
		write(string(r.UID))
		write(fmt.Sprint(r.Controller != nil && *r.Controller, r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion))
	}
	return hash.Sum64()
}

// explains tells whether the differences between w and the live object are no drift.
func (k knowledge) explains(w *wish, found []string) bool {
	return len(found) == 0 || k.digest == w.digest && slices.Equal(found, k.residue)
}

// err returns the conflict that stands between the object and its custom resource, nil if there is none.
func (k knowledge) err() error {
	if len(k.reported) == 0 {
		return nil
	}
	return &fieldsError{k.reported}
}

// tooOften returns an error if w was applied so often of late that applying it again would only go on with a quarrel.
func (k knowledge) tooOften(now time.Time, w *wish, drift []string) error {
	if k.digest != w.digest || len(k.mends) < maxMends || now.Sub(k.mends[0]) > mendWindow {
		return nil
	}
	return &loopError{drift: drift, forced: k.forced}
}

// mended notes that w was applied in order to mend drift.
func (k *knowledge) mended(now time.Time, w *wish, drift []string) {
	if k.digest != w.digest || len(drift) == 0 {
		k.mends = nil
		return
	}
	k.mends = append(k.mends, now)
	if len(k.mends) > maxMends {
		k.mends = slices.Clone(k.mends[1:])
	}
}

// older tells whether resource version v comes before w.
func older(v, w string) bool {
	order, err := resourceversion.CompareResourceVersion(v, w)
	return err == nil && order < 0
}

// Settle notes that all objects of a plan are applied, but for those skipped, and all others pruned. Plans are told apart by
// their names.
func (a *Applier) Settle(owner Owner, plan string, objects Inventory, skipped []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.known[idOf(owner.Unstructured)]
	if r == nil {
		return // it has no objects, or was told to forget in the meantime
	}
	wanted := map[objectID]bool{}
	for _, e := range objects {
		wanted[idOfEntry(e)] = true
	}
	maps.DeleteFunc(r.objects, func(id objectID, _ knowledge) bool { return !wanted[id] })
	if len(r.objects) == len(wanted) {
		r.settled, r.skipped = plan, skipped
	}
}

// Recheck returns what Apply would for a plan that is settled, if none of its objects has changed since, but for its status. It
// spares the plan and the comparison. false means that the plan is to be applied, or that inventory names other objects.
func (a *Applier) Recheck(ctx context.Context, owner Owner, plan string, inventory Inventory) (Result, bool) {
	a.mu.Lock()
	r := a.known[idOf(owner.Unstructured)]
	if r == nil || r.settled != plan || !r.isOf(inventory) {
		a.mu.Unlock()
		return Result{}, false
	}
	objects, result := maps.Clone(r.objects), Result{Skipped: r.skipped}
	a.mu.Unlock()
	for id, known := range objects {
		live, err := a.cached(ctx, known.gvk, id.NamespacedName)
		if err != nil || live == nil || len(known.reported) > 0 {
			return Result{}, false
		}
		switch known.isNews(live) {
		case nothing:
			result.unchanged(live, known)
		case outdated:
			result.Behind++
		case changed:
			return Result{}, false
		}
	}
	return result, true
}

func (a *Applier) recall(w *wish) knowledge {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.known[idOf(w.owner.Unstructured)]; r != nil {
		return r.objects[w.id()]
	}
	return knowledge{}
}

// learn keeps k, which is true of live.
func (a *Applier) learn(w *wish, live client.Object, k knowledge) {
	k.gvk = w.object.GroupVersionKind()
	k.resourceVersion, k.generation, k.metadata = live.GetResourceVersion(), live.GetGeneration(), fingerprint(live)
	a.mu.Lock()
	defer a.mu.Unlock()
	owner := idOf(w.owner.Unstructured)
	if a.known[owner] == nil {
		a.known[owner] = &record{objects: map[objectID]knowledge{}}
	}
	a.known[owner].objects[w.id()] = k
}

// Forget drops what is remembered of a custom resource: it is gone, or everything is to be looked at anew.
func (a *Applier) Forget(owner schema.GroupKind, name types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, objectID{owner, name})
}

// forget drops what is remembered of one object.
func (a *Applier) forget(owner Owner, object objectID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.known[idOf(owner.Unstructured)]; r != nil {
		delete(r.objects, object)
	}
}

// loopError says that an object is changed back each time that it is mended.
type loopError struct {
	drift  []string
	forced []Conflict
}

func (e *loopError) Error() string {
	message := fmt.Sprintf("was mended %d times within %s and is changed back each time; it is left alone for that long", maxMends, mendWindow)
	if len(e.forced) > 0 {
		return message + ": " + ownership.DescribeConflicts(e.forced)
	}
	return message + ": " + kind.Shorten(strings.Join(fieldsOf(e.drift), ", "), 200)
}
