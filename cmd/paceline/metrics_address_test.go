package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// The address for the numbers has those, and /livez and /readyz, and nothing else: no page, no profile.
// Its labels name nobody, unless that is asked for. A token is asked for at /metrics alone.
func TestMetricsAddress(t *testing.T) {
	t.Parallel()
	const token, client = "metrics-token-4Rk8", "sk-client-7Tq1"
	server := newLawful(t, 100, time.Second)
	for _, named := range []bool{false, true} {
		at := need.Address(t)
		p := newPassing(t, []string{token, client}, "--to", server.URL, "--limit", "100/s", "--key-env", "SERVER_KEY_9", "-H", "Authorization: {key}",
			"--client-key-env", "CLIENT_KEY_9", "--metrics", at, "--metrics-token-env", "METRICS_TOKEN")
		p.env = []string{"SERVER_KEY_9=sk-server-2Wd5", "CLIENT_KEY_9=" + client, "METRICS_TOKEN=" + token}
		if named {
			p.args = append(p.args, "--metrics-names")
		}
		p.begin()
		ask := func(method, url string, status int, fields ...string) string {
			t.Helper()
			r, err := http.NewRequest(method, "http://"+url, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(fields); i += 2 {
				r.Header.Set(fields[i], fields[i+1])
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != status {
				t.Fatalf("%s %s: %d %v, expected %d: %s", method, url, resp.StatusCode, err, status, text)
			}
			return string(text)
		}
		ask("GET", p.at+"/?id=1", 200, "Paceline-Key", client)
		ask("GET", at+"/livez", 200)
		ask("GET", at+"/readyz", 200)
		ask("GET", at+"/metrics", 401)
		ask("GET", at+"/metrics", 401, "Authorization", "Bearer other")
		for _, path := range []string{"/", "/debug/pprof/", "/debug/vars", "/api/snapshot", "/?id=1"} {
			ask("GET", at+path, 404, "Authorization", "Bearer "+token)
		}
		ask("POST", at+"/metrics", 405, "Authorization", "Bearer "+token)
		text := ask("GET", at+"/metrics", 200, "Authorization", "Bearer "+token)
		sent := `paceline_sent_total{client="",source="1"} 1`
		if named {
			sent = `paceline_sent_total{client="CLIENT_KEY_9",source="` + strings.TrimPrefix(server.URL, "http://") + `"} 1`
		}
		if !strings.Contains(text, sent) || !strings.Contains(text, "go_gc_heap_live_bytes") {
			t.Errorf("%s is missing: %s", sent, text)
		}
		for _, name := range []string{"CLIENT_KEY_9", "SERVER_KEY_9", strings.TrimPrefix(server.URL, "http://")} {
			if strings.Contains(text, name) != named {
				t.Errorf("%s is named: %v, expected %v", name, !named, named)
			}
		}
		p.stop()
	}
}

// With client_ca, a reader of the numbers needs a certificate of that authority.
func TestMetricsByCertificate(t *testing.T) {
	t.Parallel()
	server := newLawful(t, 100, time.Second)
	at := need.Address(t)
	p := newPassing(t, nil)
	ca, pair := certificateOf(t)
	p.args = []string{"proxy", "--config", write(t, "proxy.yaml", fmt.Sprintf("version: 1\nlisten: %s\nadmin: %q\n"+
		"metrics: {listen: %q, tls: {cert: %q, key: %q, client_ca: %[4]q}}\nupstreams: [{to: %[6]s, limits: [100/s]}]\n", p.at, p.admin, at,
		write(t, "cert.pem", ca), write(t, "key.pem", keyOf(t, pair)), server.URL))}
	p.begin()
	trusts := x509.NewCertPool()
	trusts.AppendCertsFromPEM([]byte(ca))
	for _, c := range []struct {
		own []tls.Certificate
		ok  bool
	}{{nil, false}, {[]tls.Certificate{pair}, true}} {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusts, Certificates: c.own}, DisableKeepAlives: true}}
		resp, err := client.Get("https://" + at + "/metrics")
		if err == nil {
			resp.Body.Close()
		}
		if ok := err == nil && resp.StatusCode == http.StatusOK; ok != c.ok {
			t.Errorf("with %d certificates: %v %v, expected %v", len(c.own), resp, err, c.ok)
		}
	}
	p.stop()
}

// certificateOf makes a certificate for this machine that is its own authority.
func certificateOf(t *testing.T) (text string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "paceline test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func keyOf(t *testing.T, pair tls.Certificate) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
