package apply

import (
	"strings"
	"testing"

	"github.com/example/memcached-operator/reconciler/ownership"
)

// inventory reads "apiVersion Kind namespace/name" of each object.
func inventory(entries ...string) (out Inventory) {
	for _, e := range entries {
		fields := strings.Fields(e)
		namespace, name, _ := strings.Cut(fields[2], "/")
		out = append(out, ownership.Entry{APIVersion: fields[0], Kind: fields[1], Namespace: namespace, Name: name})
	}
	return out
}

func TestARecordIsOfItsInventoryAlone(t *testing.T) {
	const a, b, c = "v1 ConfigMap x/a", "v1 ConfigMap x/b", "v1 ConfigMap x/c"
	r := &record{objects: map[objectID]knowledge{}}
	for _, e := range inventory(a, b) {
		r.objects[idOfEntry(e)] = knowledge{}
	}
	for name, test := range map[string]struct {
		inventory Inventory
		want      bool
	}{
		"the same":    {inventory(a, b), true},
		"none":        {nil, false},
		"fewer":       {inventory(a), false},
		"more":        {inventory(a, b, c), false},
		"another":     {inventory(a, c), false},
		"doubled":     {inventory(a, a), false},
		"out of line": {inventory(b, a), false},
	} {
		if got := r.isOf(test.inventory); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
