package paceline

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// WaitStats says how long a Wait was in line, and what for. The zero WaitStats is that of a Wait that was not in line.
type WaitStats struct {
	// Waited is from the asking to the admission, or to the giving up.
	Waited time.Duration
	// Behind is the part of Waited during which others were ahead in line. For the rest it was at the head.
	Behind time.Duration
	// Rounds is how often it was told, at the head of the line, that it has to wait until some instant: once, and again whenever that
	// instant changed, by a Settle, an Update, or because the limit had nothing left when it came. It is 0 if it went together with the
	// one before it, or ahead of it.
	Rounds int
	// Limits has what Waited was spent on: how long each limit held up the head of the line, whoever that was, the longest first. Their
	// sum is Waited. The names are those of limit.Named.
	Limits []LimitWait
}

// LimitWait is what was spent on one limit.
type LimitWait struct {
	Limit  string
	Waited time.Duration
}

// Reason returns the name of the limit that most of the waiting was for; "" if it did not wait.
func (s WaitStats) Reason() string {
	if len(s.Limits) == 0 {
		return ""
	}
	return s.Limits[0].Limit
}

// On returns how long of it was spent on the limit of that name.
func (s WaitStats) On(name string) time.Duration {
	for _, l := range s.Limits {
		if l.Limit == name {
			return l.Waited
		}
	}
	return 0
}

// Add returns what both took, one after the other: the waits of a request that has to pass several Gates.
func (s WaitStats) Add(t WaitStats) WaitStats {
	if s.Waited == 0 {
		return t
	}
	s.Waited += t.Waited
	s.Behind += t.Behind
	s.Rounds += t.Rounds
	s.Limits = slices.Clone(s.Limits)
	for _, l := range t.Limits {
		if i := slices.IndexFunc(s.Limits, func(m LimitWait) bool { return m.Limit == l.Limit }); i >= 0 {
			s.Limits[i].Waited += l.Waited
		} else {
			s.Limits = append(s.Limits, l)
		}
	}
	sortLimits(s.Limits)
	return s
}

func sortLimits(l []LimitWait) {
	slices.SortStableFunc(l, func(a, b LimitWait) int { return cmp.Compare(b.Waited, a.Waited) })
}

// LogValue implements slog.LogValuer: waited_ms, behind_ms, rounds, limit, and milliseconds per limit.
func (s WaitStats) LogValue() slog.Value {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	a := []slog.Attr{slog.Float64("waited_ms", ms(s.Waited)), slog.Float64("behind_ms", ms(s.Behind)), slog.Int("rounds", s.Rounds), slog.String("limit", s.Reason())}
	var each []any
	for _, l := range s.Limits {
		each = append(each, slog.Float64(l.Limit, ms(l.Waited)))
	}
	return slog.GroupValue(append(a, slog.Group("ms", each...))...)
}

// limitSpent is how long the first of a lane has waited for a limit, of which there are few.
type limitSpent struct {
	name string
	time time.Duration
}

// watch keeps what the first of a lane waits for. It is kept only while somebody wants to know.
type watch struct {
	measured int          // how many of those in line want to know
	spent    []limitSpent // how long the first waited for each limit
	bound    int          // the one that it waits for: an index of spent; -1: nobody waits, or nobody looked
	since    mono.Time    // spent is right up to then
	round    mono.Time    // the instant of the last round
	rounds   uint64       // with log
	noted    notedRound   // the last that was logged
	stuck    stuck        // with log
}

// tally is what a waiter knows of its waiting. Times per limit are differences of what the lane spent on them, so that a
// line costs nothing per waiter and change.
type tally struct {
	led    mono.Time // when it got to be the first; limit.Never: not yet
	rounds int
	until  mono.Time // its last round
	waited time.Duration
	behind time.Duration
	spent  []time.Duration // by limit: while in line what the lane had spent when this waiter came; after that its own share
}

// beginLocked notes that w asks now.
func (w *waiter) beginLocked(now mono.Time, measured bool) {
	if w.measured = measured; !measured {
		return
	}
	if w.tally == nil {
		w.tally = new(tally)
	}
	t, a := w.tally, w.lane
	*t = tally{led: limit.Never, until: mono.Min, spent: t.spent[:0]}
	a.watch.measured++
	a.lane.Watched = true
	a.spendLocked(now)
	if a.watch.bound < 0 {
		a.lookLocked(now)
	}
	for i := range a.watch.spent {
		t.spent = append(t.spent, a.watch.spent[i].time)
	}
	if a.lane.First() == &w.ticket {
		a.roundLocked(now)
	}
}

