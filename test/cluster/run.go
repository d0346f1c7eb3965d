package cluster

import (
	"context"
	"errors"
)

// Run starts one more program, such as an operator: it ends before the control plane does, however that ends, and logs to
// logs/<name>.log in the data folder, which [Cluster.LogTail] reads. That it could not be started is told by [Cluster.Wait].
func (c *Cluster) Run(name, path string, args ...string) error {
	return c.guard.start(process{Name: name, Path: path, Args: args, Log: c.log(name)})
}

// Wait blocks until a program of the cluster ends by itself, which it returns as an error with the end of that program's log,
// or until ctx is done, when it returns nil.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case e, ok := <-c.guard.exits:
		if ctx.Err() != nil {
			return nil
		}
		if !ok {
			return errors.New("the guard has ended, and the cluster with it")
		}
		return c.exitError(e)
	case <-ctx.Done():
		return nil
	}
}
