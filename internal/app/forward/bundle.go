package forward

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// Roots are where systems keep the certificates that they trust, in one file. The first that is
// there counts.
var roots = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Arch
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/ssl/cert.pem",                                 // Alpine, macOS
	"/etc/pki/tls/certs/ca-bundle.crt",                  // older ones
}

// WriteBundle writes the file that programs are to trust: the system's certificates, or those of the
// file that SSL_CERT_FILE names, and the anchor. The variables of programs replace what they trust,
// so the anchor alone would cut them off from all other hosts. There is no key in it. An error names
// the file.
func (a *Authority) WriteBundle(name string, getenv func(string) string) error {
	all, err := systemRoots(getenv)
	if err != nil {
		return err
	}
	if len(all) > 0 && !bytes.HasSuffix(all, []byte("\n")) {
		all = append(all, '\n')
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

func systemRoots(getenv func(string) string) ([]byte, error) {
	if name := getenv("SSL_CERT_FILE"); name != "" {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("SSL_CERT_FILE: %w", err)
		}
		return b, nil
	}
	for _, name := range roots {
		if b, err := os.ReadFile(name); err == nil {
			return b, nil
		}
	}
	return nil, nil
}
