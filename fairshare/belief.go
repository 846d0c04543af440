package fairshare

import (
	"math"

	"github.com/paceline-go/paceline/internal/core/contention"
)

// belief is what a process believes its share to be: one of n. All figures are in units of cost, and times in tokens, the units that the
// quota gives in that time. So a request that costs one unit goes every n tokens.
//
// If a request was sent at t and its answer says that ℓ is left, the next goes at t + n, a little later if ℓ is less than what n sharers
// keep, and a little sooner if it is more. n follows the estimate: what all took for each unit of one's own. An estimate is wrong by the
// same factor for everyone, so it settles the total and favours no share. What makes the shares equal is
//
//	ln N += κ·(c − ln N)        N = n·weight; c is ln N for those N who would keep the level as it is
//
// All see the same level, so they have the same c; whatever they thought of N, their differences shrink by the factor 1 − κ with each
// answer. c may be bounded, but c − ln N must not be: what is cut off would be the same for all and bring nobody nearer. κ ≤ ½b/n, with b
// = −dℓ/dc of what is kept, damps the level and n together by at least ¾; at four times as much they oscillate.
type belief struct {
	n         float64
	known     bool     // n was learned from this quota
	blind     float64  // the length of the blind window that it waits in; 0: none
	base      sighting // the sighting that is measured from
	revised   uint64   // the latest request sent when n was revised
	revisions int
}

const (
	sharesMost  = 4500.0 // the largest n
	sharesLeast = 1.0 / 16

	estGain  = 0.5 // how much of est − n is heeded
	estMore  = 3.0 // how much more of it per deviation beyond estSure + estOne/n: so large a deviation is no noise
	estSure  = 0.2
	estOne   = 0.5
	estJump  = 4.0 // the most by which n is multiplied at once
	estDrop  = 3.0 // and divided: what remains is told with errors, so it may seem that nobody takes anything
	estGrown = 1.5 // the least by which n is multiplied when limited again, or served again with nothing left

	meetMost   = 0.2 // the largest κ, and per b/n
	meetSlope  = 0.5
	meetFar    = 9.0  // × the N that the level says, where that is sure: a larger n does not make κ smaller
	meetRounds = 5.0  // how many rounds one answer stands for, at most
	newsUnits  = 9.0  // how much all take between two revisions; with less, est would be a small integer
	newsSoon   = 4    // so many first revisions do not wait for that
	buildMeet  = 0.1  // how much of κ while the reserve is built: until it is there the level says nothing of N
	buildMost  = 60.0 // and the largest N that the level may say then
	blindMore  = 1.0  // how many more tokens there are in a blind window than as many sharers need in nearly all of them
	blindPrior = 1.0  // the weight of a blind window's n against what came of it
)

// clamp keeps n within what is possible, and within what this process is entitled to.
func (f *Fair) clamp(n float64) float64 {
	if f.entitled.sharers > 0 {
		n = min(n, f.entitled.most())
	}
	return f.possible(n)
}

// possible keeps n within what is possible. A process of a large weight may be nearly alone, and the quota may be larger than it is known to
// be.
func (f *Fair) possible(n float64) float64 {
	least := sharesLeast / max(1, f.config.Weight)
	return max(least, min(n, sharesMost, f.tokens(f.config.MaxWait)))
}

// shares returns N.
func (f *Fair) shares() float64 { return f.n * f.config.Weight }

// learn revises n by an answer that was served, unless its request was sent before n was revised last: n would be revised twice for one
// thing.
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

// own returns what this process has sent since the base, in units.
func (f *Fair) own(s *sighting) float64 { return (s.sum - f.base.sum) / f.config.MeanCost }

func (f *Fair) rebase(s *sighting) {
	f.base, f.revised = *s, f.seq
	f.revisions++
}

// estimate returns what all took since the base for each unit of one's own.
func (f *Fair) estimate(s *sighting) (est float64, ok bool) {
	taken, ok := f.level.taken(f, &f.base, s)
	own := f.own(s)
	if !ok || own <= 0 {
		return f.n, false
	}
	span := s.at.Sub(f.base.at)
	if f.blind > 0 {
		k := blindPrior * min(1, contention.Shares/f.n)
		return (taken + k*f.n) / (contention.Share(f.blind, f.tokens(span)-blindMore) + k), true
	}
	f.noise.heed(taken-f.n*own, float64(f.config.Limit)/f.config.MeanCost)
	if idle := s.idle - f.base.idle; idle > 0 && span > 0 { // a process that idles sees much of others
		taken *= max(0, 1-idle.Seconds()/span.Seconds())
	}
	return max(0, taken) / own, true
}

// revise moves n towards the estimate, and towards what the level says of it.
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
	case f.empty == 1: // a single refusal may be somebody else's fault
		f.n += estGain * max(0, up-f.n)
	default:
		f.n = max(f.n/estDrop, f.n+f.gain(est)*(up-f.n))
	}
	f.n = f.clamp(f.n)
	f.blind = 0
	if !s.limited {
		f.meet(s, own)
	}
	f.rebase(s)
}

// gain returns how much of est − n is heeded: more of it where est is a surprise, unless requests are in flight, which often explain it.
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
	if st.slope <= 0 || st.gap >= f.n { // a level far above what is kept says nothing of N
		return
	}
	if st.lost {
		f.n = f.clamp(f.level.newcomer(f, s) / f.config.Weight)
		return
	}
	n := f.n
	if st.sure { // who believes in far more sharers is one of few, hears rarely, and would be away for hours
		n = min(n, meetFar*math.Exp(st.price)/f.config.Weight)
	}
	k, c := st.meet*min(1, meetSlope/meetMost*st.slope/n), st.price
	if st.building {
		k, c = k*buildMeet, min(c, math.Log(buildMost))
	}
	rounds := min(meetRounds, max(1, own/float64(1+f.book.Len())))
	if f.noise.sigma() > 0 { // what is left is told with errors, so one answer stands for one round only
		rounds = 1
	}
	k = 1 - math.Pow(1-k, rounds)
	f.n = f.clamp(f.n * math.Exp(k*(c-math.Log(f.shares()))))
}
