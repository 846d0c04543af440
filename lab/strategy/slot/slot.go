// Package slot has the law for token buckets that was before throttle.Fair, and the one beside it for servers that do not say what
// remains. They are rows of the comparison and nothing else, since they and Fair rest at other levels of a bucket: one Slot beside nine
// who follow Fair takes all but a twentieth of it, and one who follows Fair beside nine Slots gets a hundredth of its share.
//
// As in throttle, nothing here owns a clock, lock or goroutine, nothing is safe for concurrent use, and random numbers come from
// the source that the driver hands in.
package slot

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/internal/core/contention"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Slot shares a token bucket with any number of strangers who run the same law, by what the answers to its own requests
// say: served or limited, and how much remains. The fair share is the law's only equilibrium: n sharers send once in n
// tokens each and the bucket rests at a small reserve, without refusals. Weight claims more shares. One process is one
// sharer however many requests it has in flight, and each request counts as one whatever its cost; a cost without
// limit.Requests passes freely.
//
// It reads Result, Remaining[limit.Requests] and its Known bit, RetryAfter (a lower bound, within MaxWait) and RTT of the
// outcomes. Where Remaining is missing or cannot be true it falls back on the law of Headerless, and tries again later. A
// server that lies can make it slow, up to MaxWait, but not make it hammer: after a refusal it waits for a token at least, at a
// rate of no more than 16 times Rate.
//
// Ready never draws random numbers and never says limit.AfterSettle. Not safe for concurrent use.
type Slot struct {
	pacer
	known   bool    // n is of this system
	blind   float64 // the blind window, else 0
	empty   int     // answers in a row that were limited or left nothing
	base    attempt // the request whose answer was measured last; seq 0: none
	level   float64 // by that answer
	intent  float64 // tokens planned after it
	heard   uint64  // newest answer heeded
	changed uint64  // answers to requests up to this one came of what was before a refusal
	revised uint64  // the latest request when n was revised
	drift   float64 // by how much the level is below the reserve, on average
	plenty  int     // plans in a row with nothing to wait for
	plunged uint64  // the latest request when the reserve was last spent
	trust   trust
	sense   sense
}

// The law. Intervals and levels are in tokens. After the answer to a request sent at t that left ℓ the next goes at
//
//	t + n + min(r(n) − ℓ, share·n)        r(n) = b·ln(m/n) + c·√n
//
// t − ℓ advances by exactly one token from one request of the whole system to the next, so everyone books another token
// for the next round, however clumped this one was. n follows what all took per own request: as est = tokens taken between
// two own requests has no bias towards any share, fairness comes from r alone, which is less for a larger n. The slope of r
// is slight, so where n is large r − ℓ is averaged over some κ rounds and heeded κ times as much; averaging keeps that
// stable.
const (
	reserveSlope = 7.0 // b
	reserveMost  = 400 // m
	reserveRoot  = 0.2 // c, up to √n = 20
	reserveLeast = 2.0
	share        = 0.2 // of n, the most by which the reserve is built in one interval

	gain      = 0.5 // of est − n that is heeded
	gainMore  = 3.0 // and more of it per deviation beyond sureFrom + sureOne/n, which is no noise
	sureFrom  = 0.2
	sureOne   = 0.5
	jump      = 4.0 // most by which n rises at once
	grown     = 1.5 // least by which it rises when served with nothing left, or limited, twice in a row
	kappa     = 0.03
	driftMost = 2.0

	// A level well above the reserve of one's n says that n is too large, whatever est says.
	pull      = 0.3
	pullFrom  = 3.0
	pullRoot  = 0.2
	pullUpTo  = 2.0
	prior     = 3.0 // weight of a blind window's n against what came of it
	firstMost = 2.0 // by which the first answer, if served, changes n

	// Where there was plenty for a few rounds the reserve is spent, but for this, and built again.
	plunge     = 4
	plungeRest = 1.0
	plungeRoot = 0.7

	// The true rate is at least what the level rose by and one's own requests took. More than scaleMost is no refill.
	scaleGrowth = 2.0
	scaleMost   = 16.0
)

// New checks the configuration and returns a Slot that has sent nothing.
func New(c Config) (*Slot, error) {
	c, err := c.filled("Slot")
	if err != nil {
		return nil, err
	}
	s := &Slot{pacer: newPacer(c)}
	if c.Start > 0 {
		s.known = true
	} else {
		s.n = s.clamp(contention.Shares / c.Weight)
	}
	return s, nil
}

// reserve is the level at which the sharers rest, as this process sees them: in tokens at Rate, since others may have
// found another scale.
func (s *Slot) reserve() float64 {
	n := s.n * s.Weight / s.scale
	r := max(reserveLeast, reserveSlope*math.Log(reserveMost/n)+reserveRoot*min(math.Sqrt(n), 20))
	return r * min(1, s.Burst/reserveBurst)
}

// reserveBurst is the capacity below which the reserve is less: it must fit.
const reserveBurst = 128

// Settle implements limit.Limiter.
func (s *Slot) Settle(now mono.Time, l limit.Lease, o limit.Outcome) {
	a := s.book.Close(l)
	now = max(now, s.last)
	s.last = now
	if a.seq == 0 || a.seq <= s.heard || a.seq <= s.changed || o.Elsewhere {
		return
	}
	limited := o.Result == limit.Limited
	remaining := o.Remaining[limit.Requests]
	says := o.Known&(1<<limit.Requests) != 0 && (o.Result == limit.Accepted || o.Result == limit.Failed)
	switch s.trust.judge(s, now, a, limited, says, remaining) {
	case ignored:
		return
	case headerless:
		if limited || o.Result == limit.Accepted {
			s.heard = a.seq
			s.sense.answer(&s.pacer, now, a, limited, o.RetryAfter)
			s.changed, s.known, s.blind, s.base = s.sense.changed, s.sense.stage >= searching, 0, attempt{}
		}
		return
	}
	rtt := o.RTT
	if rtt <= 0 {
		rtt = now.Sub(a.at)
	}
	if limited {
		remaining = 0
	}
	s.heed(now, a, rtt, limited, float64(remaining), o.RetryAfter)
}

