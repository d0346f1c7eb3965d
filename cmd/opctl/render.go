package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/plan"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/validate"
)

// place is where custom resources that do not say otherwise are rendered for.
type place struct {
	namespace, kubeVersion string
}

var defaultPlace = place{namespace: "default", kubeVersion: "v1.36.0"}

func newRenderCommand() *cobra.Command {
	var files []string
	var kindsDir string
	where := defaultPlace
	cmd := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Print the objects that the operator would apply for custom resources",
		Long: `Print the objects that the operator would apply for custom resources, in the order in which it applies them.

What comes from the cluster is left out: the owner references and the digest annotation.`,
		Example: `  opctl render -f config/samples/SAMPLE.yaml
  opctl render --kinds-dir ./my-kinds -f my-resource.yaml
  kubectl get KIND NAME -o yaml | opctl render -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kinds, err := loadKinds(kindsDir)
			if err != nil {
				return err
			}
			return renderFiles(kinds, cmd.InOrStdin(), files, where, func(_ *kind.Kind, m *render.Manifest) error {
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
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag is defined above
	}
	addKindsDirFlag(cmd, &kindsDir)
	addPlaceFlags(cmd, &where)
	return cmd
}

func addPlaceFlags(cmd *cobra.Command, where *place) {
	cmd.Flags().StringVarP(&where.namespace, "namespace", "n", where.namespace, "namespace of custom resources that name none")
	cmd.Flags().StringVar(&where.kubeVersion, "kube-version", where.kubeVersion, "Kubernetes version that charts see")
}

// fileExtensions are those of files that may hold custom resources.
var fileExtensions = []string{"yaml", "yml", "json"}

func addFilesFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVarP(files, "filename", "f", nil, "file with custom resources, - for standard input; may be repeated")
}

func addKindsDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "kinds-dir", "", "folder with schemas/KIND and charts/CHART of kinds beside, or in place of, those that are built in")
}

// selectKinds returns those of the kinds that names ask for, as kind.Select reads them.
func selectKinds(dir string, names []string) ([]*kind.Kind, error) {
	kinds, err := loadKinds(dir)
	if err != nil {
		return nil, err
	}
	return kind.Select(kinds, names)
}

// loadKinds returns the built-in kinds and those in dir. One that does not load is an error, whether or not it is needed: who
// names a folder works on it.
func loadKinds(dir string) ([]*kind.Kind, error) {
	library, err := kind.OpenLibrary(kind.LibraryOptions{Dir: dir})
	if err != nil {
		return nil, err
	}
	if broken := library.Broken(); len(broken) > 0 {
		return nil, errors.Join(slices.SortedFunc(maps.Values(broken), func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })...)
	}
	return library.Kinds(), nil
}

// renderFiles calls each with every custom resource in files, rendered.
func renderFiles(kinds []*kind.Kind, stdin io.Reader, files []string, where place, each func(*kind.Kind, *render.Manifest) error) error {
	for _, file := range files {
		resources, err := readFile(stdin, file)
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		for _, cr := range resources {
			k, manifest, err := renderOne(kinds, cr, where)
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

func renderOne(kinds []*kind.Kind, cr *unstructured.Unstructured, where place) (*kind.Kind, *render.Manifest, error) {
	k := kind.Find(kinds, cr.GroupVersionKind())
	if k == nil {
		return nil, nil, findings{fmt.Errorf("no such kind in %q: known are %s", cr.GetAPIVersion(), kind.List(kinds))}
	}
	switch {
	case k.Scope == kind.ScopeCluster && cr.GetNamespace() != "":
		return nil, nil, findings{fmt.Errorf("is in namespace %q, but its kind has the scope Cluster", cr.GetNamespace())}
	case k.Scope == kind.ScopeNamespaced && cr.GetNamespace() == "":
		cr.SetNamespace(where.namespace)
	}
	manifest, _, err := plan.Make(k, cr, where.kubeVersion)
	if validate.IsInvalid(err) {
		err = findings{err}
	}
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
