//go:build unix

package launch

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// file is a variable whose value needs a file of the run, or the user's own value.
type file struct {
	name string
	// make writes the files and returns the value. get has the user's variables.
	make func(m Made, get func(string) string) (string, error)
	// For names the programs that read it.
	For string
	// tokenless means that these programs send no password, and are known by their user alone.
	tokenless bool
}

// files are for programs that take their certificates, or their proxy, from no variable of forward's.
var files = []file{
	{"WGETRC", wgetrc, "wget: certificates, after the user's own settings", false},
	{"APT_CONFIG", aptConfig, "apt: certificates", false},
	{"PHP_INI_SCAN_DIR", phpIni, "PHP: certificates, after its own settings", false},
	{"JAVA_TOOL_OPTIONS", javaOptions, "Java: proxy and certificates. Java prints the variable on standard error", true},
	{"NODE_OPTIONS", nodeOptions, "Node: connections to the named hosts lead here, by any library", true},
}

// FileVariables are the names of the variables with files, and the programs that read them.
func FileVariables() (all [][2]string) {
	for _, f := range files {
		all = append(all, [2]string{f.name, f.For})
	}
	return all
}

// wgetrc has the user's file, too, since the variable replaces it.
func wgetrc(m Made, get func(string) string) (string, error) {
	own := get("WGETRC")
	if own == "" {
		own = filepath.Join(get("HOME"), ".wgetrc")
	}
	text, err := os.ReadFile(own)
	if err != nil && !os.IsNotExist(err) {
		return "", fmt.Errorf("the settings of wget: %w", err)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return m.Folder.write(m.Folder.Private, "wgetrc", string(text)+"ca_certificate = "+m.Bundle+"\n", 0o600)
}

func aptConfig(m Made, get func(string) string) (string, error) {
	text := ""
	if own := get("APT_CONFIG"); own != "" {
		b, err := os.ReadFile(own)
		if err != nil {
			return "", fmt.Errorf("APT_CONFIG: %w", err)
		}
		text = string(b) + "\n"
	}
	return m.Folder.write(m.Folder.Public, "apt.conf", text+fmt.Sprintf("Acquire::https::CaInfo %q;\n", m.Bundle), 0o644)
}

// phpIni adds a folder. An empty one before it stands for PHP's own.
func phpIni(m Made, get func(string) string) (string, error) {
	text := fmt.Sprintf("curl.cainfo=%q\nopenssl.cafile=%q\n", m.Bundle, m.Bundle)
	if err := os.MkdirAll(filepath.Join(m.Folder.Public, "php"), 0o755); err != nil {
		return "", err
	}
	path, err := m.Folder.write(filepath.Join(m.Folder.Public, "php"), "paceline.ini", text, 0o644)
	return get("PHP_INI_SCAN_DIR") + string(os.PathListSeparator) + filepath.Dir(path), err
}

// javaStore is the name of the file with the certificates in Java's form.
const javaStore = "cacerts"

// javaOptions empty the list of hosts without a proxy: this machine is in it otherwise.
func javaOptions(m Made, get func(string) string) (string, error) {
	bundle, err := os.ReadFile(m.Bundle)
	if err != nil {
		return "", err
	}
	store, err := m.Folder.write(m.Folder.Public, javaStore, string(trustStore(bundle)), 0o644)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(m.URL)
	if err != nil {
		return "", err
	}
	const ssl = "-Djavax.net.ssl.trustStore"
	all := []string{quoted(ssl + "=" + store), ssl + "Type=JKS", "-Dhttp.nonProxyHosts="}
	if own := get("JAVA_TOOL_OPTIONS"); own != "" {
		all = append([]string{own}, all...)
	}
	if m.Socket != "" {
		return strings.Join(all, " "), nil
	}
	for _, scheme := range []string{"http", "https"} {
		all = append(all, fmt.Sprintf("-D%s.proxyHost=%s -D%s.proxyPort=%s", scheme, u.Hostname(), scheme, u.Port()))
	}
	return strings.Join(all, " "), nil
}

//go:embed node_hook.cjs
var nodeHook string

// nodeOptions load a hook, since no version of Node leads all of its connections by a variable.
func nodeOptions(m Made, get func(string) string) (string, error) {
	if m.Socket != "" {
		return get("NODE_OPTIONS"), nil
	}
	named, err := json.Marshal(m.Named)
	if err != nil {
		return "", err
	}
	text := strings.Replace(nodeHook, "{/* named */}", string(named), 1)
	hook, err := m.Folder.write(m.Folder.Private, "hook.cjs", text, 0o600)
	return strings.TrimSpace(get("NODE_OPTIONS") + " --require " + quoted(hook)), err
}

// quoted is an option as Java and Node read it in a variable.
func quoted(option string) string {
	if strings.ContainsAny(option, " \t") {
		return `"` + option + `"`
	}
	return option
}
