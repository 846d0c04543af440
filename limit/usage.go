package limit

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Usage is how much of one limit is used at an instant. It is for display.
type Usage struct {
	// Limit is the name of the limit, as in Rule. Unit is what it counts. InFlight: it counts
	// requests in flight, whatever their cost.
	Limit    string
	Unit     Unit
	InFlight bool
	// Used counts now, of Allowed. Allowed − Used may go at once. For a bucket, Allowed is the size
	// of the full bucket, and Used is the part that is, or may be, missing. Used exceeds Allowed
	// only after the limit was lowered, or a request went that was not Ready. Open is the part of
	// Used that is not settled.
	Used, Open, Allowed int64
	// Window is the time in which PerWindow may go in the long run. Both are 0 for a limit of
	// requests in flight.
	Window    time.Duration
	PerWindow int64
	// Total is the whole settled cost since this Limiter was made. Recent is the part of it in the
	// last Window. Limiters that keep Recent only for display know it to an eighth of a Window.
	// Both are 0 for a limit of requests in flight.
	Total, Recent int64
	// Fits is the most that was found to be allowed per Window, if less than PerWindow. 0: nothing
	// else is known. See Fitted.
	Fits int64
	// Requests is how many requests are open. 0: none is, or the limiter does not know.
	Requests int
	// Retreat is the opt-in of this limit that is not in use. Its Option is empty if there is none.
	// Retreat.Limit is empty: it is Limit.
	Retreat Retreat
}

// marks is how many marks a window has.
const marks = 8

// meter remembers the recent growth of a sum, for limiters whose own history does not show it. It
// costs a comparison per change. The zero meter is ready.
type meter struct {
	next mono.Time // when a mark is due
	past *[marks + 2]mark
	n    int // marks ever made; the i-th is at i modulo their number
}

// mark is the sum until at. After at, it grows to the sum of the next mark.
type mark struct {
	at    mono.Time
	total int64
}

// add must be called before the sum changes.
func (m *meter) add(now mono.Time, window time.Duration, total int64) {
	if now >= m.next || m.past == nil {
		m.mark(now, window, total)
	}
}

func (m *meter) mark(now mono.Time, window time.Duration, total int64) {
	if m.past == nil {
		m.past = new([marks + 2]mark)
	}
	m.past[m.n%len(m.past)] = mark{now, total}
	m.n++
	m.next = now.Add(window/marks + 1)
}

// within returns the growth of the sum in the last window. total is the sum now.
func (m *meter) within(now mono.Time, window time.Duration, total int64) int64 {
	begin, step, after := now.Add(-window), window/marks+1, total
	for i := m.n - 1; i >= 0 && i >= m.n-len(m.past); i-- {
		k := m.past[i%len(m.past)]
		if k.at <= begin {
			grew := after - k.total
			if in := begin.Sub(k.at); in < step {
				return total - after + grew - int64(float64(grew)*(float64(in)/float64(step)))
			}
			return total - after
		}
		after = k.total
	}
	return total - after
}
