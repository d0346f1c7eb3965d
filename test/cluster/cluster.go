package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options say which cluster to start. The zero value is an API server without controllers, in a temporary folder.
type Options struct {
	// Dir is the data folder, with certificates, kubeconfigs and logs. It is created if need be and kept after Stop; only
	// one cluster at a time may use it, and a new one begins empty. "" is a temporary folder, which is removed.
	Dir string
	// Nodes is the number of simulated nodes. 0 means the API only: etcd and kube-apiserver, and no controllers, scheduler
	// or kwok; pods can be created there, but nothing happens to them, and the ClusterRoles admin, edit and view, which a
	// controller aggregates, are empty.
	Nodes int
	// CRDs are files or folders of CustomResourceDefinitions, installed before the controllers start: the garbage collector
	// takes up to 40 seconds to see kinds that are installed later, and collects nothing owned by them until then.
	CRDs []string
	// Audit has the API server log each request for [Cluster.AuditEvents].
	Audit bool
	// Progress is told about what takes long: the first build of the binaries. May be nil.
	Progress io.Writer

	ports func() (ports, error) // for tests; nil is freePorts
}

// Cluster is a running control plane. Its methods may be called concurrently.
type Cluster struct {
	dir        string
	components string // folder of their programs
	options    Options
	ports      ports
	ca, etcdCA *authority
	admin      *rest.Config
	guard      *guard
	stop       func() error
}

const (
	// startTimeout is for the start alone, without the build of the binaries. It takes seconds on an idle machine.
	startTimeout = 3 * time.Minute
	// pollInterval is how often Start looks whether a component is ready.
	pollInterval = 50 * time.Millisecond
	// attempts is how often a start is tried when another program takes a port first.
	attempts = 3
)

// errPortTaken means that another program listens on a port that was free when the kernel was asked.
var errPortTaken = errors.New("address already in use")

// Start builds the binaries if need be (see [Binaries]) and starts a cluster. It returns when the API is ready, the
// default namespace exists, the CRDs are served and, with nodes, pods of the default service account can be scheduled on
// all of them.
// Cancelling ctx ends the start, not a cluster that has started. The error names the component that did not become ready
// and carries the end of its log; nothing is left running then.
//
// For a cluster without nodes, etcd and kube-apiserver in the folder KUBEBUILDER_ASSETS take the place of those built here;
// [Cluster.Kubectl] and Options.CRDs then need a kubectl there.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	find := apiBinaries
	if o.Nodes > 0 {
		find = func(ctx context.Context, progress io.Writer) (components, guard string, err error) {
			dir, err := Binaries(ctx, progress)
			return dir, dir, err
		}
	}
	components, guard, err := find(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		c := &Cluster{options: o, components: components}
		err := c.start(ctx, filepath.Join(guard, guardName))
		if err == nil {
			return c, nil
		}
		if attempt == attempts || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("starting a cluster: %w", err)
		}
	}
}

// Stop ends all processes and returns when they are gone and a temporary data folder is removed, which takes a second or
// two. The error names the components that had ended before. Further calls return the same.
func (c *Cluster) Stop() error { return c.stop() }

// Dir returns the data folder, an absolute path.
func (c *Cluster) Dir() string { return c.dir }

// LogTail returns the last lines of a component's log, such as kube-apiserver's; "" if it has none.
func (c *Cluster) LogTail(component string) string {
	content, err := os.ReadFile(c.log(component))
	if err != nil {
		return ""
	}
	return lastLines(content)
}

// start brings everything up, and everything down again if that fails.
func (c *Cluster) start(ctx context.Context, guard string) (err error) {
	if err := c.prepareFolder(); err != nil {
		return err
	}
	if err := c.startGuard(guard); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if err := c.writeFiles(); err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	if err := c.startAPI(ctx, clients); err != nil {
		return err
	}
	if err := c.installCRDs(ctx); err != nil {
		return err
	}
	if c.options.Nodes == 0 {
		return nil
	}
	return c.startNodes(ctx, clients)
}

// prepareFolder creates the data folder, without the data of a cluster that used it before.
func (c *Cluster) prepareFolder() (err error) {
	if c.options.Dir == "" {
		c.dir, err = os.MkdirTemp("", "cluster-")
	} else {
		c.dir, err = filepath.Abs(c.options.Dir)
	}
	if err != nil {
		return fmt.Errorf("creating the data folder: %w", err)
	}
	for _, stale := range []string{"etcd", "audit.log", "logs"} {
		if err := os.RemoveAll(filepath.Join(c.dir, stale)); err != nil {
			return fmt.Errorf("emptying the data folder: %w", err)
		}
	}
	for _, folder := range []string{"pki", "logs"} {
		if err := os.MkdirAll(filepath.Join(c.dir, folder), 0o700); err != nil {
			return fmt.Errorf("creating the data folder: %w", err)
		}
	}
	return nil
}

