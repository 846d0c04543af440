package mutate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// End is what became of a mutant.
type End uint8

const (
	Survived  End = iota // every test passed
	Killed               // a test failed, or went on for too long
	Stillborn            // it does not compile
)

// Runner runs tests against mutants. Its methods are safe for concurrent use.
type Runner struct {
	Root string // of the module
	Work string // a folder for its own files
	// Cache is a build cache to use instead of the usual one, which hundreds of mutants would fill with gigabytes.
	Cache string
	n     atomic.Int64
}

// Timeout is how long the tests of a package may take that took so long without a fault, on a machine that may be busier
// by then.
func Timeout(usual time.Duration) time.Duration { return max(30*time.Second, 4*usual) }

// Test runs the tests of one package, with the fault of m if that is not nil, and stops at the first that fails.
func (r *Runner) Test(ctx context.Context, m *Mutant, pkg string, timeout time.Duration) (end End, output string, err error) {
	args := []string{"test", "-count=1", "-failfast", "-vet=off", "-timeout", timeout.String(), "-exec", limited}
	if m != nil {
		overlay, err := r.overlay(m)
		if err != nil {
			return 0, "", err
		}
		defer os.RemoveAll(filepath.Dir(overlay))
		args = append(args, "-overlay", overlay)
	}
	folder, only, _ := strings.Cut(pkg, " ")
	if only != "" {
		args = append(args, "-run", only)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout+5*time.Minute) // building may wait for others
	defer cancel()
	c := exec.CommandContext(ctx, "go", append(args, "./"+folder)...)
	c.Dir = r.Root
	c.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", "PACELINE_LONG=")
	if r.Cache != "" {
		c.Env = append(c.Env, "GOCACHE="+r.Cache)
	}
	out, err := c.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, "", ctx.Err()
	case err == nil:
		return Survived, "", nil
	case !errors.As(err, &failed):
		return 0, "", err
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return Stillborn, string(out), nil
	}
	return Killed, string(out), nil
}

// limited bounds the memory of a test: a mutant may never stop asking for more.
const limited = `sh -c 'ulimit -v 8000000 2>/dev/null; exec "$0" "$@"'`

// overlay writes the file that go test is to read instead of the mutant's, and the list that says so.
func (r *Runner) overlay(m *Mutant) (name string, err error) {
	original, err := filepath.Abs(filepath.Join(r.Root, filepath.FromSlash(m.File)))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(r.Work, fmt.Sprint(r.n.Add(1)))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	file := filepath.Join(dir, filepath.Base(m.File))
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: file}})
	if err != nil {
		return "", err
	}
	name = filepath.Join(dir, "overlay.json")
	return name, errors.Join(os.WriteFile(file, m.Source(), 0o600), os.WriteFile(name, list, 0o600))
}
