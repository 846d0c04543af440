package mutate

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	sample = flag.Int("sample", 600, "how many mutants are judged")
	seed   = flag.Uint64("seed", 1, "which")
	two    = flag.Int("two", 2, "how many at a time")
	only   = flag.String("only", "", "plant where the name of the mutant matches this, and judge -sample of each package")
	budget = flag.Duration("budget", 24*time.Minute, "begin none later than that")
	own    = flag.Bool("own", false, "ask only the tests of the package itself: who survives is to be judged again")
	dear   = flag.Duration("dear", 3*time.Minute, "do not ask tests that take longer without a fault")
)

const least = 95 // percent

// The tests find what is planted: a sample of the mutants of the core and what stands next to it. One survives that no test of this
// module finds: those of its own package are asked, then those of all who use that, however far away. It takes up to half an hour, and
// fails where fewer are found:
//
//	PACELINE_LONG=1 go test ./internal/mutate -timeout 40m -v
func TestMutants(t *testing.T) {
	if os.Getenv("PACELINE_LONG") != "1" {
		t.Skip("takes half an hour: PACELINE_LONG=1")
	}
	s := &study{t: t, builder: &Builder{Root: root, Work: t.TempDir()}, suites: map[string]*suite{}, known: map[ask]*sound{}, until: time.Now().Add(*budget)}
	s.draw()
	if err := s.build(); err != nil {
		t.Fatal(err)
	}
	if err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
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
	t       *testing.T
	builder *Builder
	built   *Build // in which number 0 is without a fault
	until   time.Time
	users   map[string][]string // of each package, by whose tests it is used
	suites  map[string]*suite

	mu       sync.Mutex // guards what follows
	fields   []*field
	known    map[ask]*sound
	sounding time.Duration // was spent to know those
	cpu      time.Duration // of all tests
}

type field struct {
	Target
	left                  []*candidate // in the order in which they are judged
	all, quota, stillborn int
	taken                 int
	ends                  map[End]int
}

type candidate struct {
	*Mutant
	number int // at which it is at work; 0: it is built alone
}

// draw chooses at random, by the shares of the targets, and some more for those that do not compile.
func (s *study) draw() {
	accepted, err := Accepted()
	if err != nil {
		s.t.Fatal(err)
	}
	which, err := regexp.Compile(*only)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, target := range Targets {
		all, err := Folder(root, target.Package)
		if err != nil {
			s.t.Fatal(err)
		}
		all = slices.DeleteFunc(all, func(m Mutant) bool { return accepted.Why(m.String()) != "" || !which.MatchString(m.String()) })
		rng := rand.New(rand.NewPCG(*seed, uint64(len(s.fields))))
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		f := &field{Target: target, all: len(all), quota: (*sample*target.Share + 999) / 1000, ends: map[End]int{}}
		if *only != "" {
			f.quota = *sample
		}
		for i := range all[:min(len(all), f.quota+f.quota/5+3)] {
			f.left = append(f.left, &candidate{Mutant: &all[i]})
		}
		s.fields = append(s.fields, f)
	}
}

// build builds them all, and leaves out those that do not compile.
func (s *study) build() error {
	var all []*Mutant
	for _, f := range s.fields {
		for _, c := range f.left {
			if !c.Alone() {
				all = append(all, c.Mutant)
				c.number = len(all)
			}
		}
	}
	built, stillborn, err := s.builder.Together(context.Background(), all)
	if err != nil {
		return err
	}
	s.built = built
	for _, f := range s.fields {
		drawn := len(f.left)
		f.left = slices.DeleteFunc(f.left, func(c *candidate) bool { return stillborn[c.Mutant] })
		f.stillborn = drawn - len(f.left)
	}
	return nil
}

// next takes a mutant of the field that lags most.
func (s *study) next() (*field, *candidate) {
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
	c := f.left[0]
	f.left = f.left[1:]
	f.taken++
	return f, c
}

func (s *study) work() {
	for {
		f, c := s.next()
		if c == nil {
			return
		}
		began := time.Now()
		v, err := s.judge(f, c)
		if err != nil {
			s.t.Errorf("%s: %v", c, err)
			s.giveUp(f)
			continue
		}
		s.mu.Lock()
		if v.stillborn {
			f.taken--
			f.stillborn++
		} else {
			f.ends[v.end]++
		}
		s.mu.Unlock()
		s.t.Logf("%5.1f s  %-9s %s:%d  %s  (%s)", time.Since(began).Seconds(), v.word(), c.File, c.Line, c, v.by)
	}
}

