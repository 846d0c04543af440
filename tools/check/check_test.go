//go:build unix

// Package check tests the script ./check, in a small module.
package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A go that notes the packages which vet and staticcheck are asked about, and what tests print. There is nothing to
// tidy here, and staticcheck finds nothing.
const noting = `#!/bin/sh
case "$1 $2 $3" in
"mod tidy "*) ;;
"tool -n staticcheck") echo "$NOTED/staticcheck" ;;
"test "*) "$REAL_GO" "$@" >"$NOTED/tested"; code=$?; cat "$NOTED/tested"; exit $code ;;
"vet "*) shift; echo "vet $*" >>"$NOTED/asked"; exec "$REAL_GO" vet "$@" ;;
*) exec "$REAL_GO" "$@" ;;
esac
`

const linting = `#!/bin/sh
echo "staticcheck $*" >>"$NOTED/asked"
`

const (
	wrapper = "// Package a prints.\npackage a\n\nimport \"fmt\"\n\n// Say prints.\nfunc Say(format string, args ...any) { fmt.Printf(format, args...) }\n"
	caller  = "// Package b says.\npackage b\n\nimport \"small/a\"\n\n// Greet says %s.\nfunc Greet() { a.Say(%q, %s) }\n"
)

const filing = `package a

import (
	"os"
	"strings"
	"testing"
)

func TestA(t *testing.T) {
	if dir := t.TempDir(); !strings.HasPrefix(dir, os.TempDir()) {
		t.Errorf("%%d: %%s is not in %%s", %d, dir, os.TempDir())
	}
}
`

// small is a module with two packages, of which b calls a.
type small struct {
	t          *testing.T
	dir, noted string
}

func newSmall(t *testing.T) *small {
	s := &small{t: t, dir: t.TempDir(), noted: t.TempDir()}
	script, err := os.ReadFile("../../check")
	if err != nil {
		t.Fatal(err)
	}
	s.write(s.dir, "check", string(script), 0o755)
	s.write(s.dir, "go.mod", "module small\n\ngo 1.26.0\n", 0o644)
	s.write(s.dir, "go.sum", "", 0o644)
	s.write(s.dir, "tools/archtest/table_test.go", "package archtest\n", 0o644)
	s.write(s.dir, "a/a.go", wrapper, 0o644)
	s.greets("hello", `"you"`)
	s.write(s.noted, "go", noting, 0o755)
	s.write(s.noted, "staticcheck", linting, 0o755)
	return s
}

func (s *small) write(dir, name, text string, mode os.FileMode) {
	s.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

func (s *small) greets(word, whom string) {
	s.t.Helper()
	s.write(s.dir, "b/b.go", fmt.Sprintf(caller, word, word+" %s\n", whom), 0o644)
}

// check runs ./check and returns whether it passed, what it printed, and the packages that vet and staticcheck saw.
func (s *small) check(env ...string) (passed bool, printed string, asked []string) {
	s.t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		s.t.Fatal(err)
	}
	note := filepath.Join(s.noted, "asked")
	os.Remove(note)
	cmd := exec.CommandContext(s.t.Context(), "./check")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+s.noted+":"+os.Getenv("PATH"), "REAL_GO="+real, "NOTED="+s.noted,
		"CGO_ENABLED=0", "GOFLAGS=", "PACELINE_REQUIRE_SERVICES=", "FUZZTIME=", "TMPDIR=", "GOTMPDIR=")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	text, _ := os.ReadFile(note)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		slices.Sort(words[1:])
		asked = append(asked, strings.Join(words, " "))
	}
	return err == nil, string(out), asked
}

