package window

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Runs counts weighted events exactly: pairs of instant and count, with a running total. Events of one instant share a
// pair, so memory follows the number of instants and not the number of events.
//
// It is exact as long as the window holds no more different instants than it was made for. Beyond that it neither grows nor forgets: new
// events join the newest pair until ⌈window/instants⌉ has passed since the pair was opened, and the pair counts as if all of it had
// happened at its newest event. So it never undercounts, and no event counts for as long as window + ⌈window/instants⌉. It is exact again
// when the shared pairs have left the window.
//
// It keeps 32 bytes per instant. A now before the last one, of Add or Total, counts as the last one. Use NewRuns; the zero Runs is not
// ready. Not safe for concurrent use.
type Runs struct {
	ring   []run
	oldest int
	newest int
	len    int
	exact  int // with more pairs than that, events share pairs
	total  int64
	last   mono.Time
	due    mono.Time // no later than the instant at which the oldest pair ceases to count; never if there is none
	opened mono.Time // when the newest pair was opened
	joined mono.Time // the last event that joined a pair of an earlier instant; pairs up to then may be shared
	window uint64
	grain  uint64
	leave  func(at mono.Time, n int64) // is told what leaves the window; nil: nobody is
}

type run struct {
	at mono.Time
	n  int64
}

// NewRuns returns an empty Runs over closed spans of window, exact for that many different instants in one of them.
func NewRuns(window time.Duration, instants int) (*Runs, error) {
	if err := checkWindow("NewRuns", window); err != nil {
		return nil, err
	}
	if instants < 1 || instants > MaxLen {
		return nil, fmt.Errorf("window: NewRuns: instants %d is not from 1 to %d", instants, MaxLen)
	}
	return &Runs{
		// Suppose that the last pair for which there was exact room is opened at t: there are at most `instants` pairs then, and those
		// after it are opened a grain apart. While the pair of t counts, now < t + grain + window, so there are at most `instants` more.
		ring:   make([]run, 2*instants),
		newest: 2*instants - 1, // so that the first pair is at 0, as oldest is
		exact:  instants,
		last:   mono.Min,
		due:    never,
		joined: mono.Min,
		window: uint64(window),
		grain:  ceilDiv(uint64(window), uint64(instants)),
	}, nil
}

// Add counts n events at now and returns the total. An n below 1 counts nothing; events that would raise the total above math.MaxInt64
// are not counted.
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

// Remove takes back n of the events that were added at the instant at, because they turned out not to have happened. Events that have
// left the window are gone already; if nothing was added at that instant, nothing is taken, unless its pair is shared. What was added at
// a now before the last one stands at the last one. It never takes more than the pair holds; an n below 1 takes nothing. It takes log₂
// instants steps.
func (r *Runs) Remove(at mono.Time, n int64) {
	if r.len == 0 || uint64(r.last)-uint64(at) > r.window {
		return // an at after the last instant is far too late
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

// OnLeave has f told what leaves the window, as an instant and how many events there were at it, oldest first. Add and Total tell of
// everything that has left by their now, before they do anything else. A shared pair is told at the instant of its newest event, when it
// no longer counts. Events that were taken back are not told.
//
// f must be quick, and must not use r. It replaces the function that was set before; with nil nobody is told, which costs nothing.
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
