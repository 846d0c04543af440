package throttle

import (
	"time"

	"github.com/paceline-go/paceline/mono"
)

// A level is how the sharers of one kind of quota read what remains. All of them must read it alike: so it depends on the quota alone,
// and on nothing that only one of them knows.
type level interface {
	// look is told of every answer that is heeded, before anything is asked.
	look(f *Fair, s *sighting)
	// stand says where the level was, for f.n.
	stand(f *Fair, s *sighting) stand
	// taken is what all took from one sighting to a later one.
	taken(f *Fair, from, to *sighting) (units float64, ok bool)
	// newcomer is N for who sees the level for the first time.
	newcomer(f *Fair, s *sighting) float64
	// prior is how many units of one's own the n of a newcomer counts as, against the first estimate.
	prior() float64
	// trust is how much of the usual gain an estimate has.
	trust(n float64) float64
	// news is how much all take at least between two revisions of n: or the estimate is a small integer.
	news() float64
	// adjust is when the next unit goes that is planned for next.
	adjust(f *Fair, s *sighting, next mono.Time) mono.Time
	// refused learns from a refusal, and plans.
	refused(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration)
}

// stand is where a level is in the eyes of a sharer.
type stand struct {
	gap      float64 // by how much there is more than N keep
	price    float64 // ln of those N who would keep it as it is
	slope    float64 // by how much less is kept where ln N is one more; 0: the level says nothing of N
	meet     float64 // κ at most, and its part of ½b/n
	spread   float64 // the gap at which one goes twice as fast
	stretch  float64 // of intervals: the rate of the quota over that at which it is to be used
	building bool    // there is far less than is kept, and never was more
}
