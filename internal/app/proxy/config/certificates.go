package config

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/paceline-go/paceline/internal/app/yamlfile"
)

func (r *reader) listenTLS(n *node, what string) *tls.Config {
	var t tlsFiles
	yamlfile.Mapping(r, n, what, listenTLSFields, &t)
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: r.certificates(n, &t)}
	if t.Cert == nil && t.Key == nil {
		r.Refuse(n, "tls: cert and key are missing")
	}
	if t.ClientCA != nil {
		c.ClientCAs, c.ClientAuth = r.authorities(t.ClientCA, "client_ca"), tls.RequireAndVerifyClientCert
	}
	return c
}

func (r *reader) upstreamTLS(n *node, what string) *tls.Config {
	var t tlsFiles
	yamlfile.Mapping(r, n, what, upstreamTLSFields, &t)
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, Certificates: r.certificates(n, &t)}
	if t.CA != nil {
		c.RootCAs = r.authorities(t.CA, "ca")
	}
	return c
}

// certificates reads a certificate and its key.
func (r *reader) certificates(n *node, t *tlsFiles) []tls.Certificate {
	if t.Cert == nil && t.Key == nil {
		return nil
	}
	if t.Cert == nil || t.Key == nil {
		r.Refuse(n, "tls: cert without key, or the reverse: want both")
		return nil
	}
	cert, key := r.read(t.Cert, "cert"), r.read(t.Key, "key")
	if cert == nil || key == nil {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		r.Refuse(t.Cert, "cert: %s and %s: %v", yamlfile.Show(t.Cert), yamlfile.Show(t.Key), err)
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
