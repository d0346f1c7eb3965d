package reconciler

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
)

// library has the kinds. A kind that is served no more is kept, for the custom resources that wait for us to let them go.
type library struct {
	*kind.Library

	mu      sync.RWMutex
	retired map[schema.GroupKind]*kind.Kind
}

func newLibrary(l *kind.Library) *library {
	return &library{Library: l, retired: map[schema.GroupKind]*kind.Kind{}}
}

// get returns a kind, and whether it is served; nil if there never was one.
func (l *library) get(gk schema.GroupKind) (k *kind.Kind, served bool) {
	if k := l.Get(gk); k != nil {
		return k, true
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.retired[gk], false
}

func (l *library) retire(k *kind.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired[k.GroupKind()] = k
}

// librarian follows the changes of the library.
type librarian struct {
	library *library
	watches *watches
	metrics *metrics
	events  *recorder
	log     logr.Logger
}

// Start implements manager.Runnable.
func (l *librarian) Start(ctx context.Context) error {
	for _, k := range l.library.Kinds() {
		l.tell(kind.Change{New: k, Folder: k.Folder})
	}
	for folder, err := range l.library.Broken() {
		l.tell(kind.Change{Folder: folder, Err: err})
	}
	select { // the first change may come before the queue does
	case <-l.watches.running:
	case <-ctx.Done():
	}
	return l.library.Watch(ctx, func(c kind.Change) {
		l.tell(c)
		l.follow(ctx, c)
	})
}

// tell says what became of a kind, or of a folder that never held a good one.
func (l *librarian) tell(c kind.Change) {
	l.metrics.loaded(c.Folder, c.Err)
	switch {
	case c.Err != nil:
		l.log.Error(c.Err, "Refused kind", "folder", c.Folder, "served", c.New != nil)
		l.events.kindRefused(c)
	case c.New != nil:
		l.log.Info("Loaded kind", "kind", c.New.GroupKind().String(), "folder", c.Folder, "digest", c.New.Digest)
	default: // nothing is there to be refused any more
		l.metrics.forgetFolder(c.Folder)
	}
	switch {
	case c.New != nil:
		l.metrics.of(c.New.GroupKind()).serves(c.New.Names.Version, c.New.Digest, c.New.Folder)
	case c.Old != nil:
		l.log.Info("Retired kind", "kind", c.Old.GroupKind().String(), "folder", c.Folder)
		l.metrics.forgetKind(c.Old.GroupKind())
	}
}

// follow serves a kind that is new, and brings its custom resources back, as their objects may have to become others.
func (l *librarian) follow(ctx context.Context, c kind.Change) {
	switch {
	case c.New == nil && c.Old != nil:
		l.library.retire(c.Old)
	case c.New != c.Old:
		if err := l.watches.serve(ctx, c.New); err != nil {
			l.log.Error(err, "Could not watch custom resources", "kind", c.New.GroupKind().String())
			return
		}
		if err := l.watches.bringBack(ctx, c.New); err != nil {
			l.log.Error(err, "Could not list custom resources", "kind", c.New.GroupKind().String())
		}
	}
}

// kindRefused tells that the present files of a kind are not served. The event is about its CustomResourceDefinition, whose name
// is the folder's while the kind was never good.
func (r *recorder) kindRefused(c kind.Change) {
	name := c.Folder
	if c.New != nil {
		name = c.New.Names.Plural + "." + c.New.Names.Group
	}
	definition := &corev1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: name}
	r.Event(definition, corev1.EventTypeWarning, "KindRefused", kind.Shorten(c.Err.Error(), maxNote))
}
