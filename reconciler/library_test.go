package reconciler

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/record"

	"github.com/example/memcached-operator/reconciler/kind"
)

// TestAFolderThatWasNeverGoodIsForgotten: a folder that is refused and then removed, or cannot be read for a while, never had a
// kind to name.
func TestAFolderThatWasNeverGoodIsForgotten(t *testing.T) {
	for _, folder := range []string{"teapot", ""} {
		reg := prometheus.NewRegistry()
		events := record.NewFakeRecorder(1)
		l := &librarian{metrics: newMetrics(reg), events: &recorder{events}, log: logr.Discard()}

		l.tell(kind.Change{Folder: folder, Err: errors.New("schemas/teapot/teapot.cue:3: no")})
		if got := value(t, reg, "kind_load_failed", folder); got != 1 {
			t.Errorf("folder %q: kind_load_failed is %v, want 1", folder, got)
		}
		if len(events.Events) != 1 {
			t.Errorf("folder %q: the refusal should be an event", folder)
		}
		l.tell(kind.Change{Folder: folder})
		if n, err := testutil.GatherAndCount(reg, "memcached_operator_kind_load_failed"); n != 0 || err != nil {
			t.Errorf("folder %q: %d series are left of kind_load_failed, want none: %v", folder, n, err)
		}
	}
}
