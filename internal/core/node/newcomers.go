package node

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Where all send as soon as they may, a window's requests go in one burst and are free again in one: whoever comes in between would have
// nothing for as long. So those who always want more take the last one only when the next will be free soon: as far ahead as they look, or twice the time
// between requests that are drawn out evenly, and by as much earlier as a request takes to count. After some windows bursts are drawn out so far that one
// always will be, and then that costs nothing.
//
// Nothing is kept free where even requests are more than a poll apart, as it would not be there soon all the same; nor where all is free again in two; nor
// where requests are in flight for longer than that, as nobody knows what will be free soon then.

// sparePart is of what part of the limit something is kept free where costs differ: beside some that are much of it, what fits them would be.
const sparePart = 16

// spare is what is kept free for who comes.
type spare struct {
	one   limit.Cost
	parts []limit.Limiter
	until []mono.Time // what is free by then is free soon, of each part
}

// spares finds out what is kept free of each part of the limit.
func (t *pending) spares(horizon mono.Time) (s spare) {
	if len(t.others) == 0 || !t.presses() || t.trip > 2*t.config.Poll {
		return s
	}
	mean := t.mean()
	s.one = t.large()
	for _, part := range limit.Parts(t.limiter) {
		for _, u := range limit.AppendUsage(nil, part, t.now) {
			if u.PerWindow == 0 || mean[u.Unit] == 0 {
				continue
			}
			each := float64(u.Window) / float64(u.PerWindow)
			if even := each * float64(mean[u.Unit]); even > float64(t.config.Poll) || each*float64(u.Allowed) <= float64(2*t.config.Poll) {
				continue
			}
			if one := s.one[u.Unit]; one == mean[u.Unit] || one <= u.Allowed/sparePart {
				s.parts = append(s.parts, part)
				s.until = append(s.until, max(horizon, t.now.Add(2*time.Duration(each*float64(s.one[u.Unit])))).Add(t.trip))
			}
		}
	}
	return s
}

// presses tells whether the node has wanted more for some time. Who comes does not, and takes what is kept free.
func (t *pending) presses() bool { return t.wanted && t.began.Sub(t.wantedFrom) > t.config.TTL }

// ready is when a cost may go, if that leaves something free soon.
func (t *pending) ready(cost limit.Cost, s *spare) mono.Time {
	at := t.limiter.Ready(t.now, cost)
	plus(&cost, &s.one)
	for i, part := range s.parts {
		if next := part.Ready(t.now, cost); next > s.until[i] && next < limit.Never { // never: there is no more than this
			return limit.AfterSettle
		}
	}
	return at
}
