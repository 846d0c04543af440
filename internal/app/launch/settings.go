//go:build unix

package launch

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/paceline-go/paceline/internal/app/forward"
)

// overriding returns the setting of curl or git that keeps a host from the proxy, with its file;
// empty: none. Such a setting counts for more than the environment, so the program would go past the
// limits.
func overriding(env []string, urls []*url.URL) string {
	for _, u := range urls {
		if what := inCurlrc(env, forward.CanonicalHost(u.Hostname())); what != "" {
			return what
		}
		if what := inGitConfig(env, u); what != "" {
			return what
		}
	}
	return ""
}

// proxyOptions are options of curl that set a proxy, or none where the value is empty.
var proxyOptions = []string{"proxy", "-x", "preproxy", "socks4", "socks4a", "socks5", "socks5-hostname", "proxy1.0"}

// inCurlrc looks into the file of options that curl reads at its start. A line is an option with its
// value, between blanks, an = or a colon.
func inCurlrc(env []string, host string) string {
	home := valueOf(env, "HOME")
	for _, name := range []string{filepath.Join(valueOf(env, "CURL_HOME"), ".curlrc"), filepath.Join(home, ".curlrc"),
		filepath.Join(valueOf(env, "XDG_CONFIG_HOME"), "curlrc"), filepath.Join(home, ".config", "curlrc")} {
		text, err := os.ReadFile(name)
		if err != nil || !filepath.IsAbs(name) {
			continue
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			option, value := curlOption(line)
			switch {
			case slices.Contains(proxyOptions, option):
			case option == "noproxy" && takesAny(value, host):
			default:
				continue
			}
			return fmt.Sprintf("%s:%d: %s counts for more than the environment", name, n, option)
		}
	}
	return ""
}

// curlOption is the option of a line, without dashes if its name is long, and its value.
func curlOption(line string) (option, value string) {
	line = strings.TrimSpace(line)
	if short, ok := strings.CutPrefix(line, "-x"); ok {
		return "-x", short
	}
	end := strings.IndexFunc(line, func(r rune) bool { return unicode.IsSpace(r) || r == '=' || r == ':' })
	if end < 0 {
		end = len(line)
	}
	value = strings.TrimLeft(line[end:], " \t=:")
	return strings.TrimPrefix(line[:end], "--"), strings.Trim(value, `"`)
}

// inGitConfig asks git, which finds its files in many places. It is asked only if one of them, or a
// file that they include, may set a proxy.
func inGitConfig(env []string, u *url.URL) string {
	home := valueOf(env, "HOME")
	files := []string{"/etc/gitconfig", filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config/git/config"),
		filepath.Join(valueOf(env, "XDG_CONFIG_HOME"), "git/config"), valueOf(env, "GIT_CONFIG_GLOBAL"), valueOf(env, "GIT_CONFIG_SYSTEM")}
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			files = append(files, filepath.Join(dir, ".git/config"))
		}
	}
	if valueOf(env, "GIT_CONFIG_COUNT") == "" && valueOf(env, "GIT_CONFIG_PARAMETERS") == "" &&
		!slices.ContainsFunc(files, maySetProxy) {
		return ""
	}
	ask := func(args ...string) (string, error) {
		c := exec.Command("git", append([]string{"config"}, args...)...)
		c.Env = env
		said, err := c.Output()
		return string(said), err
	}
	if _, err := ask("--get-urlmatch", "http.proxy", u.String()); err != nil { // git is not there, or has no such setting
		return ""
	}
	all, _ := ask("--show-origin", "--get-regexp", `^http\.(.*\.)?proxy$`)
	lines := strings.Split(strings.TrimSpace(all), "\n")
	origin, _, _ := strings.Cut(lines[len(lines)-1], "\t") // the last one counts most
	return strings.TrimPrefix(origin, "file:") + ": http.proxy of git counts for more than the environment"
}

func maySetProxy(file string) bool {
	text, err := os.ReadFile(file)
	text = bytes.ToLower(text)
	return err == nil && (bytes.Contains(text, []byte("proxy")) || bytes.Contains(text, []byte("include")))
}
