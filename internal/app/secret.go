package app

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// MinSecret is the least length of a cluster secret in bytes.
const MinSecret = 16

// readSecret reads the cluster secret, without the white space around it; nil when no
// file is named.
func readSecret(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--cluster-secret-file: %w", err)
	}
	secret := bytes.TrimSpace(text)
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("--cluster-secret-file %s: holds %d bytes, at least %d are needed (head -c 32 /dev/urandom | base64 > %s)",
			path, len(secret), MinSecret, path)
	}
	return secret, nil
}

// readTLS loads the certificates of the peer port; nil when none are named. Both sides of
// a connection must show one that the CA signed.
func readTLS(o Options) (*tls.Config, error) {
	if o.TLSCertFile == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(o.TLSCertFile, o.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-key-file: %w", err)
	}
	pem, err := os.ReadFile(o.TLSCAFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--tls-ca-file %s: holds no PEM certificate", o.TLSCAFile)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
