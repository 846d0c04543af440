package window

import (
	"fmt"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Log knows the last N events exactly. At most N may happen in any window. So the next one may
// happen when the N-th last is older than the window. Add, Ready, Full and Take are one comparison
// each, at any N.
//
// It keeps 8 bytes per event of the limit and nothing else. Questions change nothing. A now before
// the last Add counts as the instant of that Add. Use NewLog; the zero Log is not ready. Not safe
// for concurrent use.
type Log struct {
	// ends has, for each of the last N events, the instant from which it no longer counts. The
	// oldest is at next.
	ends []mono.Time
	next int       // len(ends) stands for 0
	span mono.Time // the window and the instant that closes it
	last mono.Time
	lost mono.Time // the end of the event that last left ends for a newer one, or an earlier instant
}

// NewLog returns a Log of at most limit events in any closed span of window.
func NewLog(limit int, window time.Duration) (*Log, error) {
	if err := checkWindow("NewLog", window); err != nil {
		return nil, err
	}
	if limit < 1 || limit > maxLen {
		return nil, fmt.Errorf("window: NewLog: limit %d is not from 1 to %d", limit, maxLen)
	}
	l := &Log{
		ends: make([]mono.Time, limit),
		span: mono.Time(window) + 1,
		last: mono.Min,
		lost: mono.Min,
	}
	for i := range l.ends {
		l.ends[i] = mono.Min // an event that never happened counts at no instant
	}
	return l, nil
}

// Add records that an event happened at now. It never refuses: it records a fact. If there are more
// than the limit, the newest are kept. They decide when the next event may happen.
func (l *Log) Add(now mono.Time) {
	now = max(now, l.last)
	l.last = now
	i := l.next
	if uint(i) >= uint(len(l.ends)) {
		i = 0
	}
	l.lost = l.ends[i]
	l.ends[i] = l.end(now)
	l.next = i + 1
}

// Remove takes back one of the events that were added at the instant at, since it did not happen
// after all. An event that has left the window is gone already. If nothing was added at that
// instant, nothing changes. An event added at a now before the last Add has the instant of that
// Add.
//
// If more than the limit was added, the displaced events are not known any more. Each removed event
// is then replaced by the last displaced one, while that is in the window.
//
// The search takes log₂ limit steps. Then the events after the removed one move, or those before it
// if they are fewer. For the last event that is one move.
func (l *Log) Remove(at mono.Time) { l.remove(at) }

func (l *Log) remove(at mono.Time) bool {
	end := l.end(at)
	if end <= l.last {
		return false
	}
	n := len(l.ends)
	k := n - 1 // the last event with that end, counted from the oldest
	if l.at(k) != end {
		if k = sort.Search(n, func(k int) bool { return l.at(k) > end }) - 1; k < 0 || l.at(k) != end {
			return false
		}
	}
	if k < n/2 {
		for ; k > 0; k-- {
			l.ends[l.index(k)] = l.at(k - 1)
		}
	} else {
		for ; k < n-1; k++ {
			l.ends[l.index(k)] = l.at(k + 1)
		}
		l.next = l.index(n - 1)
	}
	l.ends[l.index(0)] = l.lost
	return true
}

// at returns the end of the k-th event, counted from the oldest.
func (l *Log) at(k int) mono.Time { return l.ends[l.index(k)] }

func (l *Log) index(k int) int {
	if k += l.next; k >= len(l.ends) {
		k -= len(l.ends)
	}
	return k
}

// Ready returns the earliest instant at which one more event leaves every window at the limit or
// below. It is not before now, nor before the last Add. If there is no such instant, it returns one
// later than mono.Max.
func (l *Log) Ready(now mono.Time) mono.Time { return max(now, l.last, l.oldest()) }

// Full reports whether the window that ends at now holds the limit or more. Then another event is
// too many.
func (l *Log) Full(now mono.Time) bool { return l.oldest() > max(now, l.last) }

// Take adds an event unless the window is full, and reports whether it did.
func (l *Log) Take(now mono.Time) bool {
	now = max(now, l.last)
	i := l.next
	if uint(i) >= uint(len(l.ends)) {
		i = 0
	}
	end := &l.ends[i]
	if *end > now {
		return false
	}
	l.last = now
	*end = l.end(now)
	l.next = i + 1
	return true
}

// Count returns how many events the window that ends at now holds, or the limit if there are more.
// It takes log₂ limit steps. Full answers the usual question in one step.
func (l *Log) Count(now mono.Time) int {
	now = max(now, l.last)
	older, newer := l.ends[l.next:], l.ends[:l.next]
	if len(newer) > 0 && newer[0] <= now {
		return counting(newer, now)
	}
	return len(newer) + counting(older, now)
}

// counting returns how many of ends are after now. ends has the oldest first.
func counting(ends []mono.Time, now mono.Time) int {
	from, to := 0, len(ends)
	for from < to {
		if mid := int(uint(from+to) / 2); ends[mid] > now {
			to = mid
		} else {
			from = mid + 1
		}
	}
	return len(ends) - from
}

// OnLeave returns a counter that calls f for the events that leave the window: with their instant
// and their number, oldest first. From then on use that counter in place of l. f does not get the
// events that had left by the last Add.
func (l *Log) OnLeave(f func(at mono.Time, n int64)) *TellingLog {
	return &TellingLog{Log: l, leave: f, told: len(l.ends) - l.Count(l.last)}
}

// TellingLog is a Log that reports the events that leave its window. OnLeave makes it. It is a type
// of its own, so that Add and Take of a Log, which are inlined, need no test for a function.
//
// Add, Take and Count first report all events that have left by their now. Count moves the window
// on, as Add does. Ready and Full change nothing and report nothing. If there are more than the
// limit, Add reports a displaced event at once, since it is not known later. Removed events are not
// reported.
//
// The function must be quick, and must not use the Log. Not safe for concurrent use.
type TellingLog struct {
	*Log
	leave func(at mono.Time, n int64)
	told  int // so many of the oldest events were reported already, or need no report
}

// Add records that an event happened at now.
func (l *TellingLog) Add(now mono.Time) {
	l.tell(now)
	if l.told == 0 {
		l.leave(l.Log.at(0)-l.span, 1)
	} else {
		l.told--
	}
	l.Log.Add(now)
}

// Take adds an event unless the window is full, and reports whether it did.
func (l *TellingLog) Take(now mono.Time) bool {
	l.tell(now)
	if !l.Log.Take(now) {
		return false
	}
	l.told--
	return true
}

// Count returns how many events the window that ends at now holds, or the limit if there are more.
func (l *TellingLog) Count(now mono.Time) int {
	l.tell(now)
	return l.Log.Count(now)
}

// Remove takes back one of the events that were added at the instant at.
func (l *TellingLog) Remove(at mono.Time) {
	if l.remove(at) {
		l.told++ // the event in its place is older than all others, and was reported if it ever was one
	}
}

func (l *TellingLog) tell(now mono.Time) {
	l.last = max(now, l.last)
	for l.told < len(l.ends) && l.Log.at(l.told) <= l.last {
		end, n := l.Log.at(l.told), int64(0)
		for ; l.told < len(l.ends) && l.Log.at(l.told) == end; l.told++ {
			n++
		}
		l.leave(end-l.span, n)
	}
}

func (l *Log) oldest() mono.Time {
	i := l.next
	if uint(i) >= uint(len(l.ends)) {
		i = 0
	}
	return l.ends[i]
}

// end returns the first instant at which an event that happens at now no longer counts.
func (l *Log) end(now mono.Time) mono.Time {
	// The sum is right modulo 2⁶⁴ even where span itself does not fit.
	if t := now + l.span; t > now {
		return t
	}
	return never
}
