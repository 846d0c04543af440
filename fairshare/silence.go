package fairshare

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// silence chooses the law for servers whose answers are only served or limited. Refusals by a
// window and by a bucket mean different things, so each has a law of its own: silentWindow and
// silentBucket. An unknown kind is assumed to be a bucket at first.
//
// Two signs show a window. One is a refusal with a Retry-After of a good part of the window. The
// other is refusals in a row for longer than a bucket stays empty to a process that waits. They
// count after the first burst, later, or from the first request on. It is no window after all if
// its ends, found or stated, cannot be a whole number of windows apart.
type silence struct {
	on bool
	// How many answers in a row had no remainder.
	missing int
	said    bool // an answer once had a remainder
	inRow   int  // refusals in a row
	since   mono.Time
	burst   float64   // the units served before the first refusal, since first
	first   mono.Time // when the first of those was sent, at most a window ago
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
func (q *silence) holds(f *Fair, s *sighting, says bool, result limit.Result, retryAfter time.Duration) bool {
	switch {
	case s.limited:
		if !q.on && !says && !q.said && f.level == &f.bucket && q.finds(f) {
			q.limited(f, s, retryAfter)
		}
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

// speaks notes that an answer has a remainder, before anything is concluded from that. Refusals
// before the first such answer are no sign of a window.
func (q *silence) speaks(f *Fair) {
	if !q.on && !q.said && q.inRow > 0 && q.finds(f) {
		f.be(&f.bucket)
	}
	q.inRow = 0
}

// finds reports whether the kind is to be found out.
func (q *silence) finds(f *Fair) bool {
	return f.config.Kind == UnknownKind && f.finder.stated == UnknownKind
}

func (q *silence) answer(f *Fair, now mono.Time, s *sighting, retryAfter time.Duration) {
	if q.finds(f) {
		q.find(f, s, retryAfter)
	}
	if f.level == &f.window {
		q.window.answer(f, now, s, retryAfter)
	} else {
		q.bucket.answer(f, now, s, retryAfter)
	}
}

// find distinguishes windows from buckets.
func (q *silence) find(f *Fair, s *sighting, retryAfter time.Duration) {
	if f.level == &f.window && q.window.misfits >= silentMisfits {
		f.level, q.window, q.inRow = &f.bucket, silentWindow{}, 0
		q.bucket.stage = max(q.bucket.stage, thenServed)
	}
	if s.limited {
		q.limited(f, s, retryAfter)
		return
	}
	if refused := s.mid.Sub(q.since); f.level == &f.bucket && q.bucket.stage <= onlyLimited && q.burst == 0 &&
		q.long(f, refused) {
		q.try(f, refused)
	}
	q.inRow = 0
	if q.bucket.stage != neverLimited {
		return
	}
	if f.blind > 0 && !q.window.short(f) {
		q.bucket.stage = onlyLimited // a refused process does not take all that it can
		return
	}
	if q.burst == 0 || s.at.Sub(q.first) > f.config.Window {
		q.first, q.burst = s.at, 0
	}
	q.burst += s.cost / f.config.MeanCost
}

// limited counts refusals, also those before the server is known to be silent when it serves.
func (q *silence) limited(f *Fair, s *sighting, retryAfter time.Duration) {
	if q.inRow++; q.inRow == 1 {
		q.since = s.mid
	}
	w, b, length, refused := &q.window, &q.bucket, f.window.length, s.mid.Sub(q.since)
	if f.level == &f.window {
		if retryAfter > 0 {
			end := s.mid.Add(min(retryAfter, endsMost))
			w.ends(end.Add(-Seconds(kindSeconds)), end.Add(Seconds(kindSeconds)), f.config.Window)
		}
		// the next window has begun long ago
		if q.burst > 0 && b.stage == onlyLimited && refused.Seconds() > emptiedLater*length {
			f.level, q.window, q.burst = &f.bucket, silentWindow{}, 0
		}
		return
	}
	long := q.long(f, refused)
	if retryAfter.Seconds() > max(silentAfter*length, 2*f.n/f.rate) ||
		long && b.stage >= thenServed && (!w.short(f) || f.tokens(refused) > emptiedShares*f.n) {
		f.be(&f.window)
		*w = silentWindow{}
		return
	}
	// If all took what they could until the quota was used up, this is the process' own part of a
	// window.
	switch n := f.window.limit / max(q.burst, 1); {
	case !long || b.stage > onlyLimited || q.burst == 0 && q.first != 0: // the burst was no sign
	case q.burst < emptiedShares:
		q.try(f, refused)
	case f.empties(q.inRow, refused, n):
		f.be(&f.window)
		f.n = f.clamp(n)
		*w = silentWindow{began: true, first: q.first, waits: true}
	}
}

// long reports whether refusals in a row, for so long, are more than a bucket has. It may be wrong
// for a few of hundreds.
func (q *silence) long(f *Fair, refused time.Duration) bool {
	return q.inRow >= silentRow && refused.Seconds() > silentPart*f.window.length
}

// try takes the law of windows, and looks for the end of this one at once. In a bucket two ends
// soon do not fit. In a window of few requests that would show too late, so that window has to be
// over.
func (q *silence) try(f *Fair, refused time.Duration) {
	if w := &q.window; !w.short(f) || refused > f.config.Window {
		f.be(&f.window)
		f.n, q.bucket.stage = f.clamp(assumedSharers/f.config.Weight), onlyLimited
		*w = silentWindow{began: true, first: q.since, waits: true, last: q.since, usedUp: q.since, lost: true}
	}
}
