package mutate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// suite is the tests of a package, as they are without a fault.
type suite struct {
	Suite
	pkg string
	err error // why it is not asked
}

// ask is a way to look at a mutant: with a suite, in short or in full.
type ask struct {
	*suite
	short bool
	takes time.Duration // without a fault
}

// prepare builds the suites that may know any of the sample and has them run without a fault, so that quick ones are asked first.
func (s *study) prepare(ctx context.Context) error {
	users, err := s.builder.Users(ctx)
	if err != nil {
		return err
	}
	s.users = users
	if *own {
		s.users = map[string][]string{}
	}
	for _, f := range s.fields {
		for _, pkg := range append([]string{f.Package}, s.users[f.Package]...) {
			if len(f.left) > 0 && s.suites[pkg] == nil {
				s.suites[pkg] = &suite{Suite: Suite{Folder: filepath.Join(root, filepath.FromSlash(pkg)), Most: *dear}, pkg: pkg}
			}
		}
	}
	began := time.Now()
	todo := make(chan *suite)
	var workers sync.WaitGroup
	for range *two {
		workers.Go(func() {
			for w := range todo {
				w.err = s.measure(ctx, w)
			}
		})
	}
	for _, pkg := range slices.Sorted(maps.Keys(s.suites)) {
		todo <- s.suites[pkg]
	}
	close(todo)
	workers.Wait()
	for _, f := range s.fields {
		if len(f.left) > 0 && s.suites[f.Package].err != nil {
			return s.suites[f.Package].err
		}
	}
	slices.SortStableFunc(s.asks, func(a, b ask) int { return cmp.Or(cmp.Compare(a.takes, b.takes), cmp.Compare(a.pkg, b.pkg)) })
	s.t.Logf("%d suites were built, and ran in short and in full, in %v", len(s.suites), time.Since(began).Round(time.Second))
	return nil
}

// measure notes what a suite takes. In full it is only asked where that is much more than in short.
func (s *study) measure(ctx context.Context, w *suite) error {
	var err error
	if w.Binary, err = s.sound.Tests(ctx, w.pkg); err != nil {
		return err
	}
	few, err := w.Usual(ctx, true)
	if err != nil {
		return err
	}
	s.asked(ask{w, true, few.Wall})
	all, err := w.Usual(ctx, false)
	if err != nil {
		return fmt.Errorf("in full: %w", err)
	}
	if few.CPU < all.CPU*2/3 {
		s.asked(ask{w, false, all.Wall})
	}
	return nil
}

func (s *study) asked(a ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, a)
}

// asksOf returns who looks at the mutants of a package, one after the other: its own tests, then all others, quick ones first.
func (s *study) asksOf(pkg string) []ask {
	var own, others []ask
	for _, a := range s.asks {
		switch {
		case a.pkg == pkg:
			own = append(own, a)
		case slices.Contains(s.users[pkg], a.pkg):
			others = append(others, a)
		}
	}
	return append(own, others...)
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
