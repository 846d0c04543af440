package window

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Slots counts events in bounded memory, however many there are. It keeps one count per slot of
// time of the given precision, and the running total. Slot i holds the events from i × precision
// until before (i+1) × precision, on the driver's scale.
//
// It never undercounts. It overcounts by at most the events of one slot: the one that contains
// now − window. An event counts until its whole slot has left the window, for less than
// window + precision. That takes
//
//	K = ⌈window / precision⌉ + 1
//
// slots, since a closed window of a whole number of slots touches one slot more. With one slot
// less, a slot would be emptied while some of its events are still in the window. Then up to twice
// the limit could pass at the edges of slots.
//
// To admit at most N per window, let it hold at most N. A steady stream is then admitted at N per
// window + precision.
//
// It keeps 8 bytes per slot. If now is before the last one, it counts as the last one. The first
// slot is the first that begins at an instant of the scale. Earlier events count in it. Use
// NewSlots; the zero Slots is not ready. Not safe for concurrent use.
type Slots struct {
	ring  []int64 // the counts, as a ring: those after current are the oldest
	total int64
	// next is the earlier of two instants: now leaves the current slot, or the oldest slot leaves
	// the window. start is the beginning of the current slot.
	next, start mono.Time
	current     int
	late        bool // the oldest slot has left the window, so now − window is in the slot after it
	precision   uint64
	// rest is the part of the window that is not a whole slot. If there is no such part, it is a
	// slot. The oldest slot leaves the window when the current one has lasted for rest.
	rest       uint64
	reciprocal uint64                      // ⌊(2⁶⁴−1) / precision⌋
	leave      func(at mono.Time, n int64) // gets the events that leave the window; nil: not set
}

// NewSlots returns an empty Slots over closed spans of window, in slots as long as precision.
func NewSlots(window, precision time.Duration) (*Slots, error) {
	if err := checkWindow("NewSlots", window); err != nil {
		return nil, err
	}
	if precision <= 0 {
		return nil, fmt.Errorf("window: NewSlots: precision %v is not positive", precision)
	}
	if precision > window {
		return nil, fmt.Errorf("window: NewSlots: precision %v is longer than window %v", precision, window)
	}
	w, t := uint64(window), uint64(precision)
	whole := ceilDiv(w, t)
	if whole >= maxLen {
		return nil, fmt.Errorf("window: NewSlots: precision %v of window %v takes %d slots, more than %d", precision, window, whole+1, maxLen)
	}
	s := &Slots{
		ring:       make([]int64, whole+1),
		start:      mono.Min - mono.Min%mono.Time(t), // the first slot that begins at an instant
		precision:  t,
		rest:       w - (whole-1)*t,
		reciprocal: math.MaxUint64 / t,
	}
	s.next = s.start.Add(time.Duration(s.rest))
	return s, nil
}

// Add counts n events at now and returns the total. An n below 1 counts nothing. The total stops at
// math.MaxInt64.
func (s *Slots) Add(now mono.Time, n int64) int64 {
	if now >= s.next {
		s.advance(now)
	}
	sum := s.total + n
	if sum <= s.total {
		if n <= 0 || s.total == math.MaxInt64 {
			return s.total
		}
		n, sum = math.MaxInt64-s.total, math.MaxInt64
	}
	s.total = sum
	s.ring[s.current] += n
	return sum
}

// Remove takes back n of the events that were added at the instant at, since they did not happen
// after all. Events whose slot has left the window are gone already. Remove never takes more than
// that slot holds. An n below 1 takes nothing.
func (s *Slots) Remove(at mono.Time, n int64) {
	i := s.current
	if at < s.start { // an at after the last instant counts as the last one
		back := ceilDiv(uint64(s.start)-uint64(at), s.precision)
		if back >= uint64(len(s.ring)) {
			return
		}
		if i -= int(back); i < 0 {
			i += len(s.ring)
		}
	}
	if n = min(n, s.ring[i]); n > 0 {
		s.ring[i] -= n
		s.total -= n
	}
}