// Each package is looked at until it has passed, and once more when a file of its own changes. CI looks at all of
// them, and so does another clone.
func TestLooksAtWhatChanged(t *testing.T) {
	s := newSmall(t)
	everything := []string{"vet ./a ./b ./tools/archtest", "staticcheck ./a ./b ./tools/archtest"}
	steps := []struct {
		name   string
		before func()
		env    string
		fails  string // what ./check prints then
		asked  []string
	}{
		{name: "a new clone", asked: everything},
		{name: "nothing changed"},
		{name: "a fault in b", before: func() { s.greets("hello", "1") }, fails: "wrong type", asked: []string{"vet ./b"}},
		{name: "the fault is still there", fails: "wrong type", asked: []string{"vet ./b"}},
		{name: "mended", before: func() { s.greets("hi", `"you"`) }, asked: []string{"vet ./b", "staticcheck ./b"}},
		{name: "as it was once", before: func() { s.greets("hello", `"you"`) }},
		{
			name: "another version of Go", before: func() { s.write(s.dir, "go.mod", "module small\n\ngo 1.25.0\n", 0o644) },
			asked: everything,
		},
		{
			name: "a new test in a", asked: []string{"vet ./a", "staticcheck ./a"},
			before: func() { s.write(s.dir, "a/a_test.go", "package a\n", 0o644) },
		},
		// It has no fuzz target, and so ends there.
		{name: "CI", env: "PACELINE_REQUIRE_SERVICES=1", fails: "check: fuzz failed", asked: []string{"vet ./...", "staticcheck ./..."}},
	}
	for _, step := range steps {
		if step.before != nil {
			step.before()
		}
		passed, printed, asked := s.check(step.env)
		if passed != (step.fails == "") || !strings.Contains(printed, step.fails) || !slices.Equal(asked, step.asked) {
			t.Fatalf("%s: passed: %v, asked %q, want %q; it printed\n%s", step.name, passed, asked, step.asked, printed)
		}
	}
	if _, _, asked := newSmall(t).check(); !slices.Equal(asked, everything) {
		t.Errorf("another clone, as the first one was: asked %q", asked)
	}
}

// A clone does not test again what another one has tested as it is: it links a test that is built of the same files,
// and Go knows the result. That holds for a test with files, too. They are where ./check has all files of tests, in
// memory if it can: the folder of what is compiled is another one.
func TestClonesShareResults(t *testing.T) {
	value := time.Now().UnixNano() // nobody has tested this
	tested := func() string {
		s := newSmall(t)
		s.write(s.dir, "a/a_test.go", fmt.Sprintf(filing, value), 0o644)
		if passed, printed, _ := s.check(); !passed {
			t.Fatal(printed)
		}
		out, err := os.ReadFile(filepath.Join(s.noted, "tested"))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if out := tested(); !regexp.MustCompile(`ok\s+small/a\s+[\d.]+s`).MatchString(out) {
		t.Errorf("the first clone printed\n%s", out)
	}
	if out := tested(); !regexp.MustCompile(`ok\s+small/a\s+\(cached\)`).MatchString(out) {
		t.Errorf("the second clone printed\n%s", out)
	}
}

const failing = `package a

import (
	"os"
	"testing"
)

// Each run of a test leaves a file. The first of them may fail, or all that are not alone.
func TestA(t *testing.T) {
	for _, runs := range []string{"1", "2", "3", "4"} {
		f, err := os.OpenFile(os.Getenv("NOTED")+"/%[1]s"+runs, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			continue
		}
		f.Close()
		if %[2]s {
			%[3]s
		}
		return
	}
}
`

// A test that fails once passes if it then does three times alone. The check names it. One that fails again fails the
// check, and so do a panic and four tests.
func TestFailsOnce(t *testing.T) {
	s := newSmall(t)
	for name, c := range map[string]struct{ when, how, want string }{
		"once":  {`runs == "1"`, `t.Error("late")`, ""},
		"twice": {`runs == "1" || runs == "4"`, `t.Error("late")`, "check: test failed"},
		"panic": {`runs == "1"`, `panic("broken")`, "check: test failed"},
	} {
		s.write(s.dir, "a/a_test.go", fmt.Sprintf(failing, name, c.when, c.how), 0o644)
		passed, printed, _ := s.check()
		if passed != (c.want == "") || !strings.Contains(printed, c.want) {
			t.Errorf("%s: passed: %v; it printed\n%s", name, passed, printed)
		}
		const said = "failed once, then passed three times alone: small/a TestA"
		if strings.Contains(printed, said) != (c.want == "") || c.how[0] == 't' && !strings.Contains(printed, ": late") {
			t.Errorf("%s: it printed\n%s", name, printed)
		}
	}
	var many strings.Builder
	many.WriteString("package a\n\nimport \"testing\"\n")
	for i := range 4 {
		fmt.Fprintf(&many, "\nfunc Test%d(t *testing.T) { t.Error(\"late\") }\n", i)
	}
	s.write(s.dir, "a/a_test.go", many.String(), 0o644)
	if passed, printed, _ := s.check(); passed || strings.Contains(printed, "once more") {
		t.Errorf("four that fail: passed: %v; it printed\n%s", passed, printed)
	}
}
