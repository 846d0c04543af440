package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const command = "./cmd/paceline"

// environment returns the environment for every call of go. It leaves out whatever would let the machine influence what is built.
func (b *build) environment(p platform) []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "GOEXPERIMENT=") || strings.HasPrefix(s, "GODEBUG=") || strings.HasPrefix(s, "PACELINE_")
	})
	return append(env, "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0",
		"GOFIPS140=off", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.date.Unix()))
}

// compile builds the program and returns where it is.
func (b *build) compile(p platform, name string, flags ...string) (string, error) {
	path := filepath.Join(b.tmp, name)
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w -buildid= -X main.stamped=" + b.tag, "-o", path}, flags...)
	_, err := output(b.root, b.environment(p), "go", append(args, command)...)
	return path, err
}

// program is the executable for a platform.
func (b *build) program(p platform) (file, error) {
	name := "paceline"
	if p.os == "windows" {
		name += ".exe"
	}
	path, err := b.compile(p, p.os+"-"+p.arch+"-"+name)
	if err != nil {
		return file{}, err
	}
	data, err := os.ReadFile(path)
	return file{name: name, data: data, executable: true}, err
}

var shells = map[string]string{ // the file of each shell's completions
	"bash": "paceline.bash", "zsh": "_paceline", "fish": "paceline.fish", "powershell": "paceline.ps1",
}

// manual returns the man pages and the completions. A program that is built for this machine writes them.
func (b *build) manual(here platform) ([]file, error) {
	path, err := b.compile(here, "paceline-manual", "-tags=manual")
	if err != nil {
		return nil, err
	}
	env := b.environment(here)
	dir := filepath.Join(b.tmp, "man")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := output(b.tmp, env, path, "manual", dir, b.version); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "man/" + e.Name(), data: data})
	}
	for shell, name := range shells {
		script, err := output(b.tmp, env, path, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "completions/" + name, data: []byte(script + "\n")})
	}
	return files, nil
}
