package backlog

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

const (
	// flownFor is for how long, at least, a worker knows what it has sent, and mostFlown how many requests
	// of that time.
	flownFor  = time.Minute
	mostFlown = 50_000
)

// flights are the requests that were in flight in the last minute, by their Seq.
type flights struct {
	now, before []int64
	since       mono.Time // the beginning of now
}

func (f *flights) add(now mono.Time, seq int64) {
	if now.Sub(f.since) > flownFor || len(f.now) == mostFlown {
		f.now, f.before, f.since = f.before[:0], f.now, now
	}
	f.now = append(f.now, seq)
}

// rewind is for a store that has lost its last turns, as a standby may that takes over. What the worker has
// sent in the last minute has a doubt: its result may be lost, or its mark. Turns of the lost time had the
// numbers that come next, and may still arrive: the worker leaves its row, as one that was given up.
func (w *Worker) rewind() {
	w.doubts = slices.Concat(w.doubts, w.flew.before, w.flew.now)
	slices.Sort(w.doubts)
	w.doubts = slices.Compact(w.doubts)
}
