package mutate

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/overlay"
)

var (
	sample = flag.Int("sample", 600, "how many mutants are judged")
	seed   = flag.Uint64("seed", 1, "which")
	two    = flag.Int("two", 2, "how many at a time")
	only   = flag.String("only", "", "plant where the name of the mutant matches this, and judge -sample of each package")
	from   = flag.String("since", "", "plant in lines alone that changed since this revision of git")
	budget = flag.Duration("budget", 24*time.Minute, "have none judged later than that")
	own    = flag.Bool("own", false, "ask only the tests of the package itself: who survives is to be judged again")
	dear   = flag.Duration("dear", 3*time.Minute, "do not ask tests that take longer without a fault")
)

const least = 95 // percent

// The tests find what is planted: a sample of the mutants of the core and what stands next to it. One survives that no test of this
// module finds: those of its own package are asked, then those of all who use that, however far away, or as many as there is time for. It
// takes up to half an hour, and fails where fewer are found:
//
//	PACELINE_LONG=1 go test ./tools/mutate -timeout 40m -v
func TestMutants(t *testing.T) {
	need.LongOnly(t, "takes half an hour")
	s := &study{t: t, builder: NewBuilder(root, t.TempDir()), suites: map[string]*suite{}, known: map[ask]*sound{}, asked: map[ask]bool{}, until: time.Now().Add(*budget)}
	s.draw()
	if err := s.build(); err != nil {
		t.Fatal(err)
	}
	if err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, work := range []func(context.Context){s.byTheirOwn, s.byOthers} {
		var workers sync.WaitGroup
		for range *two {
			workers.Go(func() { work(t.Context()) })
		}
		workers.Wait()
	}
	s.report()
}

