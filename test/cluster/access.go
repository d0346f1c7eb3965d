package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Admin returns a configuration of its own for each caller, with which everything is allowed: a client certificate of the
// group system:masters. It does not limit the rate of requests, as none of this package's configurations does.
func (c *Cluster) Admin() *rest.Config { return rest.CopyConfig(c.admin) }

// ConfigFor returns a configuration with a client certificate that the cluster's authority issues for user in groups. The
// API server adds system:authenticated; RBAC decides what the user may do, which is nothing much at first.
func (c *Cluster) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	client, err := c.ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            url(c.ports.api),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem, CertData: client.certificate, KeyData: client.key},
		QPS:             -1,
	}, nil
}

// ServiceAccount is ConfigFor the user and the groups that a token of the service account stands for. The account itself
// need not exist.
func (c *Cluster) ServiceAccount(namespace, name string) (*rest.Config, error) {
	return c.ConfigFor("system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
}

// Kubeconfig returns cfg as the content of a kubeconfig file whose only context is sandbox. Certificates that cfg names by
// file are embedded; the error tells which file cannot be read.
func Kubeconfig(cfg *rest.Config) ([]byte, error) {
	cfg = rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	const name = "sandbox"
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Token: cfg.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return content, nil
}

// KubeconfigPath returns the file with the admin's kubeconfig, in the data folder.
func (c *Cluster) KubeconfigPath() string { return c.kubeconfig("admin") }

// KubectlPath returns the kubectl of the control plane's version.
func (c *Cluster) KubectlPath() string { return filepath.Join(c.components, kubectl) }

// Kubectl runs kubectl as the admin and returns its standard output; the error carries its standard error. To run it as
// another user, pass --kubeconfig with a file written from [Kubeconfig].
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (stdout string, err error) {
	return c.KubectlInput(ctx, "", args...)
}

// KubectlInput is Kubectl with a standard input, for -f -.
func (c *Cluster) KubectlInput(ctx context.Context, stdin string, args ...string) (stdout string, err error) {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, c.KubectlPath(), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	// The developer's own kubectl preferences and cache stay out of it.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.KubeconfigPath(), "KUBERC=off", "KUBECACHEDIR="+filepath.Join(c.dir, "kubectl-cache"))
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

// WriteKubeconfig writes cfg to the file <name>.kubeconfig in the data folder, readable by this user alone, and returns its path.
func (c *Cluster) WriteKubeconfig(name string, cfg *rest.Config) (path string, err error) {
	content, err := Kubeconfig(cfg)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(c.kubeconfig(name), content, 0o600); err != nil {
		return "", fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return c.kubeconfig(name), nil
}

// kubeconfig returns the path of a user's kubeconfig file.
func (c *Cluster) kubeconfig(user string) string { return filepath.Join(c.dir, user+".kubeconfig") }

// writeKubeconfigs writes those of the admin and the components, each with the identity that RBAC's defaults know it by.
func (c *Cluster) writeKubeconfigs() (err error) {
	if c.admin, err = c.ConfigFor("admin", "system:masters"); err != nil {
		return err
	}
	for file, identity := range map[string][]string{
		"admin":           {"admin", "system:masters"},
		controllerManager: {"system:kube-controller-manager"},
		scheduler:         {"system:kube-scheduler"},
		kwok:              {"kwok-controller", "system:masters"},
	} {
		config, err := c.ConfigFor(identity[0], identity[1:]...)
		if err != nil {
			return err
		}
		if _, err := c.WriteKubeconfig(file, config); err != nil {
			return err
		}
	}
	return nil
}
