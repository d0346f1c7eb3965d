package cluster

// WithPorts has each attempt to start use the next of the given ports (kube-apiserver, etcd, etcd's peers), and free ones
// when there are no more.
func (o Options) WithPorts(given ...[3]int) Options {
	o.ports = func() (ports, error) {
		if len(given) == 0 {
			return freePorts()
		}
		next := given[0]
		given = given[1:]
		return ports{api: next[0], etcd: next[1], peer: next[2]}, nil
	}
	return o
}

// Ports returns those of the cluster, as WithPorts takes them.
func (c *Cluster) Ports() [3]int { return [3]int{c.ports.api, c.ports.etcd, c.ports.peer} }
