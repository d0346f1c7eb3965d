package generate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Files returns all that follows from kinds, by its path in a folder that is laid out as the repository: config/crd/bases,
// config/rbac/role.yaml, config/samples, docs/reference, and of each chart values.yaml and values.schema.json.
func Files(kinds []*kind.Kind) (map[string][]byte, error) {
	files := map[string][]byte{}
	var definitions, samples []string
	namespaces := map[string]bool{}
	for _, k := range kinds {
		definition, err := CRD(k)
		if err != nil {
			return nil, err
		}
		name := "bases/" + k.Names.Group + "_" + k.Names.Plural + ".yaml"
		definitions = append(definitions, name)
		if files["config/crd/"+name], err = YAML(definition); err != nil {
			return nil, err
		}
		group, _, _ := strings.Cut(k.Names.Group, ".")
		sample := group + "_" + k.Names.Version + "_" + strings.ToLower(k.Names.Kind) + ".yaml"
		samples = append(samples, sample)
		if namespace := k.Listed[0].Namespace; namespace != "" {
			namespaces[namespace] = true
		}
		for path, write := range map[string]func(*kind.Kind) ([]byte, error){
			"config/samples/" + sample:                                Sample,
			"docs/reference/" + strings.ToLower(k.Names.Kind) + ".md": Reference,
			"charts/" + k.Chart.Name() + "/values.yaml":               Values,
			"charts/" + k.Chart.Name() + "/values.schema.json":        ValuesSchema,
		} {
			if files[path], err = write(k); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	rights, err := RightsFor(kinds)
	if err != nil {
		return nil, err
	}
	if files["config/rbac/role.yaml"], err = RoleYAML(rights.Role("manager-role")); err != nil {
		return nil, err
	}
	if len(namespaces) > 0 {
		samples = append(samples, "namespaces.yaml")
		files["config/samples/namespaces.yaml"] = namespaceList(namespaces)
	}
	files["config/crd/kustomization.yaml"] = kustomization(definitions)
	files["config/samples/kustomization.yaml"] = kustomization(samples)
	return files, nil
}

const header = "# Made by \"opctl generate\".\n"

func kustomization(resources []string) []byte {
	slices.Sort(resources)
	text := header + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
	for _, r := range resources {
		text += "  - " + r + "\n"
	}
	return []byte(text)
}

// namespaceList returns the namespaces in which samples are.
func namespaceList(names map[string]bool) []byte {
	var out bytes.Buffer
	out.WriteString(header)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		_, _ = fmt.Fprintf(&out, "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n", name) // a buffer takes everything
	}
	return out.Bytes()
}

// YAML returns an object of the API as a YAML document, without the status that its type always has.
func YAML(object any) ([]byte, error) {
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	kept, _, _ := strings.Cut(string(text), "\nstatus:\n")
	return []byte("---\n" + strings.TrimSuffix(kept, "\n") + "\n"), nil
}

const roleHeader = `# Made by "opctl generate rbac": exactly what the operator does. It watches custom resources and writes their status, applies
# the objects that the charts render, deletes those that they no longer render, and watches them with their pods. Server-side
# apply is a patch, and asks for create where the object does not exist yet; before that the operator gets it, lest it takes over
# somebody else's. Updating finalizers is the right to set owner references that block their owner's deletion.
`

// RoleYAML returns a ClusterRole or a Role as a YAML document that says what its rights are for.
func RoleYAML(role any) ([]byte, error) {
	text, err := YAML(role)
	return append([]byte(roleHeader), text...), err
}