// startGuard comes before all that could leave something behind.
func (c *Cluster) startGuard(path string) (err error) {
	var args []string
	remove := func() error { return nil }
	if c.options.Dir == "" {
		args = []string{"-remove", c.dir}
		remove = func() error { return os.RemoveAll(c.dir) } // the guard has done so, unless it was killed
	}
	home := "KWOK_WORKDIR=" + c.dir // else kwok reads the developer's ~/.kwok
	if c.guard, err = startGuard(path, c.log(guardName), []string{home}, args...); err != nil {
		return errors.Join(err, remove())
	}
	c.stop = sync.OnceValue(func() error { return errors.Join(c.guard.stop(), remove()) })
	return nil
}

// writeFiles chooses the ports and writes what the components read.
func (c *Cluster) writeFiles() (err error) {
	choose := c.options.ports
	if choose == nil {
		choose = freePorts
	}
	if c.ports, err = choose(); err != nil {
		return err
	}
	if c.ca, err = newAuthority("sandbox"); err != nil {
		return err
	}
	// etcd has an authority of its own: it obeys any client certificate, and users have the other one's.
	if c.etcdCA, err = newAuthority("sandbox-etcd"); err != nil {
		return err
	}
	if err := c.writePKI(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dir, "audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	return c.writeKubeconfigs()
}

// startAPI starts etcd and kube-apiserver, which waits for etcd itself.
func (c *Cluster) startAPI(ctx context.Context, clients kubernetes.Interface) error {
	if err := c.run(etcd, c.etcdArgs()); err != nil {
		return err
	}
	if err := c.run(apiserver, c.apiserverArgs()); err != nil {
		return err
	}
	err := c.await(ctx, apiserver, func(ctx context.Context) error {
		return clients.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	if err != nil {
		return err
	}
	return c.await(ctx, apiserver, func(ctx context.Context) error {
		_, err := clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// installCRDs returns when objects of the new kinds can be created.
func (c *Cluster) installCRDs(ctx context.Context) error {
	if len(c.options.CRDs) == 0 {
		return nil
	}
	files := strings.Join(c.options.CRDs, ",")
	// As make install does, whose later changes are then no conflict.
	if _, err := c.Kubectl(ctx, "apply", "--server-side", "-f", files); err != nil {
		return fmt.Errorf("installing CRDs: %w", err)
	}
	if _, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "-f", files); err != nil {
		return fmt.Errorf("installing CRDs: %w", err)
	}
	return nil
}

// startNodes starts the components that make pods run, and creates the nodes for them.
func (c *Cluster) startNodes(ctx context.Context, clients kubernetes.Interface) error {
	if err := c.run(controllerManager, c.controllerManagerArgs()); err != nil {
		return err
	}
	if err := c.run(scheduler, c.schedulerArgs()); err != nil {
		return err
	}
	if err := c.run(kwok, c.kwokArgs()); err != nil {
		return err
	}
	if err := createNodes(ctx, clients, c.options.Nodes); err != nil {
		return err
	}
	err := c.await(ctx, controllerManager, func(ctx context.Context) error {
		_, err := clients.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return c.await(ctx, kwok, func(ctx context.Context) error { return nodesTakePods(ctx, clients, c.options.Nodes) })
}

func (c *Cluster) run(component string, args []string) error {
	return c.guard.start(process{Name: component, Path: filepath.Join(c.components, component), Args: args, Log: c.log(component)})
}

// await polls until ready returns nil. The error is about component, unless another one has ended.
func (c *Cluster) await(ctx context.Context, component string, ready func(context.Context) error) error {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w; its log ends:\n%s", component, context.Cause(ctx), err, c.LogTail(component))
		case e, ok := <-c.guard.exits:
			if !ok {
				return fmt.Errorf("waiting for %s: the guard has ended:\n%s", component, c.LogTail(guardName))
			}
			return c.exitError(e)
		case <-poll.C:
		}
	}
}

func (c *Cluster) exitError(e exit) error {
	tail := c.LogTail(e.Name)
	if strings.Contains(tail, errPortTaken.Error()) {
		return fmt.Errorf("%s: %w; its log ends:\n%s", e.Name, errPortTaken, tail)
	}
	return fmt.Errorf("%s has ended: %s; its log ends:\n%s", e.Name, e.Reason, tail)
}

func (c *Cluster) log(component string) string { return filepath.Join(c.dir, "logs", component+".log") }

// lastLines returns the end of a log: at most twenty lines.
func lastLines(log []byte) string {
	lines := bytes.Split(bytes.TrimRight(log, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}
