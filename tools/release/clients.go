package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// clients writes the clients for permits, as packages that pip and npm install from the file: a wheel
// and a tarball. Neither pip nor npm is needed for it.
func (b *build) clients() error {
	licence, err := os.ReadFile(filepath.Join(b.root, "LICENSE"))
	if err != nil {
		return err
	}
	if err := b.wheel(licence); err != nil {
		return err
	}
	script, err := b.filesOf("javascript", "package.json", "paceline.mjs", "paceline.d.ts", "README.md")
	if err != nil {
		return err
	}
	manifest := &script[0]
	if manifest.data, err = versioned(manifest.data, `(?m)^  "version": "(.*)",$`, b.version); err != nil {
		return fmt.Errorf("%s: %w", manifest.name, err)
	}
	for i := range script {
		script[i].name = "package/" + script[i].name
	}
	return b.writeTarGz("npm_paceline-client-"+b.version+".tgz", append(script, file{name: "package/LICENSE", data: licence}))
}

// filesOf reads files of a client.
func (b *build) filesOf(language string, names ...string) (all []file, err error) {
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(b.root, "clients", language, name))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: name, data: data})
	}
	return all, nil
}

// wheel writes the client of Python, in the format of PEP 427, with the metadata of pyproject.toml.
func (b *build) wheel(licence []byte) error {
	source, err := b.filesOf("python", "paceline.py", "py.typed", "README.md", "pyproject.toml")
	if err != nil {
		return err
	}
	version := pythonVersion(b.version)
	module, err := versioned(source[0].data, `(?m)^__version__ = "(.*)"$`, version)
	if err != nil {
		return fmt.Errorf("paceline.py: %w", err)
	}
	about, err := metadata(string(source[3].data), version, string(source[2].data))
	if err != nil {
		return fmt.Errorf("pyproject.toml: %w", err)
	}
	info := "paceline-" + version + ".dist-info/"
	files := []file{
		{name: "paceline/__init__.py", data: module},
		{name: "paceline/py.typed", data: source[1].data},
		{name: info + "METADATA", data: about},
		{name: info + "WHEEL", data: []byte("Wheel-Version: 1.0\nGenerator: paceline-release\nRoot-Is-Purelib: true\nTag: py3-none-any\n")},
		{name: info + "licenses/LICENSE", data: licence},
	}
	var record strings.Builder
	for _, f := range sorted(files) {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	record.WriteString(info + "RECORD,,\n")
	data, err := zipped(b.date, append(files, file{name: info + "RECORD", data: []byte(record.String())}))
	if err != nil {
		return err
	}
	return b.write("paceline-"+version+"-py3-none-any.whl", data)
}

// metadata is the METADATA of a wheel.
func metadata(project, version, readme string) ([]byte, error) {
	var m strings.Builder
	fmt.Fprintf(&m, "Metadata-Version: 2.1\nName: paceline\nVersion: %s\n", version)
	for _, f := range [][2]string{{"Summary", "description"}, {"Requires-Python", "requires-python"}} {
		found := regexp.MustCompile(`(?m)^` + f[1] + ` = "(.*)"$`).FindStringSubmatch(project)
		if found == nil {
			return nil, fmt.Errorf("no %s, expected it on a line", f[1])
		}
		fmt.Fprintf(&m, "%s: %s\n", f[0], found[1])
	}
	list := regexp.MustCompile(`(?m)^classifiers = \[(.*)\]$`).FindStringSubmatch(project)
	if list == nil {
		return nil, fmt.Errorf("no classifiers, expected them on a line")
	}
	for _, c := range regexp.MustCompile(`"(.*?)"`).FindAllStringSubmatch(list[1], -1) {
		fmt.Fprintf(&m, "Classifier: %s\n", c[1])
	}
	m.WriteString("License: Apache-2.0\nLicense-File: LICENSE\n" +
		"Project-URL: Documentation, https://github.com/paceline-go/paceline/blob/main/docs/permit.md\n" +
		"Description-Content-Type: text/markdown\n\n" + readme)
	return []byte(m.String()), nil
}

// versioned replaces the one version in a text, which is the group of a pattern.
func versioned(text []byte, pattern, version string) ([]byte, error) {
	found := regexp.MustCompile(pattern).FindAllSubmatchIndex(text, -1)
	if len(found) != 1 {
		return nil, fmt.Errorf("%d versions, expected one like %s", len(found), pattern)
	}
	return fmt.Appendf(nil, "%s%s%s", text[:found[0][2]], version, text[found[0][3]:]), nil
}

var (
	preRelease = regexp.MustCompile(`^(\d+\.\d+\.\d+)-(alpha|beta|rc)\.?(\d+)$`)
	notLocal   = regexp.MustCompile(`[^0-9A-Za-z]+`)
)

// pythonVersion is a version as PEP 440 has it, in normal form: 1.2.3rc1 for 1.2.3-rc.1. Versions with
// other words, such as those of snapshots, sort before their release.
func pythonVersion(version string) string {
	if m := preRelease.FindStringSubmatch(version); m != nil {
		return m[1] + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[2]] + m[3]
	}
	release, words, ok := strings.Cut(version, "-")
	if !ok {
		return release
	}
	return release + ".dev0+" + strings.ToLower(notLocal.ReplaceAllString(words, "."))
}
