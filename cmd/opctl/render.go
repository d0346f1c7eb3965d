package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/validate"
)

// defaultTarget is where custom resources that do not say otherwise are rendered for.
var defaultTarget = render.Target{Namespace: "default", KubeVersion: "v1.36.0"}

func newRenderCommand() *cobra.Command {
	var files []string
	target := defaultTarget
	cmd := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Print the objects that the operator would apply for custom resources",
		Long: `Print the objects that the operator would apply for custom resources, in the order in which it applies them.

What comes from the cluster is left out: the owner references and the digest annotation.`,
		Example: `  opctl render -f config/samples/cache_v1alpha1_memcached.yaml
  kubectl get memcached memcached-sample -o yaml | opctl render -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return renderFiles(cmd.InOrStdin(), files, target, func(_ *kind.Kind, m *render.Manifest) error {
				text, err := m.YAML()
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(text)
				return err
			})
		},
	}
	addFilesFlag(cmd, &files)
	cmd.Flags().StringVarP(&target.Namespace, "namespace", "n", target.Namespace, "namespace of custom resources that name none")
	cmd.Flags().StringVar(&target.KubeVersion, "kube-version", target.KubeVersion, "Kubernetes version that charts see")
	return cmd
}

func addFilesFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVarP(files, "filename", "f", nil, "file with custom resources, - for standard input; may be repeated")
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag is defined above
	}
}

// renderFiles renders every custom resource in files for target, whose name and, where it has one, namespace are the custom
// resource's.
func renderFiles(stdin io.Reader, files []string, target render.Target, each func(*kind.Kind, *render.Manifest) error) error {
	kinds, err := kind.Embedded()
	if err != nil {
		return err
	}
	for _, file := range files {
		resources, err := readFile(stdin, file)
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		for _, cr := range resources {
			k, manifest, err := renderOne(kinds, cr, target)
			if err == nil {
				err = each(k, manifest)
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", file, kind.Describe(cr), err)
			}
		}
	}
	return nil
}

func renderOne(kinds []*kind.Kind, cr *unstructured.Unstructured, target render.Target) (*kind.Kind, *render.Manifest, error) {
	k := kind.Find(kinds, cr.GroupVersionKind())
	if k == nil {
		var known []string
		for _, k := range kinds {
			known = append(known, k.GVK().GroupVersion().String()+" "+k.Names.Kind)
		}
		return nil, nil, fmt.Errorf("no such kind in %q: known are %s", cr.GetAPIVersion(), strings.Join(known, ", "))
	}
	spec, _, err := unstructured.NestedMap(cr.Object, "spec")
	if err != nil {
		return nil, nil, err
	}
	values, err := validate.Spec(k, cr.GetName(), spec)
	if err != nil {
		return nil, nil, err
	}
	target.Name = cr.GetName()
	if cr.GetNamespace() != "" {
		target.Namespace = cr.GetNamespace()
	}
	manifest, err := render.Render(k, values, target)
	return k, manifest, err
}

// readFile returns the objects in a file of YAML or JSON documents, - being stdin. Lists are expanded.
func readFile(stdin io.Reader, name string) ([]*unstructured.Unstructured, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	objects, err := render.Decode(in)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, errors.New("holds no object")
	}
	return objects, nil
}
