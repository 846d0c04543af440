package fairshare

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Hints sends no more than a server says is left until there will be more, for each unit of cost in
// its answers. Put it in a limit.All beside the known limits. It can only tighten them. It allows
// for strangers that use the same quota.
//
// The amount that is left only falls until the reset. So of all answers about one window, the one
// with the least is the latest. Requests whose answers had more are counted in it. Only requests in
// flight may not be. Let R be the least amount and I the cost in flight. Then R − I may be admitted
// until the reset.
//
// A reset in whole seconds, in an answer that took a while, is a span of time. Answers whose spans
// do not overlap are about different windows, and the later one holds. After the reset, as much may
// be in flight as was ever left, until an answer has more. Before the first answer, any amount may
// be.
//
// A time in whole seconds is exact to a second only. A reset may be later than a configured window
// (Own) could end, by less than a second. Then the window ends when the configured one does at the
// latest. The literal reset would cost every other window of a second. Where the configured limit
// has counted as much as the server has, it decides: see known.
//
// An answer without a reset, or with a past one, does not say when to come back, and is ignored.
// Refusals are a matter for limit.Cooldown, and a fair share without resets is one for Fair.
//
// NewHints makes Hints. Not safe for concurrent use. Ready, Admit and Settle do not allocate,
// except when Own is asked at the first answer about a window.
type Hints struct {
	longest  time.Duration
	capacity limit.Cost
	rooms    rooms
	last     mono.Time
	words    [len(limit.Cost{})]word
	open     limit.Cost // in flight
}

// word is the server's answer for one unit.
type word struct {
	until mono.Time     // the latest instant of the reset; if that is not after the last change, nothing holds
	since mono.Time     // the earliest instant of the reset
	least int64         // the amount that is left, as of an instant in this window
	most  int64         // the most that was ever left; below 0: not known
	heard mono.Time     // of a bucket: the instant of least
	per   time.Duration // of a bucket: how long the refill of one takes; otherwise 0
	cut   bool          // the stated reset was later than until, so the word still holds then
	known known
}

// HintsConfig describes Hints.
type HintsConfig struct {
	// Longest bounds how long a server's later reset is believed. After that, one request goes at a
	// time until an answer has more. If zero, 1 h. An answer whose Outcome is Sure is believed to
	// its reset.
	Longest time.Duration
	// Capacity is the amount in a full bucket, for each unit of which the server keeps a bucket.
	// For such a unit the bucket is full again at the reset, and refills evenly before. Where
	// Capacity is zero, everything comes back at the reset.
	Capacity limit.Cost
	// Own is the configured limit of the same quota, or an Auto for one client, whose stated limits
	// then count as configured. Its Admit and Settle come before those of the Hints, which read only
	// its Rates and its usage. If Own is nil or does not report them, all resets are believed to the
	// instant.
	Own limit.Limiter
	// Later means that Own's Admit and Settle come after those of the Hints.
	Later bool
}

// NewHints returns Hints without any answer. The error names the field and value.
func NewHints(c HintsConfig) (*Hints, error) {
	if c.Longest < 0 {
		return nil, fmt.Errorf("fairshare: Hints: Longest %v is negative", c.Longest)
	}
	c.Longest = cmp.Or(c.Longest, time.Hour)
	h := &Hints{longest: c.Longest, capacity: c.Capacity, rooms: rooms{own: counting(c.Own), later: c.Later}, last: mono.Min}
	for u, n := range c.Capacity {
		if n < 0 || n > limit.MaxCost {
			return nil, fmt.Errorf("fairshare: Hints: Capacity of %d %v is not between 0 and %d", n, limit.Unit(u),
				int64(limit.MaxCost))
		}
		h.words[u] = word{until: mono.Min, most: -1, known: known{literal: mono.Min}}
		if n > 0 {
			h.words[u].most = n
		}
	}
	return h, nil
}

// units bounds a cost to the range that limiters count.
func units(c limit.Cost) limit.Cost {
	for u := range c {
		c[u] = unit(c[u])
	}
	return c
}

func unit(n int64) int64 { return min(max(n, 0), limit.MaxCost) }

// Ready implements limit.Limiter. A cost above the amount that is left waits for the reset,
// although an answer may have more before.
func (h *Hints) Ready(now mono.Time, cost limit.Cost) mono.Time { return h.When(now, nil, &cost, 0) }

// ReadyAfter implements limit.Forecaster.
func (h *Hints) ReadyAfter(now mono.Time, first, cost limit.Cost) mono.Time {
	return h.When(now, &first, &cost, 0)
}

// ReadyLeaving answers limit.ReadyLeaving. The part is one of the most that was ever left.
func (h *Hints) ReadyLeaving(now mono.Time, first *limit.Cost, cost limit.Cost, free float64) mono.Time {
	return h.When(now, first, &cost, free)
}

// When is ReadyLeaving without a copy of the cost.
func (h *Hints) When(now mono.Time, first, cost *limit.Cost, free float64) mono.Time {
	t := max(now, h.last)
	ready := t
	for u := range h.words {
		n := unit(cost[u])
		if n == 0 || h.words[u].most < 0 {
			continue
		}
		if most := h.words[u].most; free > 0 {
			n = max(n, min(n+limit.Leaves(most, free), most))
		}
		open := h.open[u]
		if first != nil {
			open += unit(first[u])
		}
		ready = max(ready, h.words[u].ready(t, n, open))
	}
	return ready
}

