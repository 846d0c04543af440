package fairshare

import (
	"math"
)

// belief is a process' estimate of its share: one of n. All figures are in units of cost, and times
// are in tokens, the units that the quota gives in that time. So a request that costs one unit goes
// every n tokens.
//
// Let a request be sent at t, and let its answer say that ℓ is left. The next request goes at t +
// n. It goes a little later if ℓ is below the amount that n sharers keep, and a little sooner if ℓ
// is above. n follows the estimate: the amount that all took for each unit of this process. An
// error of the estimate has the same factor for everyone, so it settles the total and favours no
// share. This step makes the shares equal:
//
//	ln N += κ·(c − ln N)        N = n·weight; c is ln N for those N who would keep the level as it is
//
// All see the same level, so they have the same c. Their differences shrink by the factor 1 − κ
// with each answer, whatever N each assumed. c may be bounded, but c − ln N must not be: the same
// part would be cut off for all, and bring nobody nearer. κ ≤ ½b/n, with b = −dℓ/dc of the kept
// level, damps the level and n together by at least ¾. At four times as much they oscillate.
type belief struct {
	n         float64
	known     bool     // n was learned from this quota
	blind     float64  // the length of the present blind window; 0: none
	base      sighting // the beginning of the measurement
	revised   uint64   // the latest request that had been sent when n was revised
	revisions int
}

const (
	sharesMost  = 4500.0 // the largest n
	sharesLeast = 1.0 / 16

	estGain = 0.5 // the part of est − n that counts
	estMore = 3.0 // more of it per deviation beyond estSure + estOne/n: such a deviation is no noise
	estSure = 0.2
	estOne  = 0.5
	estJump = 4.0 // the most by which n is multiplied at once
	// The most by which n is divided. Remainders have errors, so it may seem that nobody takes
	// anything.
	estDrop  = 3.0
	estGrown = 1.5 // the least factor of n when limited again, or served again with nothing left

	meetMost   = 0.2 // the largest κ, and per b/n
	meetSlope  = 0.5
	meetFar    = 9.0  // × the N of the level, where that is sure: a larger n does not make κ smaller
	meetRounds = 5.0  // the number of rounds for one answer, at most
	newsUnits  = 9.0  // the amount that all take between two revisions; with less, est would be a small integer
	newsSoon   = 4    // the first revisions do not wait for that amount
	buildMeet  = 0.1  // the part of κ while the reserve is built: until then the level says nothing of N
	buildMost  = 60.0 // and the largest N by the level then
	blindMore  = 1.0  // extra tokens in a blind window, beyond the need of as many sharers in nearly all of them
	blindPrior = 1.0  // the weight of a blind window's n against its result
)

// clamp keeps n within the possible range, and within this process' entitlement.
func (f *Fair) clamp(n float64) float64 {
	if f.entitled.sharers > 0 {
		n = min(n, f.entitled.most())
	}
	return f.possible(n)
}

// possible keeps n within the possible range. A process of a large weight may be nearly alone, and
// the quota may be larger than assumed.
func (f *Fair) possible(n float64) float64 {
	least := sharesLeast / max(1, f.config.Weight)
	return max(least, min(n, sharesMost, f.tokens(f.config.MaxWait)))
}

// shares returns N.
func (f *Fair) shares() float64 { return f.n * f.config.Weight }

// learn revises n by an answer that was served. It does not if the request was sent before the last
// revision of n: n would be revised twice for one reason.
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

// own returns the amount that this process has sent since the base, in units.
func (f *Fair) own(s *sighting) float64 { return (s.sum - f.base.sum) / f.config.MeanCost }

func (f *Fair) rebase(s *sighting) {
	f.base, f.revised = *s, f.seq
	f.revisions++
}

// estimate returns the amount that all took since the base, for each unit of this process.
func (f *Fair) estimate(s *sighting) (est float64, ok bool) {
	taken, ok := f.level.taken(f, &f.base, s)
	own := f.own(s)
	if !ok || own <= 0 {
		return f.n, false
	}
	span := s.at.Sub(f.base.at)
	if f.blind > 0 {
		k := blindPrior * min(1, assumedSharers/f.n)
		return (taken + k*f.n) / (shareSent(f.blind, f.tokens(span)-blindMore) + k), true
	}
	f.noise.heed(taken-f.n*own, float64(f.config.Limit)/f.config.MeanCost)
	if idle := s.idle - f.base.idle; idle > 0 && span > 0 { // an idle process sees much of the others
		taken *= max(0, 1-idle.Seconds()/span.Seconds())
	}
	return max(0, taken) / own, true
}

// revise moves n towards the estimate, and towards the level's N.
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

// gain returns the part of est − n that counts. It is larger where est is a surprise, unless
// requests are in flight, which often explain it.
func (f *Fair) gain(est float64) float64 {
	g := estGain
	if off := math.Abs(est/f.n-1) - estSure - estOne/f.n; off > 0 && f.book.Len() == 0 {
		g = min(1, g+estMore*off)
	}
	return g * f.level.trust(f.n)
}

// meet moves n towards the level's N.
func (f *Fair) meet(s *sighting, own float64) {
	st := f.level.stand(f, s)
	if st.slope <= 0 || st.gap >= f.n { // a level far above the kept one says nothing of N
		return
	}
	if st.lost {
		f.n = f.clamp(f.level.newcomer(f, s) / f.config.Weight)
		return
	}
	n := f.n
	// A process that assumes far more sharers is one of few. It would rarely learn, and be away for
	// hours.
	if st.sure {
		n = min(n, meetFar*math.Exp(st.price)/f.config.Weight)
	}
	k, c := st.meet*min(1, meetSlope/meetMost*st.slope/n), st.price
	if st.building {
		k, c = k*buildMeet, min(c, math.Log(buildMost))
	}
	rounds := min(meetRounds, max(1, own/float64(1+f.book.Len())))
	if f.noise.sigma() > 0 { // the remainders have errors, so one answer stands for one round only
		rounds = 1
	}
	k = 1 - math.Pow(1-k, rounds)
	f.n = f.clamp(f.n * math.Exp(k*(c-math.Log(f.shares()))))
}
