package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// bucketLevel reads what remains in a token bucket. N sharers keep a reserve in it of
//
//	r(N) = 18·ln(8000/N) tokens
//
// If ¾ of a bucket are less than that, r is a part of those ¾ instead. The reserve r is 162 for one
// sharer, 120 for ten, 37 for a thousand. The phases of N sharers are not coordinated, so the level
// varies by √N. A reserve of 1.2·√N is enough for it not to run dry. r falls with N, since N is
// read from it. Its slope bounds how fast shares may become equal. The reserve costs no rate; it
// only has to be filled once.
//
// This is version 1 of a protocol among all sharers of a bucket. A version with another reserve
// would get nothing beside this one, or everything: the sharer that keeps more waits for what the
// others use. So a later version must keep this r, and the way to it (rise), as long as sharers of
// both may meet. It may change all else: the estimate of n, the speed at which shares become equal,
// the newcomer's rule.
type bucketLevel struct {
	capacity float64
	built    bool // the reserve was full once
	rise     rise
	drought  drought
}

const (
	bucketSlope  = 18.0
	bucketMost   = 8000.0
	bucketPart   = 0.75
	bucketBase   = 0.35 // the part of a small bucket's reserve that does not depend on N
	bucketSteep  = 1.5  // the least slope at which estimates and the level's N count in full
	bucketNoise  = 3.0  // the level is only noise up to so many √N above the reserve
	spreadLeast  = 10.0
	newcomerMost = 80.0   // the most newcomers at once: later ones see what earlier ones took, too
	newcomerSees = 1500.0 // a newcomer that finds less than the reserve of so many assumes that none was built
)

// Blind windows widen quickly at first, where nothing is known. Then they widen slowly, or a few of
// a crowd would sleep for very long. Then they widen quickly again, or a crowd of a thousand would
// be refused for very long.
const (
	widerFirst = 5.0
	widerThen  = 1.3
	widerFrom  = 150.0
	widerLast  = 2.0
	widerLeast = 2.0
)

// logMost is taken once: every answer asks for the reserve several times.
var logMost = math.Log(bucketMost)

// reserve returns r and its slope.
func (b *bucketLevel) reserve(shares float64) (r, slope float64) {
	one := bucketSlope * logMost
	r, slope = bucketSlope*math.Log(bucketMost/shares), bucketSlope
	if most := bucketPart * b.capacity; most*(bucketBase+(1-bucketBase)*r/one) < r {
		r = most * (bucketBase + (1-bucketBase)*r/one)
		slope *= most * (1 - bucketBase) / one
	}
	return r, slope
}

func (b *bucketLevel) look(f *Fair, s *sighting) {
	b.drought.look(f, s)
	b.begin(f, s)
	if f.known && !s.limited && b.missing(f, s) == 0 && !b.stand(f, s).building {
		b.built = true
	}
}

func (b *bucketLevel) stand(f *Fair, s *sighting) stand {
	if b.drought.holds() {
		return stand{stretch: 1}
	}
	if b.drought.found {
		return stand{gap: s.left, stretch: 1, spread: droughtSpread}
	}
	shares := f.shares()
	_, whole := b.reserve(shares)
	missing, meet := b.missing(f, s), meetMost*heeded(whole)
	if missing > 0 {
		meet *= riseMeet
	}
	r, slope := b.kept(shares, missing)
	one, _ := b.kept(1, missing)
	gap := s.left - r
	surplus := max(0, gap-bucketNoise*math.Sqrt(shares))
	return stand{
		gap: gap, slope: slope, stretch: 1, meet: meet,
		price: min(max((one-s.left)/slope, 0), logMost),
		// In plenty it is the same for all weights: it depends on the N that would keep the level.
		spread:   max(spreadLeast, shares*math.Exp(-surplus/bucketSlope)),
		sure:     slope > lostSlope,
		building: !b.built && -gap > correctMost*f.n,
	}
}

func (b *bucketLevel) taken(f *Fair, from, to *sighting) (float64, bool) {
	if b.drought.found {
		return from.left - to.left, true
	}
	return f.tokens(to.at.Sub(from.at)) - (to.left - from.left), true
}

func (b *bucketLevel) newcomer(f *Fair, s *sighting) float64 {
	if r, _ := b.reserve(newcomerSees); s.left < r {
		return assumedSharers
	}
	return min(math.Exp(b.stand(f, s).price), newcomerMost)
}

func (b *bucketLevel) prior() float64 { return 0 }

func (b *bucketLevel) trust(n float64) float64 {
	if b.drought.holds() {
		return 0
	}
	_, slope := b.reserve(n)
	return heeded(slope)
}

// heeded returns the part of the usual steps that n may take. In a bucket of a few tokens the
// remainder shows only the phase of this process among the others. If n followed that, phases would
// never become even, and the whole capacity of so small a bucket would be too little.
func heeded(slope float64) float64 { return min(1, slope/bucketSteep) }

func (b *bucketLevel) news() float64 { return newsUnits }

func (b *bucketLevel) adjust(f *Fair, s *sighting, next mono.Time) mono.Time {
	if b.drought.holds() {
		return b.drought.next
	}
	return next
}

func (b *bucketLevel) refused(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration) {
	switch {
	case f.known && f.base.seq > 0:
		f.revise(s)
		f.wait(now, f.n*(1+correctMost*f.config.Rng.Float64()), retryAfter)
		return
	case f.known:
		f.rebase(s)
		f.wait(now, f.n*(1+correctMost*f.config.Rng.Float64()), retryAfter)
		return
	case f.blind == 0:
		f.n = f.clamp(assumedSharers / f.config.Weight)
	default:
		f.n = f.clamp(widened(f.n, f.tokens(s.at.Sub(f.base.at))))
	}
	f.blind = f.n
	f.rebase(s)
	f.wait(now, blindMore+waitTokens(f.n, f.config.Rng.Float64()), retryAfter)
}

// widened returns the blind window that follows one of n, which was refused these tokens after it
// began.
func widened(n, tokens float64) float64 {
	most := widerFirst
	switch {
	case n > widerFrom:
		most = widerLast
	case n > 2*assumedSharers:
		most = widerThen
	}
	return widerWindow(n, tokens, widerLeast, most)
}
