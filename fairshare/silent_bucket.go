package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// silentBucket is the law for buckets of servers whose answers are only served or limited. It does
// not throttle before the first refusal. Then come blind windows, until a request is served. From
// then on it keeps its pace for long and quickens slowly, and faster the longer it was not refused.
// A refusal makes it a little slower than the refused pace. All quicken alike in time, and a
// process that sends more is refused more often. So all come to the same pace.
type silentBucket struct {
	stage   silentStage
	heardAt mono.Time
	heard   bool
	blind   float64
	refused mono.Time // when the request that was refused last was sent
	begun   mono.Time // when the wait after that, beyond one interval, was over
	served  int       // requests served since
	in      int       // refusals in a row
}

type silentStage uint8

const (
	neverLimited silentStage = iota // it was never refused
	onlyLimited                     // it was refused, and not served since
	thenServed                      // it was served, and not refused since
	limitedAgain
)

// After a refusal the n of the refused request is kept for long. Within T tokens it quickens by
// quickens·(T/plateauLong)³ in all.
const (
	searches      = 0.005 // the part of n with each answer, before it is limited again
	quickens      = 0.03
	quickensMost  = 0.05
	plateauLong   = 2000.0 // for 10 sharers; it grows with the eighth root of n
	plateauPower  = 0.125
	slows         = 1.07 // factor of n at a refusal
	slowsAgain    = 1.05 // factor at the next refusal at once: the bucket was still empty
	slowsMore     = 1.2  // factor at the refusals after that
	averagedLeast = 8    // the least number of answers whose average pace shows how much the quota allowed
	spreadAfter   = 0.6  // the part of n by which the next request after a refusal is later, at random
	jitters       = 0.1
)

func (b *silentBucket) answer(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration) {
	gap := 0.0
	if b.heard {
		gap = f.tokens(s.at.Sub(b.heardAt))
	}
	b.heard, b.heardAt = true, s.at
	if s.limited {
		b.limited(f, now, s, retryAfter)
		return
	}
	b.served++
	b.in = 0
	pace := 0.0
	switch b.stage {
	case onlyLimited:
		b.stage = thenServed
	case thenServed:
		f.n *= 1 - searches
	case limitedAgain:
		long := plateauLong * math.Pow(f.shares()/10, plateauPower)
		t := f.tokens(s.at.Sub(b.refused)) / long
		f.n *= 1 - min(quickensMost, 3*quickens*t*t*min(gap, 2*f.n)/long)
	}
	f.n = f.clamp(f.n)
	if b.stage != neverLimited {
		pace = f.n * (1 + jitters*(f.config.Rng.Float64()-0.5))
	}
	since := (f.sum - s.sum) / f.config.MeanCost
	f.account.plan(now, s, f.span(pace-f.n+f.n*since), f.span(f.n))
	if b.stage == neverLimited {
		f.account.plan(now, s, 0, 0)
	}
	f.planned = f.span(pace)
}

func (b *silentBucket) limited(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration) {
	b.in++
	switch {
	case b.stage == neverLimited && f.known:
		b.stage = limitedAgain
	case b.stage == neverLimited:
		b.stage = onlyLimited
		b.blind = assumedSharers / f.config.Weight
	case b.stage == onlyLimited:
		b.blind *= 2
	case b.in == 1:
		if b.served >= averagedLeast {
			// The bucket was empty then and is empty now. So all that was sent between is the
			// inflow.
			f.n = min(2*f.n, max(f.n, f.tokens(s.at.Sub(b.begun))/float64(b.served+1)))
		}
		f.n *= slows
	case b.in == 2:
		f.n *= slowsAgain
	default:
		f.n *= slowsMore
	}
	b.served, b.refused = 0, s.at
	if b.stage == onlyLimited {
		b.blind = f.clamp(b.blind)
		f.n = b.blind
		f.wait(now, waitTokens(f.n, f.config.Rng.Float64()), retryAfter)
	} else {
		b.stage = limitedAgain
		f.n = f.clamp(f.n)
		f.wait(now, f.n*(1+spreadAfter*f.config.Rng.Float64()), retryAfter)
	}
	b.begun = f.paid
	f.stale = f.seq
}
