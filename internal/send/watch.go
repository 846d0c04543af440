package send

import (
	"sync"
	"time"
)

// Watch reports items that have not ended within a span that is the same for all. Examples are an
// attempt without an answer, and a part of an answer that was not flushed. NewWatch makes it.
//
// Nearly no item is ever overdue. So all share one timer, which goes on to the next item when it
// fires. It is not set or stopped for each, since a set timer wakes a thread of the runtime that
// sleeps until later ones. For different spans, use time.AfterFunc.
//
// A Watch keeps its timer for up to a span after the last Begin, has no goroutine, and needs no
// closing. It is safe for concurrent use.
type Watch struct {
	span time.Duration

	mu    sync.Mutex
	all   Watched // head of a ring, in the order of Begin and so of their instants
	timer *time.Timer
	set   bool // the timer will fire
}

// Watched is something that should end in time. It is a part of its subject, so that it needs no
// memory of its own. It must not be copied while it is watched.
type Watched struct {
	// Of is the subject. Its Expired is called when the span has passed, in a goroutine of its own
	// and at most once for each Begin.
	Of interface{ Expired() }

	prev, next *Watched // under the lock of the Watch; nil: not watched
	at         time.Time
}

// NewWatch returns a Watch for items of a span, which must be positive.
func NewWatch(span time.Duration) *Watch {
	w := &Watch{span: span}
	w.all.prev, w.all.next = &w.all, &w.all
	return w
}

// Begin watches an item that is not watched.
func (w *Watch) Begin(i *Watched) {
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

// End stops watching an item. It reports whether the item ended in time; if not, its Expired was
// called or will be.
func (w *Watch) End(i *Watched) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.removeLocked(i)
}

func (w *Watch) removeLocked(i *Watched) bool {
	if i.next == nil {
		return false
	}
	i.prev.next, i.next.prev = i.next, i.prev
	i.prev, i.next = nil, nil
	return true
}

// look reports the overdue items, and sets the timer for the next.
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
