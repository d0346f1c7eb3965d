package apply

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/example/memcached-operator/reconciler/ownership"
)

// differences returns the fields of want that have does not hold as want says, as "path: value in have", sorted. Fields that
// only have holds do not count: they are other managers' or the API server's defaults.
//
// Lists whose elements have names are matched by name, as server-side apply merges them; other lists must be alike.
// Quantities are compared by amount: the API server rewrites 1000m to 1.
func differences(want, have map[string]any) []string {
	var found []string
	compareMaps("", want, have, false, &found)
	slices.Sort(found)
	return found
}

// fieldsOf returns the paths of differences, for people. The values stay out of sight, since they may be a Secret's, and so does
// our own digest, which always differs when something else does.
func fieldsOf(differences []string) []string {
	var fields []string
	for _, d := range differences {
		path, _, _ := strings.Cut(d, ": ")
		if path != "metadata.annotations."+ownership.DigestAnnotation {
			fields = append(fields, path)
		}
	}
	return fields
}

// quantityFields hold quantities, however deep.
var quantityFields = map[string]bool{"limits": true, "requests": true, "hard": true, "sizeLimit": true}

func compareMaps(path string, want, have map[string]any, quantities bool, found *[]string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		p := key
		if path != "" {
			p = path + "." + key
		}
		compare(p, want[key], have[key], quantities || quantityFields[key], found)
	}
}

func compare(path string, want, have any, quantities bool, found *[]string) {
	if have == nil && isEmpty(want) {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		if h, ok := have.(map[string]any); ok {
			compareMaps(path, w, h, quantities, found)
			return
		}
	case []any:
		if h, ok := have.([]any); ok {
			compareLists(path, w, h, quantities, found)
			return
		}
	default:
		if reflect.DeepEqual(want, have) || quantities && sameQuantity(want, have) {
			return
		}
	}
	*found = append(*found, fmt.Sprintf("%s: %v", path, have))
}

func compareLists(path string, want, have []any, quantities bool, found *[]string) {
	wantNames, haveNames := byName(want), byName(have)
	if len(want) > 0 && wantNames != nil && haveNames != nil {
		for _, name := range slices.Sorted(maps.Keys(wantNames)) {
			p := fmt.Sprintf("%s[%s]", path, name)
			if haveNames[name] == nil {
				*found = append(*found, p+": missing")
				continue
			}
			compareMaps(p, wantNames[name], haveNames[name], quantities, found)
		}
		return
	}
	if len(want) != len(have) {
		*found = append(*found, fmt.Sprintf("%s: %v", path, have))
		return
	}
	for i := range want {
		compare(fmt.Sprintf("%s[%d]", path, i), want[i], have[i], quantities, found)
	}
}

// byName returns the elements of list by their name, nil unless each has a different one.
func byName(list []any) map[string]map[string]any {
	out := make(map[string]map[string]any, len(list))
	for _, element := range list {
		m, _ := element.(map[string]any)
		name, ok := m["name"].(string)
		if !ok || out[name] != nil {
			return nil
		}
		out[name] = m
	}
	return out
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func sameQuantity(a, b any) bool {
	qa, err := resource.ParseQuantity(fmt.Sprint(a))
	if err != nil {
		return false
	}
	qb, err := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && qa.Cmp(qb) == 0
}
