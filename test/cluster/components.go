package cluster

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
)

// The names of the programs, which are also those of their logs.
const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kubectl           = "kubectl"
	kwok              = "kwok"
	guardName         = "guard"
)

// stagesFile holds kwok's stages: what becomes of a simulated node, and of a pod on it.
const stagesFile = "stages.yaml"

// fakeNode is the annotation of nodes that kwok plays the kubelet for.
const fakeNode, fakeNodeValue = "kwok.x-k8s.io/node", "fake"

// serviceCIDR and podCIDR are disjoint, for a reader's sake: no packet is ever routed.
const serviceCIDR, podCIDR = "10.0.0.0/16", "10.1.0.0/16"

// auditPolicy logs each request once, when its response is complete.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
`

// ports are those that a cluster listens on, all of them on 127.0.0.1.
type ports struct{ api, etcd, peer int }

// freePorts asks the kernel for ports. All listeners are open at once, so that it gives none twice; another program may
// still take one before the cluster does, which Start handles.
func freePorts() (ports, error) {
	var free [3]int
	for i := range free {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return ports{}, fmt.Errorf("finding a free port: %w", err)
		}
		defer func() { _ = listener.Close() }()
		free[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports{api: free[0], etcd: free[1], peer: free[2]}, nil
}

func url(port int) string { return "https://127.0.0.1:" + strconv.Itoa(port) }

func (c *Cluster) etcdArgs() []string {
	peer := url(c.ports.peer)
	return []string{
		"--name=etcd", "--data-dir=" + filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn", "--enable-grpc-gateway=false",
		"--listen-client-urls=" + url(c.ports.etcd), "--advertise-client-urls=" + url(c.ports.etcd),
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=etcd=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + c.pki("etcd-ca.crt"), "--cert-file=" + c.pki("etcd.crt"), "--key-file=" + c.pki("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + c.pki("etcd-ca.crt"), "--peer-cert-file=" + c.pki("etcd.crt"), "--peer-key-file=" + c.pki("etcd.key"),
	}
}

func (c *Cluster) apiserverArgs() []string {
	args := []string{
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + strconv.Itoa(c.ports.api),
		"--tls-cert-file=" + c.pki("apiserver.crt"), "--tls-private-key-file=" + c.pki("apiserver.key"), "--client-ca-file=" + c.pki("ca.crt"),
		"--etcd-servers=" + url(c.ports.etcd), "--etcd-cafile=" + c.pki("etcd-ca.crt"),
		"--etcd-certfile=" + c.pki("etcd-client.crt"), "--etcd-keyfile=" + c.pki("etcd-client.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki("tokens.key"), "--service-account-signing-key-file=" + c.pki("tokens.key"),
		"--authorization-mode=RBAC", "--allow-privileged=true", "--service-cluster-ip-range=" + serviceCIDR,
		"--endpoint-reconciler-type=none", // 127.0.0.1 is no valid endpoint
		"--profiling=false",
	}
	if c.options.Nodes == 0 {
		// Without controllers there are no service accounts, and no pod could be created.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if c.options.Audit {
		args = append(args, "--audit-policy-file="+filepath.Join(c.dir, "audit-policy.yaml"), "--audit-log-path="+c.auditLog(), "--audit-log-maxsize=0")
	}
	return args
}

func (c *Cluster) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.kubeconfig(controllerManager), "--secure-port=0", "--leader-elect=false", "--profiling=false",
		"--use-service-account-credentials", "--root-ca-file=" + c.pki("ca.crt"), "--service-account-private-key-file=" + c.pki("tokens.key"),
		"--kube-api-qps=500", "--kube-api-burst=1000", // the defaults of 20 and 30 hold up the garbage collector
	}
}

func (c *Cluster) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + c.kubeconfig(scheduler), "--secure-port=0", "--leader-elect=false", "--profiling=false",
		"--kube-api-qps=500", "--kube-api-burst=1000",
	}
}

func (c *Cluster) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + c.kubeconfig(kwok), "--config=" + filepath.Join(c.components, stagesFile),
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=" + fakeNode + "=" + fakeNodeValue,
		"--cidr=" + podCIDR, "--node-ip=127.0.0.1",
		// Without leases the controller-manager takes the nodes for dead after fifty seconds, and their pods for not ready.
		"--node-lease-duration-seconds=40",
	}
}
