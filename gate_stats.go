package paceline

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// WaitStats says how long a Wait was in line, and what for. The zero WaitStats is that of one that was not.
type WaitStats struct {
	// Waited is from the asking to the admission, or to the giving up.
	Waited time.Duration
	// Behind is how much of it there were others ahead in line. The rest it was at the head.
	Behind time.Duration
	// Rounds is how often, at the head, it was found that it had to wait: once, and again whenever a Settle or an Update
	// changed the instant at which it may go, or it was asked at that instant and there was another. 0 if it went together
	// with the one before it, or ahead of it.
	Rounds int
	// Limits has what Waited was spent on, by the name of the limit that held up the line meanwhile, its head whoever that
	// was, the longest first: their sum is Waited. See limit.Named for the names.
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

// limitSpent is how long the heads of a Gate's line have waited for a limit, of which there are few.
type limitSpent struct {
	name string
	time time.Duration
}

// tally is what a waiter knows of its waiting. Times per limit are differences of what the Gate spent on them, so that a
// line costs nothing per waiter and change.
type tally struct {
	led    mono.Time // when it got to the head of the line; limit.Never: not yet
	rounds int
	until  mono.Time // its last round
	waited time.Duration
	behind time.Duration
	spent  []time.Duration // while in line: by the Gate before; then: on each
}

// beginLocked notes that w asks now.
func (g *Gate) beginLocked(now mono.Time, w *waiter, measured bool) {
	if w.measured = measured; !measured {
		return
	}
	if w.tally == nil {
		w.tally = new(tally)
	}
	t := w.tally
	*t = tally{led: limit.Never, until: mono.Min, spent: t.spent[:0]}
	g.measured++
	g.spendLocked(now)
	if g.head != nil && g.bound < 0 {
		g.lookLocked(now)
	}
	for i := range g.spent {
		t.spent = append(t.spent, g.spent[i].time)
	}
}

// endLocked notes that w leaves the line.
func (g *Gate) endLocked(now mono.Time, w *waiter) {
	if !w.measured {
		return
	}
	g.measured--
	g.spendLocked(now)
	t := w.tally
	t.waited = now.Sub(w.asked)
	t.behind = min(t.led, now).Sub(w.asked)
	for i := range g.spent {
		if i == len(t.spent) { // heard of since
			t.spent = append(t.spent, 0)
		}
		t.spent[i] = g.spent[i].time - t.spent[i]
	}
}

// tellLocked fills in s, unless it is nil, from w, which has left the line.
func (g *Gate) tellLocked(w *waiter, s *WaitStats) {
	if s == nil || w.tally.waited == 0 {
		return
	}
	*s = WaitStats{Waited: w.tally.waited, Behind: w.tally.behind, Rounds: w.tally.rounds}
	for i, d := range w.tally.spent {
		if d > 0 {
			s.Limits = append(s.Limits, LimitWait{g.spent[i].name, d})
		}
	}
	sortLimits(s.Limits)
}

// spendLocked brings spent up to now.
func (g *Gate) spendLocked(now mono.Time) {
	if g.bound >= 0 {
		g.spent[g.bound].time += now.Sub(g.since)
	}
	g.since = now
}

// boundLocked says which limit cost waits for.
func (g *Gate) boundLocked(now mono.Time, cost *limit.Cost) limit.Bound {
	if g.why == nil {
		return limit.Bound{Name: "limit"}
	}
	_, b := g.why.Explain(now, *cost)
	return b
}

// lookLocked finds out which limit the head of the line waits for.
func (g *Gate) lookLocked(now mono.Time) {
	name := g.boundLocked(now, &g.head.cost).Name
	g.bound = slices.IndexFunc(g.spent, func(s limitSpent) bool { return s.name == name })
	if g.bound < 0 {
		g.bound = len(g.spent)
		g.spent = append(g.spent, limitSpent{name: name})
	}
}

// roundLocked notes that the head of the line, if there is one, waits until at.
func (g *Gate) roundLocked(now, at mono.Time) {
	g.spendLocked(now)
	w := g.head
	if w == nil {
		g.bound = -1
		return
	}
	g.lookLocked(now)
	if w.measured {
		t := w.tally
		t.led = min(t.led, now)
		if t.until != at {
			t.until = at
			t.rounds++
		}
	}
	if g.log == nil || at >= limit.AfterSettle || at == g.round {
		return
	}
	g.round = at
	g.rounds++
	same := g.noted.head == w && g.noted.asked == w.asked
	if same && now < g.noted.at.Add(sameHead) && at <= g.noted.until.Add(sameHead) {
		return
	}
	if d := at.Sub(now); d > logged {
		g.noted = notedRound{w, w.asked, now, at}
		g.notice = notice{limit: g.spent[g.bound].name, waiting: g.waiting, next: d, round: g.rounds}
	}
}

const (
	// logged is the longest wait that is not.
	logged = 5 * time.Millisecond
	// sameHead is how long after its line the same head gets no other, and by how much it must be later to get one.
	sameHead = time.Second
)

// notedRound is a round that was noted to be logged. A waiter is used again, so when it asked is part of who it is.
type notedRound struct {
	head  *waiter
	asked mono.Time
	at    mono.Time
	until mono.Time
}

// notice is a line of the log. Without a round it is none.
type notice struct {
	limit   string
	waiting int
	next    time.Duration
	round   uint64
}

func (n *notice) String() string {
	if n.next < time.Second {
		return fmt.Sprintf("%s: %d waiting, next in %d ms", n.limit, n.waiting, n.next.Milliseconds())
	}
	return fmt.Sprintf("%s: %d waiting, next in %.1f s", n.limit, n.waiting, n.next.Seconds())
}

// unlock lets go of the lock, and then logs what was noted under it.
func (g *Gate) unlock() {
	if g.log == nil || g.notice.round == 0 {
		g.mu.Unlock()
		return
	}
	n := g.notice
	n.waiting = g.waiting // since it was noted some may have been refused, or gone ahead
	g.notice = notice{}
	g.mu.Unlock()
	if ctx := context.Background(); g.log.Enabled(ctx, slog.LevelInfo) {
		g.log.LogAttrs(ctx, slog.LevelInfo, n.String(), slog.String("limit", n.limit), slog.Int("waiting", n.waiting),
			slog.Duration("next", n.next), slog.Uint64("round", n.round))
	}
}
