package forward

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// forgery is a server that has a certificate of an authority for a host.
type forgery struct {
	host string
	port string
	good bool
}

// servedBy starts a server with a chain of certificates.
func servedBy(t *testing.T, chain [][]byte, key *ecdsa.PrivateKey) (port string) {
	t.Helper()
	l := listen(t)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "taken") }),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: chain, PrivateKey: key}}},
		ErrorLog:  log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() { _ = s.ServeTLS(l, "", ""); close(done) }()
	t.Cleanup(func() { s.Close(); <-done })
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// forgeries are servers that have what whoever holds all keys of an authority could make of it, and one
// with a certificate of its own.
func forgeries(t *testing.T, a *Authority) (all []forgery) {
	t.Helper()
	by, now := a.days[0], time.Now()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	child, err := newSigner(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}, by.certificate, by.key)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		host  string
		by    signer
		above [][]byte
		good  bool
	}{
		{"api.example.com", by, [][]byte{by.certificate.Raw}, true},
		{"other.example.org", by, [][]byte{by.certificate.Raw}, false},
		{"localhost", by, [][]byte{by.certificate.Raw}, false},
		{"127.0.0.1", by, [][]byte{by.certificate.Raw}, false},
		{"api.example.com", child, [][]byte{child.certificate.Raw, by.certificate.Raw}, false},
		{"other.example.org", child, [][]byte{child.certificate.Raw, by.certificate.Raw}, false},
	} {
		leaf := &x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true}
		if ip := net.ParseIP(f.host); ip != nil {
			leaf.IPAddresses = []net.IP{ip}
		} else {
			leaf.DNSNames = []string{f.host}
		}
		der, err := sign(leaf, f.by.certificate, key, f.by.key)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, forgery{f.host, servedBy(t, append([][]byte{der}, f.above...), key), f.good})
	}
	return all
}

// Each of these programs gets the file of an anchor, and a host and a port of 127.0.0.1 for each server. It
// prints a line for each: "taken", or the reason why not.
const (
	pythonTakes = `import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
for at in sys.argv[2:]:
    host, port = at.split(":")
    try:
        with context.wrap_socket(socket.create_connection(("127.0.0.1", int(port))), server_hostname=host):
            print("taken")
    except ssl.SSLError as err:
        print(err)
`
	nodeTakes = `const fs = require('fs'), net = require('net'), tls = require('tls');
const [ca, ...all] = process.argv.slice(2);
(async () => {
  for (const at of all) {
    const [host, port] = at.split(':');
    await new Promise((next) => {
      const c = tls.connect({ host: '127.0.0.1', port, ca: fs.readFileSync(ca), ...(net.isIP(host) ? {} : { servername: host }) });
      c.on('secureConnect', () => { console.log('taken'); c.destroy(); next(); });
      c.on('error', (error) => { console.log(error.code || error.message); next(); });
    });
  }
})();
`
	javaTakes = `import java.io.*; import java.net.*; import java.security.*; import java.security.cert.*; import javax.net.ssl.*;
class Takes { public static void main(String[] a) throws Exception {
  KeyStore trust = KeyStore.getInstance(KeyStore.getDefaultType()); trust.load(null, null);
  trust.setCertificateEntry("a", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(a[0])));
  TrustManagerFactory by = TrustManagerFactory.getInstance("PKIX"); by.init(trust);
  SSLContext context = SSLContext.getInstance("TLS"); context.init(null, by.getTrustManagers(), null);
  for (int i = 1; i < a.length; i++) {
    String[] at = a[i].split(":");
    try (SSLSocket c = (SSLSocket) context.getSocketFactory().createSocket(new Socket("127.0.0.1", Integer.parseInt(at[1])), at[0], Integer.parseInt(at[1]), true)) {
      SSLParameters p = c.getSSLParameters(); p.setEndpointIdentificationAlgorithm("HTTPS"); c.setSSLParameters(p);
      c.startHandshake(); System.out.println("taken");
    } catch (SSLException e) { System.out.println(e.getMessage()); }
  }
} }
`
	curlTakes = `ca=$1; shift
for at; do
  echo "$(curl -sS --noproxy '*' --cacert "$ca" --resolve "$at:127.0.0.1" "https://$at/" 2>&1 | head -1)"
done
`
)

// takes returns what a program says of each server.
func takes(t *testing.T, all []forgery, anchor string, c *exec.Cmd) []string {
	t.Helper()
	c.Args = append(c.Args, anchor)
	for _, f := range all {
		c.Args = append(c.Args, f.host+":"+f.port)
	}
	var errs bytes.Buffer
	c.Stderr = &errs
	b, err := c.Output()
	if err != nil {
		t.Fatalf("%v %s", err, errs.String())
	}
	said := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(said) != len(all) {
		t.Fatalf("%d lines for %d servers: %s %s", len(said), len(all), b, errs.String())
	}
	return said
}

// Whoever has all keys of an authority has no certificate that any of these clients takes for another
// name or address, or by another authority below. Java heeds no constraint of an anchor.
func TestForgedCertificates(t *testing.T) {
	a, err := NewAuthority([]string{"api.example.com"}, 2, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	all := forgeries(t, a)
	dir := t.TempDir()
	anchor := filepath.Join(dir, "anchor.pem")
	for name, text := range map[string]string{anchor: string(a.PEM()), filepath.Join(dir, "Takes.java"): javaTakes,
		filepath.Join(dir, "takes.py"): pythonTakes, filepath.Join(dir, "takes.cjs"): nodeTakes, filepath.Join(dir, "takes.sh"): curlTakes} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []struct{ needs, runs, script string }{
		{"java", "java", "Takes.java"}, {"python3", "python3", "takes.py"}, {"node", "node", "takes.cjs"}, {"curl", "sh", "takes.sh"},
	} {
		t.Run(p.needs, func(t *testing.T) {
			need.Program(t, p.needs)
			c := exec.Command(p.runs, filepath.Join(dir, p.script))
			for i, said := range takes(t, all, anchor, c) {
				if (said == "taken") != all[i].good {
					t.Errorf("server %d, %s: %s", i, all[i].host, said)
				}
			}
		})
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(a.PEM())
	for i, f := range all {
		c, err := tls.Dial("tcp", "127.0.0.1:"+f.port, &tls.Config{RootCAs: trust, ServerName: f.host})
		if err == nil {
			c.Close()
		}
		if (err == nil) != f.good {
			t.Errorf("Go: server %d, %s: %v", i, f.host, err)
		}
	}
}
