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

// enterLocked returns the room of a leaf.
func (t *Transport) enterLocked(l *leaf) *room {
	host, model := l.server, l.partition.Model
	r := host.rooms[model]
	if r == nil {
		a, err := limit.NewAdaptive(*t.config.Adaptive)
		if err != nil {
			panic("transport: " + err.Error()) // New has checked it
		}
		r = &room{adaptive: a,
			limit: t.group.Limit(paceline.LimitConfig{Limiter: a, Fair: t.config.Client != nil,
				Logger: t.waits(&host.partition)})}
		if host.rooms == nil {
			host.rooms = map[string]*room{}
		}
		host.rooms[model] = r
	}
	r.leaves++
	return r
}

func (l *leaf) leaveLocked() {
	if l.room == nil {
		return
	}
	if l.room.leaves--; l.room.leaves == 0 {
		delete(l.server.rooms, l.partition.Model)
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