// giveUp judges no more of a field: its own tests do not pass without a fault.
func (s *study) giveUp(f *field) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.left = nil
}

type verdict struct {
	stillborn bool
	end       End
	by        string
}

func (v verdict) word() string {
	if v.stillborn {
		return "stillborn"
	}
	return map[End]string{Passed: "SURVIVED", Failed: "killed", Crashed: "crashed", TooLong: "UNDECIDED", ReallyTooLong: "too long"}[v.end]
}

// judge has all look who may know better, until one does.
func (s *study) judge(f *field, c *candidate) (v verdict, err error) {
	ctx := context.Background()
	build := s.built
	if c.number == 0 {
		if build, v.stillborn, err = s.builder.By(ctx, c.Mutant); err != nil || v.stillborn {
			return v, err
		}
		defer build.Remove()
	}
	binaries := map[string]string{}
	for a := range s.asksOf(f.Package) {
		known := s.sound(ctx, a)
		if known.err != nil && a.pkg == f.Package && a.short {
			return v, known.err
		}
		if known.err != nil || known.repeats {
			continue
		}
		binary := a.Binary
		if c.number == 0 {
			if binaries[a.pkg] == "" {
				if binaries[a.pkg], err = build.Tests(ctx, a.pkg); err != nil {
					return v, err
				}
			}
			binary = binaries[a.pkg]
		}
		r, err := a.twice(ctx, binary, c.number)
		s.spent(r)
		if err != nil {
			return v, err
		}
		if r.End != Passed {
			return verdict{end: r.End, by: strings.TrimSpace(a.pkg + " " + r.Test)}, nil
		}
	}
	return verdict{end: Passed, by: "nobody"}, nil
}

func (s *study) spent(r *Result) {
	if r != nil {
		s.mu.Lock()
		s.cpu += r.CPU
		s.mu.Unlock()
	}
}

func (s *study) report() {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\npackage\tkilled by a test\tcrashed\ttoo long\tSURVIVED\tundecided\tdrawn from\tdo not compile")
	sum, weighted, population := map[End]int{}, 0., 0
	for _, f := range s.fields {
		n := f.ends
		for e := range n {
			sum[e] += n[e]
		}
		if judged := killed(n) + n[Passed]; judged > 0 {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", f.Package, n[Failed], n[Crashed], n[ReallyTooLong], n[Passed], n[TooLong], f.all, f.stillborn)
			weighted += float64(f.all) * float64(killed(n)) / float64(judged)
			population += f.all
		}
	}
	w.Flush()
	s.t.Log(b.String())
	for _, name := range slices.Sorted(maps.Keys(s.suites)) {
		for _, short := range []bool{true, false} {
			if known := s.known[ask{s.suites[name], short}]; known != nil && known.err != nil {
				s.t.Logf("not asked: %s, short: %v: %v", name, short, known.err)
			}
		}
		if skipped := s.suites[name].Skipped(); len(skipped) > 0 {
			s.t.Logf("not asked, since they failed without a fault, where nothing is inlined and on a machine as busy as this: %s of %s", strings.Join(skipped, ", "), name)
		}
	}
	s.t.Logf("%d suites, in short or in full, ran without a fault when they were first asked, in %v; with faults, the tests took %v of processor time", len(s.known), s.sounding.Round(time.Second), s.cpu.Round(time.Second))
	s.t.Logf("killed by a test: it failed, twice. Crashed: without the name of a test, twice. Too long: more than %d times the processor time or the time that the tests take without a fault, which they did not take right after it.", Factor)
	k, judged := killed(sum), killed(sum)+sum[Passed]
	if judged == 0 {
		s.t.Fatal("no mutant was judged")
	}
	low, high := wilson(k, judged)
	s.t.Logf("%d of %d killed: %.1f %%, between %.1f and %.1f %% with a confidence of 95 %%; a sample of %d mutants by the shares of the packages. If each mutant counted alike: %.1f %%",
		k, judged, 100*float64(k)/float64(judged), 100*low, 100*high, population, 100*weighted/float64(cmp.Or(population, 1)))
	if k*100 < judged*least {
		s.t.Errorf("want %d %%", least)
	}
}

func killed(n map[End]int) int { return n[Failed] + n[Crashed] + n[ReallyTooLong] }

// wilson returns the bounds of a share of which k of n were seen, with a confidence of 95 %.
func wilson(k, n int) (low, high float64) {
	const z = 1.96
	p, m := float64(k)/float64(n), float64(n)
	mid, half := p+z*z/(2*m), z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return (mid - half) / (1 + z*z/m), (mid + half) / (1 + z*z/m)
}
