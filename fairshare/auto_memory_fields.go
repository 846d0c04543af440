package fairshare

import (
	"math"

	"github.com/paceline-go/paceline/limit"
)

// These functions keep an Auto, part by part: all its knowledge, except requests in flight and the
// sightings of a rolling window. Those begin anew, since they count on the scale of the process.
// TestMemoryHasAll checks that each field is here.

const (
	mostCounted = 1 << 60   // more than any count
	mostUnits   = 1e24      // more than any amount
	mostRow     = 1<<31 - 1 // more than any refusals in a row
)

func (a *Auto) keep(m *memory) {
	a.keepConfig(m)
	m.past("when it began", &a.began)
	m.past("the latest answer", &a.heard)
	number(m, "how many were refused", &a.refused, 0, mostCounted)
	number(m, "how many were refused in the first minute", &a.soon, 0, int64(max(a.refused, 0)))
	m.flag("whether the limit follows from what remains", &a.told.on)
	m.span("the longest reset", &a.told.longest, 0)
	number(m, "the most that remained", &a.told.most, 0, limit.MaxCost)

	if a.alone != nil {
		a.alone.keep(m)
	}
	unknown := a.fair.unknown != nil
	if m.flag("whether the limit is unknown", &unknown); unknown {
		a.fair.keep(m)
		a.fair.unknown.keep(m, a.fair)
		return
	}
	a.keepShared(m)
	a.fair.keep(m)
	a.fair.keepLevels(m)
	a.fair.silence.keep(m)
}

// keepConfig keeps the configuration that both processes must have in common. Figures of other
// units or other shares would be wrong.
func (a *Auto) keepConfig(m *memory) {
	c := a.config
	number(m, "the unit", &c.Unit, 0, math.MaxUint8)
	m.real("the weight", &c.Weight, -mostUnits, mostUnits)
	m.real("the number of sharers", &c.Sharers, -mostUnits, mostUnits)
	m.flag("whether it is alone", &c.Alone)
	if m.err == nil && c.Alone != a.config.Alone {
		m.fail("one of the two is alone with its quota, and the other has strangers")
	}
	if m.err == nil && (c.Unit != a.config.Unit || c.Weight != a.config.Weight || c.Sharers != a.config.Sharers) {
		m.fail("it is of %v with weight %v among %v sharers, and this is of %v with weight %v among %v",
			c.Unit, c.Weight, c.Sharers, a.config.Unit, a.config.Weight, a.config.Sharers)
	}
}

// keepStated keeps a stated limit.
func keepStated(m *memory, q *limit.Rule) {
	m.text("the name of the limit", &q.Name)
	number(m, "its unit", &q.Unit, 0, int64(len(limit.Cost{})-1))
	number(m, "the limit", &q.N, 1, limit.MaxCost)
	m.span("its window", &q.Per, 1)
	number(m, "its burst", &q.Burst, 0, limit.MaxCost)
	number(m, "how it counts", &q.Counts, 0, int64(limit.CountsRolling))
	m.flag("whether it is documented", &q.Documented)
}

// keepShared keeps the limit of the Fair. A limit that is read is shared from now on.
func (a *Auto) keepShared(m *memory) {
	q := &a.stated
	keepStated(m, q)
	if !m.reads || m.err != nil {
		return
	}
	c, err := a.config.fair(*q).filled()
	if err != nil {
		m.fail("%v", err)
		return
	}
	f := a.fair
	f.become(c)
	f.unknown, f.known = nil, true
}

func (f *Fair) keep(m *memory) {
	a, b := &f.account, &f.belief
	m.past("the latest instant", &f.last)
	number(m, "how many were sent", &a.seq, 0, mostCounted)
	most := int64(a.seq)
	m.instant("up to when all has paid", &a.paid)
	number(m, "the step", &a.step, 0, int64(a.longest))
	m.past("when it was planned", &a.since)
	m.span("the idle time", &a.idle, 0)
	number(m, "what was planned from", &a.from, 0, most)
	m.real("the sum of what was sent", &a.sum, 0, mostUnits)
	m.past("when the latest was sent", &a.sentAt)
	m.span("the time between two", &a.planned, 0)

	m.real("n", &b.n, 0, mostUnits)
	m.flag("whether n is known", &b.known)
	m.real("the blind window", &b.blind, 0, mostUnits)
	b.base.keep(m, most)
	number(m, "when n was revised", &b.revised, 0, most)
	number(m, "how often n was revised", &b.revisions, 0, mostCounted)

	number(m, "the latest request that was heard of", &f.heard, 0, most)
	number(m, "the latest request before a refusal", &f.stale, 0, most)
	number(m, "how many found nothing left", &f.empty, 0, mostRow)
	number(m, "the window that is claimed", &f.entitled.window, -mostCounted, mostCounted)
	m.real("what was served in it", &f.entitled.served, 0, mostUnits)
	m.real("the part that was refused", &f.entitled.refused, 0, 1)
	number(m, "for how many windows it is claimed in haste", &f.entitled.haste, 0, entitledWindows)
	m.real("the noise", &f.noise.product, -mostUnits, mostUnits)
	m.real("the latest deviation", &f.noise.before, -mostUnits, mostUnits)
	if m.reads && f.unknown == nil {
		b.n = f.possible(b.n)
	}
}

