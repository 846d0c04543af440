package window

import (
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Runs counts weighted events exactly: pairs of instant and count, with a running total. Events of one instant share a
// pair, so memory follows the number of instants and not the number of events.
//
// It is exact as long as the window holds no more different instants than it was made for. Beyond that it neither grows
// nor forgets: new events join the newest pair until ⌈window/instants⌉ after the pair was opened, and the pair counts as
// if all of it had happened at its newest event. So it never undercounts, and no event counts for as long as window +
// ⌈window/instants⌉. It is exact again when the shared pairs have left the window.
//
// It keeps 32 bytes per instant. A now before the last, of Add or Total, counts as the last. Use NewRuns; the zero Runs is
// not ready. Not safe for concurrent use.
type Runs struct {
	ring   []run
	oldest int
	newest int
	len    int
	exact  int // pairs above which events share
	total  int64
	last   mono.Time
	due    mono.Time // no later than when the oldest ceases to count; never if there is none
	opened mono.Time // when the newest was
	window uint64
	grain  uint64
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
		// Let the last pair that was opened exactly be opened at t: at most `instants` are there then, and those after it
		// are opened a grain apart. While the pair of t counts, now < t + grain + window, which is room for `instants` more.
		ring:   make([]run, 2*instants),
		newest: 2*instants - 1, // so that the first pair is at 0, as oldest is
		exact:  instants,
		last:   mono.Min,
		due:    never,
		window: uint64(window),
		grain:  ceilDiv(uint64(window), uint64(instants)),
	}, nil
}

// Add counts n events at now and returns the total. An n below 1 counts nothing; what would raise the total above
// math.MaxInt64 is not counted.
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
		if e.at == now || r.len >= r.exact && uint64(now)-uint64(r.opened) < r.grain {
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
	if r.len == 0 {
		return
	}
	if uint64(now)-uint64(r.ring[r.newest].at) > r.window {
		r.len, r.total, r.due = 0, 0, never
		r.oldest = r.after(r.newest)
		return
	}
	for {
		e := &r.ring[r.oldest]
		if uint64(now)-uint64(e.at) <= r.window {
			r.due = r.end(e.at)
			return
		}
		r.total -= e.n
		r.len--
		r.oldest = r.after(r.oldest)
	}
}

func (r *Runs) after(i int) int {
	if i++; i == len(r.ring) {
		return 0
	}
	return i
}

// end returns the first instant at which an event of at no longer counts.
func (r *Runs) end(at mono.Time) mono.Time {
	if t := at + mono.Time(r.window) + 1; t > at {
		return t
	}
	return never
}
