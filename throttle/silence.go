package throttle

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// silence is for servers that say nothing but served or limited. Refusals by a window and by a bucket mean different things, so each has
// a law of its own: silentWindow and silentBucket. Where the kind is not known, a bucket is assumed at first. A refusal with a
// Retry-After of a good part of the window shows a window; so do refusals in a row for longer than a bucket stays empty to somebody who
// waits. It is no window after all if its ends cannot be a whole number of windows apart.
type silence struct {
	on      bool
	missing int  // how many answers in a row did not say what remains
	said    bool // an answer once said what remains
	inRow   int  // how many refusals in a row
	since   mono.Time
	window  silentWindow
	bucket  silentBucket
}

const (
	missingLeast  = 3
	silentRow     = 3
	silentPart    = 1.0 / 10 // of the window
	silentAfter   = 1.0 / 50 // no bucket has a longer Retry-After
	silentMisfits = 2
)

// holds reports whether an answer is for these laws.
func (q *silence) holds(f *Fair, s *sighting, says bool, result limit.Result) bool {
	switch {
	case s.limited:
		return q.on || !q.said && f.level == &f.window && f.base.seq == 0
	case result != limit.Accepted && result != limit.Failed:
		return false
	case says:
		if q.on {
			f.base, f.known, f.blind = sighting{}, true, 0
		}
		q.on, q.said, q.missing = false, true, 0
		return false
	}
	q.missing++
	q.on = q.on || !q.said || q.missing >= missingLeast
	return q.on
}

func (q *silence) answer(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration) {
	if f.config.Kind == UnknownKind {
		q.find(f, s, retryAfter)
	}
	if f.level == &f.window {
		q.window.answer(f, now, s, retryAfter)
	} else {
		q.bucket.answer(f, now, s, retryAfter)
	}
}

// find tells windows from buckets.
func (q *silence) find(f *Fair, s *sighting, retryAfter time.Duration) {
	if !s.limited {
		q.inRow = 0
		if f.level == &f.window && q.window.misfits >= silentMisfits {
			f.level, q.window = &f.bucket, silentWindow{}
		}
		return
	}
	if q.inRow++; q.inRow == 1 {
		q.since = s.mid
	}
	length := f.window.length
	if retryAfter.Seconds() > max(silentAfter*length, 2*f.n/f.rate) ||
		q.bucket.stage >= thenServed && q.inRow >= silentRow && s.mid.Sub(q.since).Seconds() > silentPart*length {
		f.level = &f.window
	}
}
