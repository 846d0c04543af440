package throttle

import "github.com/paceline-go/paceline/mono"

// drought is for buckets into which nothing flows. Between two own answers what remains falls by what one took oneself and what others
// took, less what came. Now and then others take less than came, and it falls by less than one's own: then that something came is seen.
// If it is not seen for the time in which a whole reserve comes, by so many answers, nothing comes, and a reserve is of no use to anybody.
//
// Less time will not do: ten who drain a full bucket of 4,500 may see nothing come for 85 tokens, though it does.
type drought struct {
	before sighting // the latest that was served; seq 0: none
	since  mono.Time
	served int // since then, in which nothing was seen to come
}

const (
	droughtTokens = 120.0 // the reserve of ten
	droughtServed = 16
	droughtSpread = 0.01 // all of it goes at once
)

// look is told of every answer. What was refused took nothing, and counts as if it had: so something may seem to come, not the reverse.
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

// dry says whether nothing comes.
func (d *drought) dry(f *Fair) bool {
	return d.served > droughtServed && f.tokens(d.before.mid.Sub(d.since)) > droughtTokens
}
