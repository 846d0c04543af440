package scheduler

import (
	"iter"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Silent is a Limiter that may be skipped while it has nothing to decide. Its methods are not called
// for each request then.
//
//   - Q1. While *on holds, Ready is now for each cost, and a Plain outcome changes nothing.
//   - Q2. Before *on ends, the limiter ranges over skipped. So it does before it reads what is in flight.
//   - Q3. Numbers rise from one request to the next, and are the same in all limits of a Scheduler.
//
// So a Silent that is skipped decides as one that is not (decision 61).
type Silent interface {
	limit.Limiter
	// Silent is called once. skipped yields the requests in flight without an Admit, in no order. They
	// count as admitted from then on. A range over skipped must not end early.
	Silent(skipped iter.Seq[*limit.Sent]) (on *bool)
}

// never is for a limiter that is not Silent.
var never bool

// skip returns whether m may be skipped, as a pointer.
func (m *Limit) skip() *bool {
	if s, ok := m.Limiter.(Silent); ok {
		return s.Silent(m.skipped)
	}
	return &never
}

// skipped yields the requests in flight of which m has no Admit, once.
func (m *Limit) skipped(yield func(*limit.Sent) bool) {
	give := func(k *record) {
		for i, on := range k.way.limits {
			if bit := uint16(1) << i; on == m && k.skipped&bit != 0 {
				k.skipped &^= bit
				m.unaware--
				yield(&k.Sent)
			}
		}
	}
	if m.unaware == 0 {
		return
	}
	if m.line.ending != nil {
		give(m.line.ending)
	}
	for k := range m.line.records.each() {
		give(k)
	}
}

// Settle ends a pass: each limit of its way learns o. It panics if the pass was settled before. The
// result holds until the next request goes.
func (l *Scheduler) Settle(now mono.Time, p Pass, o *limit.Outcome) *limit.Sent {
	now = l.Tick(now)
	l.changes++
	sent := l.records.end(p.number)
	limits := p.Way.limits
	if len(limits) > 1 || sent.skipped != 0 || sent.metered || l.doors > 0 || len(l.joined) > 0 {
		l.settle(now, p, sent, o, nil)
		return &sent.Sent
	}
	m := limits[0] // as settle does, at half the price
	m.Limiter.Settle(now, &sent.Sent, o)
	if len(m.parked.all) > 0 {
		l.wanted(m)
	}
	return &sent.Sent
}

// SettleEach is Settle with an outcome for each limit, which of returns. of must not use the
// Scheduler.
func (l *Scheduler) SettleEach(now mono.Time, p Pass, of func(*Limit) *limit.Outcome) *limit.Sent {
	now = l.Tick(now)
	l.changes++
	sent := l.records.end(p.number)
	l.settle(now, p, sent, nil, of)
	return &sent.Sent
}

func (l *Scheduler) settle(now mono.Time, p Pass, sent *record, o *limit.Outcome, of func(*Limit) *limit.Outcome) {
	if sent.skipped != 0 {
		l.ending = sent
	}
	plain := sent.skipped != 0 && of == nil && o.Plain()
	for k, m := range p.Way.limits {
		if of != nil {
			o = of(m)
			plain = sent.skipped != 0 && o.Plain()
		}
		if plain && sent.skipped>>k&1 == 1 && *m.silent {
			m.unaware--
		} else {
			m.Limiter.Settle(now, &sent.Sent, o)
		}
		if sent.metered {
			less(&m.spare, &sent.spare)
		}
		if len(m.parked.all) > 0 {
			l.wanted(m)
		}
		if l.doors > 0 && (o.Result == limit.Limited || o.Link >= limit.Broken) {
			m.knock()
		}
	}
	if len(l.joined) > 0 {
		l.settleJoined(now, p.number, o, of)
	}
	l.ending = nil
}

// joined is the record of a request in a limit that it did not pass.
type joined struct {
	limit *Limit
	sent  *limit.Sent
}

// Join makes the request of an open pass count in one more limit as of now, until it is settled. It
// does nothing if the request counts there already. It is for a request in flight that turns out to
// concern another limit.
func (l *Scheduler) Join(now mono.Time, open *limit.Sent, m *Limit) {
	if l.Counts(open, m) {
		return
	}
	if l.joined == nil {
		l.joined = map[uint64][]joined{}
	}
	s := &limit.Sent{At: now, Number: l.Number(), Cost: open.Cost}
	m.Limiter.Admit(s)
	l.joined[open.Number] = append(l.joined[open.Number], joined{m, s})
}

// JoinAll is Join for each request that counts in all of some limits.
func (l *Scheduler) JoinAll(now mono.Time, of []*Limit, m *Limit) {
	for k := range l.records.each() {
		if slices.ContainsFunc(of, func(m *Limit) bool { return !l.Counts(&k.Sent, m) }) {
			continue
		}
		l.Join(now, &k.Sent, m)
	}
}

// Counts reports whether the request of an open pass counts in a limit.
func (l *Scheduler) Counts(open *limit.Sent, m *Limit) bool {
	return slices.Contains(l.records.at(open.Number).way.limits, m) ||
		slices.ContainsFunc(l.joined[open.Number], func(j joined) bool { return j.limit == m })
}

func (l *Scheduler) settleJoined(now mono.Time, number uint64, o *limit.Outcome, of func(*Limit) *limit.Outcome) {
	for _, j := range l.joined[number] {
		if of != nil {
			o = of(j.limit)
		}
		j.limit.Limiter.Settle(now, j.sent, o)
		l.Touch(j.limit)
	}
	delete(l.joined, number)
}

// Sent returns the record of an open pass. It holds until the next request goes.
func (l *Scheduler) Sent(p Pass) *limit.Sent { return &l.records.at(p.number).Sent }

// Number returns a new Number, for a request that counts in a limit without a pass.
func (l *Scheduler) Number() uint64 {
	return l.records.number()
}

// Unsettled returns how many passes of a limit are open, and when the oldest went; limit.Never: none
// is open. It reads each open pass.
func (l *Scheduler) Unsettled(m *Limit) (open int, oldest mono.Time) {
	oldest = limit.Never
	for k := range l.records.each() {
		if slices.Contains(k.way.limits, m) {
			open++
			oldest = min(oldest, k.At)
		}
	}
	return open, oldest
}

// FreshFor is Fresh, also for a send that comes up to d later.
func (l *Scheduler) FreshFor(p Pass, d time.Duration) bool {
	sent := l.Sent(p)
	for _, m := range p.Way.limits {
		if !ability.FreshFor(m.Limiter, sent, d) {
			return false
		}
	}
	return true
}

// Fresh reports whether the request of an open pass may still be sent, by its limits.
func (l *Scheduler) Fresh(p Pass) bool {
	sent := l.Sent(p)
	for _, m := range p.Way.limits {
		if !ability.Fresh(m.Limiter, sent) {
			return false
		}
	}
	return true
}
