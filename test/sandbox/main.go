// Command sandbox runs the operator out of this checkout on a real control plane with simulated nodes, all on this machine:
// CustomResourceDefinitions installed, samples applied, and a live table of the custom resources. It ends, with all it
// started, on Ctrl-C or SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/test/cluster"
)

// The operator's ServiceAccount in config/default, whose rights it has here, too.
const (
	operatorNamespace = "memcached-operator-system"
	operatorAccount   = "memcached-operator-controller-manager"
)

// readyTimeout is how long the samples may take until the sandbox says that something is wrong. It goes on all the same.
const readyTimeout = 2 * time.Minute

func main() {
	dir := flag.String("dir", ".sandbox", "folder of the sandbox")
	nodes := flag.Int("nodes", 3, "number of simulated nodes")
	manager := flag.String("manager", "bin/manager", "the operator's program")
	prepare := flag.Bool("prepare", false, "only build the control plane")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, *dir, *nodes, *manager, *prepare)
	asked := ctx.Err() != nil // to end: what fails then is no error
	stop()
	if err != nil && !asked {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, nodes int, manager string, prepare bool) (err error) {
	if _, err := cluster.Binaries(ctx, os.Stderr); err != nil || prepare {
		return err
	}
	library, err := kind.OpenLibrary(kind.LibraryOptions{Dir: "."})
	if err != nil {
		return err
	}
	folder, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer folder.close()

	version, err := cluster.Version()
	if err != nil {
		return err
	}
	step := newSteps(os.Stdout)
	c, err := cluster.Start(ctx, cluster.Options{Dir: folder.path("cluster"), Nodes: nodes, CRDs: []string{"config/crd/bases"}, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() {
		fmt.Println("\nStopping")
		err = errors.Join(err, c.Stop())
	}()
	if err := folder.publish(c); err != nil {
		return err
	}
	step.done("Started Kubernetes %s with %d simulated nodes and the CustomResourceDefinitions", version, nodes)

	if _, err := c.Kubectl(ctx, "apply", "-k", "config/sandbox"); err != nil {
		return err
	}
	step.done("Granted the operator its rights")

	if err := startOperator(c, manager); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "apply", "-k", "config/samples"); err != nil {
		return err
	}
	step.done("Started the operator and applied the samples")

	ended := make(chan error, 1)
	go func() { ended <- c.Wait(ctx) }()
	table, err := newTable(c.Admin(), library, os.Stdout)
	if err != nil {
		return err
	}
	// It ends with ctx. What the operator makes of a change is for the operator to tell.
	go func() { _ = library.Watch(ctx, func(kind.Change) {}) }()
	return show(ctx, table, folder, ended)
}

// startOperator runs the operator as its ServiceAccount, so that it can do here what it could do in a cluster and no more. It
// follows the checkout's own schemas and charts.
func startOperator(c *cluster.Cluster, manager string) error {
	config, err := c.ServiceAccount(operatorNamespace, operatorAccount)
	if err != nil {
		return err
	}
	file, err := c.WriteKubeconfig("operator", config)
	if err != nil {
		return err
	}
	checkout, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	program, err := filepath.Abs(manager)
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("finding the operator: %w: run make build", err)
	}
	return c.Run("operator", program, "--kubeconfig", file, "--kinds-dir", checkout,
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--zap-devel")
}

// show keeps the table up to date until ctx ends or a program does.
func show(ctx context.Context, table *table, folder *folder, ended <-chan error) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(readyTimeout)
	for told, warned := false, false; ; {
		ready, err := table.refresh(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case ready && !told:
			told = true
			table.print(folder.whatNext())
		case !ready && !told && !warned && time.Now().After(deadline):
			warned = true
			table.print(fmt.Sprintf("\nThe samples are not ready yet. The operator's log is %s\n", folder.path("cluster/logs/operator.log")))
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-tick.C:
		}
	}
}
