package strategy

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Cubic is the client-side rate limit of the adaptive retry mode of the AWS SDKs, as botocore
// (retries/throttling.py, adaptive.py, bucket.py) and aws-sdk-go-v2 (aws/retry) have it. That the
// SDKs are for a service with per-second rates shows in its constants: it never goes below one
// request in 2 s unless MinRate says so.
//
// It does nothing until the first limit. From then on a request takes a token from a bucket that
// refills at the rate and holds a second's worth, at least 1. Each answer at instant t sets the
// rate to
//
//	limited:   w = the measured rate, or the rate if that is less; T = t; rate = Decrease·w
//	otherwise: rate = Scale·(t − T − k)³ + w, with k = ∛(w·(1 − Decrease)/Scale), seconds and requests per second
//
// but to no more than twice the measured rate and no less than MinRate. The measured rate is that
// of answers: after each half second with any, Smooth·(answers per second since the last) + (1 −
// Smooth)·(what it was). Decrease 0.7, Scale 0.4, Smooth 0.8 and MinRate 0.5 are the SDKs'; RFC
// 9438 has the same 0.7 and 0.4.
//
// Every answer but a limit counts as served, and an unknown outcome too; an unsent request not at
// all, but it keeps its token. Each request counts once, whatever its cost. Until the first limit
// no more than Burst requests are in flight: the SDKs leave that bound to their callers. The
// backoff by which the SDKs delay the next try of a request is not part of it, nor is Retry-After
// (see limit.Cooldown). Not safe for concurrent use.
type Cubic struct {
	decrease, scale, smooth, minRate float64
	unlimited                        int // the most in flight while it is not enabled

	begun   bool
	enabled bool
	wMax, k float64   // per second; seconds
	failed  mono.Time // T

	fill, capacity, tokens float64
	filled                 mono.Time // when tokens held
	next                   mono.Time // when there is a token

	measured float64
	bucket   int64 // half seconds of the driver's scale
	answers  float64

	last mono.Time
	open int // in flight
}

const halfSecond = mono.Time(500 * time.Millisecond)

// NewCubic returns a Cubic that has sent nothing. It reads Rate and Burst (which the SDKs do not
// know), Decrease, Scale, Smooth, MinRate, and Start: if that is not zero it begins as if a limit
// had brought its rate to 1/Start.
func NewCubic(p Params) (*Cubic, error) {
	if err := p.Check("cubic"); err != nil {
		return nil, err
	}
	if p.Start < 0 || p.Start > longest*time.Second {
		return nil, fmt.Errorf("fairshare: cubic: Start %v is not from 0 to %v", p.Start, longest*time.Second)
	}
	c := &Cubic{scale: p.Scale, smooth: p.Smooth, unlimited: int(min(p.Burst, math.MaxInt32)), next: mono.Min,
		last: mono.Min}
	var err error
	if c.decrease, err = decrease("cubic", p.Decrease, 0.7); err != nil {
		return nil, err
	}
	if c.minRate, err = minRate("cubic", p.MinRate, 0.5); err != nil {
		return nil, err
	}
	c.scale = cmp.Or(c.scale, 0.4)
	if !(c.scale >= 1e-9 && c.scale <= 1e9) {
		return nil, fmt.Errorf("fairshare: cubic: Scale %v is not from 1e-9 to 1e9", c.scale)
	}
	c.smooth = cmp.Or(c.smooth, 0.8)
	if !(c.smooth > 0 && c.smooth <= 1) {
		return nil, fmt.Errorf("fairshare: cubic: Smooth %v is not above 0 and at most 1", c.smooth)
	}
	c.fill, c.capacity = max(1, c.minRate), 1
	if p.Start > 0 {
		c.enabled = true
		c.fail(1 / p.Start.Seconds() / c.decrease)
		c.setRate(c.wMax * c.decrease)
		c.tokens = 1
	}
	return c, nil
}

// Rate returns its rate at present, in requests per second. It holds nothing back before the first limit.
func (c *Cubic) Rate() float64 { return c.fill }

// Sleep implements Sleeper.
func (c *Cubic) Sleep() time.Duration {
	if !c.enabled {
		return 0
	}
	return fairshare.Seconds(1 / c.fill)
}

// Ready implements limit.Limiter.
func (c *Cubic) Ready(now mono.Time, _ limit.Cost) mono.Time {
	now = max(now, c.last)
	if !c.enabled {
		if c.open >= c.unlimited {
			return limit.AfterSettle
		}
		return now
	}
	return max(now, c.next)
}

// Admit implements limit.Limiter.
func (c *Cubic) Admit(s *limit.Sent) {
	c.last = max(s.At, c.last)
	c.open++
	if !c.begun {
		c.begun = true
		c.failed, c.filled = c.last, c.last
		c.bucket = 2 * floor(c.last, 2*halfSecond) // the SDKs begin at a whole second
	}
	if c.enabled {
		c.refill()
		c.tokens--
		c.plan()
	}
}

// Settle implements limit.Limiter.
func (c *Cubic) Settle(now mono.Time, _ *limit.Sent, o *limit.Outcome) {
	c.open--
	c.last = max(now, c.last)
	if o.Result == limit.Unsent || o.Elsewhere {
		return
	}
	c.measure()
	var rate float64
	if o.Result == limit.Limited {
		w := c.measured
		if c.enabled {
			w = min(w, c.fill)
		}
		c.fail(w)
		c.failed = c.last
		rate = w * c.decrease
		c.enabled = true
	} else {
		d := c.last.Sub(c.failed).Seconds() - c.k
		rate = c.scale*d*d*d + c.wMax
	}
	c.refill()
	c.setRate(min(rate, 2*c.measured))
	c.plan()
}

func (c *Cubic) fail(rate float64) {
	c.wMax = rate
	c.k = math.Cbrt(rate * (1 - c.decrease) / c.scale)
}

func (c *Cubic) setRate(rate float64) {
	c.fill = min(max(rate, c.minRate), maxRate)
	c.capacity = max(min(rate, maxRate), 1)
	c.tokens = min(c.tokens, c.capacity)
}

func (c *Cubic) refill() {
	c.tokens = min(c.tokens+c.last.Sub(c.filled).Seconds()*c.fill, c.capacity)
	c.filled = c.last
}

// plan fixes the instant of the next token, so that it does not depend on when it is asked for.
func (c *Cubic) plan() {
	c.next = c.filled
	if c.tokens < 1 {
		c.next = c.filled.Add(fairshare.Seconds((1 - c.tokens) / c.fill))
	}
}

func (c *Cubic) measure() {
	c.answers++
	if b := floor(c.last, halfSecond); b > c.bucket {
		c.measured = c.smooth*(c.answers/(0.5*float64(b-c.bucket))) + (1-c.smooth)*c.measured
		c.answers, c.bucket = 0, b
	}
}

// floor divides downwards: instants before the epoch are negative.
func floor(t, by mono.Time) int64 {
	q := t / by
	if t%by < 0 {
		q--
	}
	return int64(q)
}
