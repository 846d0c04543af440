package throttle

import "github.com/paceline-go/paceline/mono"

// drought finds buckets into which nothing flows. Between two answers of one's own, what remains falls by what one took and what others
// took, less what came. Now and then others take less than came; then it falls by less than one took oneself, which shows that something
// came. If that is not seen for as long as a whole reserve takes to come, over so many answers, nothing comes, and a reserve is of no use
// to anybody.
//
// A shorter time will not do: ten processes that drain a full bucket of 4,500 may see nothing come for 85 tokens, although it does.
type drought struct {
	before sighting // the latest answer that was served; seq 0: none
	since  mono.Time
	served int // answers since then in which nothing was seen to come
}

const (
	droughtTokens = 120.0 // the reserve of ten sharers
	droughtServed = 16
	droughtSpread = 0.01 // the gap at which one goes twice as fast: all of the reserve goes at once
)

// look is told of every answer. A refused request took nothing and is counted as if it had: so something may seem to come, but not the
// reverse.
func (d *drought) look(f *Fair, s *sighting) {
	if s.limited {
		return
	}
	own := (s.sum - d.before.sum) / f.config.MeanCost
	if d.before.seq == 0 || d.before.left-s.left < own-0.5/f.config.MeanCost {
		d.since, d.served = s.mid, 0
	}
	d.served++
	d.before = *s
}

// dry reports whether nothing comes.
func (d *drought) dry(f *Fair) bool {
	return d.served > droughtServed && f.tokens(d.before.mid.Sub(d.since)) > droughtTokens
}
