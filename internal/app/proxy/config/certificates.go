package config

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/paceline-go/paceline/internal/app/yamlfile"
)

// tlsFiles are the file names in a tls of the configuration.
type tlsFiles struct {
	cert, key, ca *node
	serverName    string
}

func (r *reader) listenTLS(n *node) *tls.Config {
	var t tlsFiles
	yamlfile.Mapping(r, n, "tls", listenTLSFields(), &t)
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: r.certificates(n, &t)}
	if t.cert == nil && t.key == nil {
		r.Refuse(n, "tls: cert and key are missing")
	}
	if t.ca != nil {
		c.ClientCAs, c.ClientAuth = r.authorities(t.ca, "client_ca"), tls.RequireAndVerifyClientCert
	}
	return c
}

func (r *reader) upstreamTLS(n *node) *tls.Config {
	var t tlsFiles
	yamlfile.Mapping(r, n, "tls", upstreamTLSFields(), &t)
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.serverName, Certificates: r.certificates(n, &t)}
	if t.ca != nil {
		c.RootCAs = r.authorities(t.ca, "ca")
	}
	return c
}

// certificates reads a certificate and its key.
func (r *reader) certificates(n *node, t *tlsFiles) []tls.Certificate {
	if t.cert == nil && t.key == nil {
		return nil
	}
	if t.cert == nil || t.key == nil {
		r.Refuse(n, "tls: cert without key, or the reverse: want both")
		return nil
	}
	cert, key := r.read(t.cert, "cert"), r.read(t.key, "key")
	if cert == nil || key == nil {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		r.Refuse(t.cert, "cert: %s and %s: %v", yamlfile.Show(t.cert), yamlfile.Show(t.key), err)
		return nil
	}
	return []tls.Certificate{pair}
}

func (r *reader) authorities(n *node, what string) *x509.CertPool {
	text := r.read(n, what)
	pool := x509.NewCertPool()
	if text != nil && !pool.AppendCertsFromPEM(text) {
		r.Refuse(n, "%s: %s has no certificate in PEM", what, yamlfile.Show(n))
	}
	return pool
}
