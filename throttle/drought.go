package throttle

import "github.com/paceline-go/paceline/mono"

// drought finds buckets into which nothing flows. Between two answers of one's own, what remains falls by what one took and what others
// took, less what came. Where it falls by less than one took oneself, something came.
//
// That this is not seen means nothing while many are served quickly: others take more than could come. It means something where one took
// no more than one's share, so that others would have to take far more than theirs. There are two such times: when all listen, and when
// all go slowly, as at a reserve. If nothing is seen to come then, nothing comes, and a reserve is of no use to anybody.
//
// Many who come at once look the same for a while. So it has to be seen in many answers, but for those who found plenty when they came and
// never saw it grow: those three.
type drought struct {
	before sighting  // the answer that the next one is compared with; seq 0: none
	heard  mono.Time // when it was heard, and what had been sent by then
	sum    float64
	came   bool    // something was seen to come, or there never was plenty
	slow   int     // answers since something was seen to come, in which one took no more than one's share
	tokens float64 // the time of these, in tokens
	found  bool    // nothing comes
	listening
}

const (
	droughtSpread = 0.01 // the gap at which one goes twice as fast: all of the reserve goes at once
	droughtShare  = 0.8  // × n: who takes a unit in less time than this takes more than his share

	droughtTokens = 120.0 // the reserve of ten sharers
	droughtSlow   = 17
	neverTokens   = 20.0
	neverSlow     = 3
	plenty        = 2.0 // × the reserve of one
)

// look is told of every answer. A refused request took nothing and is counted as if it had: so something may seem to come, but not the
// reverse.
func (d *drought) look(f *Fair, s *sighting) {
	switch {
	case s.limited:
		return
	case d.before.seq == 0:
		if !f.bucket.plentiful(s) {
			d.came, d.stage = true, hasListened
		}
	case s.at < d.heard: // it may have arrived before the one that it would be compared with
		return
	default:
		d.compare(f, s)
		d.listening.step(f, s, &d.before)
	}
	d.before, d.heard, d.sum = *s, f.last, f.sum
}

// compare finds what came and what others took between two answers.
func (d *drought) compare(f *Fair, s *sighting) {
	mean := f.config.MeanCost
	own := s.cost / mean
	if s.alone { // otherwise what else was sent may have arrived earlier or later
		own = (s.sum - d.sum) / mean
	}
	others := d.before.left - s.left - own
	tokens := f.tokens(s.mid.Sub(d.before.mid))
	if others < -0.5/mean {
		d.came, d.found, d.slow, d.tokens = true, false, 0, 0
		return
	}
	if tokens >= droughtShare*f.n*(s.sum-d.before.sum)/mean {
		d.slow++
		d.tokens += tokens
	}
	switch {
	case d.slow >= droughtSlow && d.tokens > droughtTokens,
		!d.came && d.slow >= neverSlow && d.tokens > neverTokens,
		d.listening.hearsNothing(tokens, others):
		d.found = true
	}
}

// plentiful reports whether there is far more than anybody keeps.
func (b *bucketLevel) plentiful(s *sighting) bool {
	one, _ := b.reserve(1)
	return s.left > plenty*one
}
