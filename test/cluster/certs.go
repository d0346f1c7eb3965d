package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is how long certificates last: longer than any sandbox runs.
const validity = 365 * 24 * time.Hour

// authority signs certificates. Its private key stays in memory.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

// pair is a certificate and its private key, both as PEM.
type pair struct{ certificate, key []byte }

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating the authority %s: %w", name, err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, fmt.Errorf("creating the authority %s: %w", name, err)
	}
	return &authority{certificate: certificate, key: key, pem: encode(certificate.Raw)}, nil
}

// client returns a certificate for a client that Kubernetes knows as user in groups.
func (a *authority) client(user string, groups ...string) (pair, error) {
	return a.issue(x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server returns a certificate for a server on the loopback interface that may have more names. It serves as a client's as
// well: etcd's members are each other's clients.
func (a *authority) server(name string, names ...string) (pair, error) {
	return a.issue(x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    append([]string{"localhost"}, names...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// issue completes the template and signs it for a new key.
func (a *authority) issue(template x509.Certificate) (issued pair, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("issuing a certificate for %s: %w", template.Subject.CommonName, err)
		}
	}()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.NotBefore, template.NotAfter = a.certificate.NotBefore, time.Now().Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	return pair{certificate: encode(der), key: keyPEM}, err
}

func encode(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate})
}

// writePKI writes what the components read into the folder pki: the authorities' certificates, the servers' pairs,
// kube-apiserver's pair as etcd's client, and the key that signs service account tokens.
func (c *Cluster) writePKI() error {
	api, err := c.ca.server(apiserver, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	store, err := c.etcdCA.server(etcd)
	if err != nil {
		return err
	}
	client, err := c.etcdCA.client(apiserver)
	if err != nil {
		return err
	}
	tokens, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("creating the key of service account tokens: %w", err)
	}
	for name, content := range map[string][]byte{
		"ca.crt":          c.ca.pem,
		"etcd-ca.crt":     c.etcdCA.pem,
		"apiserver.crt":   api.certificate,
		"apiserver.key":   api.key,
		"etcd.crt":        store.certificate,
		"etcd.key":        store.key,
		"etcd-client.crt": client.certificate,
		"etcd-client.key": client.key,
		"tokens.key":      tokens,
	} {
		if err := os.WriteFile(c.pki(name), content, 0o600); err != nil {
			return fmt.Errorf("writing certificates: %w", err)
		}
	}
	return nil
}

func (c *Cluster) pki(name string) string { return filepath.Join(c.dir, "pki", name) }
