//go:build unix

package launch

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// Each line is a file of settings, and the option in it that keeps api.example.com from the proxy.
func TestOverridingCurl(t *testing.T) {
	for text, want := range map[string]string{
		"proxy = http://corp:3128":              "1: proxy",
		"# proxy\n--proxy \"http://corp:3128\"": "2: proxy",
		"silent\n-x corp:3128":                  "2: -x",
		"-xcorp:3128":                           "1: -x",
		"proxy:corp":                            "1: proxy",
		"\n  proxy=\"\"\n":                      "2: proxy",
		"socks5-hostname 127.0.0.1:1080":        "1: socks5-hostname",
		"noproxy = *":                           "1: noproxy",
		"noproxy \"localhost, .example.com\"":   "1: noproxy",
		"noproxy \"localhost, corp\"":           "",
		"proxy-header \"X: y\"":                 "",
		"silent\n#proxy = x\nuser-agent proxy":  "",
		"":                                      "",
	} {
		for _, at := range []string{".curlrc", ".config/curlrc"} {
			home := t.TempDir()
			file := filepath.Join(home, at)
			_ = os.MkdirAll(filepath.Dir(file), 0o755)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := inCurlrc([]string{"HOME=" + home}, "api.example.com")
			if want == "" && got != "" || want != "" && got != file+":"+want+" counts for more than the environment" {
				t.Errorf("%q: %q, want %q", text, got, want)
			}
		}
	}
}

// What git says of its settings counts, wherever they are.
func TestOverridingGit(t *testing.T) {
	need.Program(t, "git")
	for _, c := range []struct {
		text, to string
		out      bool
	}{
		{"[http]\n\tproxy = http://corp:3128\n", "https://api.example.com", true},
		{"[http]\n\tproxy =\n", "https://api.example.com", true},
		{"[http \"https://api.example.com\"]\n\tproxy = http://corp\n", "https://api.example.com/v1", true},
		{"[http \"https://other.example.com\"]\n\tproxy = http://corp\n", "https://api.example.com", false},
		{"[include]\n\tpath = more\n", "https://api.example.com", true},
		{"[http]\n\tproxyAuthMethod = basic\n", "https://api.example.com", false},
		{"[user]\n\tname = x\n", "https://api.example.com", false},
	} {
		home := t.TempDir()
		file := filepath.Join(home, ".gitconfig")
		_ = os.WriteFile(filepath.Join(home, "more"), []byte("[http]\n\tproxy = http://corp:3128\n"), 0o600)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(c.to)
		if err != nil {
			t.Fatal(err)
		}
		env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		got := TakenOut(env, []*url.URL{u})
		if (got != "") != c.out || c.out && (!strings.HasPrefix(got, home) || !strings.HasSuffix(got, "http.proxy of git counts for more than the environment")) {
			t.Errorf("%q for %s: %q, want %v", c.text, c.to, got, c.out)
		}
	}
}

// curl reads the lines as inCurlrc does: where that finds a proxy, curl goes there.
func TestCurlReadsItSo(t *testing.T) {
	curl := need.Program(t, "curl")
	for _, text := range []string{"proxy = 127.0.0.1:1", "--proxy \"127.0.0.1:1\"", "-x 127.0.0.1:1", "-x127.0.0.1:1", "proxy:127.0.0.1:1", "socks5-hostname 127.0.0.1:1"} {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(curl, "-sS", "http://nowhere.invalid/")
		c.Env = []string{"HOME=" + home, "http_proxy=http://127.0.0.1:2"}
		if out, _ := c.CombinedOutput(); !strings.Contains(string(out), "port 1 ") && !strings.Contains(string(out), ":1") {
			t.Errorf("%q: %s", text, out)
		}
		if inCurlrc(c.Env, "nowhere.invalid") == "" {
			t.Errorf("%q is not found", text)
		}
	}
}
