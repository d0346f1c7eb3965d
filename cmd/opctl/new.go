package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/token"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
)

// What a new kind runs unless it is told otherwise: an image that serves under any user, on a port above 1024.
const (
	usualImage = "docker.io/nginxinc/nginx-unprivileged:1.29-alpine"
	usualPort  = 8080
)

func newNewCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "new", Short: "Begin a kind"}
	cmd.AddCommand(newNewKindCommand())
	return cmd
}

type newKindOptions struct {
	kindsDir, group, version, plural, image string
	port                                    int
}

func newNewKindCommand() *cobra.Command {
	var o newKindOptions
	cmd := &cobra.Command{
		Use:   "kind NAME",
		Short: "Write a kind that works, to be changed",
		Long: `Write a kind that works, and that is to be changed into what it should be.

NAME is the kind's name in CamelCase. A custom resource of it runs equal servers, by a Deployment, behind a Service. What users may
write of them is in DIR/schemas/NAME/NAME.cue, what becomes of it in DIR/charts/NAME, the names in lower case; those are the
files to change. The others that are written, such as the CustomResourceDefinition, follow from these two.

No file is overwritten but those that tell of all kinds in DIR: config/rbac/role.yaml and the kustomizations. Nothing is written
unless the operator would serve the kind and it passes its test.`,
		Example: `  # In this folder
  opctl new kind Redis --group data.example.com

  # With an image of one's own, in a folder of one's own
  opctl new kind Teapot --group kitchen.example.com --kinds-dir ./my-kinds --image registry.example.com/teapot:1.0 --port 9000

  # What it does
  opctl test --kinds-dir . Redis
  opctl render --kinds-dir . -f config/samples/data_v1alpha1_redis.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one kind, in CamelCase, such as Redis")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return newKind(cmd, args[0], o)
		},
	}
	cmd.Flags().StringVar(&o.kindsDir, "kinds-dir", ".", "folder to write into, laid out as the repository: DIR/schemas, DIR/charts, DIR/config, DIR/docs")
	cmd.Flags().StringVar(&o.group, "group", "data.example.com", "the kind's API group: a domain of yours")
	cmd.Flags().StringVar(&o.version, "version", "v1alpha1", "the kind's API version")
	cmd.Flags().StringVar(&o.plural, "plural", "", "the kind's plural, such as redises; guessed unless set")
	cmd.Flags().StringVar(&o.image, "image", usualImage, "the image that servers run unless a custom resource says otherwise, with its tag")
	cmd.Flags().IntVar(&o.port, "port", usualPort, "the port on which the image serves TCP")
	if err := cmd.MarkFlagDirname("kinds-dir"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// newKind writes the files of a kind called name, and those that follow from all kinds beside it.
func newKind(cmd *cobra.Command, name string, o newKindOptions) error {
	values, err := o.scaffoldValues(name)
	if err != nil {
		return err
	}
	if err := unusual(values); err != nil {
		return err
	}
	own, err := scaffold(values)
	if err != nil {
		return err
	}
	k, err := tried(own)
	if err != nil {
		return err
	}
	files, err := beside(k, o.kindsDir)
	if err != nil {
		return err
	}
	for file := range own {
		files[filepath.Join(o.kindsDir, file)] = own[file].Data
	}
	written, err := writeFiles(files)
	for _, file := range written {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), file); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return whatNext(cmd.ErrOrStderr(), k, o.kindsDir)
}

// beside returns the files that follow from k and the kinds in dir, by their paths. Names and files of k that somebody has already
// are errors.
func beside(k *kind.Kind, dir string) (map[string][]byte, error) {
	from := dir
	if _, err := os.Stat(filepath.Join(dir, "schemas")); errors.Is(err, fs.ErrNotExist) {
		from = "" // It holds no kind yet.
	}
	library, err := openLibrary(from)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, other := range library.Kinds() {
		if n, o := k.Names, other.Names; n.Group == o.Group && (n.Singular == o.Singular || n.Plural == o.Plural) {
			problems = append(problems, fmt.Errorf("there is the kind %s with the plural %s already: choose another name, --plural or --group", other.GroupKind(), o.Plural))
		}
	}
	present, err := kindsOfFolder(library)
	if err != nil {
		return nil, err
	}
	before, _, err := following(dir, present)
	if err != nil {
		return nil, err
	}
	files, _, err := following(dir, append(present, k))
	if err != nil {
		return nil, err
	}
	for _, file := range append(slices.Sorted(maps.Keys(files)), filepath.Join(dir, "schemas", k.Folder), filepath.Join(dir, "charts", k.Chart.Name())) {
		if _, tellsOfAll := before[file]; tellsOfAll {
			continue
		}
		if _, err := os.Lstat(file); err == nil {
			problems = append(problems, fmt.Errorf("%s is there already, and nothing is overwritten", file))
		}
	}
	return files, errors.Join(problems...)
}

// whatNext says what to do with a kind that was just written.
func whatNext(out io.Writer, k *kind.Kind, dir string) error {
	see := fmt.Sprintf("kubectl apply --server-side -k %s, and the operator with --kinds-dir %s", filepath.Join(dir, "config", "crd"), dir)
	if _, err := os.Stat(filepath.Join(dir, "config", "sandbox")); err == nil {
		see = "make sandbox"
	}
	_, err := fmt.Fprintf(out, `
Change %s and %s into what the kind should be.
Then: opctl generate --kinds-dir %s && opctl test --kinds-dir %[3]s %s
See it run: %s
`, filepath.Join(dir, "schemas", k.Folder), filepath.Join(dir, "charts", k.Chart.Name()), dir, k.Names.Kind, see)
	return err
}

// camelCase is how kinds are written.
var camelCase = regexp.MustCompile("^[A-Z][A-Za-z0-9]*$")

// taken are the names that what is written gives to something else.
var taken = []string{"Kind", "Spec", "Values", "Status", "Report"}

// scaffoldValues returns what the scaffold's templates ask for.
func (o newKindOptions) scaffoldValues(name string) (v scaffoldValues, err error) {
	if !camelCase.MatchString(name) {
		return v, fmt.Errorf("%q is no name of a kind: it begins with a capital letter and holds only letters and digits, such as Redis", name)
	}
	if slices.Contains(taken, name) {
		return v, fmt.Errorf("%q is no name for a kind that this command writes: its files call something else so", name)
	}
	if lower := strings.ToLower(name); token.Lookup(lower) != token.IDENT {
		return v, fmt.Errorf("%q is no name for a kind that this command writes: its package would be %q, which is a word of CUE", name, lower)
	}
	v = scaffoldValues{Kind: name, Name: strings.ToLower(name), Group: o.group, Version: o.version, Plural: o.plural, Port: o.port}
	if v.Plural == "" {
		guess, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: name})
		v.Plural = guess.Resource
	}
	v.Repository, v.Tag, err = splitImage(o.image)
	return v, err
}

// splitImage returns an image's name and its tag.
func splitImage(image string) (repository, tag string, err error) {
	at := strings.LastIndex(image, ":")
	if at <= strings.LastIndex(image, "/") || strings.Contains(image, "@") {
		return "", "", fmt.Errorf("--image %q: name an image with its tag, such as %s", image, usualImage)
	}
	return image[:at], image[at+1:], nil
}
