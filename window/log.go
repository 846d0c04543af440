package window

import (
	"fmt"
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
	l.ends[i] = l.end(now)
	l.next = i + 1
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
