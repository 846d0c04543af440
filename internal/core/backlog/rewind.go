package backlog

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

const (
	// toldFor is for how long, at least, a worker knows in which turn it told of a request, and mostTold how many
	// requests of that time.
	toldFor  = time.Minute
	mostTold = 50_000
)

// told are requests that were in flight and of which a committed turn told in the last minute.
type told struct {
	now, before []tale
	since       mono.Time // the beginning of now
}

// tale is a request whose end or return a turn told. A store has that if it has the row, by its place in Worker.rows,
// with the beat, or a later row.
type tale struct {
	seq, beat int64
	row       int
}

func (t *told) add(now mono.Time, seq, beat int64, row int) {
	if now.Sub(t.since) > toldFor || len(t.now) == mostTold {
		t.now, t.before, t.since = t.before[:0], t.now, now
	}
	t.now = append(t.now, tale{seq, beat, row})
}

// rewind is for a store that has lost its last turns, as a standby may that takes over. What it has is the beginning
// of what was committed. So a doubt have the requests of whose end a lost turn told, and those that were in
// flight and whose end no turn has told: their marks may be lost. Turns of the lost time had the numbers that come
// next, and may still arrive: the worker leaves its row, as one that was given up.
func (w *Worker) rewind(beat int64) {
	for _, all := range [][]tale{w.told.before, w.told.now} {
		for _, t := range all {
			if t.row > w.row || t.row == w.row && t.beat > beat {
				w.doubts = append(w.doubts, t.seq)
			}
		}
	}
	for seq, h := range w.jobs {
		if h.flew {
			w.doubts = append(w.doubts, seq)
		}
	}
	for seq := range w.ends {
		w.doubts = append(w.doubts, seq)
	}
	slices.Sort(w.doubts)
	w.doubts = slices.Compact(w.doubts)
}
