package fairshare

import "github.com/paceline-go/paceline/limit/mono"

// drought finds buckets into which nothing flows. Between two answers of one's own, what remains falls by what one took and what others
// took, less what came. Where it falls by less than one took oneself, something came.
//
// That this is not seen means nothing while many are served quickly: others take more than could come. It means something where all take
// no more than their shares. There are two such times: when all listen, and at the reserve, when all go slowly. If nothing is seen to come
// then, and the level falls by what all take, nothing comes, and a reserve is of no use to anybody.
//
// Many who come at once look the same for a while. So it has to be seen in many answers, but for those who found plenty when they came and
// never saw it grow: those four. Who was wrong once does not look again.
type drought struct {
	before sighting  // the answer that the next one is compared with; seq 0: none
	heard  mono.Time // when it was heard, and what had been sent by then
	sum    float64
	came   bool    // something was seen to come, or there never was plenty
	slow   int     // answers at the reserve since something was seen to come, in which one took no more than one's share
	tokens float64 // the time of these, in tokens
	fell   float64 // by how much the level fell more than it must
	found  bool    // nothing comes
	over   bool    // it was found once, and then something came or all was used up: it is not looked for again
	listening
}

const (
	droughtSpread = 0.01 // the gap at which one goes twice as fast: all of the reserve goes at once
	droughtShare  = 0.8  // × n: who takes a unit in less time than this takes more than his share

	droughtFell = 0.3 // of what all take: by as much the level falls at least

	droughtTokens = 120.0 // the reserve of ten sharers
	droughtSlow   = 17
	neverTokens   = 20.0
	neverSlow     = 4
	plenty        = 2.0 // × the reserve of one
)

// look is told of every answer. A refused request took nothing and is counted as if it had: so something may seem to come, but not the
// reverse.
func (d *drought) look(f *Fair, s *sighting) {
	switch {
	case s.limited:
		d.end()
		return
	case d.before.seq == 0:
		if !f.bucket.plentiful(s) {
			d.came, d.stage = true, hasListened
		}
	case s.at < d.heard: // it may have arrived before the one that it would be compared with
		return
	default:
		others := d.compare(f, s)
		d.listening.step(f, s, &d.before, others)
		if !d.over && d.listening.hearsNothing() {
			d.found = true
		}
	}
	d.before, d.heard, d.sum = *s, f.last, f.sum
}

// compare finds what came and what others took between two answers.
func (d *drought) compare(f *Fair, s *sighting) (others float64) {
	mean := f.config.MeanCost
	own := s.cost / mean
	if s.alone { // otherwise what else was sent may have arrived earlier or later
		own = (s.sum - d.sum) / mean
	}
	others = d.before.left - s.left - own
	tokens := f.tokens(s.mid.Sub(d.before.mid))
	if others < -0.5/mean {
		d.came, d.slow, d.tokens, d.fell = true, 0, 0, 0
		d.end()
		return others
	}
	kept, _ := f.bucket.reserve(f.shares())
	if d.before.left < kept+f.n && tokens >= droughtShare*f.n*(s.sum-d.before.sum)/mean {
		d.slow++
		d.tokens += tokens
		d.fell += d.before.left - s.left - droughtFell*f.n*own
	}
	switch {
	case d.over, d.fell < 0:
	case d.slow >= droughtSlow && d.tokens > droughtTokens,
		!d.came && d.slow >= neverSlow && d.tokens > neverTokens:
		d.found = true
	}
	return others
}

// end takes back what was found, and nothing is looked for again.
func (d *drought) end() { d.over, d.found = d.over || d.found, false }

// plentiful reports whether there is far more than anybody keeps.
func (b *bucketLevel) plentiful(s *sighting) bool {
	one, _ := b.reserve(1)
	return s.left > plenty*one
}
