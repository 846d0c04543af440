package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// programMax is how large a program may get, in bytes: 45 MB, of which 17 are the stores that limits are shared by, SQLite most of all.
const programMax = 45_000_000

// This test's release is of the files as they lie here, committed to a clone of its own and tagged.
const tagged = "v0.9.8"

// run runs a program that has to succeed, and returns what it printed.
func run(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// clone has the files of this clone, changed or not, in a commit of its own. change may change them before.
func clone(t testing.TB, dir string, change func(dir string)) string {
	t.Helper()
	run(t, ".", "git", "init", "-q", dir)
	list := run(t, "../..", "git", "ls-files", "--cached", "--others", "--exclude-standard")
	for name := range strings.Lines(list) {
		name = strings.TrimSuffix(name, "\n")
		data, err := os.ReadFile(filepath.Join("..", "..", name))
		if os.IsNotExist(err) { // removed here, and not yet in a commit
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	if change != nil {
		change(dir)
	}
	run(t, dir, "git", "add", "--all")
	run(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-qm", "a release")
	return dir
}

// headed gives CHANGELOG.md a heading for the tag.
func headed(t testing.TB, dir string) {
	t.Helper()
	path := filepath.Join(dir, "CHANGELOG.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "## [Unreleased]\n", "## [Unreleased]\n\n## [0.9.8] - 2026-01-02\n", 1)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// here is the platform that the tests build for, and install.
var here = platform{"linux", runtime.GOARCH}

// built are the platforms of the first clone's release: this one, and one whose names and archives
// differ. With PACELINE_LONG=1 they are all, and the second clone's is compiled anew instead of with
// what the first one left in Go's cache.
func built() []platform {
	if long {
		return platforms
	}
	return []platform{here, {"windows", "amd64"}}
}

var long = os.Getenv("PACELINE_LONG") == "1"

// made is where the release is, of two clones in folders of different depths. It is built once for all tests.
var made struct {
	sync.Once
	dir    string
	failed bool
}

func outs(t testing.TB) (one, other string) {
	t.Helper()
	made.Do(func() {
		made.failed = true
		dir, err := os.MkdirTemp("", "release")
		if err != nil {
			t.Fatal(err)
		}
		made.dir = dir
		first := clone(t, filepath.Join(dir, "one"), func(dir string) { headed(t, dir) })
		run(t, first, "git", "tag", tagged)
		second := filepath.Join(dir, "a", "folder", "below", "other")
		run(t, ".", "git", "clone", "-q", first, second)
		var only []string
		for _, p := range built() {
			only = append(only, p.String())
		}
		run(t, first, filepath.Join(first, "tools/release/build"), filepath.Join(dir, "out-one"), "--only", strings.Join(only, ","))
		again := []string{filepath.Join(second, "tools/release/build"), filepath.Join(dir, "out-other"), "--only", here.String()}
		if long {
			again = append([]string{"GOCACHE=" + filepath.Join(dir, "cache")}, again...)
		}
		run(t, dir, "env", again...)
		made.failed = false
	})
	if made.failed {
		t.Fatal("the release could not be built: see the first test that needed it")
	}
	return filepath.Join(made.dir, "out-one"), filepath.Join(made.dir, "out-other")
}

func TestMain(m *testing.M) {
	inside()
	code := m.Run()
	if made.dir != "" {
		_ = os.RemoveAll(made.dir)
	}
	os.Exit(code)
}

// What was made of two clones is the same, byte by byte, and all of a release is there.
func TestReproducible(t *testing.T) {
	t.Parallel()
	one, other := outs(t)
	names := []string{"SHA256SUMS", "npm_paceline-0.9.8.tgz", "npm_paceline-client-0.9.8.tgz", "paceline-0.9.8-py3-none-any.whl"}
	for _, p := range built() {
		kind := map[string]string{"windows": "zip"}[p.os]
		if kind == "" {
			kind = "tar.gz"
		}
		names = append(names, fmt.Sprintf("npm_paceline-%s-%s-0.9.8.tgz", nodeOS[p.os], nodeArch[p.arch]), fmt.Sprintf("paceline_0.9.8_%s_%s.%s", p.os, p.arch, kind))
	}
	for _, p := range built() {
		if p.os == "linux" {
			names = append(names, "paceline_0.9.8_"+p.arch+".deb")
		}
	}
	names = append(names, "paceline_0.9.8_oci.tar")
	slices.Sort(names)
	if got := list(t, one); !slices.Equal(got, names) {
		t.Errorf("it made\n%q, want\n%q", got, names)
	}
	for _, name := range list(t, other) {
		switch name {
		case "SHA256SUMS", "npm_paceline-0.9.8.tgz", "paceline_0.9.8_oci.tar": // these differ: they are of all platforms, or of one
			continue
		}
		if a, b := read(t, one, name), read(t, other, name); !bytes.Equal(a, b) {
			t.Errorf("%s differs between two clones of one commit: %d and %d bytes", name, len(a), len(b))
		}
	}
	if a, b := layers(t, one)[here], layers(t, other)[here]; a != b || a == "" {
		t.Errorf("the images for %s are %q and %q", here, a, b)
	}
	for line := range strings.Lines(string(read(t, one, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256(read(t, one, name))); got != sum {
			t.Errorf("SHA256SUMS has %s for %s, which is %s", sum, name, got)
		}
	}
}

func list(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func read(t testing.TB, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unpacked is what a tar.gz has, by name.
func unpacked(t testing.TB, data []byte) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[head.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// The archive has the programs and what goes beside them. Each program is static and stripped, not too large, and says its
// version and what it was made of.
func TestArchive(t *testing.T) {
	t.Parallel()
	one, _ := outs(t)
	folder := "paceline_0.9.8_linux_" + here.arch
	files := unpacked(t, read(t, one, folder+".tar.gz"))
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "THIRD_PARTY.txt",
		"man/paceline.1", "man/paceline-run.1", "man/paceline-lab.1", "man/paceline-lab-bench-exchange.1",
		"completions/paceline.bash", "completions/_paceline", "completions/paceline.fish", "completions/paceline.ps1",
		"completions/paceline-lab.bash", "completions/_paceline-lab", "completions/paceline-lab.fish", "completions/paceline-lab.ps1"} {
		if len(files[folder+"/"+name]) < 200 {
			t.Errorf("%s has %d bytes", name, len(files[folder+"/"+name]))
		}
	}
	// What a text has indented is an example, whose lines stay as they are.
	if page := string(files[folder+"/man/paceline-lab-sim.1"]); !regexp.MustCompile(`(?s)\.EX\n  version: 1\n  duration: 30m\n.*\n\.EE\n`).MatchString(page) {
		t.Errorf("the scenario in paceline-lab-sim.1 is no example: %.600s", page)
	}
	notices := string(files[folder+"/THIRD_PARTY.txt"])
	if !strings.Contains(notices, "\n"+embedded[0]+" ") || !strings.Contains(notices, "\nGo, its runtime") {
		t.Error("THIRD_PARTY.txt has no licence of the vocabularies, or of Go")
	}
	// Written by this process, a program would still be open in a child that another test has just forked: then nobody can run it.
	dir := t.TempDir()
	run(t, dir, "tar", "-xzf", filepath.Join(one, folder+".tar.gz"))
	for _, c := range commands {
		info := checkProgram(t, c.name, files[folder+"/"+c.name])
		for _, m := range info.Deps {
			if !strings.Contains(notices, "\n"+m.Path+" "+m.Version+": ") {
				t.Errorf("THIRD_PARTY.txt has no licence of %s %s", m.Path, m.Version)
			}
		}
		want := fmt.Sprintf("%s %s %s linux/%s\n", c.name, tagged, info.GoVersion, here.arch)
		if got := run(t, ".", filepath.Join(dir, folder, c.name), "version"); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

// checkProgram checks an executable of Linux, and returns what it was made of.
func checkProgram(t *testing.T, name string, program []byte) *buildinfo.BuildInfo {
	t.Helper()
	if len(program) > programMax {
		t.Errorf("%s has %d bytes, more than %d: go tool nm -size -sort size says what of", name, len(program), programMax)
	}
	t.Logf("%s has %.1f MB", name, float64(len(program))/(1<<20))
	e, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	if e.Section(".symtab") != nil || e.Section(".debug_info") != nil {
		t.Errorf("%s is not stripped", name)
	}
	for _, part := range e.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("%s is not static", name)
		}
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if info.Main.Version != tagged || len(settings["vcs.revision"]) != 40 || settings["vcs.modified"] != "false" || settings["CGO_ENABLED"] != "0" {
		t.Errorf("%s says that it is %s, of %v", name, info.Main.Version, settings)
	}
	return info
}

// Each archive has both programs for its platform.
func TestPrograms(t *testing.T) {
	t.Parallel()
	one, _ := outs(t)
	for _, p := range built() {
		want := map[platform]string{{"linux", "amd64"}: "EM_X86_64", {"linux", "arm64"}: "EM_AARCH64", {"darwin", "amd64"}: "CpuAmd64",
			{"darwin", "arm64"}: "CpuArm64", {"windows", "amd64"}: "0x8664", {"windows", "arm64"}: "0xaa64"}[p]
		for _, c := range commands {
			if machine := machineOf(t, one, p, c.name); machine != want {
				t.Errorf("%s for %s is of %s, want %s", c.name, p, machine, want)
			}
		}
	}
}

// machineOf is the machine that a program in the archive of a platform is for.
func machineOf(t *testing.T, out string, p platform, program string) string {
	t.Helper()
	data := bytes.NewReader(programOf(t, out, p, program))
	switch p.os {
	case "linux":
		e, err := elf.NewFile(data)
		if err != nil {
			t.Fatal(err)
		}
		return e.Machine.String()
	case "darwin":
		m, err := macho.NewFile(data)
		if err != nil {
			t.Fatal(err)
		}
		return m.Cpu.String()
	}
	e, err := pe.NewFile(data)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%#x", e.Machine)
}

// programOf is a program of the archive of a platform.
func programOf(t *testing.T, out string, p platform, program string) []byte {
	t.Helper()
	name := "paceline_0.9.8_" + p.os + "_" + p.arch
	if p.os != "windows" {
		return unpacked(t, read(t, out, name+".tar.gz"))[name+"/"+program]
	}
	z, err := zip.OpenReader(filepath.Join(out, name+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	data, err := fs.ReadFile(z, name+"/"+program+".exe")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The workflow of a tag does nothing that is not tested here, but for Helm's library and the upload.
func TestWorkflow(t *testing.T) {
	var runs []string
	for line := range strings.Lines(string(read(t, "../../.github/workflows/release.yml"))) {
		if _, command, ok := strings.Cut(line, "run: "); ok {
			runs = append(runs, strings.TrimSpace(command))
		}
	}
	if len(runs) != 3 || runs[0] != "cd deploy/check && go test -tags helm . # the chart by Helm's own library" ||
		runs[1] != `tools/release/build dist --tag "$GITHUB_REF_NAME"` || !strings.HasPrefix(runs[2], "gh release create ") {
		t.Errorf("the workflow runs %q", runs)
	}
}

// A release is made of a commit whose version is told in CHANGELOG.md, and of nothing else.
func TestRefused(t *testing.T) {
	small := func(t *testing.T, changes string) string {
		dir := t.TempDir()
		run(t, dir, "git", "init", "-q", ".")
		if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(changes), 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, dir, "git", "add", "--all")
		run(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-qm", "a release")
		return dir
	}
	for _, c := range []struct {
		name, changes string
		prepare       func(t *testing.T, dir string)
		tag, only     string
		want          string
	}{
		{"the version is not in CHANGELOG.md", "## [Unreleased]\n## [0.1.0-rc.1]\n## [10.1.0]\n", func(t *testing.T, dir string) { run(t, dir, "git", "tag", "v0.1.0") }, "", "",
			`CHANGELOG.md has no heading "## [0.1.0] - YYYY-MM-DD" for the tag v0.1.0`},
		{"a file is changed", "## [0.1.0]\n", func(t *testing.T, dir string) {
			run(t, dir, "git", "tag", "v0.1.0")
			if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "", "", "the clone has changes"},
		{"the tag is of another commit", "## [0.1.0]\n", func(t *testing.T, dir string) {
			run(t, dir, "git", "tag", "v0.1.0")
			run(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--allow-empty", "-qm", "next")
		}, "v0.1.0", "", "the tag is not at HEAD"},
		{"two versions", "## [0.1.0]\n", func(t *testing.T, dir string) {
			run(t, dir, "git", "tag", "v0.1.0")
			run(t, dir, "git", "tag", "v0.2.0")
		}, "", "",
			"several versions are at HEAD: v0.1.0, v0.2.0"},
		{"a module of v0", "## [2.0.0]\n", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/x\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			run(t, dir, "git", "add", "go.mod")
			run(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-qm", "a module")
			run(t, dir, "git", "tag", "v2.0.0")
		}, "", "", "the tag v2.0.0 needs a module whose path ends with /v2, and go.mod has example.com/x"},
		{"no version", "", nil, "1.0", "", "--tag 1.0: want a version"},
		{"no platform", "", nil, "", "linux/amd64,plan9", `there is no platform "plan9"`},
		{"what another release left", "## [0.1.0]\n", func(t *testing.T, dir string) { run(t, dir, "git", "tag", "v0.1.0") }, "", "", "is not empty: it has left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, out := small(t, c.changes), t.TempDir()
			if c.prepare != nil {
				c.prepare(t, dir)
			}
			if err := os.WriteFile(filepath.Join(out, "left"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			if err := release(out, c.tag, c.only); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A commit without a tag is a snapshot, whose version sorts before all releases.
func TestSnapshot(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "git", "init", "-q", ".")
	run(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--allow-empty", "-qm", "first")
	t.Chdir(dir)
	s, err := readSource("")
	if err != nil || s.tag != "v0.0.0-20260102030405-"+s.commit[:12] || s.date.Unix() != 1767323045 {
		t.Errorf("%+v, %v", s, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	if s, err := readSource(""); err != nil || s.date.Unix() != 86400 {
		t.Errorf("%v, %v", s.date, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := readSource(""); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH=yesterday: want seconds since 1970") {
		t.Error(err)
	}
}

// npx runs the program out of the packages alone: it is told to ask no registry.
func TestNpx(t *testing.T) {
	t.Parallel()
	npx := need.Program(t, "npx")
	one, _ := outs(t)
	dir := t.TempDir()
	packages := []string{"--package", filepath.Join(one, "npm_paceline-0.9.8.tgz"),
		"--package", filepath.Join(one, "npm_paceline-"+nodeOS[here.os]+"-"+nodeArch[here.arch]+"-0.9.8.tgz")}
	call := func(args ...string) (string, error) {
		c := exec.Command(npx, append(append([]string{"--offline", "--yes", "--loglevel=error"}, packages...), append([]string{"--", "paceline"}, args...)...)...)
		c.Dir = dir
		c.Env = append(os.Environ(), "npm_config_cache="+filepath.Join(dir, "cache"), "npm_config_registry=http://127.0.0.1:1/", "npm_config_update_notifier=false")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := call("version"); err != nil || !strings.HasPrefix(out, "paceline "+tagged+" go") || strings.Count(out, "\n") != 1 {
		t.Errorf("%v, %s", err, out)
	}
	// Exit codes come through.
	out, err := call("run", "--no-such-flag")
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 2 || !strings.Contains(out, "no-such-flag") {
		t.Errorf("%v, %s", err, out)
	}
	packages = packages[:2]
	if out, err := call("version"); err == nil || !strings.Contains(out, "is not installed. Either there is none for this platform") {
		t.Errorf("without the package of the platform: %v, %s", err, out)
	}
}
