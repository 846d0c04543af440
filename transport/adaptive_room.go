package transport

import (
	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
)

// room is how many requests for one model a host seems to handle at once.
type room struct {
	adaptive *limit.Adaptive // guarded by the Group
	limit    *paceline.Limit
	leaves   int // guarded by the Transport's lock
}

// enterLocked gives a way of a leaf its room. Ways to one server with different keys have it in common.
func (t *Transport) enterLocked(l *leaf, w *way) {
	host, model := w.server, w.on(l).Model
	r := host.rooms[model]
	w.room = r
	if l.inside(w) {
		return
	}
	if r == nil {
		a, err := limit.NewAdaptive(*t.config.Adaptive)
		if err != nil {
			panic("transport: " + err.Error()) // New has checked it
		}
		r = &room{adaptive: a,
			limit: t.group.Limit(paceline.LimitConfig{Limiter: a, Fair: t.config.Client != nil,
				Logger: t.waits(host)})}
		if host.rooms == nil {
			host.rooms = map[string]*room{}
		}
		host.rooms[model] = r
	}
	r.leaves++
	w.room = r
}

// inside reports whether a way before w has the room of w, too.
func (l *leaf) inside(w *way) bool {
	for k := range l.ways() {
		if v := l.by(k); v == w {
			break
		} else if v.room == w.room && w.room != nil {
			return true
		}
	}
	return false
}

func (l *leaf) leaveLocked() {
	for k := range l.ways() {
		w := l.by(k)
		if w.room == nil || l.inside(w) {
			continue
		}
		if w.room.leaves--; w.room.leaves == 0 {
			delete(w.server.rooms, w.on(l).Model)
		}
	}
}

// inRoom returns the outcome for a room. A refusal that names a limit is due to that limit, and
// fewer requests at once would not help.
func (s *sent) inRoom(o limit.Outcome) limit.Outcome {
	said := &s.verdict.Said
	o.RetryAfter = 0
	o.Elsewhere = o.Result == limit.Limited &&
		(len(said.Limits) > 0 || said.Refusal == provider.Banned || said.Refusal == provider.QuotaExhausted)
	return o
}

// most returns how many requests may be in flight in the room of a leaf.
func (t *Transport) most(l *leaf) (n int64) {
	if l.room != nil {
		t.group.Update(func(mono.Time) { n = l.room.adaptive.Most() })
	}
	return n
}
