package window

import (
	"fmt"
	"sort"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Log knows the last N events exactly: at most N may happen in any window, so the next one may when the N-th last is
// older than the window. Add, Ready, Full and Take are one comparison each, at any N.
//
// It keeps 8 bytes per event of the limit and nothing else. Asking changes nothing; a now before the last Add counts as
// that. Use NewLog; the zero Log is not ready. Not safe for concurrent use.
type Log struct {
	ends []mono.Time // of the last N events, the instants from which they no longer count; the oldest is at next
	next int         // len(ends) stands for 0
	span mono.Time   // the window and the instant that closes it
	last mono.Time
	lost mono.Time // of the last that made room in ends for another, or earlier
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

// Add records that an event happened at now. It never refuses: it records a fact. Of more than the limit the newest are
// kept, which are those that decide when the next one may happen.
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

// Remove takes back one of the events that were added at the instant at: it turned out not to have happened. What has left
// the window is gone already, and of an instant at which nothing was added nothing is taken; an event that was added at a now
// before the last is at the last.
//
// If Add was given more than the limit, what that displaced is no longer known: then as many events as are taken back are
// replaced by the last that was displaced, while it is in the window.
//
// To find the event takes log₂ limit steps, and so many moves as there are events after it, or before it if those are
// fewer: one for the last event.
func (l *Log) Remove(at mono.Time) { l.remove(at) }

func (l *Log) remove(at mono.Time) bool {
	end := l.end(at)
	if end <= l.last {
		return false
	}
	n := len(l.ends)
	k := n - 1 // the last of those that end then, from the oldest on
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

// at returns the end of the k-th event, from the oldest on.
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

// Full says whether the window that ends at now holds the limit or more, so that another event would be too many.
func (l *Log) Full(now mono.Time) bool { return l.oldest() > max(now, l.last) }

// Take adds an event unless the window is full, and says whether it did.
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

// Count returns how many events the window that ends at now holds, or the limit if there are more. It takes log₂ limit
// steps; Full answers the question that is usually meant, in one.
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

// OnLeave has f told of each event that leaves the window, with its instant and how many there were at it, oldest first: by
// what it returns, which is to be used in place of l from then on. What had left by the last Add is not told.
func (l *Log) OnLeave(f func(at mono.Time, n int64)) *TellingLog {
	return &TellingLog{Log: l, leave: f, told: len(l.ends) - l.Count(l.last)}
}

// TellingLog is a Log that tells of what leaves its window: OnLeave makes it. It is a type of its own so that Add and Take of
// a Log, which are inlined, need not ask whether anybody listens.
//
// Add, Take and Count tell of all that has left by their now, before they do what they do; Count moves the window on, as an
// Add does. Ready and Full change nothing, and tell nothing. What Add displaces, above the limit, is told then, as it is no
// longer known later. What is removed is not told.
//
// What is told must be quick, and must not use the Log. Not safe for concurrent use.
type TellingLog struct {
	*Log
	leave func(at mono.Time, n int64)
	told  int // so many of the oldest need not be told
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

// Take adds an event unless the window is full, and says whether it did.
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
		l.told++ // what takes its place is older than all, and told if it ever was anything
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

// end returns the first instant at which an event of now no longer counts.
func (l *Log) end(now mono.Time) mono.Time {
	// The sum is right modulo 2⁶⁴ even where span itself does not fit.
	if t := now + l.span; t > now {
		return t
	}
	return never
}
