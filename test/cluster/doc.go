// Package cluster runs a real Kubernetes control plane on the loopback interface, for tests and for a sandbox: etcd and
// kube-apiserver, and with simulated nodes also kube-controller-manager, kube-scheduler and kwok, which plays the kubelet.
// No container engine and no download of binaries is needed: [Binaries] compiles them once, from Go modules.
//
//	func TestPodsBecomeReady(t *testing.T) {
//		c := cluster.StartForTest(t, cluster.Options{Nodes: 3})
//		clients := kubernetes.NewForConfigOrDie(c.Admin())
//		// … create a Deployment with clients, or:
//		out, err := c.Kubectl(t.Context(), "create", "deployment", "web", "--image=web", "--replicas=3")
//		// … its pods are scheduled and become Ready, though no container runs.
//
//		operator, err := c.ServiceAccount("memcached-system", "operator") // may do what RBAC grants it
//	}
//
// Every cluster starts empty, on ports of its own, with certificate authorities of its own. Each connection is TLS with
// verified certificates, etcd's included, and requests to the API pass RBAC. Start returns when the cluster can be used.
//
// Nothing outlives the program. The components are children of a small supervisor:
//
//	program ──pipe──▶ guard ──▶ etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok
//
// The guard stops them and removes a temporary data folder when Stop is called, and also when the program ends, panics or is
// killed: its end of the pipe closes then.
//
// It is no cluster to keep data in: etcd does not sync to disk. It runs on Linux and macOS.
package cluster
