//go:build unix

package launch

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/forward"
)

// Programs read NO_PROXY in many ways. Each line is taken out by some of them, or by none.
func TestTakenOut(t *testing.T) {
	for _, c := range []struct {
		value, to string
		out       bool
	}{
		{"*", "https://api.example.com", true},
		{"api.example.com", "https://api.example.com", true},
		{".example.com", "https://api.example.com", true},
		{"example.com", "https://api.example.com", true},
		{".example.com", "https://example.com", true},
		{"*.example.com", "https://api.example.com", true},
		{"localhost API.example.com", "https://api.example.com.", true},
		{"api.example.com:80", "https://api.example.com", true},
		{"localhost, 127.0.0.1", "http://127.0.0.1:9999", true},
		{"127.0.0.0/8", "http://127.0.0.1:9999", true},
		{"[::1]:9999", "http://[0:0:0:0:0:0:0:1]:9999", true},
		{"fd00::/8", "http://[fd00::1]", true},
		{"", "https://api.example.com", false},
		{"ample.com", "https://api.example.com", false},
		{"www.api.example.com", "https://api.example.com", false},
		{"10.0.0.0/8,localhost", "http://127.0.0.1", false},
		{".", "https://api.example.com", false},
		{",, ", "https://api.example.com", false},
	} {
		u, err := url.Parse(c.to)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"NO_PROXY", "no_proxy"} {
			if got := TakenOut([]string{"NO_PROXY=", name + "=" + c.value}, []*url.URL{u}); (got != "") != c.out {
				t.Errorf("%s=%s, %s: %q, want %v", name, c.value, c.to, got, c.out)
			}
		}
	}
}

// The user's own settings are kept, and what only the keeper needs is taken out.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "with a space"))
	if err := os.Mkdir(os.Getenv("TMPDIR"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := NewFolder(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(dir, "bundle")
	if err := os.WriteFile(bundle, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".wgetrc"), []byte("tries = 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	was := []string{"HOME=" + dir, "SECRET=x", "NODE_OPTIONS=--trace-warnings", "HTTPS_PROXY=http://corp:3128", "OTHER=y"}
	m := Made{At: forward.At{URL: "http://paceline:token@127.0.0.1:1", Bundle: bundle}, Folder: f, Named: map[string]int{"[::1]:443": 9}}
	env, err := Environment(was, m, []string{"SECRET"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"SECRET": "", "OTHER": "y", "HTTPS_PROXY": m.URL, "SSL_CERT_FILE": bundle} {
		if got := valueOf(env, name); got != want {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(env), func(v string) bool { return !strings.HasPrefix(v, "HTTPS_PROXY=") })); n != 1 {
		t.Errorf("HTTPS_PROXY is there %d times", n)
	}
	if got := valueOf(env, "NODE_OPTIONS"); !strings.HasPrefix(got, `--trace-warnings --require "`) && forward.KnowsUsers {
		t.Error(got)
	}
	if b, err := os.ReadFile(valueOf(env, "WGETRC")); string(b) != "tries = 3\nca_certificate = "+bundle+"\n" {
		t.Errorf("%q %v", b, err)
	}
	// Certificates are for all users, as apt reads them as another one. All else in the folder is this user's alone.
	for name, want := range map[string]os.FileMode{f.Public: 0o755, f.Private: 0o700, valueOf(env, "APT_CONFIG"): 0o644,
		valueOf(env, "WGETRC"): 0o600, filepath.Join(f.Private, "hook.cjs"): 0o600} {
		if about, err := os.Stat(name); err != nil || about.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, expected %v", name, about, err, want)
		}
	}
	sweep(os.TempDir())
	if _, err := os.Stat(f.Public); err != nil {
		t.Error("the folder of a keeper that lives was removed:", err)
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Error("left behind:", left)
	}
}
