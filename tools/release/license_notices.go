package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// embedded are modules of which we have data, not code: the vocabularies of tokens/tiktoken.
var embedded = []string{"github.com/tiktoken-go/tokenizer"}

// notices returns the licences of all modules whose code or data is in a program on any platform.
// Most licences demand to be handed on.
func (b *build) notices() ([]byte, error) {
	texts := map[string]map[string]string{} // of "module version" by the name of the file
	for _, p := range platforms {
		args := []string{"list", "-deps", "-f",
			"{{if and .Module (not .Module.Main)}}{{.Module.Path}} {{.Module.Version}}\t{{.Module.Dir}}\t{{.Dir}}{{end}}"}
		for _, c := range commands {
			args = append(args, c.folder)
		}
		listed, err := output(b.root, b.environment(p), "go", args...)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(listed) {
			part := strings.Split(strings.TrimSpace(line), "\t")
			if len(part) == 3 {
				if err := gather(texts, part[0], part[1], part[2]); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, module := range embedded {
		listed, err := output(b.root, b.environment(platforms[0]), "go", "list", "-m", "-f",
			"{{.Path}} {{.Version}}\t{{.Dir}}", module)
		if err != nil {
			return nil, err
		}
		name, dir, _ := strings.Cut(listed, "\t")
		if err := gather(texts, name, dir, dir); err != nil {
			return nil, err
		}
	}
	goroot, err := output(b.root, b.environment(platforms[0]), "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	dir, version, _ := strings.Cut(goroot, "\n")
	if err := gather(texts, "Go, its runtime and standard library, "+version, dir, dir); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("Paceline is under the licence in LICENSE. In it is the work of others, under the licences below.\n")
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if len(texts[name]) == 0 {
			return nil, fmt.Errorf("%s has no file of a licence, and may not be handed on without", name)
		}
		for _, of := range slices.Sorted(maps.Keys(texts[name])) {
			fmt.Fprintf(&out, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("-", 80), name, of, strings.TrimSpace(texts[name][of]))
		}
	}
	return out.Bytes(), nil
}

// gather adds the licences in a folder of a module, and in the folders above it up to the root of the module.
func gather(texts map[string]map[string]string, module, root, dir string) error {
	if texts[module] == nil {
		texts[module] = map[string]string{}
	}
	for ; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		var names []string
		for _, e := range entries {
			switch {
			case isLicence(e.Name()) && !e.IsDir():
				names = append(names, e.Name())
			case strings.EqualFold(e.Name(), "licenses") && e.IsDir():
				below, err := os.ReadDir(filepath.Join(dir, e.Name()))
				if err != nil {
					return err
				}
				for _, of := range below {
					names = append(names, filepath.Join(e.Name(), of.Name()))
				}
			}
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			texts[module][filepath.ToSlash(name)] = string(bytes.ReplaceAll(data, []byte("\r"), nil))
		}
		if len(dir) <= len(root) {
			return nil
		}
	}
}

func isLicence(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "PATENTS"},
		func(s string) bool {
			return strings.HasPrefix(upper, s) && !strings.HasSuffix(upper, ".GO")
		})
}