// heed learns from an answer, and plans.
func (s *Slot) heed(now mono.Time, a attempt, rtt time.Duration, limited bool, remaining float64, retryAfter time.Duration) {
	s.heard = a.seq
	level := remaining + 0.5 // it was rounded down
	if s.known && !limited && a.seq <= s.revised {
		// It left before n was revised: n would be revised twice for one thing. The level is news.
		s.pace(now, a, rtt, level)
		return
	}
	if limited || remaining == 0 {
		s.empty++
	} else {
		s.empty = 0
	}
	est := s.measure(a, rtt, level, limited)
	first := s.base.seq == 0
	s.blind = 0
	switch {
	case !s.known && limited:
		if first {
			s.n = contention.Shares / s.Weight
		} else {
			s.n = wider(s.n, s.tokens(a.at.Sub(s.base.at)))
		}
		s.n = s.clamp(s.n)
		s.blind = s.n
	case !s.known && first:
		s.n = contention.Shares / s.Weight
		s.n = s.clamp(s.n * min(max(math.Exp((s.reserve()-level)/reserveSlope), 1/firstMost), firstMost))
	case !s.known:
		s.n = est
		if remaining == 0 {
			s.n = grown * s.n
		}
		s.known = true
	default:
		s.revise(est, level, limited)
	}
	s.n = s.clamp(s.n)
	s.base, s.level, s.revised = a, level, s.sent
	switch {
	case s.blind > 0:
		tau := contention.Wait(s.n, s.Rng.Float64())
		s.hold(now, tau, retryAfter)
		s.intent = tau
	case limited:
		tau := s.n * (1 + share*s.Rng.Float64())
		s.hold(now, tau, retryAfter)
		s.intent = tau
	default:
		s.pace(now, a, rtt, level)
		return
	}
	s.changed = s.sent
	s.plenty = 0
}

// measure estimates n by what all took since the base.
func (s *Slot) measure(a attempt, rtt time.Duration, level float64, limited bool) float64 {
	if s.base.seq == 0 {
		return s.n
	}
	span := a.at.Sub(s.base.at)
	own := float64(a.seq - s.base.seq)
	// Levels are rounded down, and the path's jitter is less than a round trip.
	if rose := level - s.level - 1 + own; !limited && rose > 3 {
		if r := rose / (s.Rate * (span + rtt).Seconds()); r > s.scale && r <= scaleMost {
			s.scale = min(r, scaleGrowth*s.scale)
		}
	}
	s.scale = 1 + (s.scale-1)*math.Exp2(-span.Seconds()*s.Rate/s.Burst) // it need not be so for ever
	gone := s.tokens(span)
	taken := max(0, gone-(level-s.level))
	if s.blind > 0 {
		k := prior * min(1, contention.Shares/s.n)
		return (taken + k*s.n) / (contention.Share(s.blind, gone) + k)
	}
	// Per own request, had they been sent as planned: who idles sees many others.
	return taken / own * min(1, own*s.intent/max(gone, math.SmallestNonzeroFloat64))
}

// revise moves n towards the estimate and to where the level shows it should be.
func (s *Slot) revise(est, level float64, limited bool) {
	est = min(est, jump*s.n)
	switch {
	case s.empty >= 2:
		s.n = max(grown*s.n, est)
	case s.empty == 1: // a refusal may be somebody else's fault
		s.n += gain * max(0, est-s.n)
	default:
		g := gain
		if off := math.Abs(est/s.n-1) - sureFrom - sureOne/s.n; off > 0 {
			g = min(1, g+gainMore*off)
		}
		s.n += g * (est - s.n)
	}
	s.n = s.clamp(s.n)
	if limited {
		return
	}
	k := kappa * s.n
	below := s.reserve() - level
	s.drift += (min(max(below, -driftMost), driftMost) - s.drift) / (1 + k)
	s.n = s.clamp(s.n + gain*k*s.drift)

	if above := level - s.reserve(); above < s.n { // else there is plenty, and est knows better
		shares := s.n * s.Weight / s.scale
		if above -= pullFrom + pullRoot*math.Sqrt(shares); above > 0 {
			s.n *= math.Exp(-pull * min(above/reserveSlope, pullUpTo))
		}
	}
}

// pace plans what follows an answer that was served.
func (s *Slot) pace(now mono.Time, a attempt, rtt time.Duration, level float64) {
	r := s.reserve()
	switch {
	case s.n+r <= level:
		s.plenty = min(s.plenty+1, 3*plunge)
	case s.plenty > plunge:
		// Only for so many rounds: others may hold the level up where it is by waiting.
		if a.seq > s.plunged {
			s.plenty--
			s.plunged = s.sent
		}
		r = min(r, plungeRest+plungeRoot*math.Sqrt(s.n*s.Weight/s.scale))
	default:
		s.plenty = 0
	}
	tau := s.n + min(r-level, share*s.n)
	s.open()
	s.plan(now, a, tau)
	s.intent = max(tau, s.tokens(rtt))
}
