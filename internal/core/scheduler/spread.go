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
	all, smallest, largest := *ahead, a.smallest, a.largest
	more(&all, t.uses())
	extend(t, &smallest, &largest)
	var few [8]float64
	parts, at := few[:0], now
	for range a.ways {
		parts = append(parts, 1/float64(len(a.ways)))
	}
	for range rounds {
		var first [len(all) + 1]mono.Time // of all ways: by number, then by the amount of each unit
		for i := range first {
			first[i] = limit.Never
		}
		last, sum := now, 0.0
		for i, w := range a.ways {
			goes := w.carries(now, n, parts[i], &all, &smallest, &largest, &first)
			parts[i] /= float64(goes) - float64(now) + 1
			sum += parts[i]
			last = max(last, goes)
		}
		for i := range parts {
			parts[i] /= sum
		}
		soonest := now
		for _, goes := range first {
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

// carries returns when the way can have carried its part of n + 1 tickets that use all together, and
// makes first include the instants of which that is the last.
func (w *Way) carries(now mono.Time, n int, part float64, all, smallest, largest *limit.Cost,
	first *[len(limit.Cost{}) + 1]mono.Time) (goes mono.Time) {
	k := int64(part * float64(n))
	var before limit.Cost
	for u, least := range smallest {
		before[u] = k * least
	}
	goes = w.notBefore(now, smallest, int(k), &before)
	first[0] = min(first[0], goes)
	for u, most := range largest {
		if most == smallest[u] {
			continue
		}
		before = limit.Cost{}
		if before[u] = int64(part*(1-1e-9)*float64(all[u])) - most; before[u] <= 0 {
			first[u+1] = now
			continue
		}
		at := w.notBefore(now, smallest, 1, &before)
		first[u+1] = min(first[u+1], at)
		goes = max(goes, at)
	}
	return goes
}

// notBefore returns an instant before which cost cannot go by the way, if n tickets with the least
// use ahead go by it before.
func (w *Way) notBefore(now mono.Time, cost *limit.Cost, n int, ahead *limit.Cost) mono.Time {
	at := now
	for _, m := range w.limits {
		at = max(at, m.notBefore(now, cost, n, ahead))
	}
	return at
}
