package ledger

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// Where all send as soon as they may, a window's requests go in one burst and are free again in one: whoever comes in between would have
// nothing for as long. So those who are there take the last one only when the next will be free soon: as far ahead as they look, or twice the time
// between requests that are drawn out evenly. After some windows bursts are drawn out so far that one always will be, and then that costs nothing.
// Nothing is kept free where even requests are more than a poll apart, as it would not be there soon all the same, nor where all is free again in two.

// spare is what is kept free for who comes.
type spare struct {
	one   limit.Cost
	parts []limit.Limiter
	until []mono.Time // what is free by then is free soon, of each part
}

func (t *pending) spares(horizon mono.Time) (s spare) {
	if len(t.others) == 0 {
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
			if each*float64(mean[u.Unit]) <= float64(t.config.Poll) && each*float64(u.Allowed) > float64(2*t.config.Poll) {
				s.parts = append(s.parts, part)
				s.until = append(s.until, max(horizon, t.now.Add(2*time.Duration(each*float64(s.one[u.Unit])))))
			}
		}
	}
	return s
}

// comes tells whether the node takes what is kept free: it has sent nothing for as long as anything counts.
func (t *pending) comes() bool {
	return t.lastUse == mono.Min || t.last.Sub(t.lastUse) >= t.config.TTL+t.limiter.Span()
}

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
