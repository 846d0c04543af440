package fairshare

import "github.com/paceline-go/paceline/limit/mono"

// drought detects a bucket that does not refill. Between two answers the remainder falls by the
// amount that this process took, plus the amount that others took, less the amount that came. Where
// it falls by less than this process took, something came.
//
// While many are served quickly, the absence of such a small fall is no evidence: others take more
// than could come. It is evidence where all take no more than their shares. There are two such
// times: when all listen, and at the reserve, when all go slowly. If nothing comes then, and the
// level falls by the amount that all take, the bucket does not refill. Then a reserve is of no use
// to anybody.
//
// Many newcomers at once look the same for a while. So it has to show in many answers. Four are
// enough for sharers that found plenty when they came and never saw it grow. A process that was
// wrong once does not look again.
type drought struct {
	before sighting  // the answer that the next one is compared with; seq 0: none
	heard  mono.Time // when it arrived, and the amount that had been sent by then
	sum    float64
	came   bool    // something came, or there never was plenty
	slow   int     // answers at the reserve since something came, in which this process took at most its share
	tokens float64 // the time of these, in tokens
	fell   float64 // by how much the level fell beyond its least fall
	found  bool    // the bucket does not refill
	over   bool    // it was found once, and then something came or all was used up: the search is over
	listening
}

const (
	droughtSpread = 0.01 // the gap at which a sharer goes twice as fast: all of the reserve goes at once
	droughtShare  = 0.8  // × n: a sharer that takes a unit in less time takes more than its share

	droughtFell = 0.3 // of the amount that all take: the least fall of the level

	droughtTokens = 120.0 // the reserve of ten sharers
	droughtSlow   = 17
	neverTokens   = 20.0
	neverSlow     = 4
	plenty        = 2.0 // × the reserve of one
)

// look reads every answer. A refused request took nothing, but counts as if it had. So something
// may seem to come, but not the reverse.
func (d *drought) look(f *Fair, s *sighting) {
	switch {
	case s.limited:
		d.end()
		return
	case d.before.seq == 0:
		if !f.bucket.plentiful(s) {
			d.came, d.stage = true, hasListened
		}
	case s.at < d.heard: // it may have arrived before the one to compare with
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

// compare finds the amount that came or that others took between two answers.
func (d *drought) compare(f *Fair, s *sighting) (others float64) {
	mean := f.config.MeanCost
	own := s.cost / mean
	if s.alone { // otherwise other requests may have arrived earlier or later
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

// end takes the result back, and ends the search.
func (d *drought) end() { d.over, d.found = d.over || d.found, false }

// plentiful reports whether there is far more than anybody keeps.
func (b *bucketLevel) plentiful(s *sighting) bool {
	one, _ := b.reserve(1)
	return s.left > plenty*one
}
