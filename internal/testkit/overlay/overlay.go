// Package overlay builds tests of this module with some functions changed, for example with planted
// bugs. The changes are not written to the source files: the go command reads them through its flag
// -overlay. One build contains all changes: each changed function is a copy under another name,
// beside the original. An environment variable chooses which copies are called instead of their
// originals.
package overlay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// Build is a module with other files in the place of its own.
type Build struct {
	builder *Builder
	folder  string
	list    string
	names   map[string]string // of the module's files, by the names that the compiler prints
}

// With makes a folder with these files, by their names from the module's root, and the list for -overlay that
// has go read them in the place of the module's.
func (b *Builder) With(files map[string][]byte) (*Build, error) {
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
	return build, os.WriteFile(build.list, list, 0o600)
}

// Go is a call of the go command in the module.
func (b *Builder) Go(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = b.Root
	c.Env = append(os.Environ(), "GOFLAGS="+cmp.Or(b.Flags, "-trimpath"), "GOWORK=off")
	return c
}

// Compile is a call of go build with the changes in place.
func (b *Build) Compile(ctx context.Context, args ...string) *exec.Cmd {
	return b.builder.Go(ctx, append([]string{"build", "-overlay", b.list}, args...)...)
}

// Name is the file of the module that the compiler calls by another name, or "".
func (b *Build) Name(short string) string { return b.names[short] }

// Tests builds the tests of a package and returns the name of the program.
func (b *Build) Tests(ctx context.Context, pkg string) (binary string, err error) {
	binary, err = filepath.Abs(filepath.Join(b.folder, strings.ReplaceAll(pkg, "/", "-")+".test"))
	if err != nil {
		return "", err
	}
	c := b.builder.Go(ctx, "test", "-c", "-vet=off", "-overlay", b.list, "-o", binary, "./"+pkg)
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("overlay: the tests of %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// Remove forgets what was built.
func (b *Build) Remove() error { return os.RemoveAll(b.folder) }
