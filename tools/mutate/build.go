package mutate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
)

// Builder builds tests of a module. Its methods are safe for concurrent use.
type Builder struct {
	Root string // of the module
	Work string // a folder for its own files
	// Flags are GOFLAGS. If empty, -trimpath. Packages are compiled once more where others build with other flags.
	Flags string
	n     atomic.Int64
}

// Build is a module with mutants in it, each at work where the environment says its number, from 1 on in the order in which
// they were given; or with one that is always at work.
type Build struct {
	builder *Builder
	folder  string
	overlay string
	names   map[string]string // of the module's files, by what the compiler calls them
}

// Alone tells whether the mutant cannot be built with others: what is outside of functions has no copies.
func (m *Mutant) Alone() bool { return m.in == nil }

// Together builds with all these mutants, and returns which do not compile.
func (b *Builder) Together(ctx context.Context, mutants []*Mutant) (*Build, map[*Mutant]bool, error) {
	stillborn := map[*Mutant]bool{}
	for { // there may be one more package that compiles now
		files, where := map[string][]byte{}, map[string]map[int]int{}
		packages := map[string]bool{}
		byFile := map[string][]int{}
		for i, m := range mutants {
			if !stillborn[m] {
				byFile[m.File] = append(byFile[m.File], i+1)
			}
		}
		for file, numbers := range byFile {
			some := make([]*Mutant, len(numbers))
			for i, n := range numbers {
				some[i] = mutants[n-1]
			}
			files[file], where[file] = together(numbers, some)
			files[path.Join(path.Dir(file), "mutant__.go")] = chosen(some[0].in.pkg)
			packages["./"+path.Dir(file)] = true
		}
		build, err := b.write(files)
		if err != nil {
			return nil, nil, err
		}
		args := []string{"build", "-gcflags=-e", "-overlay", build.overlay}
		for p := range packages {
			args = append(args, p)
		}
		out, err := b.command(ctx, args).CombinedOutput()
		if err == nil {
			return build, stillborn, nil
		}
		if n := build.blame(string(out), where, mutants, stillborn); n == 0 {
			return nil, nil, fmt.Errorf("mutate: %w\n%s", err, out)
		}
	}
}

// By builds with one mutant.
func (b *Builder) By(ctx context.Context, m *Mutant) (build *Build, stillborn bool, err error) {
	if build, err = b.write(map[string][]byte{m.File: m.Source()}); err != nil {
		return nil, false, err
	}
	out, err := b.command(ctx, []string{"build", "-overlay", build.overlay, "./" + m.Package()}).CombinedOutput()
	if err != nil && !compileError.Match(out) {
		return nil, false, fmt.Errorf("mutate: %w\n%s", err, out)
	}
	return build, err != nil, nil
}

var compileError = regexp.MustCompile(`(?m)^\S*?([^/\\\s]+\.go):(\d+):\d+: `)

// blame notes whose copies the compiler complains of, and returns how many are new.
func (b *Build) blame(out string, where map[string]map[int]int, mutants []*Mutant, stillborn map[*Mutant]bool) (n int) {
	for _, e := range compileError.FindAllStringSubmatch(out, -1) {
		line, _ := strconv.Atoi(e[2])
		number, begins := 0, 0
		for k, l := range where[b.names[e[1]]] {
			if l <= line && l > begins {
				number, begins = k, l
			}
		}
		if number > 0 && !stillborn[mutants[number-1]] {
			stillborn[mutants[number-1]] = true
			n++
		}
	}
	return n
}

// write makes a folder with these files, and with the list for -overlay that has go read them in the place of the module's.
func (b *Builder) write(files map[string][]byte) (*Build, error) {
	folder := filepath.Join(b.Work, fmt.Sprint(b.n.Add(1)))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	replace, names := map[string]string{}, map[string]string{}
	for name, src := range files {
		original, err := filepath.Abs(filepath.Join(b.Root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		short := fmt.Sprintf("file%d.go", len(names))
		names[short] = name
		with := filepath.Join(folder, short)
		if err := os.WriteFile(with, src, 0o600); err != nil {
			return nil, err
		}
		replace[original] = with
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	build := &Build{b, folder, filepath.Join(folder, "overlay.json"), names}
	return build, os.WriteFile(build.overlay, list, 0o600)
}

func (b *Builder) command(ctx context.Context, args []string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = b.Root
	c.Env = append(os.Environ(), "GOFLAGS="+cmp.Or(b.Flags, "-trimpath"), "GOWORK=off")
	return c
}

// Tests builds the tests of a package and returns the name of the program.
func (b *Build) Tests(ctx context.Context, pkg string) (binary string, err error) {
	if binary, err = filepath.Abs(filepath.Join(b.folder, strings.ReplaceAll(pkg, "/", "-")+".test")); err != nil {
		return "", err
	}
	out, err := b.builder.command(ctx, []string{"test", "-c", "-vet=off", "-overlay", b.overlay, "-o", binary, "./" + pkg}).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("mutate: the tests of %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// Remove forgets what was built.
func (b *Build) Remove() error { return os.RemoveAll(b.folder) }
