//go:build unix

package launch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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

// Each line is a file of settings, and the option in it that keeps a host from the proxy. A proxy of an
// installer is none of the program's business if the host is no registry.
func TestOverridingInstallers(t *testing.T) {
	for _, c := range []struct {
		at, text, host, want string
	}{
		{".npmrc", "proxy=http://corp:3128", "registry.npmjs.org", "1: proxy"},
		{".npmrc", "; a comment\n https-proxy = \"http://corp:3128\"\n", "registry.npmjs.org", "2: https-proxy"},
		{".npmrc", "proxy=http://corp:3128", "api.example.com", ""},
		{".npmrc", "https-proxy=http://corp\n@mine:registry=https://npm.example.com/\n", "npm.example.com", "1: https-proxy"},
		{".npmrc", "noproxy=localhost,.npmjs.org", "registry.npmjs.org", "1: noproxy"},
		{".npmrc", "noproxy[]=registry.npmjs.org", "registry.npmjs.org", "1: noproxy"},
		{".npmrc", "noproxy=localhost", "registry.npmjs.org", ""},
		{".npmrc", "#proxy=http://corp:3128\nproxy=null\nhttps-proxy=\n", "registry.npmjs.org", ""},
		{".config/pip/pip.conf", "[global]\nproxy = corp:3128\n", "pypi.org", "2: proxy"},
		{".pip/pip.conf", "[install]\nproxy = corp:3128\n", "files.pythonhosted.org", "2: proxy"},
		{".pip/pip.conf", "[global]\nindex-url = https://pip.example.com/simple\nproxy = corp:3128\n", "pip.example.com", "3: proxy"},
		{".pip/pip.conf", "[global]\nproxy = corp:3128\n", "api.example.com", ""},
		{".pip/pip.conf", "[global]\ntimeout = 3\n", "pypi.org", ""},
	} {
		home := t.TempDir()
		file := filepath.Join(home, c.at)
		_ = os.MkdirAll(filepath.Dir(file), 0o755)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := overriding([]string{"HOME=" + home}, []*url.URL{{Scheme: "https", Host: c.host}})
		if c.want == "" && got != "" || c.want != "" && got != file+":"+c.want+" counts for more than HTTPS_PROXY" {
			t.Errorf("%q for %s: %q, want %q", c.text, c.host, got, c.want)
		}
	}
	for _, c := range []struct{ variable, host, want string }{
		{"PIP_PROXY=corp:3128", "pypi.org", "PIP_PROXY is set: proxy counts for more than HTTPS_PROXY"},
		{"npm_config_https_proxy=http://corp", "registry.npmjs.org", "npm_config_https_proxy is set: https_proxy counts for more than HTTPS_PROXY"},
		{"npm_config_https_proxy=", "registry.npmjs.org", ""},
		{"PIP_PROXY=corp:3128", "api.example.com", ""},
	} {
		env := []string{"HOME=" + t.TempDir(), c.variable}
		if got := overriding(env, []*url.URL{{Scheme: "https", Host: c.host}}); got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.variable, c.host, got, c.want)
		}
	}
}

// npm and pip read the lines as past does: where that finds a proxy, they go there, and not to that of
// the environment.
func TestInstallersReadItSo(t *testing.T) {
	need.WholeOnly(t, "npm and pip are slow")
	for _, c := range []struct {
		host, at, text string
		line           []string
	}{
		{"registry.npmjs.org", ".npmrc", "https-proxy=http://%s\nfetch-retries=0\n", []string{"npm", "view", "x"}},
		{"pypi.org", ".pip/pip.conf", "[global]\nproxy = http://%s\nretries = 0\n", []string{"python3", "-m", "pip", "download", "x"}},
	} {
		went := make(chan string, 100)
		proxy := func(name string) string {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				went <- name
				w.WriteHeader(http.StatusForbidden)
			}))
			t.Cleanup(s.Close)
			return s.Listener.Addr().String()
		}
		home := t.TempDir()
		file := filepath.Join(home, c.at)
		_ = os.MkdirAll(filepath.Dir(file), 0o755)
		if err := os.WriteFile(file, fmt.Appendf(nil, c.text, proxy("the file")), 0o600); err != nil {
			t.Fatal(err)
		}
		p := exec.Command(need.Program(t, c.line[0]), c.line[1:]...)
		p.Dir, p.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "HTTPS_PROXY=http://" + proxy("the environment")}
		out, _ := p.CombinedOutput()
		select {
		case by := <-went:
			if by != "the file" {
				t.Errorf("%v went by %s", c.line, by)
			}
		default:
			t.Errorf("%v went nowhere: %s", c.line, out)
		}
		if overriding(p.Env, []*url.URL{{Scheme: "https", Host: c.host}}) == "" {
			t.Errorf("the proxy of %s is not found", file)
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
