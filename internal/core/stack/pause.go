package stack

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// pause is the time without requests after refusals.
//
// Requests that were in flight together are refused together. So a request sent before a pause
// began does not begin another, and without a time of its own does not prolong it. Only requests
// that were sent since, and served, end a row of refusals. A row makes longer and longer pauses,
// also where the server's time has not been enough twenty times. Hold makes a pause as an answer
// would.
//
//	no pause ── refused ──► pause ── its end ─────────────────────────────► no pause
//	                          │ MaxPause                                       ▲
//	                          ▼                                                │
//	                        a probe may go ── served ──────────────────────────┤
//	                          ▲         │ refused: MaxPause × 2^k after that   │
//	                          └─────────┴── or its end ────────────────────────┘
type pause struct {
	policy backoff.Policy
	rand   *rand.Rand
	most   time.Duration // how long the pause may last without a probe
	slow   bool
	again  bool // load begins slowly from the second refusal in a row on

	until   mono.Time // its end; mono.Min: none
	since   mono.Time
	why     Why
	next    mono.Time // when a probe may go
	refusal int       // refused probes
	probe   uint64    // the probe in flight; 0: none
	before  uint64    // the last request that was sent before it began; 0: there never was a pause
	strikes int       // refusals in a row
	count   int
}

// believed is how many times in a row a server's own time is believed to be enough.
const believed = 20

func newPause(c Config) pause {
	return pause{slow: c.Slow, again: c.SlowAgain, policy: c.Pause, rand: c.Rand, most: c.MaxPause, until: mono.Min,
		next: mono.Min}
}

// over reports whether there is no pause at now, nor later.
func (p *pause) over(now mono.Time) bool { return p.until <= now }

// forgotten reports whether the last pause has no effect on a later one.
func (p *pause) forgotten() bool { return p.strikes == 0 && p.probe == 0 }

// ready returns when the next request may go. While a probe is in flight that is the end of the
// pause, unless its answer changes it.
func (p *pause) ready(now mono.Time) mono.Time {
	end := p.until
	if p.probe == 0 {
		end = min(end, p.next)
	}
	return max(now, end)
}

// notBefore returns the result of ready if the probe in flight were served.
func (p *pause) notBefore(now mono.Time) mono.Time {
	if p.probe != 0 {
		return now
	}
	return p.ready(now)
}

// probes reports whether a request sent now is a probe.
func (p *pause) probes(now mono.Time) bool {
	return now < p.until && now >= p.next && p.probe == 0
}

func (p *pause) admit(now mono.Time, number uint64) {
	if p.probes(now) {
		p.probe = number
	}
}

// refused counts the refusal of a request. asked is the time that it asks for, 0 if none. sure
// means that a probe would be in vain. It reports whether there is a pause now.
func (p *pause) refused(now mono.Time, number, sent uint64, asked time.Duration, sure bool) bool {
	probed := p.returned(number)
	if probed {
		p.refusal++
		p.next = now.Add(p.rest())
	}
	same := number <= p.before
	// A probe whose refusal asks for the same pause has found out nothing.
	if !same && !(probed && asked > 0) {
		p.strikes = min(p.strikes+1, math.MaxInt32)
	}
	d, why := asked, Asked
	switch {
	case asked <= 0 && same:
		return false
	case asked <= 0:
		d, why = p.policy.Delay(p.strikes, p.rand), Guessed
	case !same && p.strikes > believed:
		d = max(d, p.policy.Delay(p.strikes-believed, p.rand))
	}
	if d <= 0 {
		return false
	}
	begins := p.extend(now, now.Add(d), why)
	if sure {
		p.next = max(p.next, now.Add(asked))
	}
	if !same {
		p.before = sent
		if begins {
			p.count++
		}
	}
	return true
}

// extend makes the pause last until t, and reports whether it begins now.
func (p *pause) extend(now, t mono.Time, why Why) (begins bool) {
	if begins = now >= p.until; begins {
		p.since, p.refusal, p.probe, p.next = now, 0, 0, now.Add(p.most)
	}
	if t >= p.until {
		p.until, p.why = t, why
	}
	return begins
}

// rest returns the time from the last probe to the next one.
func (p *pause) rest() time.Duration {
	if k := p.refusal; p.most <= math.MaxInt64>>k {
		return p.most << k
	}
	return math.MaxInt64
}

// returned notes that a request is back, and reports whether it was the probe.
func (p *pause) returned(number uint64) bool {
	if number != p.probe {
		return false
	}
	p.probe = 0
	return true
}

// unsure notes that a request ended without evidence of the limit.
func (p *pause) unsure(now mono.Time, number uint64) {
	if p.returned(number) {
		p.next = now.Add(p.rest())
	}
}

// served notes that a request was served.
func (p *pause) served(now mono.Time, number uint64, r limit.Result) {
	switch r {
	case limit.Unsent:
		p.returned(number)
	case limit.Unknown:
		p.unsure(now, number)
	default:
		if number > p.before {
			p.strikes = 0
		}
		if p.returned(number) {
			p.until = now
		}
	}
}

// Why is the source of the end of a pause.
type Why uint8

const (
	Guessed Why = iota // a backoff: no answer named the time
	Asked              // an answer named the time
	Held               // Hold set the time
)

// Pause describes a pause.
type Pause struct {
	Since    mono.Time
	Until    mono.Time // its end
	Next     mono.Time // when the next request may go: its end, or before that as a probe
	Why      Why
	Refusals int // in a row
	Probes   int // refused since it began
}

// Paused returns the present pause, at now.
func (g *Stack) Paused(now mono.Time) (Pause, bool) {
	now = max(now, g.last)
	p := &g.pause
	if p.over(now) {
		return Pause{}, false
	}
	return Pause{Since: p.since, Until: p.until, Next: p.ready(now), Why: p.why, Refusals: p.strikes, Probes: p.refusal},
		true
}

// Refusals returns how many pauses were begun or prolonged in a row with nothing served since. While it is above 0,
// a denial is a ban: every door asks that of it.
func (g *Stack) Refusals() int { return g.pause.strikes }

// Pauses returns the number of pauses after refusals. All requests in flight at one time count as
// one, with any number of refused probes during the pause.
func (g *Stack) Pauses() int { return g.pause.count }

// Hold stops all requests until t, as an answer with that time would. A t before the present end
// changes nothing.
func (g *Stack) Hold(now, t mono.Time) {
	g.catchUp()
	g.last = max(now, g.last)
	g.pause.extend(g.last, min(t, mono.Max), Held)
	g.compose()
}

// Lift ends the pause, and forgets the server's hints, since the caller knows better. A request in
// flight may begin another pause, if its refusal names a time.
func (g *Stack) Lift(now mono.Time) {
	g.catchUp()
	g.last = max(now, g.last)
	p := &g.pause
	p.until, p.probe, p.strikes, p.before = mono.Min, 0, 0, g.sent
	g.told = nil
	g.compose()
}
