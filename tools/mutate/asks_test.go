package mutate

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// suite is the tests of a package, as they are without a fault.
type suite struct {
	Suite
	pkg      string
	packages int // of this module, with which they are made
	build    sync.Once
	broken   error // why they were not built
}

// ask is a way to look at a mutant: with a suite, in short or in full.
type ask struct {
	*suite
	short bool
}

// sound is how an ask goes without a fault.
type sound struct {
	takes   time.Duration
	repeats bool  // it is in full, and not much more than in short
	err     error // why it cannot be asked
}

// prepare finds whose tests may know any of the sample. They are built, and run without a fault, when they are first asked: most mutants
// are found by the tests of their own package, and few need those that take minutes.
func (s *study) prepare(ctx context.Context) error {
	users, err := s.builder.Users(ctx)
	if err != nil {
		return err
	}
	made := map[string]int{}
	for _, by := range users {
		for _, pkg := range by {
			made[pkg]++
		}
	}
	if s.users = users; *own {
		s.users = map[string][]string{}
	}
	for _, f := range s.fields {
		for _, pkg := range append([]string{f.Package}, s.users[f.Package]...) {
			if len(f.left) > 0 && s.suites[pkg] == nil {
				s.suites[pkg] = &suite{Suite: Suite{Folder: filepath.Join(root, filepath.FromSlash(pkg)), Most: *dear}, pkg: pkg, packages: made[pkg]}
			}
		}
	}
	return nil
}

// nextAsk returns who is to look next, and at whom: the quickest, as far as is known by now, of those that have not been asked and may know
// any of the doubtful.
func (s *study) nextAsk() (best ask, some []*candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	quickest := func(a, b ask) int {
		return cmp.Or(cmp.Compare(s.expectedLocked(a), s.expectedLocked(b)), cmp.Compare(a.pkg, b.pkg))
	}
	for _, w := range s.suites {
		for _, a := range []ask{{w, true}, {w, false}} {
			if s.asked[a] || len(some) > 0 && quickest(a, best) > 0 {
				continue
			}
			if may := s.mayKnowLocked(w.pkg); len(may) > 0 {
				best, some = a, may
			}
		}
	}
	s.asked[best] = true
	return best, some
}

// mayKnowLocked returns those of the doubtful of which the tests of a package may know, those of its own, which did not, left out.
func (s *study) mayKnowLocked(pkg string) (some []*candidate) {
	for _, c := range s.doubtful {
		if c.of.Package != pkg && slices.Contains(s.users[c.of.Package], pkg) {
			some = append(some, c)
		}
	}
	return some
}

// expectedLocked is how long an ask takes without a fault. Until it has been made that is a guess: who is made with much has much to try.
func (s *study) expectedLocked(a ask) time.Duration {
	if known := s.known[a]; known != nil {
		return known.takes
	}
	if a.short {
		return time.Duration(a.packages) * 200 * time.Millisecond
	}
	return 4 * s.expectedLocked(ask{a.suite, true})
}

// sound builds a suite and has it run without a fault, where that was not done before.
func (s *study) sound(ctx context.Context, a ask) *sound {
	s.mu.Lock()
	known := s.known[a]
	s.mu.Unlock()
	if known == nil {
		began := time.Now()
		known = s.measure(ctx, a)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.known[a] = known
		s.sounding += time.Since(began)
	}
	return known
}

func (s *study) measure(ctx context.Context, a ask) *sound {
	a.build.Do(func() { a.Binary, a.broken = s.built.Tests(ctx, a.pkg) })
	if a.broken != nil {
		return &sound{err: a.broken}
	}
	r, err := a.Usual(ctx, a.short)
	if err != nil {
		return &sound{err: err}
	}
	known := &sound{takes: r.Wall}
	if !a.short {
		few, err := a.Usual(ctx, true)
		known.repeats = err == nil && few.CPU >= r.CPU*2/3
	}
	return known
}

// twice has a failure happen again, or it may be the machine's.
func (a ask) twice(ctx context.Context, binary string, number int) (*Result, error) {
	r, err := a.Run(ctx, binary, number, a.short, "")
	if err != nil || r.End != Failed && r.End != Crashed {
		return r, err
	}
	if again, err := a.Run(ctx, binary, number, a.short, r.Test); err != nil || again.End != Passed {
		return r, err
	}
	if again, err := a.Run(ctx, binary, number, a.short, ""); err != nil || again.End != Passed {
		return r, err
	}
	r.End = Passed
	return r, nil
}
