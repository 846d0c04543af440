package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// A level is how the sharers of one kind of quota read what remains. All of them must read it alike. So it depends on the quota alone,
// and on nothing that only one of them knows.
type level interface {
	// look is told of every answer that is heeded, before anything is asked.
	look(f *Fair, s *sighting)
	// stand returns where the level was, as seen by a sharer who believes f.n.
	stand(f *Fair, s *sighting) stand
	// taken returns what all took from one sighting to a later one.
	taken(f *Fair, from, to *sighting) (units float64, ok bool)
	// newcomer returns the N that a process assumes when it sees the level for the first time.
	newcomer(f *Fair, s *sighting) float64
	// prior returns how many units of one's own the n of a newcomer weighs, against the first estimate.
	prior() float64
	// trust returns how much of the usual gain an estimate deserves.
	trust(n float64) float64
	// news returns how much all take between two revisions of n, at least; with less the estimate would be a small integer.
	news() float64
	// adjust returns when the next unit goes, given that it is planned for next.
	adjust(f *Fair, s *sighting, next mono.Time) mono.Time
	// refused learns from a refusal, and plans the next request.
	refused(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration)
}

// stand is where a level is, as a sharer sees it.
type stand struct {
	gap      float64 // how much more there is than N sharers keep
	price    float64 // ln N of those N sharers who would keep it as it is
	slope    float64 // how much less is kept when ln N is larger by one; 0: the level says nothing of N
	meet     float64 // the largest κ, and its part of ½b/n
	spread   float64 // the gap at which one goes twice as fast, if the level allows a gap
	stretch  float64 // factor of intervals: the rate of the quota over the rate at which it is to be used
	lost     bool    // the level can be relied on, and says that N is much smaller: n is learned anew
	sure     bool    // the price is not off by a factor of many: the slope is larger than by what the level wavers
	building bool    // there is far less than is kept, and there was never more
}