// endLocked notes that w leaves the line.
func (w *waiter) endLocked(now mono.Time) {
	if !w.measured {
		w.waitedLocked(now)
		return
	}
	defer w.waitedLocked(now)
	a, t := w.lane, w.tally
	a.watch.measured--
	a.spendLocked(now)
	if a.watch.measured == 0 && !a.logs {
		a.lane.Watched = false
		a.watch.bound = -1
	}
	t.waited = now.Sub(w.asked)
	t.behind = min(t.led, now).Sub(w.asked)
	for i := range a.watch.spent {
		if i == len(t.spent) { // heard of since
			t.spent = append(t.spent, 0)
		}
		t.spent[i] = a.watch.spent[i].time - t.spent[i]
	}
}

// tellLocked fills in s, unless it is nil, from w, which has left the line.
func (w *waiter) tellLocked(s *WaitStats) {
	if s == nil || w.tally == nil || w.tally.waited == 0 {
		return
	}
	*s = WaitStats{Waited: w.tally.waited, Behind: w.tally.behind, Rounds: w.tally.rounds}
	for i, d := range w.tally.spent {
		if d > 0 {
			s.Limits = append(s.Limits, LimitWait{w.lane.watch.spent[i].name, d})
		}
	}
	sortLimits(s.Limits)
}

// spendLocked brings spent up to now.
func (a *Lane) spendLocked(now mono.Time) {
	if v := &a.watch; v.bound >= 0 {
		v.spent[v.bound].time += now.Sub(v.since)
	}
	a.watch.since = now
}

// lookLocked finds out which limit the first in line waits for.
func (a *Lane) lookLocked(now mono.Time) {
	v := &a.watch
	name := "limit"
	if on, _ := a.lane.At(); on != nil {
		name = on.Bound(now).Name
	}
	v.bound = slices.IndexFunc(v.spent, func(s limitSpent) bool { return s.name == name })
	if v.bound < 0 {
		v.bound = len(v.spent)
		v.spent = append(v.spent, limitSpent{name: name})
	}
}

// watched is told by the line, under the lock, that the first of a lane was looked at and waits, or that nobody does any more.
func watched(now mono.Time, a *scheduler.Lane) { a.Of.(*Lane).roundLocked(now) }

// roundLocked notes what the first in line waits for, and until when.
func (a *Lane) roundLocked(now mono.Time) {
	a.spendLocked(now)
	v, first := &a.watch, a.lane.First()
	if first == nil {
		v.bound = -1
		v.stuck.since = limit.Never
		return
	}
	a.lookLocked(now)
	on, at := a.lane.At()
	if a.logs {
		a.stuckLocked(now, at)
	}
	w := first.Of.(*waiter)
	if w.measured {
		t := w.tally
		t.led = min(t.led, now)
		if t.until != at {
			t.until = at
			t.rounds++
		}
	}
	if !a.logs || at >= limit.AfterSettle || at == v.round {
		return
	}
	log := a.logFor(on)
	if log == nil {
		return
	}
	v.round = at
	v.rounds++
	same := v.noted.first == w && v.noted.asked == w.asked
	if same && now < v.noted.at.Add(sameHead) && at <= v.noted.until.Add(sameHead) {
		return
	}
	if d := at.Sub(now); d > logged {
		v.noted = notedRound{w, w.asked, now, at}
		a.group.noteLocked(notice{lane: a, log: log, limit: v.spent[v.bound].name, next: d, round: v.rounds})
	}
}

// sampleLocked looks at what the first in line waits for, now and then.
func (a *Lane) sampleLocked(now mono.Time) {
	if a.lane.Len() > 0 && a.waits.Due(now) {
		a.lookAgainLocked(now)
	}
}

func (a *Lane) lookAgainLocked(now mono.Time) {
	if a.lane.Watched { // somebody wants to know at every change
		return
	}
	name := "limit"
	if on, _ := a.lane.At(); on != nil {
		name = on.Bound(now).Name
	}
	a.waits.Note(now, name)
}

// waitedLocked counts a wait that is over.
func (w *waiter) waitedLocked(now mono.Time) {
	a := w.lane
	on := -1
	if w.measured { // then it is known exactly
		most := time.Duration(-1)
		for k, d := range w.tally.spent {
			if d > most {
				most, on = d, a.waits.Of(a.watch.spent[k].name)
			}
		}
	}
	if on < 0 {
		on = a.waits.Head()
	}
	a.waits.Add(on, now.Sub(w.asked))
	if w.ticket.State == scheduler.Granted {
		a.waited++
	}
}
