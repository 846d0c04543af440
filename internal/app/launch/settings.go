//go:build unix

package launch

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/paceline-go/paceline/internal/app/forward"
)

// overriding returns the setting of curl, git, npm or pip that keeps a host from the proxy, with its
// file; empty: none. Such a setting counts for more than the environment, so the program would go past
// the limits.
func overriding(env []string, urls []*url.URL) string {
	for _, u := range urls {
		host := forward.CanonicalHost(u.Hostname())
		if what := inCurlrc(env, host); what != "" {
			return what
		}
		if what := inGitConfig(env, u); what != "" {
			return what
		}
		for i := range installers {
			if what := installers[i].past(env, host); what != "" {
				return what
			}
		}
	}
	return ""
}

// installer is a program that installs packages. It asks no host but its registries, so its proxy
// matters for these alone.
type installer struct {
	variables string         // the prefix of the variables that count for more than its files
	proxy     *regexp.Regexp // options that set a proxy, as they end a variable or begin a line
	without   string         // the option with hosts to which it goes directly; empty: it has none
	registry  []string       // hosts that it asks if no setting says otherwise
	files     func(env []string) []string
}

var installers = []installer{
	{"npm_config_", regexp.MustCompile(`^(https?[-_])?proxy$`), "noproxy", []string{"registry.npmjs.org"}, npmFiles},
	{"PIP_", regexp.MustCompile(`^proxy$`), "", []string{"pypi.org", "files.pythonhosted.org"}, pipFiles},
}

// npmFiles are those of the project, the user and the machine.
func npmFiles(env []string) []string {
	all := []string{valueOf(env, "npm_config_userconfig"), filepath.Join(valueOf(env, "HOME"), ".npmrc"),
		valueOf(env, "npm_config_globalconfig"), "/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"}
	return append(all, above(".npmrc")...)
}

func pipFiles(env []string) []string {
	home := valueOf(env, "HOME")
	return []string{
		valueOf(env, "PIP_CONFIG_FILE"), filepath.Join(home, ".pip/pip.conf"), filepath.Join(home, ".config/pip/pip.conf"),
		filepath.Join(valueOf(env, "XDG_CONFIG_HOME"), "pip/pip.conf"),
		filepath.Join(valueOf(env, "VIRTUAL_ENV"), "pip.conf"), "/etc/pip.conf", "/etc/xdg/pip/pip.conf",
	}
}

// above are the files of a name in this folder, and in all above it.
func above(name string) (all []string) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		all = append(all, filepath.Join(dir, name))
	}
	return all
}

// past returns the setting that leads the installer past the proxy; empty: none. A host is one of its
// registries by default, or if its settings name the host anywhere.
func (p *installer) past(env []string, host string) (what string) {
	asks := slices.Contains(p.registry, host)
	look := func(where, option, value string) {
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		option = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(option)), "[]")
		asks = asks || strings.Contains(value, host)
		sets := p.proxy.MatchString(option) && value != "" && value != "null"
		takesOut := option == p.without && takesAny(value, host)
		if what == "" && (sets || takesOut) {
			what = where + option + " counts for more than HTTPS_PROXY"
		}
	}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		if n := len(p.variables); len(name) > n && strings.EqualFold(name[:n], p.variables) {
			look(name+" is set: ", name[n:], value)
		}
	}
	for _, name := range p.files(env) {
		text, err := os.ReadFile(name)
		if err != nil || !filepath.IsAbs(name) {
			continue
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			option, value, _ := strings.Cut(line, "=")
			look(fmt.Sprintf("%s:%d: ", name, n), option, value)
		}
	}
	if !asks {
		return ""
	}
	return what
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
	files = append(files, above(".git/config")...)
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
