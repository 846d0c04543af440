package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// command is a program by its name, and the folder of its package main.
type command struct{ name, folder string }

// commands are the programs of a release, paceline first.
var commands = []command{{"paceline", "./cmd/paceline"}, {"paceline-lab", "./lab/cmd/paceline-lab"}}

// stamp is the variable that has the version of a release.
const stamp = "github.com/paceline-go/paceline/internal/app/cli.stamped"

// environment returns the environment for every call of go. It leaves out whatever would let the
// machine influence what is built.
func (b *build) environment(p platform) []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "GOEXPERIMENT=") || strings.HasPrefix(s, "GODEBUG=") || strings.HasPrefix(s, "PACELINE_")
	})
	return append(env, "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off",
		"GOAMD64=v1", "GOARM64=v8.0",
		"GOFIPS140=off", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.date.Unix()))
}

// compile builds a program and returns where it is.
func (b *build) compile(c command, p platform, name string, flags ...string) (string, error) {
	path := filepath.Join(b.tmp, name)
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w -buildid= -X " + stamp + "=" + b.tag, "-o", path},
		flags...)
	_, err := output(b.root, b.environment(p), "go", append(args, c.folder)...)
	return path, err
}

// programs are the executables for a platform, in the order of commands.
func (b *build) programs(p platform) (all []file, err error) {
	for _, c := range commands {
		name := c.name
		if p.os == "windows" {
			name += ".exe"
		}
		path, err := b.compile(c, p, p.os+"-"+p.arch+"-"+name)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: name, data: data, executable: true})
	}
	return all, nil
}

// shells has the file of each shell's completions, with % in place of the program.
var shells = map[string]string{"bash": "%.bash", "zsh": "_%", "fish": "%.fish", "powershell": "%.ps1"}

// manual returns the man pages and the completions of a program. One that is built for this machine writes them.
func (b *build) manual(c command, here platform) ([]file, error) {
	path, err := b.compile(c, here, c.name+"-manual", "-tags=manual")
	if err != nil {
		return nil, err
	}
	env := b.environment(here)
	dir := filepath.Join(b.tmp, c.name+"-man")
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
		files = append(files, file{name: "completions/" + strings.Replace(name, "%", c.name, 1), data: []byte(script + "\n")})
	}
	return files, nil
}
