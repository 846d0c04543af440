package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// A level is how the sharers of one kind of quota read what remains. All of them must read it
// alike. So it depends on the quota alone, and on nothing that only one of them knows.
type level interface {
	// look reads every answer that counts, before any other method is called.
	look(f *Fair, s *sighting)
	// stand returns where the level was, for a sharer that assumes f.n.
	stand(f *Fair, s *sighting) stand
	// taken returns the amount that all took from one sighting to a later one.
	taken(f *Fair, from, to *sighting) (units float64, ok bool)
	// newcomer returns the N that a process assumes at its first sight of the level.
	newcomer(f *Fair, s *sighting) float64
	// prior returns the weight of a newcomer's n against the first estimate, in units of its own.
	prior() float64
	// trust returns how much of the usual gain an estimate deserves.
	trust(n float64) float64
	// news returns the least amount that all take between two revisions of n. With less the
	// estimate would be a small integer.
	news() float64
	// adjust returns when the next unit goes, which is planned for next.
	adjust(f *Fair, s *sighting, next mono.Time) mono.Time
	// refused learns from a refusal, and plans the next request.
	refused(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration)
}

// stand is where a level is, for a sharer.
type stand struct {
	gap      float64 // how much more there is than N sharers keep
	price    float64 // ln N of those N sharers that would keep the level as it is
	slope    float64 // how much less is kept when ln N is larger by one; 0: the level says nothing of N
	meet     float64 // the largest κ, and its part of ½b/n
	spread   float64 // the gap at which a sharer goes twice as fast, if the level allows a gap
	stretch  float64 // factor of intervals: the rate of the quota over the planned rate of its use
	lost     bool    // the level is reliable, and shows a much smaller N: n is learned anew
	sure     bool    // the price is not off by a factor of many: the slope is larger than the level's noise
	building bool    // there is far less than is kept, and there was never more
}
