package backlog

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

const (
	// lookEvery is the time between two looks of a Watch. A look that comes later than lookLate after
	// the one before shows nothing: its process was stopped, or the store was away.
	lookEvery = time.Second
	lookLate  = 2500 * time.Millisecond
	// looks is through how many looks a worker must have the same beat to be given up. They last 14 s
	// at least, and a worker sends for FreshFor after a turn began.
	looks = 15
)

// Beat is a worker as a look finds it.
type Beat struct{ Worker, Beat int64 }

// Watch finds the workers that no longer take turns. It trusts no clock but its driver's, and a
// stopped driver gives nobody up. The zero Watch has seen nothing. Not safe for concurrent use.
type Watch struct {
	last mono.Time
	seen map[int64]sight
}

type sight struct {
	beat  int64
	times int
}

// Due returns when to look next.
func (w *Watch) Due() mono.Time {
	if w.seen == nil {
		return mono.Min
	}
	return w.last.Add(lookEvery)
}

// Failed reports a look without an answer: what was seen before counts no more.
func (w *Watch) Failed(now mono.Time) { w.last, w.seen = now, map[int64]sight{} }

// Look takes what a look at all living workers found. It began at now. It returns those to give up,
// each with the beat that its row must still have then.
func (w *Watch) Look(now mono.Time, all []Beat) (dead []Beat) {
	before := w.seen
	if now.Sub(w.last) > lookLate {
		before = nil
	}
	w.last, w.seen = now, make(map[int64]sight, len(all))
	for _, b := range all {
		s := sight{beat: b.Beat, times: 1}
		if was, ok := before[b.Worker]; ok && was.beat == b.Beat {
			s.times = was.times + 1
		}
		w.seen[b.Worker] = s
		if s.times >= looks {
			dead = append(dead, b)
		}
	}
	return dead
}
