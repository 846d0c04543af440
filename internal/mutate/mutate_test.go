package mutate

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

var root = filepath.Join("..", "..")

// One of each fault, in the order of the source.
func TestOf(t *testing.T) {
	const src = `package p

const most = 3

func (b *Box[T]) F(n int, s []int) (int, error) {
	for i := 0; i < n; i++ {
		if n > 1 && b.ok { // what for
			b.n += min(n, 2)
			b.f(s)
			continue
		}
	}
	defer b.g()
	panic("no fault " + "here")
	return b.n, nil
}

func (b *Box) String() string { return "words" + b.name }
`
	all, err := Of("p/b.go", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.String())
		if bad := string(m.Source()); bad == src || len(bad) > len(src)+len("!()")+len("*new(int)") {
			t.Errorf("%v makes\n%s", &m, bad)
		}
	}
	for _, name := range got {
		for _, words := range []string{"words", "panic", "what for"} {
			if strings.Contains(name, words) {
				t.Errorf("words are mutated: %s", name)
			}
		}
	}
	for w := range strings.SplitSeq(`const: const most = 3 → const most = 4
const: const most = 3 → const most = 2
Box.F: for i := 0; i < n; i++ { → for i := 0; !(i < n); i++ {
Box.F: for i := 0; i < n; i++ { → for i := 0; i <= n; i++ {
Box.F: for i := 0; i < n; i++ { → for i := 1; i < n; i++ {
Box.F: for i := 0; i < n; i++ { → for i := 0; i < n; i-- {
Box.F: if n > 1 && b.ok { → if !(n > 1 && b.ok) {
Box.F: if n > 1 && b.ok { → if n > 1 || b.ok {
Box.F: if n > 1 && b.ok { → if n >= 1 && b.ok {
Box.F: if n > 1 && b.ok { → if n > 0 && b.ok {
Box.F: b.n += min(n, 2) → b.n -= min(n, 2)
Box.F: b.n += min(n, 2) → b.n += max(n, 2)
Box.F: b.n += min(n, 2) → (dropped)
Box.F: b.f(s) → (dropped)
Box.F: continue → (dropped)
Box.F: defer b.g() → (dropped)
Box.F: return b.n, nil → return *new(int), nil`, "\n") {
		if !slices.Contains(got, "p/b.go "+w) {
			t.Errorf("no %q in\n%s", w, strings.Join(got, "\n"))
		}
	}
}

// What is accepted is still there, with a reason.
func TestAccepted(t *testing.T) {
	accepted, err := Accepted()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	share := 0
	for _, target := range Targets {
		share += target.Share
		all, err := Folder(root, target.Package)
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %d mutants, %v", target.Package, len(all), err)
		}
		for _, m := range all {
			if name := m.String(); there[name] {
				t.Errorf("two mutants are %s", name)
			} else {
				there[name] = true
			}
		}
	}
	for name := range accepted {
		if !there[name] {
			t.Errorf("equivalents.txt has what is no mutant any more: %s", name)
		}
	}
	if share < 950 || share > 1050 {
		t.Errorf("the shares of the targets are %d thousandths", share)
	}
}

var (
	sample = flag.Int("sample", 240, "how many mutants are judged")
	seed   = flag.Uint64("seed", 1, "which")
	two    = flag.Int("two", 2, "how many at a time")
	only   = flag.String("only", "", "plant where the name of the mutant matches this")
	cache  = flag.String("cache", "", "a build cache; if empty, one that is thrown away")
	budget = flag.Duration("budget", 28*time.Minute, "begin none later than that")
)

const least = 95 // percent

