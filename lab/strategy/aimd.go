package strategy

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// peers are limiters that other systems share by.
var peers = []Strategy{
	{
		Name: "aimd", Text: "additive increase of the rate, multiplicative decrease at a limit", Baseline: true,
		NewLimiter: func(p Params, rng *rand.Rand) (limit.Limiter, error) {
			return limiter(NewAIMD(p, rng))
		},
	},
	{
		Name: "cubic", Text: "the adaptive retry mode of the AWS SDKs: a token bucket whose rate is CUBIC's", Baseline: true,
		NewLimiter: func(p Params, _ *rand.Rand) (limit.Limiter, error) {
			return limiter(NewCubic(p))
		},
	},
}

// AIMD is additive increase, multiplicative decrease (Chiu and Jain, 1989): it spaces requests by
// 1/rate; the rate grows by Increase per second while requests are served and is multiplied by
// Decrease at a limit. Of all requests that went out before a decrease none decreases again: they
// met the same shortage.
//
// A served request adds to the rate what belongs to the gap before it, but nothing if that gap was
// more than twice as long as planned: a client that uses less than half of its rate learns nothing
// from being served. An unknown outcome changes nothing.
//
// Each request counts once, whatever its cost. A Retry-After is not heeded: put a limit.Cooldown
// beside it, under limit.All. An unsent request has used up its turn. Not safe for concurrent use.
type AIMD struct {
	increase, decrease, minRate, jitter float64

	rng       *rand.Rand
	rate      float64
	admitted  bool
	sent      mono.Time // the latest
	next      mono.Time
	plan      time.Duration // from sent to next
	decreased uint64        // requests up to this number went out before the last decrease
	number    uint64        // of the latest request
	last      mono.Time
	credits   limit.Book[float64] // seconds of increase if a request is served
}

const maxRate = 1e9 // one request per tick of mono.Time

// NewAIMD returns an AIMD that has sent nothing. It reads Rate, Burst, Increase, Decrease, MinRate,
// Jitter, and Start: the rate to begin with is 1/Start, and Rate if Start is zero. rng is for the
// jitter; it may be nil if there is none.
func NewAIMD(p Params, rng *rand.Rand) (*AIMD, error) {
	if err := p.Check("aimd"); err != nil {
		return nil, err
	}
	u, err := jitter(p, "aimd")
	if err != nil {
		return nil, err
	}
	if u > 0 && rng == nil {
		return nil, errors.New("fairshare: aimd: rng is nil and Jitter is not negative")
	}
	if p.Start < 0 || p.Start > longest*time.Second {
		return nil, fmt.Errorf("fairshare: aimd: Start %v is not from 0 to %v", p.Start, longest*time.Second)
	}
	a := &AIMD{increase: p.Increase, decrease: p.Decrease, minRate: p.MinRate, jitter: u, rng: rng, rate: p.Rate,
		next: mono.Min, last: mono.Min}
	a.increase = cmp.Or(a.increase, p.Rate/1000)
	if !(a.increase > 0) || a.increase > maxRate {
		return nil, fmt.Errorf("fairshare: aimd: Increase %v is not above 0 and at most 1e9", a.increase)
	}
	if a.decrease, err = decrease("aimd", p.Decrease, 0.5); err != nil {
		return nil, err
	}
	if a.minRate, err = minRate("aimd", p.MinRate, p.Rate/p.Burst); err != nil {
		return nil, err
	}
	if p.Start > 0 {
		a.rate = 1 / p.Start.Seconds()
	}
	a.rate = max(a.rate, a.minRate)
	return a, nil
}

func decrease(kind string, d, ifZero float64) (float64, error) {
	if d = cmp.Or(d, ifZero); !(d > 0 && d < 1) {
		return 0, fmt.Errorf("fairshare: %s: Decrease %v is not between 0 and 1", kind, d)
	}
	return d, nil
}

// minRate also keeps a default above once a year: a rate has to have an interval.
func minRate(kind string, r, ifZero float64) (float64, error) {
	if r = cmp.Or(r, max(ifZero, 1./longest)); !(r >= 1./longest && r <= maxRate) {
		return 0, fmt.Errorf("fairshare: %s: MinRate %v is not from %.3g to 1e9", kind, r, 1./longest)
	}
	return r, nil
}

// Rate returns its rate at present, in requests per second.
func (a *AIMD) Rate() float64 { return a.rate }

// Sleep implements Sleeper.
func (a *AIMD) Sleep() time.Duration { return fairshare.Seconds(1 / a.rate) }

// Ready implements limit.Limiter.
func (a *AIMD) Ready(now mono.Time, _ limit.Cost) mono.Time { return max(now, a.last, a.next) }

// Admit implements limit.Limiter.
func (a *AIMD) Admit(s *limit.Sent) {
	a.last = max(s.At, a.last)
	a.number = s.Number
	credit := 0.0
	if gap := a.last.Sub(a.sent); a.admitted && gap/2 <= a.plan {
		credit = min(gap, a.plan).Seconds()
	}
	interval := 1 / a.rate
	if a.jitter > 0 {
		interval += interval * a.jitter * a.rng.Float64()
	}
	a.plan = fairshare.Seconds(interval)
	a.admitted, a.sent, a.next = true, a.last, a.last.Add(a.plan)
	a.credits.Open(s.Number, credit)
}

// Settle implements limit.Limiter.
func (a *AIMD) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	credit := a.credits.Close(s.Number)
	a.last = max(now, a.last)
	switch o.Result {
	case limit.Accepted, limit.Failed:
		a.rate = min(a.rate+a.increase*credit, maxRate)
	case limit.Limited:
		if s.Number > a.decreased && !o.Elsewhere {
			a.decreased = a.number
			a.rate = max(a.rate*a.decrease, a.minRate)
		}
	}
}
