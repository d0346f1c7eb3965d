package ownership

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inventory reads "apiVersion Kind namespace/name" of each object.
func inventory(entries ...string) (out Inventory) {
	for _, e := range entries {
		fields := strings.Fields(e)
		namespace, name, _ := strings.Cut(fields[2], "/")
		out = append(out, Entry{APIVersion: fields[0], Kind: fields[1], Namespace: namespace, Name: name})
	}
	return out
}

func TestInventorySets(t *testing.T) {
	const (
		a, b, c = "v1 ConfigMap x/a", "v1 ConfigMap x/b", "v1 ConfigMap x/c"
		there   = "v1 ConfigMap y/a"
		deploy  = "apps/v1 Deployment x/a"
		role    = "rbac.authorization.k8s.io/v1 ClusterRole /a"
		hpaV1   = "autoscaling/v1 HorizontalPodAutoscaler x/a"
		hpaV2   = "autoscaling/v2 HorizontalPodAutoscaler x/a"
	)
	for name, test := range map[string]struct {
		reason         string
		left, right    Inventory
		union, without Inventory
	}{
		"nothing":       {"", nil, nil, nil, nil},
		"some, none":    {"", inventory(a), nil, inventory(a), inventory(a)},
		"none, some":    {"", nil, inventory(a), inventory(a), nil},
		"alike":         {"each object once", inventory(a, b), inventory(b, a), inventory(a, b), nil},
		"overlap":       {"", inventory(c, b), inventory(b, a), inventory(a, b, c), inventory(c)},
		"not the same":  {"group, kind, namespace and name tell objects apart", inventory(deploy, there, role), inventory(a), inventory(a, there, deploy, role), inventory(deploy, there, role)},
		"two versions":  {"of an API are of one object", inventory(hpaV2), inventory(hpaV1), inventory(hpaV1), nil},
		"doubled":       {"by somebody who edited the status", inventory(a, a), inventory(a, b, a), inventory(a, b), nil},
		"sorted always": {"whatever the order of rendering", inventory(role, deploy, c, a), nil, inventory(a, c, deploy, role), inventory(role, deploy, c, a)},
	} {
		t.Run(name, func(t *testing.T) {
			left, right := append(Inventory(nil), test.left...), append(Inventory(nil), test.right...)
			if diff := cmp.Diff(list(test.union), list(left.Union(right))); diff != "" {
				t.Errorf("%s: union (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(list(test.without), list(left.Without(right))); diff != "" {
				t.Errorf("%s: without (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff([]Inventory{test.left, test.right}, []Inventory{left, right}); diff != "" {
				t.Errorf("the inventories themselves were changed (-before +after):\n%s", diff)
			}
		})
	}
}

func list(i Inventory) []Entry { return append([]Entry{}, i...) }
