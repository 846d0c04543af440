package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// Versions are those of PEP 440, in the order of Semantic Versioning.
func TestPythonVersion(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3rc1", "1.2.3-alpha2": "1.2.3a2", "1.2.3-beta.10": "1.2.3b10",
		"1.2.3-next": "1.2.3.dev0+next", "0.0.0-20260102030405-0123456789ab": "0.0.0.dev0+20260102030405.0123456789ab",
	} {
		if got := pythonVersion(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}

// clientsOf makes the packages of the clients alone, of a version.
func clientsOf(t *testing.T, version string) (out string) {
	t.Helper()
	b := &build{source: source{root: filepath.Join("..", ".."), version: version, date: time.Unix(1767323045, 0).UTC()}, out: t.TempDir()}
	if err := b.clients(); err != nil {
		t.Fatal(err)
	}
	return b.out
}

// The same files give the same packages. Of what a package records, each file is there.
func TestClientPackages(t *testing.T) {
	t.Parallel()
	one, other := clientsOf(t, "0.9.8"), clientsOf(t, "0.9.8")
	for _, name := range []string{"npm_paceline-client-0.9.8.tgz", "paceline-0.9.8-py3-none-any.whl"} {
		if a, b := read(t, one, name), read(t, other, name); !bytes.Equal(a, b) || len(a) == 0 {
			t.Errorf("%s: %d and %d bytes differ", name, len(a), len(b))
		}
	}
	z, err := zip.OpenReader(filepath.Join(one, "paceline-0.9.8-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	record, err := fs.ReadFile(z, "paceline-0.9.8.dist-info/RECORD")
	if err != nil || strings.Count(string(record), "\n") != len(z.File) {
		t.Errorf("%v, %d files, and RECORD has\n%s", err, len(z.File), record)
	}
}

// begins starts a daemon with a limit, and returns the variables that lead to it.
func begins(t *testing.T) (env []string) {
	t.Helper()
	one, _ := outs(t)
	dir, err := os.MkdirTemp("", "pl") // short, as the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	folder := "paceline_0.9.8_linux_" + here.arch
	run(t, dir, "tar", "-xzf", filepath.Join(one, folder+".tar.gz"))
	env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_STATE_HOME="+dir)
	c := exec.Command(filepath.Join(dir, folder, "paceline"), "daemon", "--limit", "orders=100/s")
	c.Env = env
	says, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	if line, _ := bufio.NewReader(says).ReadString('\n'); !strings.HasPrefix(line, "listening at ") {
		t.Fatalf("the daemon says %q", line)
	}
	return env
}

// says runs a program with variables, and returns what it prints.
func says(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, env
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// pip installs the wheel of the release into an empty environment, and a program there gets a permit of
// the release's daemon.
func TestWheelInstalls(t *testing.T) {
	t.Parallel()
	python := need.Python(t, "pip", "venv")
	one, _ := outs(t)
	env, dir := begins(t), t.TempDir()
	own := filepath.Join(dir, "venv", "bin", "python")
	says(t, dir, env, python, "-m", "venv", "--without-pip", "venv")
	says(t, dir, env, python, "-m", "pip", "--python", own, "install", "--no-index", "--quiet", "--disable-pip-version-check",
		filepath.Join(one, "paceline-0.9.8-py3-none-any.whl"))
	got := says(t, dir, env, own, "-W", "error", "-c", `
import importlib.metadata, paceline
with paceline.Paceline().limit("orders")() as permit:
    print(permit.fresh(), paceline.__version__, importlib.metadata.version("paceline"))
`)
	if got != "True 0.9.8 0.9.8\n" {
		t.Errorf("a program says %s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "venv", "lib")); err != nil {
		t.Error(err)
	}
	if typed, err := filepath.Glob(filepath.Join(dir, "venv", "lib", "python3*", "site-packages", "paceline", "py.typed")); err != nil || len(typed) != 1 {
		t.Errorf("no types: %v, %v", typed, err)
	}
}

// npm installs the client of the release into an empty folder, and a program there gets a permit of the
// release's daemon.
func TestNpmClientInstalls(t *testing.T) {
	t.Parallel()
	npm := need.Program(t, "npm")
	one, _ := outs(t)
	env, dir := begins(t), t.TempDir()
	env = append(env, "npm_config_cache="+filepath.Join(dir, "cache"), "npm_config_registry=http://127.0.0.1:1/", "npm_config_update_notifier=false")
	says(t, dir, env, npm, "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", filepath.Join(one, "npm_paceline-client-0.9.8.tgz"))
	if err := os.WriteFile(filepath.Join(dir, "try.mjs"), []byte(`
import { readFileSync } from 'node:fs';
import { Paceline } from '@paceline/client';
const about = JSON.parse(readFileSync('node_modules/@paceline/client/package.json'));
const paceline = new Paceline();
await paceline.limit('orders').run((permit) => console.log(permit.fresh(), about.version));
await paceline.flush();
paceline.close();
`), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := says(t, dir, env, "node", "try.mjs"); got != "true 0.9.8\n" {
		t.Errorf("a program says %s", got)
	}
}
