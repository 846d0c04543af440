package window

import (
	"fmt"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Log knows the last N events exactly: at most N may happen in any window, so the next one may when the N-th last is
// older than the window. Add, Ready, Full and Take are one comparison each, at any N.
//
// It keeps 8 bytes per event of the limit and nothing else. Asking changes nothing; a now before the last Add counts as the instant of
// that Add. Use NewLog; the zero Log is not ready. Not safe for concurrent use.
type Log struct {
	ends []mono.Time // for each of the last N events, the instant from which it no longer counts; the oldest is at next
	next int         // len(ends) stands for 0
	span mono.Time   // the window and the instant that closes it
	last mono.Time
	lost mono.Time // the end of the event that was displaced from ends last, or an earlier instant
}

// NewLog returns a Log of at most limit events in any closed span of window.
func NewLog(limit int, window time.Duration) (*Log, error) {
	if err := checkWindow("NewLog", window); err != nil {
		return nil, err
	}
	if limit < 1 || limit > MaxLen {
		return nil, fmt.Errorf("window: NewLog: limit %d is not from 1 to %d", limit, MaxLen)
	}
	l := &Log{
		ends: make([]mono.Time, limit),
		span: mono.Time(window) + 1,
		last: mono.Min,
		lost: mono.Min,
	}
	for i := range l.ends {
		l.ends[i] = mono.Min // what never happened counts at no instant
	}
	return l, nil
}

// Add records that an event happened at now. It never refuses: it records a fact. If there are more than the limit, the newest are kept,
// since those decide when the next one may happen.
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

// Remove takes back one of the events that were added at the instant at, because it turned out not to have happened. If the event has
// left the window it is gone already, and if nothing was added at that instant nothing is taken. An event that was added at a now before
// the last Add stands at the instant of that Add.
//
// If more than the limit was added, the events that were displaced are no longer known: for as many events as are taken back, the last
// displaced one is put in their place, while it is in the window.
//
// Finding the event takes log₂ limit steps. Then the events after it are moved, or those before it if they are fewer; for the last event
// that is one move.
func (l *Log) Remove(at mono.Time) { l.remove(at) }

func (l *Log) remove(at mono.Time) bool {
	end := l.end(at)
	if end <= l.last {
		return false
	}
	n := len(l.ends)
	k := n - 1 // the last event that ends then, counted from the oldest
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

// Ready returns the earliest instant, not before now nor before the last Add, at which one more event leaves every
// window at the limit or below. It is later than mono.Max if no instant is.
func (l *Log) Ready(now mono.Time) mono.Time { return max(now, l.last, l.oldest()) }

// Full reports whether the window that ends at now holds the limit or more, so that another event would be too many.
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

// Count returns how many events the window that ends at now holds, or the limit if there are more. It takes log₂ limit steps; Full
// answers the usual question in one step.
func (l *Log) Count(now mono.Time) int {
	now = max(now, l.last)
	older, newer := l.ends[l.next:], l.ends[:l.next]
	if len(newer) > 0 && newer[0] <= now {
		return counting(newer, now)
	}
	return len(newer) + counting(older, now)
}

// counting returns how many of ends, oldest first, are after now.
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

// OnLeave returns a counter that tells f of each event that leaves the window: its instant and how many events there were at it, oldest
// first. From then on use that counter in place of l. Events that had left by the last Add are not told.
func (l *Log) OnLeave(f func(at mono.Time, n int64)) *TellingLog {
	return &TellingLog{Log: l, leave: f, told: len(l.ends) - l.Count(l.last)}
}

// TellingLog is a Log that tells what leaves its window; OnLeave makes it. It is a type of its own so that Add and Take of a Log, which
// are inlined, need not ask whether anybody listens.
//
// Add, Take and Count first tell of everything that has left by their now; Count moves the window on, as Add does. Ready and Full change
// nothing and tell nothing. An event that Add displaces, because there are more than the limit, is told then, since it is not known
// later. Events that are removed are not told.
//
// The function that is told must be quick, and must not use the Log. Not safe for concurrent use.
type TellingLog struct {
	*Log
	leave func(at mono.Time, n int64)
	told  int // so many of the oldest events have been told already, or need not be
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
		l.told++ // the event that takes its place is older than all others, and was told if it ever was one
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
