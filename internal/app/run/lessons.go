package run

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// lessons are the lessons in the journal about wrong limits, by key. Safe for concurrent use.
type lessons struct {
	c      *Config
	teller *telling.Teller
	epoch  time.Time

	mu   sync.Mutex
	kept map[string][]limit.Lesson
}

// news returns the lessons of a key that are not in the journal yet, and notes all of them as kept.
func (s *lessons) news(key string, all []limit.Lesson) (changed []limit.Lesson) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range all {
		if !slices.Contains(s.kept[key], l) {
			changed = append(changed, l)
		}
	}
	if s.kept == nil {
		s.kept = map[string][]limit.Lesson{}
	}
	s.kept[key] = all
	return changed
}

// recall gives the limiters the lessons of earlier runs. It leaves out lessons about limits that
// this run does not have.
func (g *group) recall() {
	r := g.r
	for i := range r.c.Keys {
		g.recallTo(i, g.of[i].fitted)
		for _, m := range g.of[i].fitted.Misfits() {
			r.lessons.tellMisfit(g.called(i), &m, m.Sure, " in a run before")
		}
	}
}

// recallTo gives the limiters of a key the lessons of earlier runs with that key.
func (g *group) recallTo(key int, fitted *limit.Fitted) {
	r := g.r
	for _, f := range r.store.History.Fits[g.name(key)] {
		n := slices.IndexFunc(g.limits(), func(l format.Rate) bool { return l.Rule() == f.Limit })
		if n < 0 {
			continue
		}
		l := f.Moved(-time.Duration(r.epoch.UnixNano()))
		l.Index = n
		fitted.Recall(0, l)
	}
}

// learned writes a key's lessons to the journal, and to the notices. The Pool calls it, one call at
// a time.
func (g *group) learned(key int, all []limit.Lesson) {
	r, name := g.r, g.name(key)
	for _, l := range r.lessons.news(name, all) {
		if r.store.Journal == nil {
			break
		}
		fit := journal.Fit{Limit: g.limits()[l.Index].Rule(), Lesson: l}
		if err := r.store.Journal.Learn(name, fit, r.epoch); err != nil {
			r.course.fail(err)
			return
		}
		r.store.Wake()
	}
	for _, m := range g.pool.Keys()[key].Misfits {
		r.lessons.tellMisfit(g.called(key), &m, m.Sure, "")
	}
}

// which names a limit of a key in the notices.
func which(key string, m *limit.Misfit) string { return fmt.Sprintf("%s %v", key, m.Rule) }

// tellMisfit reports a wrong limit to the user: first that it is wrong, and later which limit would
// fit. known says that this is known, or that no more will become known.
func (s *lessons) tellMisfit(key string, m *limit.Misfit, known bool, when string) {
	kept, accepted, would := s.wouldFit(m)
	cause, others := "the true limit is smaller, or ", "others use the key, too"
	if m.Fits >= m.N && m.Gap == 0 { // the server has accepted as much as the limit allows
		cause, would = "the limit changed in the run, or ", "the limit"
	}
	says := fmt.Sprintf("key %s kept to %s%s and was refused: %s%s", key, kept, when, cause, others)
	if s.c.keyless {
		says = fmt.Sprintf("requests kept to %s%s and were refused: %sothers use it, too", kept, when, cause)
	}
	until := s.epoch.Add(time.Duration(m.Until))
	isFirst := s.teller.IsFirst("misfit " + which(key, m))
	switch {
	case known && s.teller.IsNews("fits "+which(key, m), until, 0):
		then := "The run tries whether more is allowed"
		if time.Until(until) > 0 {
			then = "The run goes no faster until " + until.Format("15:04:05")
		}
		s.teller.Say("%s; %s were accepted: %s would fit. %s", says, accepted, would, then)
	case !known && isFirst:
		s.teller.Say("%s. The run is slower now, and says later which limit would fit", says)
	}
}

// wouldFit puts into words the limit that was kept, the requests that were accepted, and the limit
// that would fit.
func (s *lessons) wouldFit(m *limit.Misfit) (kept, accepted, would string) {
	fits := m.Rule
	fits.N, fits.Per = m.Fits, max(m.Per, m.Gap)
	kept, would = m.Rule.String(), fits.String()
	for _, l := range s.c.Limits {
		_, per, is := strings.Cut(l.Text, "/")
		if is && l.N == m.N && l.Per == m.Per && l.Unit == m.Unit {
			kept = l.Text
			if would = fmt.Sprintf("--limit %d/%s", m.Fits, per); m.Gap > 0 {
				would = fmt.Sprintf("--limit 1/%v", m.Gap)
			}
		}
	}
	return kept, fmt.Sprintf("%d in %v", fits.N, fits.Per), would
}

// tellMisfits reports at the end of the run which limits would fit, as far as that is known. It
// also writes the latest lessons to the journal.
func (p pools) tellMisfits() {
	for _, g := range p {
		g.tellMisfits()
	}
}

func (g *group) tellMisfits() {
	r := g.r
	all := make([][]limit.Lesson, len(r.c.Keys))
	g.pool.Update(func(_ mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
		for i := range all {
			all[i] = d.Lessons(i)
		}
	})
	for i, k := range g.pool.Keys() {
		g.tellServed(i, 2)
		if len(all[i]) > 0 {
			g.learned(i, all[i])
		}
		for _, m := range k.Misfits {
			if r.IsFirst("fits " + which(g.called(i), &m)) {
				r.lessons.tellMisfit(g.called(i), &m, true, "")
			}
		}
	}
}

// tellServed reports which limit would fit if none was given, after at least least refusals.
func (g *group) tellServed(key, least int) {
	if !g.knowsNothing() {
		return
	}
	n, in, is := g.served[key].News(least)
	if !is {
		return
	}
	whom := "the server refuses requests"
	if !g.r.c.keyless {
		whom = "requests of key " + g.called(key) + " are refused"
	}
	g.r.Say("%s, and no limit was given; %d in %v were accepted: --limit %s would fit", whom, n,
		in.Round(time.Millisecond), telling.RateText(n, in))
}
