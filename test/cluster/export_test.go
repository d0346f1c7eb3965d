package cluster

// WithPorts has each attempt to start use the next of the given ports (kube-apiserver, etcd, etcd's peers), and free ones
// when there are no more. 0 stands for a free port.
func (o Options) WithPorts(given ...[3]int) Options {
	o.ports = func() (ports, error) {
		chosen, err := freePorts()
		if len(given) == 0 {
			return chosen, err
		}
		for i, port := range []*int{&chosen.api, &chosen.etcd, &chosen.peer} {
			if given[0][i] != 0 {
				*port = given[0][i]
			}
		}
		given = given[1:]
		return chosen, err
	}
	return o
}

// Ports returns those of the cluster, as WithPorts takes them.
func (c *Cluster) Ports() [3]int { return [3]int{c.ports.api, c.ports.etcd, c.ports.peer} }
