package strategy

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit/mono"
)

// The strategies of the rate_throttle_client gem, step by step as it published them. With s the
// sleep in seconds and U a number drawn evenly from 0 to 1, a call is
//
//	sleep s + Jitter·s·U, then send
//	as often as it is limited: s += MinSleep; sleep s + Jitter·s·U; s *= Multiplier; send again
//	once it is served: s −= decrease, but not below 0
//
// with the decrease as each strategy says. The first limit and later ones take the same steps. What
// the gem calls limit and divides by is Divisor. Backoffs keep no s: they send at once, and sleep
// only after a limit.
var gem = []Strategy{
	unthrottled("null", "no throttle; a limited call is over", true),
	unthrottled("retry-only", "no throttle; a limited call is tried again at once", false),
	gems("fixed-backoff", "sleeps min_sleep after each limit, and does not throttle otherwise", fixedBackoff),
	gems("exponential-backoff", "sleeps min_sleep after a limit, longer after each one more; forgets it when served",
		exponentialBackoff),
	gems("exponential-increase-gradual-decrease", "sleeps before each request; served: less by min_sleep",
		gradualDecrease),
	gems("exponential-increase-proportional-decrease", "sleeps before each request; served: less by sleep/limit",
		proportionalDecrease),
	gems("exponential-increase-proportional-remaining-decrease",
		"sleeps before each request; served: less by sleep·remaining/limit", proportionalRemainingDecrease),
}

// longest is the longest sleep in seconds: a year. Without an end a sleep that multiplies leaves the numbers there are.
const longest = 365 * 24 * 3600

// law is what a strategy of the gem does with its sleep when it is served.
type law uint8

const (
	fixedBackoff                  law = iota // sleep: MinSleep, never multiplied; nothing is kept
	exponentialBackoff                       // sleep: MinSleep, multiplied after each; nothing is kept
	gradualDecrease                          // s −= MinSleep
	proportionalDecrease                     // s −= s / Divisor
	proportionalRemainingDecrease            // s −= s · Remaining / Divisor
)

func gems(name, text string, l law) Strategy {
	return Strategy{Name: name, Text: text, Baseline: true,
		New: func(p Params) (Process, error) {
			g, err := newGem(name, l, p)
			if err != nil {
				return nil, err // not g: a nil *gemProcess is no nil Process
			}
			return g, nil
		}}
}

// sleeps are the constants that the strategies of the gem and of the demo share, in seconds.
type sleeps struct {
	start, min, multiplier, jitter, divisor float64
}

// sleepsOf checks what it reads and puts in the defaults but for that of Start.
func sleepsOf(p Params, kind string, multiplier float64) (sleeps, error) {
	if err := p.Check(kind); err != nil {
		return sleeps{}, err
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"Start", p.Start}, {"MinSleep", p.MinSleep}} {
		if d.d < 0 || d.d > longest*time.Second {
			return sleeps{}, fmt.Errorf("fairshare: %s: %s %v is not from 0 to %v", kind, d.name, d.d, longest*time.Second)
		}
	}
	u, err := jitter(p, kind)
	if err != nil {
		return sleeps{}, err
	}
	c := sleeps{p.Start.Seconds(), p.MinSleep.Seconds(), p.Multiplier, u, p.Divisor}
	c.min = cmp.Or(c.min, min(1/p.Rate, longest))
	c.multiplier = cmp.Or(c.multiplier, multiplier)
	c.divisor = cmp.Or(c.divisor, p.Burst)
	if !(c.multiplier >= 1 && c.multiplier <= 1e6) {
		return sleeps{}, fmt.Errorf("fairshare: %s: Multiplier %v is not from 1 to 1e6", kind, c.multiplier)
	}
	// By a lesser divisor a decrease could be infinite, and no number times a demo's 1/F of 0.
	if !(c.divisor >= 1e-6 && c.divisor <= 1e12) {
		return sleeps{}, fmt.Errorf("fairshare: %s: Divisor %v is not from 1e-6 to 1e12", kind, c.divisor)
	}
	return c, nil
}

func jitter(p Params, kind string) (float64, error) {
	switch {
	case p.Jitter == 0:
		return 0.1, nil
	case p.Jitter < 0:
		return 0, nil
	case p.Jitter <= 1:
		return p.Jitter, nil
	}
	return 0, fmt.Errorf("fairshare: %s: Jitter %v is not at most 1", kind, p.Jitter)
}