// NotBefore implements limit.Forecaster. It is right if the server's answers are true, since the
// amount that is left only falls until the reset. The answers may include the cost in flight, so it
// is not counted again.
func (h *Hints) NotBefore(now mono.Time, _ int, ahead, cost limit.Cost) mono.Time {
	t := max(now, h.last)
	ready := t
	for u := range h.words {
		w, n := &h.words[u], unit(cost[u])
		if n == 0 || w.most < 0 || t >= w.until {
			continue
		}
		over := n - w.least
		if a := max(ahead[u], 0); over <= math.MaxInt64-a {
			over += a
		}
		if over <= 0 {
			continue
		}
		at := w.until
		if w.per > 0 && over < int64(w.until.Sub(w.heard)/w.per) {
			at = w.heard.Add(time.Duration(over) * w.per)
		}
		ready = max(ready, w.known.lets(t, at, 0))
	}
	return ready
}

func (w *word) ready(t mono.Time, cost, open int64) mono.Time {
	return w.known.lets(t, w.literally(t, cost, open), open)
}

func (w *word) literally(t mono.Time, cost, open int64) mono.Time {
	if t < w.until || w.cut {
		over := cost + open - w.least
		if over <= 0 {
			return t
		}
		if w.cut && open > 0 {
			return limit.AfterSettle
		}
		if w.per > 0 && over < int64(w.until.Sub(w.heard)/w.per) {
			return max(t, w.heard.Add(time.Duration(over)*w.per))
		}
	}
	if open > 0 && cost+open > w.most {
		return limit.AfterSettle
	}
	return max(t, w.until)
}

// Admit implements limit.Limiter.
func (h *Hints) Admit(s *limit.Sent) { h.Sent(s.At, &s.Cost) }

// Settle implements limit.Limiter.
func (h *Hints) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	h.Ended(now, s.At, &s.Cost, o)
}

// Sent and Ended are Admit and Settle for callers that keep another cost of each request than that
// of its limit.Sent.
func (h *Hints) Sent(now mono.Time, cost *limit.Cost) {
	h.last = max(now, h.last)
	for u := range cost {
		h.open[u] += unit(cost[u])
	}
	h.rooms.sent(h.last, cost)
}

// Ended passes in the outcome of a request that was Sent at the instant sent with that cost. Call
// it exactly once for each.
func (h *Hints) Ended(now, sent mono.Time, cost *limit.Cost, o *limit.Outcome) {
	h.last = max(now, h.last)
	admitted := units(*cost)
	actual := admitted
	switch {
	case o.Result == limit.Unsent || o.Result == limit.Limited:
		actual = limit.Cost{}
	case o.Metered:
		actual = units(o.Actual)
	}
	for u := range h.words {
		h.open[u] -= admitted[u]
		h.words[u].answered(h.last, sent, admitted[u], o, h.longest)
		if o.Known>>u&1 == 1 && o.Reset[u] > 0 {
			h.hear(u, sent, unit(o.Remaining[u]), o.Reset[u], o.Sure)
		} else {
			h.words[u].least -= actual[u] // no answer shows that the server had counted it in the amount that is left
		}
	}
}

// hear reads the amount that is left in the present answer, to a request sent at the instant sent.
func (h *Hints) hear(u int, sent mono.Time, remaining int64, reset time.Duration, sure bool) {
	w := &h.words[u]
	w.most = max(w.most, remaining)
	per := time.Duration(0)
	if h.capacity[u] == 0 {
		per = h.rooms.explains(u, h.last, sent, remaining, w.most, reset)
	}
	cut := reset > h.longest && !sure
	if cut {
		reset = h.longest
	}
	since, until := sent.Add(reset-rounding), h.last.Add(reset)
	switch {
	case w.until <= h.last || since > w.until: // it is about a later window
		*w = word{until: min(until, h.ends(u, w.most, reset)), since: since, least: remaining, most: w.most, heard: h.last,
			cut: cut, known: w.known}
		w.known.heard(h.last, per, true)
		if missing := h.capacity[u] - remaining; missing > 0 {
			w.per = (reset-1)/time.Duration(missing) + 1
		}
	case until < w.since: // it is about the window before
	case w.per > 0:
		w.least = min(w.least, remaining-int64(h.last.Sub(w.heard)/w.per)) // less the refill since
		w.since, w.until = max(w.since, since), max(w.until, until)
	default:
		w.known.heard(h.last, per, remaining <= w.least)
		w.least = min(w.least, remaining)
		w.since = max(w.since, since)
		if until < w.until {
			w.until, w.cut = until, cut
		}
	}
}

// ends returns when a window with that reset has surely ended, by the configured limit. It is Never
// unless that is less than a second before the reset. A unit that ever had more left than
// configured, or that may have a longer window, differs from the configured one.
func (h *Hints) ends(u int, most int64, reset time.Duration) mono.Time {
	if h.rooms.own == nil || h.capacity[u] > 0 {
		return limit.Never
	}
	rates, _ := limit.Rates(h.rooms.own)
	var longest limit.Rule // a zero Rate: this unit is not configured
	for _, r := range rates {
		if int(r.Unit) == u && r.Per > longest.Per {
			longest = r
		}
	}
	if longest.Per == 0 || reset <= longest.Per || reset >= longest.Per+rounding || most > longest.N {
		return limit.Never
	}
	return h.last.Add(longest.Per)
}
