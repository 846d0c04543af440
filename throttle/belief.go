package throttle

import (
	"math"

	"github.com/paceline-go/paceline/internal/blind"
)

// belief is what a process believes of its share, one of n. All is in units of cost, and time in those that the quota gives meanwhile:
// tokens. So a request that costs one goes every n.
//
// Sent at t with ℓ left, the next goes at t + n, and a little later or sooner as there is less or more than n sharers keep. n
// follows the estimate: what all took per unit of one's own, which is the same factor too much or too little for everyone. It settles
// the total and has no bias towards any share. The shares meet by
//
//	ln N += κ·(c − ln N)        N = n·weight; c the ln of those N who would keep the level as it is
//
// since all see the same level, they have the same c, and whatever they thought of N contracts by κ with each answer. That c may be
// bounded, but never c − ln N: what is cut off would be the same for all and bring nobody nearer. κ ≤ ½b/n, with b = −dℓ/dc
// of what is kept, damps the level and n together by ¾ at least; at four times as much they hunt.
type belief struct {
	n         float64
	known     bool     // n is of this quota
	blind     float64  // the blind window that is waited in, else 0
	base      sighting // measured last
	revised   uint64   // the latest request when n was revised
	revisions int
}

const (
	sharesMost  = 4500.0 // the largest n
	sharesLeast = 1.0 / 16

	estGain  = 0.5 // of est − n that is heeded
	estMore  = 3.0 // and more of it per deviation beyond estSure + estOne/n, which is no noise
	estSure  = 0.2
	estOne   = 0.5
	estJump  = 4.0 // most by which n rises at once
	estGrown = 1.5 // least by which it rises when limited, or served with nothing left, again

	meetMost   = 0.2 // κ, and per b/n
	meetSlope  = 0.5
	meetRounds = 5.0  // that one answer stands for, at most
	newsUnits  = 9.0  // what all take between two revisions, or est is a small integer
	newsSoon   = 4    // revisions that do not wait for that
	buildMeet  = 0.1  // of κ while a reserve is built: until it is there the level says nothing of N
	buildMost  = 60.0 // and the N that it may say
	blindPrior = 1.0  // weight of a blind window's n against what came of it
)

// clamp keeps n within what can be. Whoever weighs much may be nearly alone, and the quota larger than it is known to be.
func (f *Fair) clamp(n float64) float64 {
	least := sharesLeast / max(1, f.config.Weight)
	most := min(sharesMost, f.tokens(f.config.MaxWait))
	if f.entitled.sharers > 0 {
		most = min(most, f.entitled.most())
	}
	return max(least, min(n, most))
}

// shares is N.
func (f *Fair) shares() float64 { return f.n * f.config.Weight }

// learn revises n by an answer that was served, unless it was sent before n was last: then n would be revised twice for one thing.
func (f *Fair) learn(s *sighting) {
	switch {
	case f.base.seq == 0:
		if !f.known {
			f.n = f.clamp(f.level.newcomer(f, s) / f.config.Weight)
		}
		f.rebase(s)
	case s.seq <= f.revised:
	case f.blind > 0 || f.revisions < newsSoon || f.own(s)*f.n >= max(f.level.news(), f.noise.news()):
		f.revise(s)
	}
}

// own is what this process sent since the base, in units.
func (f *Fair) own(s *sighting) float64 { return (s.sum - f.base.sum) / f.config.MeanCost }

func (f *Fair) rebase(s *sighting) {
	f.base, f.revised = *s, f.seq
	f.revisions++
}

// estimate is what all took since the base per unit of one's own.
func (f *Fair) estimate(s *sighting) (est float64, ok bool) {
	taken, ok := f.level.taken(f, &f.base, s)
	own := f.own(s)
	if !ok || own <= 0 {
		return f.n, false
	}
	span := s.at.Sub(f.base.at)
	if f.blind > 0 {
		k := blindPrior * min(1, blind.Shares/f.n)
		return (taken + k*f.n) / (blind.Share(f.blind, f.tokens(span)) + k), true
	}
	f.noise.heed(taken - f.n*own)
	if idle := s.idle - f.base.idle; idle > 0 && span > 0 { // who idles sees many others
		taken *= max(0, 1-idle.Seconds()/span.Seconds())
	}
	return max(0, taken) / own, true
}

// revise moves n towards the estimate, and to where the level shows that it should be.
func (f *Fair) revise(s *sighting) {
	est, ok := f.estimate(s)
	if !ok {
		f.rebase(s)
		return
	}
	own := f.own(s)
	up := min(est, estJump*f.n)
	switch {
	case !f.known:
		k := 0.0
		if f.blind == 0 {
			k = f.level.prior()
		}
		if !s.none {
			f.n = (est*own + k*f.n) / (own + k)
		}
		f.known = true
	case f.empty >= 2:
		f.n = max(estGrown*f.n, up)
	case f.empty == 1: // a refusal may be somebody else's fault
		f.n += estGain * max(0, up-f.n)
	default:
		f.n += f.gain(est) * (up - f.n)
	}
	f.n = f.clamp(f.n)
	f.blind = 0
	if !s.limited {
		f.meet(s, own)
	}
	f.rebase(s)
}

// gain is how much of est − n is heeded: all of it where it is a surprise. With others in flight, a surprise is often those.
func (f *Fair) gain(est float64) float64 {
	g := estGain
	if off := math.Abs(est/f.n-1) - estSure - estOne/f.n; off > 0 && f.book.Len() == 0 {
		g = min(1, g+estMore*off)
	}
	return g * f.level.trust(f.n)
}

// meet moves n towards what the level says of N.
func (f *Fair) meet(s *sighting, own float64) {
	st := f.level.stand(f, s)
	if st.slope <= 0 || st.gap >= f.n { // plenty says nothing of N
		return
	}
	k, c := st.meet*min(1, meetSlope/meetMost*st.slope/f.n), st.price
	if st.building {
		k, c = k*buildMeet, min(c, math.Log(buildMost))
	}
	rounds := min(meetRounds, max(1, own/float64(1+f.book.Len())))
	if f.noise.sigma() > 0 { // one answer says less than it seems
		rounds = 1
	}
	k = 1 - math.Pow(1-k, rounds)
	f.n = f.clamp(f.n * math.Exp(k*(c-math.Log(f.shares()))))
}