// jittered draws from rng whether or not there is a sleep, as was published.
func (c *sleeps) jittered(s float64, rng *rand.Rand) time.Duration {
	return fairshare.Seconds(s + s*c.jitter*rng.Float64())
}

// remaining is what the server says is left, 0 if it does not say: the gem reads a missing header so.
func remaining(a Answer) float64 {
	if !a.Known || !(a.Remaining > 0) {
		return 0
	}
	return min(a.Remaining, math.MaxInt64) // an infinite one times a sleep of 0 is no number
}

type gemProcess struct {
	sleeps
	law     law
	own     Law // in place of law, if not nil
	sharing Sharing
	s       float64 // what Racing and Shared share
}

func newGem(name string, l law, p Params) (*gemProcess, error) {
	c, err := sleepsOf(p, name, 1.2)
	if err != nil {
		return nil, err
	}
	if p.Sharing > Local {
		return nil, fmt.Errorf("fairshare: %s: Sharing %d is none of racing, shared, local", name, uint8(p.Sharing))
	}
	if l == fixedBackoff {
		c.multiplier = 1
	}
	return &gemProcess{sleeps: c, law: l, sharing: p.Sharing, s: c.start}, nil
}

// Thread implements Process.
func (p *gemProcess) Thread(rng *rand.Rand) Thread {
	t := &gemThread{p: p, rng: rng, s: p.start}
	if p.law <= exponentialBackoff {
		t.s = 0
	}
	return t
}

type gemThread struct {
	p       *gemProcess
	rng     *rand.Rand
	s       float64 // not yet multiplied for the try under way, so that it is what that try slept
	calling bool    // a call has begun and is not served yet
	limited bool    // and was limited before
	known   Moment  // of a Law; here, since a Moment on the stack would escape
}

// Send implements Thread.
func (t *gemThread) Send(now mono.Time) mono.Time {
	backoff := t.p.law <= exponentialBackoff
	if !t.calling {
		t.calling = true
		if backoff {
			return now
		}
		if t.p.sharing != Local {
			t.s = t.p.s
		}
	} else if t.p.sharing == Shared && !backoff {
		t.s = t.p.s
	}
	return now.Add(t.p.jittered(t.s, t.rng))
}

// Answer implements Thread.
func (t *gemThread) Answer(now mono.Time, a Answer) {
	if t.p.law <= exponentialBackoff {
		t.backoff(a)
		return
	}
	if t.p.sharing == Shared {
		t.s = t.p.s
	}
	if t.p.own != nil {
		t.obey(now, a)
	} else {
		t.step(a)
	}
	if t.p.sharing == Shared || t.p.sharing == Racing && !a.Limited {
		t.p.s = t.s
	}
}

// step is an answer by the laws of the gem.
func (t *gemThread) step(a Answer) {
	if t.limited { // the step after the sleep; nobody else sees the difference unless they share
		t.s *= t.p.multiplier
	}
	t.limited = a.Limited
	if a.Limited {
		t.s += t.p.min
	} else {
		t.calling = false
		t.s = max(t.s-t.decrease(a), 0)
	}
	t.s = min(t.s, longest)
}

func (t *gemThread) backoff(a Answer) {
	switch {
	case !a.Limited:
		t.s, t.calling = 0, false
	case !t.limited:
		t.s = t.p.min
	default:
		t.s = min(t.s*t.p.multiplier, longest)
	}
	t.limited = a.Limited
}

func (t *gemThread) decrease(a Answer) float64 {
	switch t.p.law {
	case gradualDecrease:
		return t.p.min
	case proportionalDecrease:
		return t.s / t.p.divisor
	}
	return t.s * remaining(a) / t.p.divisor
}

// Sleep implements Thread.
func (t *gemThread) Sleep() time.Duration { return fairshare.Seconds(t.s) }

// free throttles nothing.
type free struct{}

func unthrottled(name, text string, givesUp bool) Strategy {
	return Strategy{Name: name, Text: text, Baseline: true, GivesUp: givesUp,
		New: func(p Params) (Process, error) {
			if err := p.Check(name); err != nil {
				return nil, err
			}
			return free{}, nil
		}}
}

func (free) Thread(*rand.Rand) Thread     { return free{} }
func (free) Send(now mono.Time) mono.Time { return now }
func (free) Answer(mono.Time, Answer)     {}
func (free) Sleep() time.Duration         { return 0 }
