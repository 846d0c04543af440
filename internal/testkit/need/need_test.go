package need_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// ended is a test that records how it was ended. Like the real ones, Skipf and Fatalf do not return.
type ended struct {
	testing.TB
	how string
}

func (e *ended) Helper()                   {}
func (e *ended) Skipf(f string, a ...any)  { e.how = "skip: " + fmt.Sprintf(f, a...); panic(e) }
func (e *ended) Fatalf(f string, a ...any) { e.how = "fatal: " + fmt.Sprintf(f, a...); panic(e) }

func ask(name string) (path, how string) {
	return asking(func(t testing.TB) string { return need.Program(t, name) })
}

func asking(f func(testing.TB) string) (path, how string) {
	e := &ended{}
	defer func() {
		if r := recover(); r != nil && r != any(e) {
			panic(r)
		}
		how = e.how
	}()
	return f(e), ""
}

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "paceline-daemon")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		require, path, name string
		wantPath, wantHow   string
	}{
		{"", dir, "paceline-daemon", program, ""},
		{"1", dir, "paceline-daemon", program, ""},
		{"", "", "paceline-daemon", "", "skip: paceline-daemon is not installed"},
		{"0", "", "paceline-daemon", "", "skip: paceline-daemon is not installed"},
		{"1", "", "paceline-daemon", "", "fatal: paceline-daemon is not installed"},
	} {
		t.Setenv(need.Require, c.require)
		t.Setenv("PATH", c.path)
		path, how := ask(c.name)
		if path != c.wantPath || !strings.HasPrefix(how, c.wantHow) || c.wantHow == "" && how != "" {
			t.Errorf("%s=%q PATH=%q: Program(%q) = %q, ended by %q; want %q, ended by %q",
				need.Require, c.require, c.path, c.name, path, how, c.wantPath, c.wantHow)
		}
	}
}

// With -short a test is left out, but for the long form.
func TestNotShort(t *testing.T) {
	given := flag.Lookup("test.short").Value
	defer func(before string) { _ = given.Set(before) }(given.String())
	for _, c := range []struct{ short, long, how string }{
		{"true", "", "skip: others show it: run ./check with this package"}, {"true", "1", ""}, {"false", "", ""},
	} {
		_ = given.Set(c.short)
		t.Setenv("PACELINE_LONG", c.long)
		_, how := asking(func(t testing.TB) string { need.NotShort(t, "others show it"); return "" })
		if how != c.how {
			t.Errorf("-short=%s PACELINE_LONG=%s: ended by %q, want %q", c.short, c.long, how, c.how)
		}
	}
}

// A daemon is found although the PATH of an ordinary user does not have its folder.
func TestProgramBesidePath(t *testing.T) {
	entries, err := os.ReadDir("/usr/sbin")
	if err != nil {
		t.Skip("this system has no /usr/sbin")
	}
	t.Setenv("PATH", "")
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join("/usr/sbin", e.Name())); err != nil || info.Mode()&0o111 == 0 || info.IsDir() {
			continue
		}
		if path, how := ask(e.Name()); path != filepath.Join("/usr/sbin", e.Name()) {
			t.Errorf("Program(%q) = %q, ended by %q", e.Name(), path, how)
		}
		return
	}
	t.Skip("there is no program in /usr/sbin")
}

// A Node that is too old is none, npm's package is one, and neither is of use without the SDKs.
func TestNode(t *testing.T) {
	node := func(dir, version string) string {
		path := filepath.Join(dir, "node")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho "+version+"\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old, young := t.TempDir(), t.TempDir()
	node(old, "v18.20.4")
	fresh := node(young, "v20.0.0")
	sdks, own, bare := t.TempDir(), t.TempDir(), t.TempDir()
	its := node(filepath.Join(own, "node_modules", ".bin"), "v22.23.3")
	for _, dir := range []string{sdks, own} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "node_modules"), 0o755), os.WriteFile(filepath.Join(dir, "node_modules", ".installed"), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Dir(own))
	for _, c := range []struct{ require, path, dir, wantPath, wantHow string }{
		{"", young, sdks, fresh, ""},
		{"1", young, own, fresh, ""},
		{"1", old, own, its, ""},
		{"1", "", own, its, ""},
		{"1", "", filepath.Base(own), its, ""}, // run in another folder than ours
		{"", old, sdks, "", "skip: no Node of version 20"},
		{"1", old, sdks, "", "fatal: no Node of version 20"},
		{"", young, bare, "", "skip: no SDKs are in"},
		{"1", young, bare, "", "fatal: no SDKs are in"},
	} {
		t.Setenv(need.Require, c.require)
		t.Setenv("PATH", c.path)
		path, how := asking(func(t testing.TB) string { return need.Node(t, c.dir) })
		if path != c.wantPath || !strings.HasPrefix(how, c.wantHow) || c.wantHow == "" && how != "" {
			t.Errorf("%+v: %q, ended by %q", c, path, how)
		}
	}
}

// A Python without the modules is none, and the system's is found although another one is before it in PATH.
func TestPython(t *testing.T) {
	python := func(exit string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "python3"), []byte("#!/bin/sh\n[ \"$*\" = '-c import json, paceline_of_nobody' ]; exit "+exit+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	has, lacks := python("$?"), python("1")
	for _, c := range []struct {
		require, path, wantPath, wantHow string
	}{
		{"", has, filepath.Join(has, "python3"), ""},
		{"1", has, filepath.Join(has, "python3"), ""},
		{"", lacks, "", "skip: no Python is installed that has json, paceline_of_nobody"},
		{"1", lacks, "", "fatal: no Python is installed that has json, paceline_of_nobody"},
		{"1", "", "", "fatal: no Python is installed that has json, paceline_of_nobody"},
	} {
		t.Setenv(need.Require, c.require)
		t.Setenv("PATH", c.path)
		path, how := asking(func(t testing.TB) string { return need.Python(t, "json", "paceline_of_nobody") })
		if path != c.wantPath || !strings.HasPrefix(how, c.wantHow) || c.wantHow == "" && how != "" {
			t.Errorf("%+v: %q, ended by %q", c, path, how)
		}
	}
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("this system has no /usr/bin/python3")
	}
	t.Setenv("PATH", lacks)
	if path, how := asking(func(t testing.TB) string { return need.Python(t, "json") }); path != "/usr/bin/python3" {
		t.Errorf("%q, ended by %q", path, how)
	}
}

// Of 12,000 ports, 400 that are drawn at random are all different once in a thousand times.
func TestAddressesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 400 {
		address := need.Address(t)
		if seen[address] {
			t.Fatalf("%s is given twice", address)
		}
		seen[address] = true
	}
}