// OnLeave sets f, which gets the events that leave the window, slot by slot, oldest first: the
// beginning of the slot and the number of its events. Add, Total and Bounds first report all events
// that have left by their now. Removed events are not reported.
//
// f must be quick, and must not use s. It replaces the function before it. nil means no reports,
// which costs nothing.
func (s *Slots) OnLeave(f func(at mono.Time, n int64)) { s.leave = f }

// tell reports the slots that have left the window by now. advance empties them right after it.
func (s *Slots) tell(now mono.Time) {
	since, oldest := uint64(now)-uint64(s.start), uint64(len(s.ring)-1)
	age := s.rest + oldest*s.precision // the age of the beginning of a slot that has just left the window
	for back := oldest; since >= age || back*s.precision >= age-since; back-- {
		i := s.current - int(back)
		if i < 0 {
			i += len(s.ring)
		}
		if n := s.ring[i]; n > 0 {
			s.leave(s.start-mono.Time(back*s.precision), n)
		}
		if back == 0 {
			return
		}
	}
}

// Total returns how many events the window that ends at now holds. It may return more, by at most
// the events of the slot that contains now − window.
func (s *Slots) Total(now mono.Time) int64 {
	if now >= s.next {
		s.advance(now)
	}
	return s.total
}

// Bounds returns the least and the most events that the window that ends at now can hold. most is
// the total. least leaves out the slot that contains now − window.
func (s *Slots) Bounds(now mono.Time) (least, most int64) {
	most = s.Total(now)
	partial := s.after(s.current)
	if s.late {
		partial = s.after(partial)
	}
	return most - s.ring[partial], most
}

// All returns the slots in the window of the last now that hold events: their beginnings and their
// numbers of events, oldest first. Do not use s meanwhile.
func (s *Slots) All() iter.Seq2[mono.Time, int64] {
	return func(yield func(mono.Time, int64) bool) {
		i := s.current
		for back := len(s.ring) - 1; back >= 0; back-- {
			i = s.after(i)
			if n := s.ring[i]; n > 0 && !yield(s.start-mono.Time(uint64(back)*s.precision), n) {
				return
			}
		}
	}
}

// String shows the slots in the window of the last now that hold events, for debugging: 6 at 8s is
// a slot that begins at 8 s and holds 6.
func (s *Slots) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "total %d", s.total)
	separator := ": "
	for at, n := range s.All() {
		fmt.Fprintf(&b, "%s%d at %v", separator, n, at)
		separator = ", "
	}
	return b.String()
}

// Len returns K, the number of slots.
func (s *Slots) Len() int { return len(s.ring) }

// advance moves on to the slot that contains now. now must not be before next.
func (s *Slots) advance(now mono.Time) {
	if s.leave != nil {
		s.tell(now)
	}
	since := uint64(now) - uint64(s.start)
	switch {
	case since < s.precision:
	case since < 2*s.precision:
		since -= s.precision
		s.start += mono.Time(s.precision)
		s.current = s.after(s.current)
		s.empty(s.current)
	default:
		slots, rest := s.divide(since)
		since = rest
		s.start = now - mono.Time(rest)
		if slots >= uint64(len(s.ring)) {
			// Nothing is left, so any slot may be the current one.
			clear(s.ring)
			s.total = 0
			break
		}
		for range slots {
			s.current = s.after(s.current)
			s.empty(s.current)
		}
	}
	if s.late = since >= s.rest; s.late {
		s.empty(s.after(s.current))
		s.next = s.start.Add(time.Duration(s.precision))
	} else {
		s.next = s.start.Add(time.Duration(s.rest))
	}
}

// divide returns the number of whole slots in t, and the rest.
func (s *Slots) divide(t uint64) (slots, rest uint64) {
	// This is the fastest exact way in division_bench_test.go without constants. The estimate is at
	// most 2 too small: the reciprocal lacks less than 2 of 2⁶⁴/precision, and t is below 2⁶⁴.
	slots, _ = bits.Mul64(t, s.reciprocal)
	rest = t - slots*s.precision
	for rest >= s.precision {
		slots++
		rest -= s.precision
	}
	return slots, rest
}

func (s *Slots) empty(i int) {
	s.total -= s.ring[i]
	s.ring[i] = 0
}

func (s *Slots) after(i int) int {
	if i++; i == len(s.ring) {
		return 0
	}
	return i
}
