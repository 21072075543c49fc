package raftnode

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/rollcall-io/rollcall/raftnode/mux"
)

// authority signs certificates for a test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	template := certTemplate(name)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert, a.key = a.sign(template, nil)
	a.pool.AddCert(a.cert)
	return a
}

func certTemplate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

// sign signs with the authority's key, or lets the certificate sign itself.
func (a *authority) sign(template, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// config is the TLS of a node with a certificate for these names and addresses.
func (a *authority) config(change func(*x509.Certificate)) *tls.Config {
	template := certTemplate("node")
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if change != nil {
		change(template)
	}
	cert, key := a.sign(template, a.cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: a.pool, ClientCAs: a.pool,
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
	}
}

// safeBuffer is a log that several goroutines write.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestTLS_ClusterFormsForwardsAndReplicates(t *testing.T) {
	ca := newAuthority(t, "cluster")
	c := startCluster(t, 3, func(_ int, o *Options) { o.Secret, o.TLS = nil, ca.config(nil) })
	f := c.nodes[c.follower()]
	for i := range 20 {
		if _, err := f.Propose(context.Background(), instance(i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.nodes {
		eventually(t, 10*time.Second, "all writes", func() error {
			if n.fsm.count() != 20 {
				return errors.New("missing")
			}
			return nil
		})
	}
	c.stop(c.leader())
	if _, err := c.up()[0].Propose(context.Background(), instance(20)); err != nil {
		t.Fatalf("after the leader left: %v", err)
	}
}

// TestTLS_StrangersAreRefusedAndNamed dials a node as others would who must not pass.
// Both the dialling side's error and the node's log say why.
func TestTLS_StrangersAreRefusedAndNamed(t *testing.T) {
	ca, other := newAuthority(t, "cluster"), newAuthority(t, "elsewhere")
	fake := other.config(nil)
	fake.RootCAs = ca.pool // it believes the node, the node must not believe it
	nameless := ca.config(nil)
	nameless.Certificates = nil
	for _, row := range []struct {
		name         string
		tls          *tls.Config
		error, inLog string
	}{
		{"another CA, believing this one", fake, "tls: ", "unknown authority"},
		{"another CA on both sides", other.config(nil), "unknown authority", "bad certificate"},
		{"no certificate", nameless, "certificate required", "didn't provide a certificate"},
		{"expired", ca.config(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), "tls: ", "expired"},
		{"server only", ca.config(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), "tls: ", "incompatible key usage"},
		{"no TLS", nil, "only one side uses TLS", "does not speak TLS"},
	} {
		t.Run(row.name, func(t *testing.T) {
			log := &safeBuffer{}
			n := startCluster(t, 1, func(_ int, o *Options) {
				o.TLS, o.Log = ca.config(nil), hclog.New(&hclog.LoggerOptions{Output: log})
			}).nodes[0]
			stranger := mux.New(mux.Options{
				TLS: row.tls, Secret: []byte("x"), Self: func() mux.Identity { return mux.Identity{Node: "x", Incarnation: "1"} },
			})
			defer stranger.Close()
			_, err := stranger.Dial(context.Background(), mux.RPC, n.Address(), mux.Identity{})
			if err == nil || !strings.Contains(err.Error(), row.error) {
				t.Errorf("dial error %v, want %q", err, row.error)
			}
			eventually(t, 10*time.Second, "a line in the log", func() error {
				if got := log.String(); !strings.Contains(got, "peer connection refused") || !strings.Contains(got, row.inLog) {
					return errors.New(got)
				}
				return nil
			})
		})
	}
}

// TestTLS_NodeWithoutTheDialledNameIsRefused: the host of the dialled address must be in
// the certificate of whoever answers there.
func TestTLS_NodeWithoutTheDialledNameIsRefused(t *testing.T) {
	ca := newAuthority(t, "cluster")
	n := startCluster(t, 1, func(_ int, o *Options) {
		o.TLS = ca.config(func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"rollcall-1"} })
	}).nodes[0]
	me := func() mux.Identity { return mux.Identity{Node: "x", Incarnation: "1"} }
	peer := mux.New(mux.Options{TLS: ca.config(nil), Self: me, Dial: func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", n.Address())
	}})
	defer peer.Close()
	if _, err := peer.Dial(context.Background(), mux.RPC, n.Address(), mux.Identity{}); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("an address that is not in the certificate: %v", err)
	}
	if _, err := peer.Dial(context.Background(), mux.RPC, "rollcall-1:7848", mux.Identity{}); err != nil {
		t.Errorf("the name in the certificate: %v", err)
	}
}

// TestTLS_OldVersionIsRefused talks TLS 1.2 to the peer port.
func TestTLS_OldVersionIsRefused(t *testing.T) {
	ca := newAuthority(t, "cluster")
	n := startCluster(t, 1, func(_ int, o *Options) { o.TLS = ca.config(nil) }).nodes[0]
	old := ca.config(nil)
	old.MinVersion, old.MaxVersion, old.ServerName = tls.VersionTLS12, tls.VersionTLS12, "127.0.0.1"
	raw, err := net.Dial("tcp", n.Address())
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, old)
	defer c.Close()
	if err := c.Handshake(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("TLS 1.2: %v", err)
	}
}
