package forward

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Roots are where systems keep the certificates that they trust, in one file. The first that is
// there counts.
var Roots = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Arch
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/ssl/cert.pem",                                 // Alpine, macOS
	"/etc/pki/tls/certs/ca-bundle.crt",                  // older ones
}

// WriteBundle writes the file that programs are to trust: the system's certificates, those of files
// that the user's own variables name, and the anchor. The variables of programs replace what they
// trust, so the anchor alone would cut them off from all other hosts. There is no key in it. An error
// names the file, or says that there are no other certificates.
func (a *Authority) WriteBundle(name string, getenv func(string) string) error {
	all, err := otherRoots(getenv)
	if err != nil {
		return err
	}
	all = append(all, a.PEM()...)
	// A program may read the file while another run replaces it.
	f, err := os.CreateTemp(filepath.Dir(name), ".paceline-*.pem")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(all)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}

// otherRoots are the certificates that programs trust without us.
func otherRoots(getenv func(string) string) (all []byte, err error) {
	add := func(b []byte) {
		all = append(all, b...)
		if !bytes.HasSuffix(all, []byte("\n")) {
			all = append(all, '\n')
		}
	}
	names := map[string]bool{"": true}
	for _, v := range Variables {
		if own := getenv(v.Name); v.IsBundle() && !names[own] {
			names[own] = true
			b, err := os.ReadFile(own)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.Name, err)
			}
			add(b)
		}
	}
	if getenv("SSL_CERT_FILE") != "" { // it replaces the system's
		return all, nil
	}
	for _, name := range Roots {
		if b, err := os.ReadFile(name); err == nil {
			add(b)
			return all, nil
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no certificates of the system in %s: set SSL_CERT_FILE to a file of them", Roots[0])
	}
	return all, nil
}

// Anchor is the certificate of an Authority, as programs trust it.
type Anchor struct {
	PEM []byte
	// Hosts are the named names and addresses. Subdomains of a name are covered, too.
	Hosts []string
	Until time.Time
}

// AnchorIn returns the anchor in a bundle: the last one, since the user's own certificates, which come
// before it, may have those of another proxy. ok is false if there is none.
func AnchorIn(bundle []byte) (a Anchor, ok bool) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || c.Subject.CommonName != anchorName {
			continue
		}
		a, ok = Anchor{PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}), Hosts: c.PermittedDNSDomains,
			Until: c.NotAfter}, true
		for _, n := range c.PermittedIPRanges {
			a.Hosts = append(a.Hosts, n.IP.String())
		}
	}
	return a, ok
}
