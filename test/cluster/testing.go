package cluster

import (
	"os"
	"testing"
)

// StartForTest is [Start] for a test: it fails the test when the cluster does not start, and stops the cluster at the test's
// end, failing the test as well when a component had ended before. Without Options.Progress, the first build of the
// binaries reports to standard error.
func StartForTest(t testing.TB, o Options) *Cluster {
	t.Helper()
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}
