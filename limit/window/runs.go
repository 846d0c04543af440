package window

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Runs counts weighted events: pairs of instant and count, with a running total. Events of one
// instant share a pair. So memory grows with the number of instants, not with the number of events.
//
// It is exact while the window holds no more different instants than NewRuns was given. Beyond that
// it neither grows nor forgets. New events join the newest pair until ⌈window/instants⌉ after the
// pair was opened. The pair counts as if all of it had happened at its newest event. So Runs never
// undercounts, and no event counts for as long as window + ⌈window/instants⌉. It is exact again
// when the shared pairs have left the window.
//
// It keeps 32 bytes per instant. If now is before the last one, of Add or Total, it counts as the
// last one. Use NewRuns; the zero Runs is not ready. Not safe for concurrent use.
type Runs struct {
	ring   []run
	oldest int
	newest int
	len    int
	exact  int // with more pairs than this, events share pairs
	total  int64
	last   mono.Time
	due    mono.Time // no later than the instant at which the oldest pair stops counting; never if there is none
	opened mono.Time // when the newest pair was opened
	joined mono.Time // the last event that joined a pair of an earlier instant; pairs up to then may be shared
	window uint64
	grain  uint64
	leave  func(at mono.Time, n int64) // gets the events that leave the window; nil: not set
}

type run struct {
	at mono.Time
	n  int64
}

// NewRuns returns an empty Runs over closed spans of window. It is exact for that many different
// instants in one of them.
func NewRuns(window time.Duration, instants int) (*Runs, error) {
	if err := checkWindow("NewRuns", window); err != nil {
		return nil, err
	}
	if instants < 1 || instants > maxLen {
		return nil, fmt.Errorf("window: NewRuns: instants %d is not from 1 to %d", instants, maxLen)
	}
	return &Runs{
		// Let the last pair with exact room be opened at t. Then there are at most `instants`
		// pairs. Later pairs are opened a grain apart. While the pair of t counts,
		// now < t + grain + window. So at most `instants` pairs more are opened.
		ring:   make([]run, 2*instants),
		newest: 2*instants - 1, // the first pair is then at 0, as oldest is
		exact:  instants,
		last:   mono.Min,
		due:    never,
		joined: mono.Min,
		window: uint64(window),
		grain:  ceilDiv(uint64(window), uint64(instants)),
	}, nil
}

// Add counts n events at now and returns the total. An n below 1 counts nothing. The total stops at
// math.MaxInt64.
func (r *Runs) Add(now mono.Time, n int64) int64 {
	now = max(now, r.last)
	r.last = now
	if now >= r.due {
		r.expire(now)
	}
	sum := r.total + n
	if sum <= r.total {
		if n <= 0 || r.total == math.MaxInt64 {
			return r.total
		}
		n, sum = math.MaxInt64-r.total, math.MaxInt64
	}
	r.total = sum
	if r.len > 0 {
		e := &r.ring[r.newest]
		if e.at == now {
			e.n += n
			return sum
		}
		if r.len >= r.exact && uint64(now)-uint64(r.opened) < r.grain {
			r.joined = now
			e.at = now
			e.n += n
			return sum
		}
	} else {
		r.due = r.end(now)
	}
	r.newest = r.after(r.newest)
	r.ring[r.newest] = run{now, n}
	r.opened = now
	r.len++
	return sum
}

// Remove takes back n of the events that were added at the instant at, since they did not happen
// after all. Events that have left the window are gone already. If nothing was added at that
// instant, Remove takes nothing, unless the instant's pair is shared. Events added at a now before
// the last one have the last one's instant. Remove never takes more than the pair holds. An n below
// 1 takes nothing. It takes log₂ instants steps.
func (r *Runs) Remove(at mono.Time, n int64) {
	if r.len == 0 || uint64(r.last)-uint64(at) > r.window {
		return // an at after the last instant wraps round to a huge age
	}
	e := &r.ring[r.newest]
	if e.at != at {
		k := sort.Search(r.len, func(k int) bool { return r.pair(k).at >= at })
		if e = r.pair(k); e.at != at && (e.at > r.joined || uint64(e.at)-uint64(at) >= r.grain) {
			return
		}
	}
	if n = min(n, e.n); n > 0 {
		e.n -= n
		r.total -= n
	}
}

// pair returns the k-th pair, counted from the oldest.
func (r *Runs) pair(k int) *run {
	if k += r.oldest; k >= len(r.ring) {
		k -= len(r.ring)
	}
	return &r.ring[k]
}

// OnLeave sets f, which gets the events that leave the window: an instant and their number, oldest
// first. Add and Total first report all events that have left by their now. A shared pair is
// reported at the instant of its newest event, when it no longer counts. Removed events are not
// reported.
//
// f must be quick, and must not use r. It replaces the function before it. nil means no reports,
// which costs nothing.
func (r *Runs) OnLeave(f func(at mono.Time, n int64)) { r.leave = f }

// Total returns how many events the window that ends at now holds.
func (r *Runs) Total(now mono.Time) int64 {
	now = max(now, r.last)
	r.last = now
	if now >= r.due {
		r.expire(now)
	}
	return r.total
}

// expire drops the pairs that no longer count.
func (r *Runs) expire(now mono.Time) {
	if r.leave == nil && uint64(now)-uint64(r.ring[r.newest].at) > r.window {
		r.len, r.total, r.due = 0, 0, never
		r.oldest = r.after(r.newest)
		return
	}
	for r.len > 0 {
		e := &r.ring[r.oldest]
		if uint64(now)-uint64(e.at) <= r.window {
			r.due = r.end(e.at)
			return
		}
		r.total -= e.n
		r.len--
		r.oldest = r.after(r.oldest)
		if r.leave != nil && e.n > 0 {
			r.leave(e.at, e.n)
		}
	}
	r.due = never
}

func (r *Runs) after(i int) int {
	if i++; i == len(r.ring) {
		return 0
	}
	return i
}

// end returns the first instant at which an event that happened at the instant at no longer counts.
func (r *Runs) end(at mono.Time) mono.Time {
	if t := at + mono.Time(r.window) + 1; t > at {
		return t
	}
	return never
}
