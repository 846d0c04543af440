// Package timer tells of what has not ended within a span that is the same for all: an attempt without an answer, a part of an answer that
// nobody flushed. Nearly nothing ever is overdue. So all share one timer, which goes on to the next when it fires, and is not set or stopped
// for each: a timer that is set wakes a thread of the runtime that sleeps until later ones. Where spans differ, time.AfterFunc is what there is.
package timer

import (
	"sync"
	"time"
)

// Watch is over everything that has the same span. Made by New. It keeps a timer for up to a span after the last Begin, no goroutine, and
// needs no closing. Safe for concurrent use.
type Watch struct {
	span time.Duration

	mu    sync.Mutex
	all   Item // of a ring, in the order of Begin and so of their instants
	timer *time.Timer
	set   bool // the timer will fire
}

// Item is something that should end in time. It is a part of what it is about, so that it needs no memory of its own. It must not be copied
// while it is watched.
type Item struct {
	// Of is told, in a goroutine of its own and at most once for each Begin, that the span has passed.
	Of interface{ Expired() }

	prev, next *Item // under the lock of the Watch; nil: it is not watched
	at         time.Time
}

// New returns a Watch over what may last for a span, which must be positive.
func New(span time.Duration) *Watch {
	w := &Watch{span: span}
	w.all.prev, w.all.next = &w.all, &w.all
	return w
}

// Begin watches an item that is not watched.
func (w *Watch) Begin(i *Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i.at = time.Now().Add(w.span)
	i.prev, i.next = w.all.prev, &w.all
	i.prev.next, i.next.prev = i, i
	switch {
	case w.set:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.span, w.look)
	default:
		w.timer.Reset(w.span)
	}
	w.set = true
}

// End watches an item no more. It reports whether it ended in time: if not, it has been told that it is overdue, or will be.
func (w *Watch) End(i *Item) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.removeLocked(i)
}

func (w *Watch) removeLocked(i *Item) bool {
	if i.next == nil {
		return false
	}
	i.prev.next, i.next.prev = i.next, i.prev
	i.prev, i.next = nil, nil
	return true
}

// look tells those that are overdue, and sets the timer for the next.
func (w *Watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for i := w.all.next; i != &w.all; i = w.all.next {
		if left := i.at.Sub(now); left > 0 {
			w.timer.Reset(left)
			return
		}
		w.removeLocked(i)
		go i.Of.Expired()
	}
	w.set = false
}
