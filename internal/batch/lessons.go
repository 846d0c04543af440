package batch

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/journal"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

// lessons is what the journal has of limits that are wrong, of each key. Safe for concurrent use.
type lessons struct {
	mu   sync.Mutex
	kept map[string][]limit.Lesson
}

// news returns what has changed, and keeps it.
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

// rule is a limit as far as what is learned of it is no other's: however it was written.
func (l Rate) rule() string {
	r := limit.Rate{Unit: l.Unit, N: l.N, Per: l.Per}.String()
	if l.Bucket {
		r += fmt.Sprintf(", a bucket of %d", l.most())
	}
	return r
}

// recall has the limits go on from what the runs before have learned of them; of others nothing binds.
func (g *group) recall() {
	r := g.r
	for i := range r.c.Keys {
		for _, f := range r.store.history.Fits[g.name(i)] {
			n := slices.IndexFunc(g.limits, func(l Rate) bool { return l.rule() == f.Limit })
			if n < 0 {
				continue
			}
			l := f.Moved(-time.Duration(r.epoch.UnixNano()))
			l.Index = n
			g.fitted[i].Recall(0, l)
		}
		for _, m := range g.fitted[i].Misfits() {
			r.tellMisfit(g.called(i), &m, m.Sure, " in a run before")
		}
	}
}

// learned keeps what a key has learned, and tells of it. It is called by the Pool, one at a time.
func (g *group) learned(key int, all []limit.Lesson) {
	r, name := g.r, g.name(key)
	for _, l := range r.lessons.news(name, all) {
		if r.store.journal == nil {
			break
		}
		if err := r.store.journal.Learn(name, journal.Fit{Limit: g.limits[l.Index].rule(), Lesson: l}, r.epoch); err != nil {
			r.fail(err)
			return
		}
		r.store.wake()
	}
	for _, m := range g.pool.Keys()[key].Misfits {
		r.tellMisfit(g.called(key), &m, m.Sure, "")
	}
}

// which names a limit of a key among what was told.
func which(key string, m *limit.Misfit) string { return fmt.Sprintf("%s %v", key, m.Rate) }

// tellMisfit tells of a limit that is wrong: at first that it is, and what would fit when that is known, or nothing more will be.
func (r *Run) tellMisfit(key string, m *limit.Misfit, known bool, when string) {
	kept, accepted, would := r.wouldFit(m)
	says := fmt.Sprintf("key %s was refused with %s kept%s, so that is wrong, or others use the key, too", key, kept, when)
	if r.c.keyless {
		says = fmt.Sprintf("the server refuses requests with %s kept%s, so that is wrong, or others use it up, too", kept, when)
	}
	until := r.epoch.Add(time.Duration(m.Until))
	isFirst := r.notices.isFirst("misfit " + which(key, m))
	switch {
	case known && r.notices.isNews("fits "+which(key, m), until, 0):
		then := "It is tried whether more does"
		if time.Until(until) > 0 {
			then = "It goes no faster until " + until.Format("15:04:05")
		}
		r.tell("%s; %s were accepted: %s would fit. %s", says, accepted, would, then)
	case !known && isFirst:
		r.tell("%s. It goes more slowly now; what would fit is said when that is known", says)
	}
}

// wouldFit says what was kept to, what was accepted, and how to say that.
func (r *Run) wouldFit(m *limit.Misfit) (kept, accepted, would string) {
	fits := m.Rate
	fits.N, fits.Per = m.Fits, max(m.Per, m.Gap)
	kept, would = m.Rate.String(), fits.String()
	for _, l := range r.c.Limits {
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

// tellMisfits tells, at the end, what would fit as far as it is known by then, and keeps what was learned since it was kept last.
func (r *Run) tellMisfits() {
	for _, g := range r.groups {
		g.tellMisfits()
	}
}

func (g *group) tellMisfits() {
	r := g.r
	all := make([][]limit.Lesson, len(r.c.Keys))
	g.pool.Update(func(_ mono.Time, _ *queue.Queue, d *dispatch.Dispatcher) {
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
			if r.notices.isFirst("fits " + which(g.called(i), &m)) {
				r.tellMisfit(g.called(i), &m, true, "")
			}
		}
	}
}
