package throttle

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// silence is for servers that say nothing but served or limited. Refusals by a window and by a bucket mean different things, so each has
// a law of its own: silentWindow and silentBucket. Where the kind is not known, a bucket is assumed at first. A refusal with a
// Retry-After of a good part of the window shows a window; so do refusals in a row for longer than a bucket stays empty to somebody who
// waits, be it after all that there was at first, or later. It is no window after all if its ends cannot be a whole number of windows apart.
type silence struct {
	on      bool
	missing int  // how many answers in a row did not say what remains
	said    bool // an answer once said what remains
	inRow   int  // how many refusals in a row
	since   mono.Time
	burst   float64   // what was served before the first refusal, in units, since first
	first   mono.Time // when the first of that was sent, at most a window ago
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
	if f.config.Kind == UnknownKind && f.finder.stated == UnknownKind {
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
		if q.bucket.stage == neverLimited {
			if q.burst == 0 || s.at.Sub(q.first) > f.config.Window {
				q.first, q.burst = s.at, 0
			}
			q.burst += s.cost / f.config.MeanCost
		}
		if f.level == &f.window && q.window.misfits >= silentMisfits {
			f.level, q.window = &f.bucket, silentWindow{}
		}
		return
	}
	if q.inRow++; q.inRow == 1 {
		q.since = s.mid
	}
	length, refused := f.window.length, s.mid.Sub(q.since)
	if retryAfter.Seconds() > max(silentAfter*length, 2*f.n/f.rate) ||
		q.bucket.stage >= thenServed && q.inRow >= silentRow && refused.Seconds() > silentPart*length {
		f.level = &f.window
		return
	}
	if q.burst == 0 || q.bucket.stage != onlyLimited {
		return
	}
	// Where all took what they could until the quota was used up, this was one's own part of all that a window allows.
	switch n := f.window.limit / max(q.burst, 1); {
	case f.level == &f.window && refused.Seconds() > emptiedLater*length: // the next one has begun long ago
		f.level, q.window, q.burst = &f.bucket, silentWindow{}, 0
	case f.level == &f.bucket && f.empties(q.inRow, refused, n):
		f.level, f.n = &f.window, f.clamp(n)
		q.window.began, q.window.first, q.window.waits = true, q.first, true
	}
}
