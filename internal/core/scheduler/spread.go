package scheduler

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// rounds is how often spread divides the tickets among the ways. TestAskOfKeysIsTight needs three.
const rounds = 4

// surelyBefore returns how many of n tickets before another one in the lane surely go before it, and
// takes what the others use off ahead, their least use. With Fill, so many may end up behind it.
func (a *Lane) surelyBefore(n int, ahead *limit.Cost) int {
	fill := int64(a.fill)
	for u := range ahead {
		if most := a.largest[u]; most > 0 && ahead[u]/most < fill {
			ahead[u] = 0
		} else {
			ahead[u] -= fill * most
		}
	}
	return max(n-int(fill), 0)
}

// spread returns an instant before which t cannot go behind n tickets with the least use ahead,
// whichever ways they go. t is the last of these n + 1.
//
// Let each way w have a number k(w), where the sum of all k(w) is at most n. Then some way carries
// k(w) + 1 or more of the tickets, since otherwise all ways carry n at most. So t goes no sooner than
// this ticket of this way can go, behind k(w) others that each use at least the smallest cost. The
// least instant of all ways is a bound for any k. The same holds for an amount of each unit. There,
// the ticket that makes the amount full may be the largest.
//
// The bound is largest if all ways are done at one time. So each round gives each way a part by the
// time that it took for its part of the round before.
func (l *Scheduler) spread(now mono.Time, a *Lane, t *Ticket, n int, ahead *limit.Cost) mono.Time {
	s := &l.spreads
	s.all, s.smallest, s.largest = *ahead, a.smallest, a.largest
	more(&s.all, t.uses())
	extend(t, &s.smallest, &s.largest)
	s.parts = s.parts[:0]
	for range a.ways {
		s.parts = append(s.parts, 1/float64(len(a.ways)))
	}
	at := now
	for range rounds {
		for i := range s.first {
			s.first[i] = limit.Never
		}
		last, sum := now, 0.0
		for i, w := range a.ways {
			goes := s.carries(now, w, n, s.parts[i])
			s.parts[i] /= float64(goes) - float64(now) + 1
			sum += s.parts[i]
			last = max(last, goes)
		}
		for i := range s.parts {
			s.parts[i] /= sum
		}
		soonest := now
		for _, goes := range s.first {
			if goes < limit.Never {
				soonest = max(soonest, goes)
			}
		}
		at = max(at, soonest)
		if last-soonest <= (soonest-now)/32 {
			break
		}
	}
	return at
}

// spreading is the memory of spread. On the stack of each request in line it would be too much.
type spreading struct {
	parts                                  []float64                        // of each way; 1 in all
	first                                  [len(limit.Cost{}) + 1]mono.Time // of all ways: by number, then by the amount of each unit
	ahead, all, smallest, largest, carried limit.Cost
}

// carries returns when the way can have carried its part of n + 1 tickets that use s.all together, and
// makes s.first include the instants of which that is the last.
func (s *spreading) carries(now mono.Time, w *Way, n int, part float64) (goes mono.Time) {
	k := int64(part * float64(n))
	for u, least := range s.smallest {
		s.carried[u] = k * least
	}
	goes = notBefore(now, w.limits, &s.smallest, int(k), &s.carried)
	s.first[0] = min(s.first[0], goes)
	for u, most := range s.largest {
		if most == s.smallest[u] {
			continue
		}
		s.carried = limit.Cost{}
		if s.carried[u] = int64(part*(1-1e-9)*float64(s.all[u])) - most; s.carried[u] <= 0 {
			s.first[u+1] = now
			continue
		}
		at := notBefore(now, w.limits, &s.smallest, 1, &s.carried)
		s.first[u+1] = min(s.first[u+1], at)
		goes = max(goes, at)
	}
	return goes
}

// notBefore returns an instant before which cost cannot go at all of the limits, if n tickets
// with the least use ahead go there before.
func notBefore(now mono.Time, limits []*Limit, cost *limit.Cost, n int, ahead *limit.Cost) mono.Time {
	at := now
	for _, m := range limits {
		some := *ahead
		less(&some, &m.spare)
		at = max(at, limit.NotBefore(m.Limiter, now, n, some, *cost))
	}
	return at
}
