package node

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// If all send as soon as they may, a window's requests go in one burst and are free again in one. A
// node that comes in between would have nothing for a window. So nodes with permanent demand take
// the last request only when the next will be free soon. Soon is as far ahead as they look, or
// twice the time between evenly spread requests. It is earlier by the time until a request counts.
// After some windows the bursts are spread so far that one request will always be free soon. Then
// this rule costs nothing.
//
// Nothing is kept free in three cases. Even requests are more than a poll apart, so none would be
// free soon all the same. All is free again within two polls. Requests are in flight for longer
// than that, so nobody knows what will be free soon.

// sparePart is the part of the limit up to which something is kept free where costs differ. Costs
// that are much of the limit would need too much.
const sparePart = 16

// spare is the cost that is kept free for newcomers.
type spare struct {
	one   limit.Cost
	parts []limit.Limiter
	until []mono.Time // for each part: a slot that is free by then is free soon
}

// spares finds the cost to keep free of each part of the limit.
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
			if even := each * float64(mean[u.Unit]); even > float64(t.config.Poll) ||
				each*float64(u.Allowed) <= float64(2*t.config.Poll) {
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

// presses reports whether the node has wanted more for some time. A newcomer has not, and takes
// what is kept free.
func (t *pending) presses() bool { return t.wanted && t.began.Sub(t.wantedFrom) > t.config.TTL }

// ready returns when a cost of an heir may go, if that leaves something free soon. yields means that the
// heir leaves a part free for others.
func (t *pending) ready(e *Entry, cost limit.Cost, s *spare, yields bool) mono.Time {
	at := t.readyOf(e, cost, yields)
	plus(&cost, &s.one)
	for i, part := range s.parts {
		// Never: there is no more than this.
		if next := part.Ready(t.now, cost); next > s.until[i] && next < limit.Never {
			return limit.AfterSettle
		}
	}
	return at
}
