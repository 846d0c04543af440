package limit

import (
	"errors"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Retreat says that a risky opt-in is not in use, since its assumption was seen to fail.
//
// A limiter leaves an opt-in after the first proof against it. A proof is a request that was
// refused although the opt-in had left room, or that overtook another. The retreat takes 10 min,
// and twice as long after each further proof, up to 85 h. Each day without a proof halves the next
// retreat. Another limit, or another user of the same quota, may cause such a refusal, too. The
// retreat is the safe side then as well.
type Retreat struct {
	Limit  string    // the name of the limit, as in Rule
	Option string    // "OneWayMax", "LearnLead", "Gap" or "LearnGap"
	Until  mono.Time // the opt-in is in use again from then on
	Times  int       // how often lately, up to 10
}

// Trust puts the opt-ins of l back into use from now on. It is a change as SetLimit is: call Ready
// again. A Limiter with opt-ins has a method
//
//	Trust(now mono.Time)
func Trust(l Limiter, now mono.Time) {
	Ask(l, func(c interface{ Trust(now mono.Time) }) { c.Trust(now) })
}

// caution knows when an opt-in is in use.
type caution struct {
	until mono.Time // not in use before this
	times int       // the recent proofs against it
}

const (
	cautionPause = 10 * time.Minute
	cautionTimes = 10 // further proofs do not make it longer: 85 h
	cautionGood  = 24 * time.Hour
)

func newCaution() caution { return caution{until: mono.Min} }

// strike counts a proof at now by a request that was sent at sent. It reports whether the proof is
// new. It is not new if the request was sent before the last proof, or while the opt-in was not in
// use.
func (c *caution) strike(now, sent mono.Time) bool {
	if sent < c.until {
		return false
	}
	if c.times > 0 {
		c.times = max(0, c.times-int(now.Sub(c.until)/cautionGood))
	}
	c.times = min(c.times+1, cautionTimes)
	c.until = now.Add(cautionPause << (c.times - 1))
	return true
}

// retreat describes the retreat from an option; without one it is zero.
func (c *caution) retreat(now mono.Time, option string) (r Retreat) {
	if now < c.until {
		r = Retreat{Option: option, Until: c.until, Times: c.times}
	}
	return r
}

func (c *caution) trust(now mono.Time) { c.until = min(c.until, now) }

// pair is a limiter with a OneWayMax: the same limiter twice, with and without it. Both get every
// request. So when the promise turns out to be wrong, the safe one already knows which earlier
// requests may have arrived late.
type pair struct {
	bold, safe Forecaster
	caution
	last mono.Time
	open int // requests in flight
}

func newPair(bold, safe Forecaster) *pair {
	return &pair{bold: bold, safe: safe, caution: newCaution(), last: mono.Min}
}

// Ready is that of the bold limiter while the opt-in is in use. A cost that the safe limiter allows
// may go in any case.
func (p *pair) Ready(now mono.Time, cost Cost) mono.Time {
	return p.choose(p.bold.Ready(now, cost), p.safe.Ready(now, cost))
}

func (p *pair) choose(bold, safe mono.Time) mono.Time {
	return max(p.last, min(max(bold, p.until), safe))
}

func (p *pair) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	now = max(now, p.last) // last may be the instant of a Trust, which neither limiter knows
	bold, safe := p.bold.NotBefore(now, n, ahead, cost), p.safe.NotBefore(now, n, ahead, cost)
	return max(min(bold, safe), min(safe, p.until))
}

func (p *pair) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return p.choose(ReadyAfter(p.bold, now, first, cost), ReadyAfter(p.safe, now, first, cost))
}

func (p *pair) Admit(s *Sent) {
	p.last = max(s.At, p.last)
	p.open++
	p.bold.Admit(s)
	p.safe.Admit(s)
}

func (p *pair) Settle(now mono.Time, s *Sent, o *Outcome) {
	p.last = max(now, p.last)
	p.open--
	p.bold.Settle(now, s, o)
	p.safe.Settle(now, s, o)
	if o.refuted() {
		p.strike(p.last, s.At)
	}
}

// change changes both limiters of a pair alike. K is their kind, or a method of it.
func change[K any](p *pair, f func(l K) error) error {
	return errors.Join(f(p.bold.(K)), f(p.safe.(K)))
}

// appendUsage takes the common fields from the safe limiter. Of the used cost it reports the
// smaller figure, if the bold limiter is in use.
func (p *pair) appendUsage(to []Usage, now mono.Time) []Usage {
	now = max(now, p.last)
	n := len(to)
	to = AppendUsage(AppendUsage(to, p.safe, now), p.bold, now)
	if bold := to[n+1].Used; p.until <= now && bold < to[n].Used {
		to[n].Used, to[n].Open = bold, min(to[n].Open, bold)
	}
	to[n].Requests, to[n].Retreat = p.open, p.retreat(now, "OneWayMax")
	return to[:n+1]
}
