package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/ownership"
	"github.com/example/memcached-operator/reconciler/plan"
)

func newDiffCommand() *cobra.Command {
	var files []string
	var kindsDir string
	var flags clusterFlags
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show what custom resources would change in the cluster",
		Long: `Show what would change in the cluster if custom resources were applied: in themselves, and in the objects that the
operator would then create, update and prune.

The API server does each apply as a dry run, in the operator's name, so that its defaults, admission and field managers have
their say, and nothing is written. Fields that the kind leaves to others, such as the replicas of an autoscaled Deployment, are
no difference. The values of Secrets are not shown. It takes the rights to get and to patch the objects, and to create those
that are not there yet.

Exit code 0 says that nothing would change, 1 that something would, 2 that this could not be found out.`,
		Example: `  # What would this change?
  opctl diff -f my-cache.yaml

  # Has anybody changed what the operator made? (It will be put back.)
  kubectl get memcached my-cache -o yaml | opctl diff -f -

  # What would a new edition of a kind change?
  kubectl get redises -A -o yaml | opctl diff --kinds-dir ./my-kinds -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kinds, err := loadKinds(kindsDir)
			if err != nil {
				return err
			}
			c, err := flags.open(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			resources, err := readResources(kinds, cmd.InOrStdin(), files, c.namespace)
			if err != nil {
				return err
			}
			version, err := c.kubeVersion()
			if err != nil {
				return err
			}
			d := &differ{cluster: c, kubeVersion: version, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), color: hasColor(cmd.OutOrStdout())}
			var failed []error
			for _, r := range resources {
				if err := d.resource(cmd.Context(), r.kind, r.Unstructured); err != nil {
					failed = append(failed, fmt.Errorf("%s: %s: %w", r.file, kind.Describe(r.Unstructured), err))
				}
			}
			switch {
			case len(failed) > 0:
				return errors.Join(failed...)
			case d.found:
				return findings{}
			}
			return nil
		},
	}
	addFilesFlag(cmd, &files)
	if err := cmd.MarkFlagRequired("filename"); err != nil {
		panic(err) // the flag is defined above
	}
	addKindsDirFlag(cmd, &kindsDir)
	flags.add(cmd)
	return cmd
}

// differ shows what would change, object by object.
type differ struct {
	cluster     *cluster
	kubeVersion string
	out, notes  io.Writer
	color       bool
	found       bool // something would change
}

// resource shows what applying cr would change: cr itself, its objects in the order in which they are applied, and those that
// would go. It goes on after an object that fails.
func (d *differ) resource(ctx context.Context, k *kind.Kind, cr *unstructured.Unstructured) error {
	live, err := d.cluster.get(ctx, k.GVK(), cr.GetNamespace(), cr.GetName())
	if notInstalled(err) {
		return fmt.Errorf("the cluster does not know %s %s: opctl generate crd %s prints its definition", cr.GetAPIVersion(), cr.GetKind(), cr.GetKind())
	} else if err != nil {
		return err
	}
	wanted, err := d.cluster.dryRunResource(ctx, live, cr)
	if apierrors.IsInvalid(err) { // the kind has better words for it than its definition
		if _, _, problem := plan.Make(k, cr, d.kubeVersion); problem != nil {
			return problem
		}
	}
	if err != nil {
		return err
	}
	// The API server makes up a UID for what it does not create.
	unknown := ""
	if live == nil {
		unknown = string(wanted.GetUID())
	}
	if err := d.show(live, wanted, unknown); err != nil {
		return err
	}
	owner := ownership.Owner{Unstructured: wanted, Kind: k}
	switch {
	case wanted.GetDeletionTimestamp() != nil:
		d.note("%s is being deleted: nothing is applied", kind.Describe(cr))
		return nil
	case wanted.GetAnnotations()[ownership.PausedAnnotation] == "true":
		d.note("%s is paused: nothing is applied until the annotation %s goes", kind.Describe(cr), ownership.PausedAnnotation)
	}
	manifest, _, err := plan.Make(k, wanted, d.kubeVersion)
	if err != nil {
		return err
	}
	run := &dryRun{cluster: d.cluster, owner: owner, objects: manifest.Objects, note: d.note}
	var failed []error
	var wants []*unstructured.Unstructured
	for _, o := range manifest.Objects {
		o, objects, err := run.locate(o)
		if o == nil {
			continue
		}
		wants = append(wants, o)
		if err == nil {
			err = d.object(ctx, run, objects, o, unknown)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", kind.Describe(o), err))
		}
	}
	for _, e := range slices.Backward(statusOf(live).Inventory.Without(ownership.NewInventory(wants))) {
		pruned, err := run.prune(ctx, e)
		if err == nil && pruned != nil {
			err = d.show(pruned, nil, unknown)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", e, err))
		}
	}
	return errors.Join(failed...)
}

func (d *differ) object(ctx context.Context, run *dryRun, objects dynamic.ResourceInterface, o *unstructured.Unstructured, unknown string) error {
	before, after, err := run.apply(ctx, objects, o)
	if err != nil {
		return err
	}
	return d.show(before, after, unknown)
}

// note tells what no difference shows.
func (d *differ) note(format string, args ...any) {
	_, _ = fmt.Fprintf(d.notes, "# "+format+"\n", args...) // a note that does not arrive is no reason to stop
}

// show prints the difference between an object as it is and as it would be, either of which may be nil. unknown is the UID that
// the custom resource has not really, "" if it has one.
func (d *differ) show(live, wanted *unstructured.Unstructured, unknown string) error {
	before, after, err := texts(live, wanted, unknown)
	if err != nil {
		return err
	}
	o := cmp.Or(live, wanted)
	name := strings.ReplaceAll(strings.Join(slices.DeleteFunc([]string{o.GroupVersionKind().Group, o.GroupVersionKind().Version, o.GetKind(), o.GetNamespace(), o.GetName()},
		func(s string) bool { return s == "" }), "."), "/", "-")
	from, to := "live/"+name, "wanted/"+name
	if live == nil {
		from = os.DevNull
	}
	if wanted == nil {
		to = os.DevNull
	}
	text := diff.Diff(from, before, to, after)
	if text == nil {
		return nil
	}
	d.found = true
	for n, line := range slices.Collect(strings.Lines(string(text))) {
		if n > 0 { // the first line repeats the next two
			if _, err := io.WriteString(d.out, colored(line, d.color)); err != nil {
				return err
			}
		}
	}
	return nil
}

// colored returns a line of a difference in the colors that git gives it.
func colored(line string, color bool) string {
	if !color {
		return line
	}
	code := ""
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		code = "1"
	case strings.HasPrefix(line, "-"):
		code = "31"
	case strings.HasPrefix(line, "+"):
		code = "32"
	case strings.HasPrefix(line, "@"):
		code = "36"
	default:
		return line
	}
	return "\x1b[" + code + "m" + strings.TrimSuffix(line, "\n") + "\x1b[0m\n"
}

// hasColor tells whether out is a terminal whose user has not declined colors, see https://no-color.org.
func hasColor(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
