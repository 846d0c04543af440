package observe

import (
	"slices"
	"time"
)

// Kinds of Events.
const (
	EventRefused = "refused" // the server refused requests because of a limit
	EventPaused  = "paused"  // requests stay away because of that
	EventBanned  = "banned"  // a key, or an address, was refused for good or for long
	EventDenied  = "denied"  // each of several requests in a row is not permitted, with a key or with all of them
	EventDown    = "down"    // nothing arrives at a host, or at the store of a shared limit
	EventAlone   = "alone"   // the store of a shared limit is away, and a process goes on with its part
	EventSlow    = "slow"    // the answers of a host take longer than requests may wait
	EventBack    = "back"    // a paused, banned or down one is back
	EventWrong   = "wrong"   // a configured limit differs from the server's limit
)

// Event is something that happened. An immediate repetition is the same Event, with a larger Count.
type Event struct {
	// Number grows by one with every Event of its Source.
	Number int64 `json:"number"`
	// At is the first time that it happened, Last the latest.
	At   time.Time `json:"at"`
	Last time.Time `json:"last"`
	// Kind is one of the constants that begin with Event.
	Kind string `json:"kind"`
	Whose
	// Text is a sentence for people. It has a server's words only as far as they were understood.
	Text  string `json:"text"`
	Count int    `json:"count"`
}

const (
	// mostEvents is how many Events are kept.
	mostEvents = 256
	// sameEvent is the time in which a repetition is counted with the Event before it.
	sameEvent = time.Second
	// mostAgain is how many of the latest Events are compared with a new one.
	mostAgain = 8
)

// EventLog keeps the latest 256 Events of a Source. The zero value is ready. It has no lock of its
// own: the owner's lock guards it.
type EventLog struct {
	ring []Event
	next int // the next place to fill, when the ring is full
	n    int64
}

// Note adds an Event that happened at now. It fills in Number, At, Last and Count. An Event of the
// same Kind and Whose as one of the last second is counted with that one.
func (v *EventLog) Note(now time.Time, e Event) {
	for back := 1; back <= min(len(v.ring), mostAgain); back++ {
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

// All returns a copy of the Events, oldest first.
func (v *EventLog) All() []Event {
	return slices.Concat(v.ring[v.next:], v.ring[:v.next])
}