// The tests find what is planted: a sample of the mutants of the core and what stands next to it. It takes up to half an hour:
//
//	PACELINE_LONG=1 go test ./internal/mutate -timeout 40m -v
func TestMutants(t *testing.T) {
	if os.Getenv("PACELINE_LONG") != "1" {
		t.Skip("takes half an hour: PACELINE_LONG=1")
	}
	accepted, err := Accepted()
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Root: root, Work: t.TempDir(), Cache: *cache}
	if r.Cache == "" {
		r.Cache = t.TempDir()
	}
	which, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	s := &study{t: t, runner: r, usual: map[string]time.Duration{}, until: time.Now().Add(*budget)}
	for _, target := range Targets {
		all, err := Folder(root, target.Package)
		if err != nil {
			t.Fatal(err)
		}
		all = slices.DeleteFunc(all, func(m Mutant) bool { return accepted[m.String()] != "" || !which.MatchString(m.String()) })
		rng := rand.New(rand.NewPCG(*seed, uint64(len(s.fields))))
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		quota := (*sample*target.Share + 999) / 1000
		if *only != "" {
			quota = *sample
		}
		s.fields = append(s.fields, &field{Target: target, left: all, quota: quota})
	}
	var workers sync.WaitGroup
	for range *two {
		workers.Go(s.work)
	}
	workers.Wait()
	s.report()
}

// study is a sample being judged.
type study struct {
	t      *testing.T
	runner *Runner
	until  time.Time

	mu     sync.Mutex // guards the fields
	fields []*field

	measuring sync.Mutex               // guards usual
	usual     map[string]time.Duration // of each package's tests, without a fault
}

type field struct {
	Target
	left                                      []Mutant
	quota, taken, killed, survived, stillborn int
}

// next takes a mutant of the field that lags most.
func (s *study) next() (*field, *Mutant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().After(s.until) {
		return nil, nil
	}
	var f *field
	for _, g := range s.fields {
		if g.taken < g.quota && len(g.left) > 0 && (f == nil || g.taken*f.quota < f.taken*g.quota) {
			f = g
		}
	}
	if f == nil {
		return nil, nil
	}
	m := f.left[0]
	f.left = f.left[1:]
	f.taken++
	return f, &m
}

func (s *study) work() {
	for {
		f, m := s.next()
		if m == nil {
			return
		}
		began := time.Now()
		end, by := s.judge(f, m)
		s.mu.Lock()
		switch end {
		case Killed:
			f.killed++
		case Survived:
			f.survived++
		case Stillborn:
			f.stillborn++
			f.taken--
		}
		s.mu.Unlock()
		word := map[End]string{Killed: "killed", Survived: "SURVIVED", Stillborn: "stillborn"}[end]
		s.t.Logf("%5.1f s  %-9s %s:%d  %s%s", time.Since(began).Seconds(), word, m.File, m.Line, m, by)
	}
}

// judge has the package's own tests look, then those that may know better.
func (s *study) judge(f *field, m *Mutant) (end End, by string) {
	for i, pkg := range append([]string{f.Package}, f.Then...) {
		end, _, err := s.runner.Test(context.Background(), m, pkg, Timeout(s.usually(pkg)))
		if err != nil {
			s.t.Errorf("%s: %v", m, err)
			return Stillborn, ""
		}
		if end != Survived {
			if i > 0 {
				by = fmt.Sprintf("  (by %s)", pkg)
			}
			return end, by
		}
	}
	return Survived, ""
}

// usually returns how long the tests of a package take without a fault; they must pass.
func (s *study) usually(pkg string) time.Duration {
	s.measuring.Lock() // two at once would measure each other
	defer s.measuring.Unlock()
	if d, ok := s.usual[pkg]; ok {
		return d
	}
	began := time.Now()
	if end, out, err := s.runner.Test(context.Background(), nil, pkg, 5*time.Minute); err != nil || end != Survived {
		s.t.Fatalf("without a fault, the tests of %s: %v\n%s", pkg, err, out)
	}
	s.usual[pkg] = time.Since(began)
	return s.usual[pkg]
}

func (s *study) report() {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\npackage\tkilled\tsurvived\tof mutants that are left\tdo not compile")
	killed, survived := 0, 0
	for _, f := range s.fields {
		if f.killed+f.survived > 0 {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", f.Package, f.killed, f.survived, len(f.left), f.stillborn)
		}
		killed += f.killed
		survived += f.survived
	}
	w.Flush()
	s.t.Log(b.String())
	judged := killed + survived
	if judged == 0 {
		s.t.Fatal("no mutant was judged")
	}
	percent := 100 * float64(killed) / float64(judged)
	s.t.Logf("%d of %d killed: %.1f %%", killed, judged, percent)
	if percent < least {
		s.t.Errorf("want %d %%", least)
	}
}
