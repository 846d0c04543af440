package forward

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newTestAuthority(t *testing.T, hosts ...string) (*Authority, *x509.CertPool) {
	t.Helper()
	a, err := NewAuthority(hosts, 3, noon)
	if err != nil {
		t.Fatal(err)
	}
	trust := x509.NewCertPool()
	if !trust.AppendCertsFromPEM(a.PEM()) {
		t.Fatal("no anchor")
	}
	return a, trust
}

// A named host gets a certificate of a day at most, that a program takes, and after a day another.
func TestAuthority(t *testing.T) {
	a, trust := newTestAuthority(t, "api.example.com", "127.0.0.1", "2001:db8::1")
	for _, host := range []string{"api.example.com", "127.0.0.1", "2001:db8::1"} {
		var last []byte
		for _, now := range []time.Time{noon, noon.Add(time.Hour), noon.Add(25 * time.Hour), noon.Add(71 * time.Hour)} {
			c, err := a.Certificate(host, now)
			if err != nil {
				t.Fatal(err)
			}
			if life := c.Leaf.NotAfter.Sub(now); life <= 0 || life > day {
				t.Errorf("%s lives for %v", host, life)
			}
			between := x509.NewCertPool()
			next, _ := x509.ParseCertificate(c.Certificate[1])
			between.AddCert(next)
			if life := next.NotAfter.Sub(now); life <= 0 || life > day {
				t.Errorf("what signs %s lives for %v", host, life)
			}
			_, err = c.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: trust, Intermediates: between, CurrentTime: now})
			if err != nil {
				t.Errorf("%s at %v: %v", host, now, err)
			}
			if same := string(last) == string(c.Certificate[0]); same != (now == noon.Add(time.Hour)) {
				t.Errorf("%s at %v: the same certificate: %v", host, now, same)
			}
			last = c.Certificate[0]
		}
	}
	if _, err := a.Certificate("api.example.com", noon.Add(3*day)); err == nil {
		t.Error("a certificate after the last day")
	}
}

// Whoever has the keys of an Authority still has no certificate that is taken for another name or
// address, whichever kinds of hosts are named.
func TestAuthorityIsConstrained(t *testing.T) {
	for _, hosts := range [][]string{{"api.example.com"}, {"10.0.0.1"}, {"api.example.com", "10.0.0.1"}} {
		a, trust := newTestAuthority(t, hosts...)
		by := a.days[0]
		key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		for _, forged := range []*x509.Certificate{
			{DNSNames: []string{"example.com"}}, {DNSNames: []string{"api.example.com.evil.org"}},
			{DNSNames: []string{"localhost"}}, {IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}},
			{IPAddresses: []net.IP{net.ParseIP("2001:db8::1")}}, {EmailAddresses: []string{"someone@example.com"}},
		} {
			forged.NotBefore, forged.NotAfter = noon.Add(-time.Hour), noon.Add(time.Hour)
			der, err := sign(forged, by.certificate, key, by.key)
			if err != nil {
				t.Fatal(err)
			}
			leaf, _ := x509.ParseCertificate(der)
			between := x509.NewCertPool()
			between.AddCert(by.certificate)
			_, err = leaf.Verify(x509.VerifyOptions{Roots: trust, Intermediates: between, CurrentTime: noon,
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			if err == nil {
				t.Errorf("%v: a certificate for %v%v%v is taken", hosts, leaf.DNSNames, leaf.IPAddresses, leaf.EmailAddresses)
			}
		}
		// Nor can the day's key make another authority.
		child := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, NotBefore: noon, NotAfter: noon.Add(time.Hour)}
		s, err := newSigner(child, by.certificate, by.key)
		if err != nil {
			t.Fatal(err)
		}
		leaf := &x509.Certificate{NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Hour), DNSNames: hosts[:1]}
		der, err := sign(leaf, s.certificate, key, s.key)
		if err != nil {
			t.Fatal(err)
		}
		if leaf, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		below := x509.NewCertPool()
		below.AddCert(by.certificate)
		below.AddCert(s.certificate)
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: trust, Intermediates: below, CurrentTime: noon,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
			t.Error("an authority below the day's")
		}
	}
}

// The anchor of the latest authority is found in a bundle, with its hosts.
func TestAnchorIn(t *testing.T) {
	a, _ := newTestAuthority(t, "old.example.com")
	b, _ := newTestAuthority(t, "api.example.com", "10.0.0.1")
	name := filepath.Join(t.TempDir(), "own.pem")
	if err := os.WriteFile(name, append(a.PEM(), []byte("no certificate\n")...), 0o600); err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(t.TempDir(), "bundle.pem")
	own := func(variable string) string { return map[string]string{"SSL_CERT_FILE": name}[variable] }
	if err := b.WriteBundle(bundle, own); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(bundle)
	got, ok := AnchorIn(text)
	if err != nil || !ok || !bytes.Equal(got.PEM, b.PEM()) || strings.Join(got.Hosts, " ") != "api.example.com 10.0.0.1" || !got.Until.Equal(b.Until()) {
		t.Errorf("%v %v, %v until %v, expected until %v\n%s", ok, err, got.Hosts, got.Until, b.Until(), got.PEM)
	}
	for _, text := range []string{"", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if got, ok := AnchorIn([]byte(text)); ok {
			t.Errorf("%q has %+v", text, got)
		}
	}
}
