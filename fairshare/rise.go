package fairshare

import (
	"math"

	"github.com/paceline-go/paceline/internal/core/contention"
	"github.com/paceline-go/paceline/limit/mono"
)

// rise is how a bucket's reserve comes to be where there is none yet. All keep little at first, and more and more as time goes by, until
// they keep the whole. So the level says from the beginning how many share, and shares meet long before the reserve is there. If each built
// it as quickly as he could, the level would say nothing meanwhile, and they would be as unequal as their first guesses.
//
// Those who came at one instant are equally far. Who comes while others build it takes from what is left how far they are: it is the
// beginning where one would keep it then, and the end where as many would as one assumes in a blind window. So who starts within the first
// minute, when there are few yet, does not believe that it began long ago.
type rise struct {
	seen bool      // there was an answer
	ends mono.Time // when the whole is kept
}

// At first N sharers keep riseSlope·ln(riseMost/N) tokens, about what their blind windows leave. It becomes the whole in riseRounds times
// the tokens that one sharer keeps in the end: 18 minutes of a bucket of 4,500 an hour. Who has many requests waiting meanwhile goes less
// than a tenth slower than is fair; and who comes meanwhile cannot read the level as well as those who were there.
const (
	riseSlope  = 3.0
	riseMost   = 50.0
	riseRounds = 8.5
	riseMeet   = 2.0 // × κ, since the slope is small at first, and κ with it
)

// begin is told of the first answer.
func (b *bucketLevel) begin(f *Fair, s *sighting) {
	if b.rise.seen {
		return
	}
	b.rise = rise{seen: true, ends: s.at}
	if few, _ := b.reserve(newcomerSees); s.left >= few {
		return
	}
	first, _ := b.first(1)
	whole, _ := b.reserve(contention.Shares)
	done := max(0, (s.left-first)/(whole-first))
	b.rise.ends = s.at.Add(Seconds((1 - done) * b.riseTokens() / f.rate))
}

// riseTokens returns how long it takes, in tokens.
func (b *bucketLevel) riseTokens() float64 {
	one, _ := b.reserve(1)
	return riseRounds * one
}

// missing returns the part of the way that is still to be gone.
func (b *bucketLevel) missing(f *Fair, s *sighting) float64 {
	if !b.rise.seen || s.at >= b.rise.ends {
		return 0
	}
	return min(1, f.tokens(b.rise.ends.Sub(s.at))/b.riseTokens())
}

// first returns what is kept at first and its slope, of a small bucket less by as much as the reserve of one is.
func (b *bucketLevel) first(shares float64) (r, slope float64) {
	one, _ := b.reserve(1)
	slope = riseSlope * one / (bucketSlope * math.Log(bucketMost))
	return slope * math.Log(riseMost/shares), slope
}

// kept returns what is kept while a part of the way is missing, and its slope.
func (b *bucketLevel) kept(shares, missing float64) (r, slope float64) {
	r, slope = b.reserve(shares)
	low, flat := b.first(shares)
	return r + missing*(low-r), slope + missing*(flat-slope)
}
