package mutate

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is built together is a program, in which each mutant has lines of its own.
func TestTogether(t *testing.T) {
	const src = `package p

type box[T any] struct{ n int }

func (b *box[T]) add(n int, _ T) int { return b.n + n }

func (box[T]) none(...int) {
	for i := 0; i < 3; i++ {
	}
}

func sum[T ~int](first T, more ...T) (all T) {
	for _, m := range more {
		all += m
	}
	return all + first
}
`
	all, err := Of("p/p.go", []byte(src), nil)
	if err != nil {
		t.Fatal(err)
	}
	var mutants []*Mutant
	var numbers []int
	for i := range all {
		if all[i].Before != "all += m" || all[i].After != "(dropped)" { // which does not compile
			mutants, numbers = append(mutants, &all[i]), append(numbers, 10+i)
		}
	}
	text, lines := together(numbers, mutants)
	fset := token.NewFileSet()
	var files []*ast.File
	for name, src := range map[string][]byte{"p.go": text, "mutant__.go": []byte("package p\n\nvar mutant__ int\n")} {
		f, err := parser.ParseFile(fset, name, src, 0)
		if err != nil {
			t.Fatalf("%v in\n%s", err, src)
		}
		files = append(files, f)
	}
	if _, err := new(types.Config).Check("p", fset, files, nil); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	each := strings.Split(string(text), "\n")
	for i, n := range numbers {
		if line := each[lines[n]-1]; len(mutants) < 5 || !strings.HasPrefix(line, "func ") {
			t.Errorf("%v begins at\n%s", mutants[i], line)
		}
	}
}

// How tests end: a script for a program. Whoever goes on for too long is killed only if the others do not.
func TestRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	for name, c := range map[string]struct {
		script string
		want   End
		test   string
	}{
		"passes":             {`exit 0`, Passed, ""},
		"fails":              {`echo "--- FAIL: TestIt (0.00s)"; exit 1`, Failed, "TestIt"},
		"ends":               {`echo "fatal error: all goroutines are asleep"; exit 2`, Crashed, ""},
		"goes on":            {`exec sleep 60`, ReallyTooLong, ""},
		"goes on, as all do": {`test -f again && exit 0; touch again; exec sleep 60`, Passed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "p.test")
			// Without a fault it takes no time, and where something has been found to be slow, more than half of what it may take. A busy
			// machine may take a second to begin.
			script := "#!/bin/sh\nif [ $PACELINE_MUTANT = 0 ]; then test -f again && sleep 1.2; exit 0; fi\n" + c.script + "\n"
			if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Parallel() // not before: what another starts meanwhile would have the script open for writing, so that it could not be run
			s := &Suite{Folder: filepath.Dir(binary), Binary: binary, Least: 2 * time.Second}
			r, err := s.Run(context.Background(), binary, 1, true, "")
			if err != nil || r.End != c.want || r.Test != c.test {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// The users of a package are all whose tests have it: those that import it only in tests, or through others, and itself.
func TestUsers(t *testing.T) {
	users, err := NewBuilder(root, "").Users(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pkg, user string
		want      bool
	}{
		{"limit", "limit", true},
		{"limit", "cmd/paceline", true},
		{"limit/mono", "cmd/paceline", true}, // through others
		{"limit", ".", true},
		{".", "transport", true},
		{"limit/window", "limit", false},
		{"transport", "limit", false},
		{"limit", "tools/mutate", false},
		{"lab/strategy", "limit", false},
		{"internal/testkit/golden", "limit", true}, // in a test
		{"limit", "lab/laws/limit", true},          // in a folder of tests alone
		{"fairshare", "lab/laws/fairshare", true},
		{"transport", "lab/laws/doors", true},
		{"transport", "lab/laws/fairshare", false},
	} {
		if slices.Contains(users[c.pkg], c.user) != c.want {
			t.Errorf("the tests of %s use %s: %v, want %v", c.user, c.pkg, !c.want, c.want)
		}
	}
	for _, target := range Targets {
		if !slices.Contains(users[target.Package], target.Package) {
			t.Errorf("%s has no tests of its own", target.Package)
		}
	}
}

// Those whose tests are made with what is doubtful are asked, and nobody else. The quickest is next: by how many packages it is made with, until
// it has run without a fault; and in full it is tried after it was tried in short.
func TestWhoIsAsked(t *testing.T) {
	for _, c := range []struct {
		known map[string]time.Duration // of their short tests
		want  string
	}{
		{nil, "transport lab/sim transport- lab/sim- cmd cmd-"},
		{map[string]time.Duration{"transport": time.Minute}, "lab/sim lab/sim- cmd transport cmd- transport-"},
		{map[string]time.Duration{"limit": time.Hour, "cmd": 2 * time.Second}, "cmd transport lab/sim cmd- transport- lab/sim-"},
	} {
		s := study{users: map[string][]string{"limit": {"cmd", "limit", "lab/sim", "transport"}, "limit/mono": {"internal/core/queue"}}, suites: map[string]*suite{}, known: map[ask]*sound{}, asked: map[ask]bool{}}
		for pkg, packages := range map[string]int{"limit": 5, "cmd": 90, "lab/sim": 21, "transport": 20, "internal/core/queue": 1} {
			s.suites[pkg] = &suite{pkg: pkg, packages: packages}
		}
		s.doubtful = []*candidate{{of: &field{Target: Target{Package: "limit"}}}}
		for pkg, takes := range c.known {
			s.known[ask{s.suites[pkg], true}] = &sound{takes: takes}
		}
		var got []string
		for a, some := s.nextAsk(); len(some) > 0; a, some = s.nextAsk() {
			got = append(got, a.pkg+map[bool]string{false: "-"}[a.short])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("where %v is known, %v are asked, want %v", c.known, got, c.want)
		}
		s.doubtful = nil
		clear(s.asked)
		if a, some := s.nextAsk(); len(some) > 0 {
			t.Errorf("where nothing is doubtful %v is asked", a.pkg)
		}
	}
}

// 95 of 100 is between 88.8 and 97.8 %, and nothing is surely not everything.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{{95, 100, 0.888, 0.978}, {0, 10, 0, 0.278}, {10, 10, 0.722, 1}, {190, 200, 0.910, 0.973}} {
		if low, high := wilson(c.k, c.n); math.Abs(low-c.low) > 1e-3 || math.Abs(high-c.high) > 1e-3 {
			t.Errorf("%d of %d: %.3f to %.3f", c.k, c.n, low, high)
		}
	}
}