// keepLevels keeps the knowledge of how the server counts.
func (f *Fair) keepLevels(m *memory) {
	kinds := [...]level{&f.bucket, &f.window, &f.rolling}
	kind := 0
	for i, l := range kinds {
		if f.level == l {
			kind = i
		}
	}
	number(m, "the kind", &kind, 0, int64(len(kinds)-1))
	if f.level = kinds[kind]; m.reads && f.level == &f.rolling {
		f.base, f.blind = sighting{}, 0
	}
	most := int64(f.seq)
	f.finder.before.keep(m, most)
	m.instant("when the bucket is full", &f.finder.full)
	number(m, "the votes for a kind", &f.finder.votes, -kindVotes, kindVotes)
	number(m, "the rises", &f.finder.rises, 0, risesBucket)
	f.finder.emptied.keep(m)

	m.flag("whether there is a reserve", &f.bucket.built)
	m.flag("whether it was begun", &f.bucket.rise.seen)
	m.instant("when the whole of it is kept", &f.bucket.rise.ends)
	d := &f.bucket.drought
	d.before.keep(m, most)
	m.past("when that was heard", &d.heard)
	m.real("what had been sent by then", &d.sum, 0, mostUnits)
	m.flag("whether something was seen to come", &d.came)
	number(m, "how many were served slowly since", &d.slow, 0, mostCounted)
	m.real("for how long", &d.tokens, 0, mostUnits)
	m.real("how much less remained then", &d.fell, -mostUnits, mostUnits)
	m.flag("whether nothing comes", &d.found)
	m.flag("whether that was once so", &d.over)
	number(m, "how far it has listened", &d.stage, 0, int64(hasListened))
	l := &d.listening
	m.instant("when it listens next", &l.next)
	m.span("its turn to listen", &l.turn, 0)
	m.span("the beat", &l.beat, 0)
	m.span("the round trip", &l.trip, 0)
	m.span("its deviation", &l.jitter, 0)
	number(m, "how many rounds it has listened", &l.round, 0, roundsAll)
	m.real("what others took in each", &l.others, -mostUnits, mostUnits)
	m.flag("whether it heard something", &l.heard)

	w := &f.window
	m.instant("the end of the window", &w.ends)
	m.flag("whether resets are told", &w.tells)
	number(m, "the number of the window", &w.number, -mostCounted, mostCounted)
	m.real("the slope of the window", &w.slope, -mostUnits, mostUnits)
	m.flag("whether the window has a debt", &w.debt)
	p := &w.phase
	m.flag("whether no reset is told", &p.alone)
	m.instant("the lower bound of the window's beginning", &p.low)
	m.instant("the upper bound of the window's beginning", &p.high)
	m.flag("whether they hold", &p.seen)
	m.instant("the window's beginning", &p.start)
	m.real("the guesses at it", &p.guesses, 0, guessesMost)
	m.real("what was used when it was found", &p.found, 0, mostUnits)
	p.before.keep(m, most)
}

func (e *emptied) keep(m *memory) {
	number(m, "the stage of what was used up", &e.stage, 0, int64(noWindow))
	m.past("when a window of it began", &e.began)
	m.past("when there was plenty", &e.plenty)
	number(m, "the refusals after that", &e.refused, 0, mostRow)
	m.past("the first refusal after that", &e.since)
	m.real("n when there was plenty", &e.n, 0, mostUnits)
}

func (s *sighting) keep(m *memory, most int64) {
	number(m, "the number of an answer", &s.seq, 0, most)
	if m.err != nil || s.seq == 0 { // the rest means nothing
		return
	}
	m.past("when its request was sent", &s.at)
	m.real("its cost", &s.cost, 0, mostUnits)
	m.real("what was sent until then", &s.sum, 0, mostUnits)
	m.span("the idle time until then", &s.idle, 0)
	m.flag("whether it was alone", &s.alone)
	m.past("when it arrived", &s.mid)
	m.real("what was left", &s.left, 0, mostUnits)
	m.flag("whether nothing was", &s.none)
	m.flag("whether it was refused", &s.limited)
	m.instant("when there is more", &s.ends)
	number(m, "its window", &s.window, -mostCounted, mostCounted)
}