// study is a sample being judged.
type study struct {
	t       *testing.T
	builder *Builder
	built   *overlay.Build // in which number 0 is without a fault
	until   time.Time
	users   map[string][]string // of each package, by whose tests it is used
	suites  map[string]*suite

	mu       sync.Mutex // guards what follows
	fields   []*field
	known    map[ask]*sound
	asked    map[ask]bool  // about the doubtful
	doubtful []*candidate  // that the tests of their own package did not find
	late     bool          // not all were asked about them
	sounding time.Duration // was spent on what is known
	cpu      time.Duration // of all tests
	short    int           // were found by the short form of the tests of their own package
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
	of     *field
	number int // at which it is at work; 0: it is built alone

	alone    *overlay.Build
	binaries map[string]string // of that, by the package whose tests they are
	end      End
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
	var changed lines
	if *from != "" {
		if changed, err = since(root, *from); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, target := range Targets {
		all, err := Folder(root, target.Package)
		if err != nil {
			s.t.Fatal(err)
		}
		all = slices.DeleteFunc(all, func(m Mutant) bool {
			return accepted.Why(m.String()) != "" || !which.MatchString(m.String()) || changed != nil && !changed[m.File][m.Line]
		})
		rng := rand.New(rand.NewPCG(*seed, uint64(len(s.fields))))
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		f := &field{Target: target, all: len(all), quota: (*sample*target.Share + 999) / 1000, ends: map[End]int{}}
		if *only != "" {
			f.quota = *sample
		}
		for i := range all[:min(len(all), f.quota+f.quota/5+3)] {
			f.left = append(f.left, &candidate{Mutant: &all[i], of: f, binaries: map[string]string{}})
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

// next takes a mutant of the field that lags most. Half of the time is for those that others have to judge.
func (s *study) next() *candidate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := time.Until(s.until); left < 0 || !*own && left < *budget/2 {
		return nil
	}
	var f *field
	for _, g := range s.fields {
		if g.taken < g.quota && len(g.left) > 0 && (f == nil || g.taken*f.quota < f.taken*g.quota) {
			f = g
		}
	}
	if f == nil {
		return nil
	}
	c := f.left[0]
	f.left = f.left[1:]
	f.taken++
	return c
}

// byTheirOwn has mutants judged by the tests of their own package, which find most.
func (s *study) byTheirOwn(ctx context.Context) {
	for c := s.next(); c != nil; c = s.next() {
		began := time.Now()
		if stillborn, err := s.deliver(ctx, c); err != nil {
			s.t.Errorf("%s: %v", c, err)
			continue
		} else if stillborn {
			s.t.Logf("%5.1f s  stillborn %s:%d  %s", time.Since(began).Seconds(), c.File, c.Line, c)
			continue
		}
		if !s.own(ctx, c) {
			s.giveUp(c.of)
		} else if c.end == Passed {
			s.doubt(c)
			s.t.Logf("%5.1f s  doubtful  %s:%d  %s", time.Since(began).Seconds(), c.File, c.Line, c)
		}
	}
}

// own has the tests of its own package look at a mutant: in full, if they have not found it in short. It reports whether they pass without.
func (s *study) own(ctx context.Context, c *candidate) bool {
	w := s.suites[c.of.Package]
	known := s.sound(ctx, ask{w, true})
	if known.err != nil {
		s.t.Errorf("%s: %v", c, known.err)
		return false
	}
	if s.look(ctx, ask{w, true}, c); c.end != Passed {
		return true
	}
	if known := s.sound(ctx, ask{w, false}); known.err == nil && !known.repeats {
		s.look(ctx, ask{w, false}, c)
	}
	return true
}

// giveUp judges no more of a field.
func (s *study) giveUp(f *field) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.left = nil
}

func (s *study) doubt(c *candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubtful = append(s.doubtful, c)
}

// byOthers has one suite after the other look at those that their own tests did not find, the quickest first, until none is left, or no time.
func (s *study) byOthers(ctx context.Context) {
	for a, some := s.nextAsk(); len(some) > 0 && !s.isLate(a); a, some = s.nextAsk() {
		known := s.sound(ctx, a)
		for _, c := range some {
			if known.err == nil && !known.repeats && !s.isLate(a) {
				s.look(ctx, a, c)
			}
		}
	}
}

// isLate tells, and notes, that there is no time for an ask.
func (s *study) isLate(a ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = s.late || time.Until(s.until) < s.expectedLocked(a)
	return s.late
}

// deliver builds a mutant that could not be built with the others.
func (s *study) deliver(ctx context.Context, c *candidate) (stillborn bool, err error) {
	if c.number != 0 {
		return false, nil
	}
	if c.alone, stillborn, err = s.builder.By(ctx, c.Mutant); stillborn || err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.of.taken--
		c.of.stillborn++
	}
	return stillborn, err
}

// look has a suite look at a mutant, and notes what it finds.
func (s *study) look(ctx context.Context, a ask, c *candidate) {
	began := time.Now()
	s.mu.Lock()
	found := c.end != Passed // by another worker
	s.mu.Unlock()
	if found {
		return
	}
	r, err := s.run(ctx, a, c)
	if err != nil {
		s.t.Errorf("%s: %v", c, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cpu += r.CPU
	if r.End == Passed || c.end != Passed {
		return
	}
	c.end = r.End
	c.of.ends[r.End]++
	if a.short && a.pkg == c.of.Package && r.End != TooLong {
		s.short++
	}
	s.doubtful = slices.DeleteFunc(s.doubtful, func(d *candidate) bool { return d == c })
	s.t.Logf("%5.1f s  %-9s %s:%d  %s  (%s)", time.Since(began).Seconds(), words[r.End], c.File, c.Line, c, strings.TrimSpace(a.pkg+" "+r.Test+map[bool]string{false: ", in full"}[a.short]))
}

func (s *study) run(ctx context.Context, a ask, c *candidate) (*Result, error) {
	if c.number != 0 {
		return a.twice(ctx, a.Binary, c.number)
	}
	s.mu.Lock()
	binary := c.binaries[a.pkg]
	s.mu.Unlock()
	if binary == "" {
		var err error
		if binary, err = c.alone.Tests(ctx, a.pkg); err != nil {
			return nil, err
		}
		s.mu.Lock()
		c.binaries[a.pkg] = binary
		s.mu.Unlock()
	}
	return a.twice(ctx, binary, 0)
}

var words = map[End]string{Passed: "SURVIVED", Failed: "killed", Crashed: "crashed", TooLong: "UNDECIDED", ReallyTooLong: "too long"}

func (s *study) report() {
	for _, c := range s.doubtful {
		c.of.ends[Passed]++
		s.t.Logf("         %-9s %s:%d  %s  (nobody%s)", words[Passed], c.File, c.Line, c, map[bool]string{true: " yet: there was no time to ask all"}[s.late])
	}
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
	s.t.Logf("%d of %d killed by the short form of the tests of their own package: %.1f %%", s.short, judged, 100*float64(s.short)/float64(judged))
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
