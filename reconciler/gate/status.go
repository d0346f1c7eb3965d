package gate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/example/memcached-operator/reconciler/schema"
)

// declared checks that the API server, whose schema of the custom resource is root, keeps all of a status. It drops what the
// definition does not have.
func declared(root *schema.Props, status map[string]any) error {
	if path := undeclared("status", status, root.Properties["status"]); path != "" {
		return fmt.Errorf("the report gives %s, which the object's status does not declare: the API server would drop it", path)
	}
	return nil
}

// undeclared returns the path of the first field of value that the schema does not have; empty if it has them all.
func undeclared(path string, value any, props schema.Props) string {
	if props.XPreserveUnknownFields != nil {
		return ""
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			field, found := props.Properties[key]
			if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
				field, found = *props.AdditionalProperties.Schema, true
			}
			if !found {
				return path + "." + key
			}
			if p := undeclared(path+"."+key, value[key], field); p != "" {
				return p
			}
		}
	case []any:
		for i, entry := range value {
			if p := undeclared(fmt.Sprintf("%s[%d]", path, i), entry, *props.Items.Schema); p != "" {
				return p
			}
		}
	}
	return ""
}