func (q *silence) keep(m *memory) {
	m.flag("whether the server is silent", &q.on)
	number(m, "how many answers said nothing", &q.missing, 0, mostCounted)
	m.flag("whether one said something", &q.said)
	number(m, "how many refusals are in a row", &q.inRow, 0, mostCounted)
	m.past("the first of them", &q.since)
	m.real("what was served before any refusal", &q.burst, 0, mostUnits)
	m.past("when the first of that was sent", &q.first)

	w := &q.window
	m.instant("the lower bound of the window's end", &w.low)
	m.instant("the upper bound of the window's end", &w.high)
	m.flag("whether they hold", &w.seen)
	m.past("the first request of the window", &w.first)
	m.flag("whether it began", &w.began)
	m.flag("whether its end is waited for", &w.waits)
	m.flag("whether nothing was refused in it", &w.clean)
	m.past("the latest refusal", &w.last)
	tried := w.tried != 0
	if m.flag("whether n was lowered", &tried); tried {
		m.past("when n was lowered", &w.tried)
	}
	number(m, "the ends that do not fit", &w.misfits, 0, mostCounted)
	number(m, "the ends that it saw", &w.ended, 0, lostFrom)
	m.flag("whether it is overdue", &w.overdue)
	m.flag("whether something was served in it", &w.served)
	m.flag("whether it is lost", &w.lost)
	m.past("when it was used up", &w.usedUp)

	b := &q.bucket
	number(m, "the stage", &b.stage, 0, int64(limitedAgain))
	m.past("when the bucket was heard of", &b.heardAt)
	m.flag("whether it was", &b.heard)
	m.real("the blind window of the bucket", &b.blind, 0, mostUnits)
	m.past("when the bucket refused", &b.refused)
	m.instant("when the wait after that is over", &b.begun)
	number(m, "how many were served since", &b.served, 0, mostCounted)
	number(m, "how many were refused in a row", &b.in, 0, mostRow)
}

func (u *silentUnknown) keep(m *memory, f *Fair) {
	number(m, "the stage", &u.stage, 0, int64(measured))
	m.past("when the search began", &u.began)
	m.past("when it was heard of", &u.heardAt)
	number(m, "the answers", &u.answers, 0, mostCounted)
	for i := range u.laps {
		m.past("a lap", &u.laps[i].at)
		m.real("what was sent until then", &u.laps[i].sent, 0, mostUnits)
	}
	m.real("what was served until the first refusal", &u.first, 0, mostUnits)
	m.flag("whether that is a whole window", &u.exact)
	m.real("the window", &u.window, 0, mostUnits)
	number(m, "the refusals in a row", &u.row, 0, mostRow)
	m.past("the first of them", &u.rowBegan)
	m.past("the latest of them", &u.last)
	m.past("when the quota was empty", &u.empty)
	m.real("what had been sent by then", &u.base, 0, mostUnits)
	m.span("the idle time by then", &u.idle, 0)
	m.past("the latest refusal after others were served", &u.refused)
	m.span("the idle time until then", &u.busy, 0)
	number(m, "the refusals at the same pace", &u.even, 0, evenMost)
	m.real("that pace", &u.anchor, 0, mostUnits)
	for i := range u.lately {
		m.real("a pace that was refused", &u.lately[i], 0, mostUnits)
	}
	number(m, "the refusals that came soon", &u.soon, 0, soonMost)
	if m.reads {
		f.n = u.pace(f, f.n)
	}
}

func (a *alone) keep(m *memory) {
	for u := range a.before {
		number(m, "what was used at first", &a.before[u], 0, limit.MaxCost)
		number(m, "what is in flight", &a.open[u], 0, mostCounted)
	}
	m.past("when that was", &a.latest)
	m.past("the latest refusal within the limits", &a.refused)
	m.instant("until when there may be strangers", &a.until)
	number(m, "how often a request was refused within the limits", &a.times, 0, mostTimes)
	n := len(a.rules)
	number(m, "how many limits are stated", &n, 0, mostRules)
	if m.err == nil && m.reads {
		a.rules = make([]rule, n)
	}
	for i := range a.rules {
		r := &a.rules[i]
		keepStated(m, &r.stated)
		m.flag("whether it is a guess", &r.guessed)
		for j := range r.used {
			s := &r.used[j]
			if number(m, "what was used", &s.n, 0, limit.MaxCost); s.n > 0 {
				m.past("the first use", &s.since)
				m.past("the latest use", &s.at)
			}
		}
	}
}
