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

var defaultPlace = place{namespace: plan.SampleNamespace, kubeVersion: plan.SampleKubeVersion}

type renderOptions struct {
	kindsDir   string
	files      []string
	where      place
	showValues bool
	format     string
}

func newRenderCommand() *cobra.Command {
	o := renderOptions{where: defaultPlace}
	cmd := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Print the objects that the operator would apply for custom resources",
		Long: `Print the objects that the operator would apply for custom resources, in the order in which it applies them.

What comes from the cluster is left out: the owner references and the digest annotation. With -o json the objects are the items
of one List.

With --show-values it is the chart's values that are printed instead, computed from the spec and its defaults, so that Helm's
own tools can be used on the chart. They are those of one custom resource.`,
		Example: `  # The objects of a custom resource
  opctl render -f my-resource.yaml

  # Of one that is in a cluster, with a kind that is being worked on
  kubectl get KIND NAME -o yaml | opctl render --kinds-dir ./my-kinds -f -

  # Helm's view of the chart
  helm template NAME charts/memcached -f <(opctl render --show-values -f config/samples/cache_v1alpha1_memcached.yaml)`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kinds, err := loadKinds(o.kindsDir)
			if err != nil {
				return err
			}
			if o.showValues {
				return showValues(cmd, kinds, o)
			}
			return showObjects(cmd, kinds, o)
		},
	}
	addFilesFlag(cmd, &o.files)
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag is defined above
	}
	addKindsDirFlag(cmd, &o.kindsDir)
	addPlaceFlags(cmd, &o.where)
	cmd.Flags().BoolVar(&o.showValues, "show-values", false, "print the chart's values instead of the objects")
	addOutputFlag(cmd, &o.format, formatYAML, formatJSON)
	return cmd
}

// showObjects prints what custom resources render: as YAML documents, or as one List.
func showObjects(cmd *cobra.Command, kinds []*kind.Kind, o renderOptions) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	err := renderFiles(kinds, cmd.InOrStdin(), o.files, o.where, func(_ *kind.Kind, m *render.Manifest) error {
		if o.format == formatJSON {
			for _, object := range m.Objects {
				list.Items = append(list.Items, *object)
			}
			return nil
		}
		text, err := m.YAML()
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(text)
		return err
	})
	if err != nil || o.format == formatYAML {
		return err
	}
	return printAs(cmd.OutOrStdout(), o.format, list.UnstructuredContent())
}

// showValues prints the values of the one custom resource in files.
func showValues(cmd *cobra.Command, kinds []*kind.Kind, o renderOptions) error {
	var all []kind.Values
	err := readFiles(cmd.InOrStdin(), o.files, func(cr *unstructured.Unstructured) error {
		k, err := kindFor(kinds, cr, o.where)
		if err != nil {
			return err
		}
		values, err := validate.Spec(k, cr.GetName(), cr.Object["spec"])
		all = append(all, values)
		return asFindings(err)
	})
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return fmt.Errorf("--show-values is for one custom resource, the files hold %d", len(all))
	}
	return printAs(cmd.OutOrStdout(), o.format, all[0])
}

func addPlaceFlags(cmd *cobra.Command, where *place) {
	cmd.Flags().StringVarP(&where.namespace, "namespace", "n", where.namespace, "namespace of custom resources that name none")
	cmd.Flags().StringVar(&where.kubeVersion, "kube-version", where.kubeVersion, "Kubernetes version that charts see")
}

func addFilesFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVarP(files, "filename", "f", nil, "file with custom resources, - for standard input; may be repeated")
	if err := cmd.MarkFlagFilename("filename", fileExtensions...); err != nil {
		panic(err) // the flag is defined above
	}
}

func addKindsDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "kinds-dir", "", "folder with schemas/KIND and charts/CHART of kinds beside, or in place of, those that are built in")
	if err := cmd.MarkFlagDirname("kinds-dir"); err != nil {
		panic(err) // the flag is defined above
	}
}

// selectKinds returns those of the kinds that names ask for, as kind.Select reads them.
func selectKinds(dir string, names []string) ([]*kind.Kind, error) {
	kinds, err := loadKinds(dir)
	if err != nil {
		return nil, err
	}
	return kind.Select(kinds, names)
}

// loadKinds returns the built-in kinds and those in dir.
func loadKinds(dir string) ([]*kind.Kind, error) {
	library, err := openLibrary(dir)
	if err != nil {
		return nil, err
	}
	return library.Kinds(), nil
}

// openLibrary opens the built-in kinds and those in dir. One that does not load is an error, whether or not it is needed: who
// names a folder works on it.
func openLibrary(dir string) (*kind.Library, error) {
	library, err := kind.OpenLibrary(kind.LibraryOptions{Dir: dir})
	if err != nil {
		return nil, err
	}
	if broken := library.Broken(); len(broken) > 0 {
		return nil, errors.Join(slices.SortedFunc(maps.Values(broken), func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })...)
	}
	return library, nil
}

// renderFiles calls each with every custom resource in files, rendered.
func renderFiles(kinds []*kind.Kind, stdin io.Reader, files []string, where place, each func(*kind.Kind, *render.Manifest) error) error {
	return readFiles(stdin, files, func(cr *unstructured.Unstructured) error {
		k, manifest, err := renderOne(kinds, cr, where)
		if err != nil {
			return err
		}
		return each(k, manifest)
	})
}

func renderOne(kinds []*kind.Kind, cr *unstructured.Unstructured, where place) (*kind.Kind, *render.Manifest, error) {
	k, err := kindFor(kinds, cr, where)
	if err != nil {
		return nil, nil, err
	}
	manifest, _, err := plan.Make(k, cr, where.kubeVersion)
	return k, manifest, asFindings(err)
}

// kindFor returns the kind of cr, which it puts into a namespace if it is in none but must be.
func kindFor(kinds []*kind.Kind, cr *unstructured.Unstructured, where place) (*kind.Kind, error) {
	k := kind.Find(kinds, cr.GroupVersionKind())
	if k == nil {
		return nil, findings{fmt.Errorf("no such kind in %q: known are %s", cr.GetAPIVersion(), kind.List(kinds))}
	}
	switch {
	case k.Scope == kind.ScopeCluster && cr.GetNamespace() != "":
		return nil, findings{fmt.Errorf("is in namespace %q, but its kind has the scope Cluster", cr.GetNamespace())}
	case k.Scope == kind.ScopeNamespaced && cr.GetNamespace() == "":
		cr.SetNamespace(where.namespace)
	}
	return k, nil
}

// asFindings makes an error findings if it is the custom resource's fault.
func asFindings(err error) error {
	if validate.IsInvalid(err) {
		return findings{err}
	}
	return err
}

// readFiles calls each with every object in files, and says which one its errors are about.
func readFiles(stdin io.Reader, files []string, each func(*unstructured.Unstructured) error) error {
	for _, file := range files {
		resources, err := readFile(stdin, file)
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		for _, cr := range resources {
			if err := each(cr); err != nil {
				return fmt.Errorf("%s: %s: %w", file, kind.Describe(cr), err)
			}
		}
	}
	return nil
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
