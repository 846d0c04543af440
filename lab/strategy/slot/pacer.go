package slot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/core/contention"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Config says what a process knows of the quota it shares. Rate, Burst and Rng have no default.
type Config struct {
	// Rate is the quota's refill in requests per second, Burst its capacity in requests.
	Rate  float64
	Burst float64
	// Weight is how many shares the process claims: 2 gets twice what 1 gets. If zero, 1.
	Weight float64
	// MaxWait is the longest that it waits from one request to the next, whatever the server says. If zero, 2·Burst/Rate,
	// and at least a minute.
	MaxWait time.Duration
	// Start is the time between two requests to begin with, as if it had been learned. If zero, nothing is known.
	Start time.Duration
	// Rng is drawn from in Settle only. It belongs to the driver of the limiter.
	Rng *rand.Rand
}

func (c Config) filled(kind string) (Config, error) {
	if err := (fairshare.Params{Rate: c.Rate, Burst: c.Burst}).Check(kind); err != nil {
		return c, err
	}
	if c.Weight == 0 {
		c.Weight = 1
	}
	if !(c.Weight > 0) || c.Weight > 1e6 {
		return c, fmt.Errorf("throttle: %s: Weight %v is not above 0 and at most 1e6", kind, c.Weight)
	}
	if c.MaxWait < 0 {
		return c, fmt.Errorf("throttle: %s: MaxWait %v is negative", kind, c.MaxWait)
	}
	if c.MaxWait == 0 {
		c.MaxWait = max(time.Minute, fairshare.Seconds(2*c.Burst/c.Rate))
	}
	if c.Start < 0 {
		return c, fmt.Errorf("throttle: %s: Start %v is negative", kind, c.Start)
	}
	if c.Rng == nil {
		return c, fmt.Errorf("throttle: %s: Rng is nil", kind)
	}
	return c, nil
}

// pacer is when the next request goes, for both laws. They plan in tokens: the time in which the quota refills one.
//
// A plan is absolute: if the answer to the request sent at t asks for τ, the one after it goes at t + τ and those after
// that n tokens apart, however many have gone meanwhile. So an answer that comes when others are in flight counts what
// those others, and the strangers during them, take.
type pacer struct {
	Config
	n       float64 // tokens per request of this process: all shares over its own
	scale   float64 // the quota's true refill over Rate, as far as it was seen to be larger
	window  int     // requests in flight while nothing but answers holds them back
	sent    uint64
	sentAt  mono.Time // of the latest send
	next    mono.Time
	since   mono.Time // the plan, or a send, as of which next holds
	last    mono.Time
	planned time.Duration
	book    limit.Book[attempt]
}

// attempt is what is kept of a request in flight.
type attempt struct {
	seq uint64 // 0: not counted
	at  mono.Time
}

func newPacer(c Config) pacer {
	p := pacer{Config: c, scale: 1, window: 1, next: mono.Min, since: mono.Min, sentAt: mono.Min, last: mono.Min, planned: c.Start}
	p.n = p.clamp(p.tokens(c.Start))
	return p
}

func (p *pacer) tokens(d time.Duration) float64 { return d.Seconds() * p.Rate * p.scale }

// span is the time in which that many tokens flow in, at most MaxWait; negative as they are.
func (p *pacer) span(tokens float64) time.Duration {
	if tokens < 0 {
		return -min(fairshare.Seconds(-tokens/(p.Rate*p.scale)), math.MaxInt64/4)
	}
	return min(fairshare.Seconds(tokens/(p.Rate*p.scale)), p.MaxWait)
}

// clamp keeps n within what can be: a request takes at least its own token, and waits at most MaxWait.
func (p *pacer) clamp(n float64) float64 { return min(max(n, 1), max(1, p.tokens(p.MaxWait))) }

// Ready implements limit.Limiter. It never says limit.AfterSettle: an answer that does not come holds the next request back,
// but not for ever.
func (p *pacer) Ready(now mono.Time, cost limit.Cost) mono.Time {
	now = max(now, p.last)
	if cost[limit.Requests] <= 0 {
		return now
	}
	t := p.next
	if p.sent > 0 && p.book.Len() >= p.window {
		t = max(t, p.sentAt.Add(p.span(p.n)))
	}
	return max(now, t)
}

// Admit implements limit.Limiter. Every request counts as one, whatever its cost.
func (p *pacer) Admit(now mono.Time, cost limit.Cost) limit.Lease {
	now = max(now, p.last)
	p.last = now
	if cost[limit.Requests] <= 0 {
		return p.book.Open(attempt{at: now})
	}
	// Time in which it could have been sent and was not is no credit: others took those tokens. If nobody did, the
	// answer will say so.
	if could := max(p.next, p.since); could == mono.Min {
		p.next = now
	} else if now > could {
		p.next = p.next.Add(now.Sub(could))
	}
	p.next = p.next.Add(p.span(p.n))
	p.since = now
	p.sent++
	p.sentAt = now
	return p.book.Open(attempt{p.sent, now})
}

// plan sets when the request after a goes: tau tokens after it, and later by n for each that went since.
func (p *pacer) plan(now mono.Time, a attempt, tau float64) {
	newer := float64(p.sent - a.seq)
	p.next = min(a.at.Add(p.span(tau+newer*p.n)), p.sentAt.Add(p.MaxWait))
	p.since = now
	p.planned = p.span(max(tau, 0))
}

// hold sets when the next request goes after a refusal: tau tokens after the latest send, and not before retryAfter.
func (p *pacer) hold(now mono.Time, tau float64, retryAfter time.Duration) {
	p.next = p.sentAt.Add(p.span(tau))
	if t := now.Add(min(retryAfter, p.MaxWait)); retryAfter > 0 && t > p.next {
		// All who were refused are told the same instant.
		p.next = min(t.Add(p.span(p.n*p.Rng.Float64())), now.Add(p.MaxWait))
	}
	p.window = 1
	p.since = now
	p.planned = p.span(tau)
}

// open lets one more be in flight while there is plenty: twice as many after each round trip.
func (p *pacer) open() { p.window = min(p.window+1, 1<<30) }

// Sleep implements fairshare.Sleeper.
func (p *pacer) Sleep() time.Duration { return p.planned }

// wider is the next blind window, after one of n in which this process was refused that many tokens after it began.
func wider(n, tokens float64) float64 {
	most := blindGrowth
	if n > 2*contention.Shares {
		most = blindGrowthLater
	}
	return contention.Wider(n, tokens, 2, most)
}

// Constants of blind windows.
const (
	blindGrowth      = 12.0
	blindGrowthLater = 4.0
)
