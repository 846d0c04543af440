package backlog

import (
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
// sent in the last minute has a doubt: its result may be lost, or its mark. Nothing that it holds is marked
// any more. What is in flight may end, and is not written.
func (w *Worker) rewind() {
	w.doubts = append(append(w.doubts[:len(w.doubts):len(w.doubts)], w.flew.before...), w.flew.now...)
	clear(w.returns)
	for _, h := range w.sorted() {
		if h.flying {
			h.stale = true
			continue
		}
		w.forget(h)
	}
	if w.turn != nil {
		w.turn.fresh = nil
	}
}
