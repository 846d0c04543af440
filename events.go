package paceline

import (
	"slices"
	"time"
)

const (
	// mostEvents is how many Events are kept.
	mostEvents = 256
	// sameEvent is the time after an Event within which the same thing, happening again, is counted with it.
	sameEvent = time.Second
)

// events keeps the latest Events, in a ring. It has no lock of its own: that of its owner guards it.
type events struct {
	ring []Event
	next int // where the next goes, when the ring is full
	n    int64
}

// note takes in an Event that happened at now, or counts it with the latest of its kind that is about the same.
func (v *events) note(now time.Time, e Event) {
	for back := 1; back <= min(len(v.ring), 8); back++ {
		last := &v.ring[(v.next-back+len(v.ring))%len(v.ring)]
		if last.Kind == e.Kind && last.Whose == e.Whose && now.Sub(last.Last) < sameEvent {
			last.Last, last.Text = now, e.Text
			last.Count++
			return
		}
	}
	v.n++
	e.Number, e.At, e.Last, e.Count = v.n, now, now, 1
	if len(v.ring) < mostEvents {
		v.ring = append(v.ring, e)
		return
	}
	v.ring[v.next] = e
	v.next = (v.next + 1) % mostEvents
}

// all returns a copy, oldest first.
func (v *events) all() []Event {
	return slices.Concat(v.ring[v.next:], v.ring[:v.next])
}
