package limit

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Usage is how much of one limit is used at an instant, to be looked at.
type Usage struct {
	// Limit is the name of the limit, as in Bound, and Unit what it counts. InFlight: it counts requests in flight, whatever they cost.
	Limit    string
	Unit     Unit
	InFlight bool
	// Used counts now, of Allowed: Allowed − Used may go at once. Of a bucket Allowed is what the full one holds, and Used what is, or
	// may be, missing from it. More than Allowed is used only where the limit was lowered, or what went was not Ready. Open is what of Used
	// is not settled.
	Used, Open, Allowed int64
	// Window is the time in which PerWindow may go in the long run. Both are 0 of a limit of requests in flight.
	Window    time.Duration
	PerWindow int64
	// Total is what was ever counted of what is settled, since this Limiter was made; and Recent what of that was in the last Window, to an eighth of it where it has to be
	// kept for this alone. Both are 0 of a limit of requests in flight.
	Total, Recent int64
	// Fits is what was found to be allowed per Window, if that is less than PerWindow; 0: nothing else is known. See Fitted.
	Fits int64
}

// Gauged is a Limiter that can tell how much is used. All limiters of this package are; Spacing, Sequence and Cooldown, which count nothing,
// tell nothing.
type Gauged interface {
	Limiter
	// AppendUsage appends what is used at now of each limit in it, always as many and in the same order, and changes nothing that Ready or
	// anything else can tell.
	AppendUsage(to []Usage, now mono.Time) []Usage
}

// AppendUsage asks l if it is Gauged; otherwise it appends nothing.
func AppendUsage(to []Usage, l Limiter, now mono.Time) []Usage {
	visit(l, nil, func(l Limiter, name *string) bool {
		g, ok := l.(Gauged)
		if !ok {
			return false
		}
		first := len(to)
		to = g.AppendUsage(to, now)
		for i := first; name != nil && i < len(to); i++ {
			to[i].Limit = *name
		}
		return true
	})
	return to
}

// marks is how many marks a window has.
const marks = 8

// meter remembers what a sum was lately, for limiters whose own history does not tell. It costs a comparison per change. The zero meter is
// ready.
type meter struct {
	next mono.Time // when a mark is due
	past *[marks + 2]mark
	n    int // marks ever made; the i-th is at i modulo their number
}

// mark is what the sum was until at. In the time of a mark after that it grew to what the next says.
type mark struct {
	at    mono.Time
	total int64
}

// add is called before what is added to the sum.
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

// within returns by how much the sum, which is total now, grew in the last window.
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
