package run

import (
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// standstill is how long requests may wait while none ends. After that the ETA is not known.
const standstill = 10 * time.Second

// rests returns the longest time for which kept limits may let no request go.
func rests(limits []format.Rate) (d time.Duration) {
	for _, l := range limits {
		if l.Bucket {
			d = max(d, l.Per/time.Duration(l.N))
		} else {
			d = max(d, l.Per)
		}
	}
	return d
}

// serving is a key that the ETA may count on.
type serving struct {
	from    time.Duration // time until the key may be used; 0: it may be used now
	misfits []limit.Misfit
	shared  []*pool.Shared // the limits that the key shares with other keys
}

// serves returns the keys that are neither banned nor refused again and again. They are in the
// order in which they may be used.
func (s *gauge) serves(now mono.Time, d *pool.Dispatcher) (all []serving) {
	for i := range s.c.Keys {
		info := d.KeyInfo(now, i)
		if info.State == pool.KeyBanned || max(info.Refusals, info.Denials, info.Nonces) >= telling.InARow {
			continue
		}
		one := serving{misfits: info.Misfits, shared: info.Shared}
		if info.State == pool.KeyCooling {
			one.from = max(info.Until.Sub(now), 0)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b serving) int { return int(a.from - b.from) })
	return all
}

// ofEach keeps one of the keys that share limits.
func ofEach(keys []serving) (some []serving) {
	var seen []*pool.Shared
	for _, k := range keys {
		if !slices.ContainsFunc(k.shared, func(s *pool.Shared) bool { return slices.Contains(seen, s) }) {
			some, seen = append(some, k), append(seen, k.shared...)
		}
	}
	return some
}

// together returns how long the keys need together for work that takes one key d. Each key begins
// when it may be used.
func together(keys []serving, d time.Duration) (at time.Duration) {
	for n := range keys {
		d += min(keys[n].from, math.MaxInt64-d)
		at = d / time.Duration(n+1)
		if n+1 == len(keys) || at <= keys[n+1].from {
			break
		}
	}
	return at
}

// eta returns how long the rest of the run takes; 0: not known. It is the longest of two times:
// what the limits of the serving keys need and, where Concurrency binds, what the answers need. If
// requests ended much more slowly of late, that pace counts instead. of has the serving keys of
// each group. waits names in a word the reason why the next request waits.
func (s *gauge) eta(now time.Time, of [][]serving, waiting bool, waits string) time.Duration {
	t := s.tally
	keys := of[0]
	for i := range of {
		if t.Uses[i].Remaining[limit.Requests] > 0 {
			keys = of[i]
		}
	}
	patience := standstill
	if isLimit(waits) {
		patience += rests(s.c.Limits)
	}
	if len(keys) == 0 || waiting && now.Sub(t.Pace.Last) > patience {
		return 0
	}
	n := &t.Totals
	left := float64(n.NotEnded())
	longest := s.byAnswers(keys, left)
	for i := range of {
		if len(of[i]) == 0 {
			continue // no key serves this group, so its end is not known
		}
		longest = max(longest, s.byLimits(s.groups[i], now, of[i]))
	}
	const wellBelow = 2
	if perSecond, known := t.Pace.PerSecond(now); known && left > perSecond*longest.Seconds()*wellBelow {
		if perSecond == 0 {
			return 0
		}
		longest = rate.Lasting(left / perSecond)
	}
	return longest
}

// byAnswers returns how long the rest takes if answers stay as slow as they were so far.
func (s *gauge) byAnswers(keys []serving, left float64) time.Duration {
	n := s.tally.Totals.Sends
	if n == 0 || left == 0 {
		return 0
	}
	flights := s.c.Concurrency
	if s.c.Gap == 0 && s.c.nonces {
		flights = min(flights, len(keys))
	}
	return rate.Lasting(keys[0].from.Seconds() + left/float64(flights)*s.tally.Busy.Seconds()/float64(n))
}

// byLimits returns how long the limits need for the rest of the group.
func (s *gauge) byLimits(g *group, now time.Time, keys []serving) (longest time.Duration) {
	t := s.tally
	keys = ofEach(keys)
	u := &t.Uses[g.index]
	for n, l := range g.limits {
		left := float64(max(u.Remaining[limit.Requests], 0)) * u.Each(l.Unit)
		if l.Bucket && !t.First.IsZero() {
			// The present content of the bucket can go at once, and takes no time.
			all := float64(s.quotas())
			room := min(float64(g.rooms[n])/all+l.Speed()*t.First.Sub(s.epoch).Seconds(), float64(l.Most()))
			room += l.Speed()*now.Sub(t.First).Seconds() - float64(u.Spent[l.Unit])/all
			left = max(left-min(max(room, 0), float64(l.Most()))*float64(len(keys)), 0)
		}
		if left > 0 {
			longest = max(longest, together(keys, rate.Lasting(left/(l.Speed()*fits(l, keys)))))
		}
	}
	return longest
}

// fits returns which part of a limit the keys can use, on average, if the limit proved too high.
func fits(l format.Rate, keys []serving) float64 {
	sum := 0.0
	for _, k := range keys {
		part := 1.0
		for _, m := range k.misfits {
			if m.N == l.N && m.Per == l.Per && m.Unit == l.Unit {
				part = float64(m.Fits) / float64(m.N) * float64(m.Per) / float64(max(m.Per, m.Gap))
			}
		}
		sum += part
	}
	return sum / float64(len(keys))
}
