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

// WaitStats says how long a Wait was in line, and for which limits. The zero WaitStats belongs to a
// Wait that was not in line.
type WaitStats struct {
	// Waited is the time from the call to the admission, or to giving up.
	Waited time.Duration
	// Behind is the part of Waited spent behind others in line. For the rest it was the first.
	Behind time.Duration
	// Rounds is how many instants it waited for as the first in line. The first instant counts, and
	// so does every change of it: by a Settle, by an Update, or because the limit had nothing left
	// then. It is 0 if the goroutine went together with the one before it, or ahead of it.
	Rounds int
	// Limits splits Waited by limit: how long each limit held up the first in line, longest first.
	// The first may have been another goroutine. The sum is Waited. The names are those of
	// limit.Named. "reserve of" before one means that only the part held it up that the lane leaves
	// free: see ClassConfig.Reserve.
	Limits []LimitWait
}

// LimitWait is the time spent on one limit.
type LimitWait struct {
	Limit  string
	Waited time.Duration
}

// Reason returns the name of the limit with most of the waiting; "" if there was no wait.
func (s WaitStats) Reason() string {
	if len(s.Limits) == 0 {
		return ""
	}
	return s.Limits[0].Limit
}

// On returns the time spent on the limit of that name.
func (s WaitStats) On(name string) time.Duration {
	for _, l := range s.Limits {
		if l.Limit == name {
			return l.Waited
		}
	}
	return 0
}

// Add returns the sum of two waits, one after the other: for a request that passes several Gates.
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

// LogValue implements slog.LogValuer: waited_ms, behind_ms, rounds, limit, and milliseconds per
// limit.
func (s WaitStats) LogValue() slog.Value {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	a := []slog.Attr{slog.Float64("waited_ms", ms(s.Waited)), slog.Float64("behind_ms", ms(s.Behind)),
		slog.Int("rounds", s.Rounds), slog.String("limit", s.Reason())}
	var each []any
	for _, l := range s.Limits {
		each = append(each, slog.Float64(l.Limit, ms(l.Waited)))
	}
	return slog.GroupValue(append(a, slog.Group("ms", each...))...)
}

// limitSpent is how long the first of a lane has waited for a limit. A lane has few limits.
type limitSpent struct {
	name string
	time time.Duration
}

// watch records the limit for which the first of a lane waits, while a waiter is measured or a
// Logger is set.
type watch struct {
	measured int          // how many waiters in line are measured
	spent    []limitSpent // how long the first waited for each limit
	bound    int          // the limit of the first, as an index of spent; -1: no waiter, or not looked at yet
	since    mono.Time    // spent is up to date until then
	round    mono.Time    // the instant of the last round
	rounds   uint64       // with a Logger
	noted    notedRound   // the last round that was logged
	stuck    stuck        // with a Logger
}

// tally is a waiter's record of its wait. A time per limit is a difference of two sums of the lane,
// so a change of the line costs nothing per waiter.
type tally struct {
	led    mono.Time // when it became the first; limit.Never: not yet
	rounds int
	until  mono.Time // the instant of its last round
	waited time.Duration
	behind time.Duration
	spent  []time.Duration // per limit; in line: the lane's sum on arrival; after that: its own part
}

// beginLocked starts the record of w on its arrival.
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

// endLocked completes the record of w, which leaves the line.
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
		if i == len(t.spent) { // a limit that appeared after the arrival
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

// lookLocked finds the limit for which the first in line waits.
func (a *Lane) lookLocked(now mono.Time) {
	v := &a.watch
	name := a.causeLocked(now)
	v.bound = slices.IndexFunc(v.spent, func(s limitSpent) bool { return s.name == name })
	if v.bound < 0 {
		v.bound = len(v.spent)
		v.spent = append(v.spent, limitSpent{name: name})
	}
}

// causeLocked names what the first in line waits for: a limit, or what its lane leaves free of one.
func (a *Lane) causeLocked(now mono.Time) string {
	on, _ := a.lane.At()
	if on == nil {
		return "limit"
	}
	if name, ok := a.lane.Reserve(now); ok {
		return "reserve of " + name
	}
	return on.Rule(now).Name
}

// watched is the scheduler's callback, under the lock. It runs when the first of a lane was
// examined and waits, or when the lane became empty.
func watched(now mono.Time, a *scheduler.Lane) { a.Of.(*Lane).roundLocked(now) }

// roundLocked records the limit for which the first in line waits, and until when.
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
	if v.noted != (notedRound{}) && now < v.noted.at.Add(quiet) && at <= v.noted.until.Add(quiet) {
		return
	}
	if d := at.Sub(now); d > logged {
		v.noted = notedRound{now, at}
		n := notice{lane: a, log: log, limit: v.spent[v.bound].name, next: d, round: v.rounds, ways: len(a.lane.Ways())}
		if rule := on.Rule(now); rule.N > 0 {
			n.rule = rule.String()
		}
		a.group.noteLocked(n)
	}
}

// sampleLocked samples the limit for which the first in line waits, now and then.
func (a *Lane) sampleLocked(now mono.Time) {
	if a.lane.Len() > 0 && a.waits.Due(now) {
		a.lookAgainLocked(now)
	}
}

func (a *Lane) lookAgainLocked(now mono.Time) {
	if a.lane.Watched { // every change is recorded already
		return
	}
	a.waits.Note(now, a.causeLocked(now))
}

// waitedLocked counts a wait that is over.
func (w *waiter) waitedLocked(now mono.Time) {
	a := w.lane
	on := -1
	if w.measured { // then its limit is known exactly
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
