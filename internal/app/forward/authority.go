package forward

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Authority makes certificates for some hosts, in memory. Programs trust its anchor. The anchor's
// key signs one certificate for each day, and is forgotten before NewAuthority returns.
//
// Each day's certificate is constrained to the hosts: nobody else's name or address can be signed
// with its key. Two levels are needed, since Java heeds no constraint of an anchor. An Authority is
// safe for concurrent use.
type Authority struct {
	anchor []byte // DER
	first  time.Time
	days   []signer
	key    *ecdsa.PrivateKey // of all leaves
	hosts  []string

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// signer is the certificate of a day, and its key.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

const (
	day = 24 * time.Hour
	// slack is how much earlier than now a certificate begins, for clocks that differ.
	slack = time.Hour
)

// anchorName is the subject of each anchor.
const anchorName = "Paceline, for one run"

// NewAuthority makes an authority for hosts, which are names or addresses, from now on for some
// days. A program that still runs afterwards refuses its certificates.
func NewAuthority(hosts []string, days int, now time.Time) (*Authority, error) {
	now = now.Round(0) // by the wall clock, as certificates are: another clock may stand still in a sleep
	a := &Authority{first: now, hosts: slices.Clone(hosts), leaves: map[string]*tls.Certificate{}}
	root, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	end := now.Add(time.Duration(days) * day)
	anchor := &x509.Certificate{
		Subject:   pkix.Name{CommonName: anchorName},
		NotBefore: now.Add(-slack), NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, MaxPathLen: 1, KeyUsage: x509.KeyUsageCertSign,
	}
	constrain(anchor, hosts)
	if a.anchor, err = sign(anchor, anchor, root, root); err != nil {
		return nil, err
	}
	if anchor, err = x509.ParseCertificate(a.anchor); err != nil {
		return nil, err
	}
	for i := range days {
		begin := now.Add(time.Duration(i) * day)
		next := &x509.Certificate{
			Subject:   pkix.Name{CommonName: fmt.Sprintf("Paceline, day %d of a run", i+1)},
			NotBefore: begin.Add(-slack), NotAfter: begin.Add(day),
			IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		}
		constrain(next, hosts)
		s, err := newSigner(next, anchor, root)
		if err != nil {
			return nil, err
		}
		a.days = append(a.days, s)
	}
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return a, err
}

func newSigner(c, parent *x509.Certificate, by *ecdsa.PrivateKey) (s signer, err error) {
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return s, err
	}
	der, err := sign(c, parent, s.key, by)
	if err != nil {
		return s, err
	}
	s.certificate, err = x509.ParseCertificate(der)
	return s, err
}

func sign(c, parent *x509.Certificate, of, by *ecdsa.PrivateKey) (der []byte, err error) {
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	return x509.CreateCertificate(rand.Reader, c, parent, &of.PublicKey, by)
}

// constrain allows an authority the hosts alone. A constraint on names says nothing of addresses,
// nor the other way round, so both kinds are constrained, and e-mail and URIs are excluded.
func constrain(c *x509.Certificate, hosts []string) {
	c.PermittedDNSDomainsCritical = true
	for _, host := range hosts {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			c.PermittedDNSDomains = append(c.PermittedDNSDomains, host)
			continue
		}
		ip = ip.Unmap()
		c.PermittedIPRanges = append(c.PermittedIPRanges,
			&net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())})
	}
	// Where one of a kind is permitted, all others of that kind are not.
	if c.PermittedDNSDomains == nil {
		c.ExcludedDNSDomains = []string{""}
	}
	if c.PermittedIPRanges == nil {
		c.ExcludedIPRanges = []*net.IPNet{{IP: make(net.IP, 4), Mask: make(net.IPMask, 4)},
			{IP: make(net.IP, 16), Mask: make(net.IPMask, 16)}}
	}
	c.PermittedEmailAddresses = []string{"nobody@invalid"}
	c.PermittedURIDomains = []string{"invalid"}
}

// PEM is the anchor, for programs to trust. It has no key.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.anchor})
}

// Covers reports whether the Authority is for a host.
func (a *Authority) Covers(host string) bool { return slices.Contains(a.hosts, host) }

// Until is the end of the last day.
func (a *Authority) Until() time.Time { return a.first.Add(time.Duration(len(a.days)) * day) }

// Certificate returns a certificate for a host, and its chain. It is valid for a day at most.
func (a *Authority) Certificate(host string, now time.Time) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	today := max(0, int(now.Sub(a.first)/day))
	if today >= len(a.days) {
		return nil, fmt.Errorf("the certificates of this run ended at %s; start it again", a.Until().Format(time.RFC3339))
	}
	by := a.days[today]
	if c := a.leaves[host]; c != nil && slices.Equal(c.Certificate[1], by.certificate.Raw) {
		return c, nil
	}
	leaf := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"Paceline, for one run"}},
		NotBefore: by.certificate.NotBefore, NotAfter: by.certificate.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		leaf.IPAddresses = []net.IP{ip.Unmap().AsSlice()}
	} else {
		leaf.DNSNames = []string{host}
	}
	der, err := sign(leaf, by.certificate, a.key, by.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der, by.certificate.Raw}, PrivateKey: a.key}
	if c.Leaf, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.leaves[host] = c
	return c, nil
}
