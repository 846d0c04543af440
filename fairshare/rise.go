package fairshare

import (
	"math"

	"github.com/paceline-go/paceline/limit/mono"
)

// rise ramps up the target reserve of a bucket that has none yet. All keep little at first, more
// and more over time, and the whole in the end. So the level shows the number of sharers from the
// beginning, and shares meet long before the reserve is there. If each sharer built it as quickly
// as it could, the level would show nothing meanwhile. Shares would stay as unequal as the first
// guesses.
//
// Sharers that begin at one instant are equally far. A sharer that comes later reads from the
// remainder how far the others are. It is the beginning if one sharer would keep that remainder
// then. It is the end if as many would as a sharer assumes in a blind window. So a sharer that
// starts within the first minute, among few, does not assume that the rise began long ago.
type rise struct {
	seen bool      // there was an answer
	ends mono.Time // when the whole reserve is kept
}

// At first N sharers keep riseSlope·ln(riseMost/N) tokens, about as much as their blind windows
// leave. It becomes the whole in riseRounds times the tokens that one sharer keeps in the end: 18
// minutes of a bucket of 4,500 an hour. A sharer with many waiting requests meanwhile goes less
// than a tenth slower than its fair share. A sharer that comes meanwhile cannot read the level as
// well as the earlier ones.
const (
	riseSlope  = 3.0
	riseMost   = 50.0
	riseRounds = 8.5
	riseMeet   = 2.0 // × κ, since the slope is small at first, and κ with it
)

// begin reads the first answer.
func (b *bucketLevel) begin(f *Fair, s *sighting) {
	if b.rise.seen {
		return
	}
	b.rise = rise{seen: true, ends: s.at}
	if few, _ := b.reserve(newcomerSees); s.left >= few {
		return
	}
	first, _ := b.first(1)
	whole, _ := b.reserve(assumedSharers)
	done := max(0, (s.left-first)/(whole-first))
	b.rise.ends = s.at.Add(Seconds((1 - done) * b.riseTokens() / f.rate))
}

// riseTokens returns how long the rise takes, in tokens.
func (b *bucketLevel) riseTokens() float64 {
	one, _ := b.reserve(1)
	return riseRounds * one
}

// missing returns the part of the rise that is still to come.
func (b *bucketLevel) missing(f *Fair, s *sighting) float64 {
	if !b.rise.seen || s.at >= b.rise.ends {
		return 0
	}
	return min(1, f.tokens(b.rise.ends.Sub(s.at))/b.riseTokens())
}

// first returns the reserve at first, and its slope. In a small bucket it is smaller in the same
// proportion as the reserve of one sharer.
func (b *bucketLevel) first(shares float64) (r, slope float64) {
	one, _ := b.reserve(1)
	slope = riseSlope * one / (bucketSlope * logMost)
	return slope * math.Log(riseMost/shares), slope
}

// kept returns the reserve while a part of the rise is missing, and its slope.
func (b *bucketLevel) kept(shares, missing float64) (r, slope float64) {
	r, slope = b.reserve(shares)
	if missing == 0 {
		return r, slope
	}
	low, flat := b.first(shares)
	return r + missing*(low-r), slope + missing*(flat-slope)
}
