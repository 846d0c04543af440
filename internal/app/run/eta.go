package run

import (
	"cmp"
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

// each returns the limits, those of resources, and those of servers.
func (c *Config) each() []format.Rate {
	all := slices.Clone(c.Limits)
	for _, l := range c.Resources {
		all = append(all, l.Rate)
	}
	for _, s := range c.Servers {
		for _, l := range s.Limits {
			all = append(all, l.Limit)
		}
	}
	return all
}

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
	key     int
	from    time.Duration // time until the key may be used; 0: it may be used now
	misfits []limit.Misfit
	shared  []*pool.Shared // the limits that the key shares with other keys
}

// serves returns the keys that are neither banned nor refused again and again. They are in the
// order in which they may be used.
func (s *gauge) serves(now mono.Time, d *pool.Dispatcher) (all []serving) {
	for i := range s.c.Keys {
		info := d.KeyInfo(now, i)
		endless := info.Rests && info.Until >= limit.AfterSettle
		if info.Banned() || endless || max(info.Refusals, info.Denials, info.Nonces) >= telling.InARow {
			continue
		}
		one := serving{key: i, misfits: info.Misfits, shared: info.Shared}
		if info.Cooling() {
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
// windows is the time that limits with windows need, as far as their limiters can say.
func (s *gauge) eta(now time.Time, of [][]serving, waiting bool, waits string, attempts float64, windows time.Duration) time.Duration {
	t := s.tally
	keys := of[0]
	for i := range of {
		if t.Uses[i].Remaining[limit.Requests] > 0 {
			keys = of[i]
		}
	}
	patience := standstill
	if isLimit(waits) || len(s.c.Servers) > 0 {
		patience += rests(s.c.each())
	}
	if len(keys) == 0 || waiting && now.Sub(t.Pace.Last) > patience {
		return 0
	}
	n := &t.Totals
	left := float64(n.NotEnded())
	const wellBelow = 2
	longest := s.byAnswers(keys, left*attempts)
	// evenly is as if windows had no beginnings: the pace counts over several of them.
	evenly := max(longest, s.evenlyAtServers(left*attempts))
	longest = max(longest, windows)
	for name, rest := range t.Resources {
		for _, l := range s.c.Resources {
			if l.Resource.Match(name) {
				d := rate.Lasting(float64(rest[l.Unit]) * attempts / l.Part(s.c.Use).Speed())
				evenly = max(evenly, together(ofEach(keys), d))
			}
		}
	}
	for i := range of {
		if len(of[i]) == 0 {
			continue // no key serves this group, so its end is not known
		}
		slow, all := s.byLimits(s.groups[i], now, of[i], attempts)
		longest, evenly = max(longest, slow), max(evenly, all)
	}
	if perSecond, known := t.Pace.PerSecond(now); known && left > perSecond*evenly.Seconds()*wellBelow {
		if perSecond == 0 {
			return 0
		}
		longest = rate.Lasting(left / perSecond)
	}
	return longest
}

// atServers returns how long limits need together for the rest, until its last answer: those of
// Config.Servers, or those of each group that has several. of has the serving keys of each group. What
// has ended was in their windows since the first send. What is in flight may wait there, and is a part
// of the rest.
func (s *gauge) atServers(now time.Time, attempts float64, of [][]serving) (longest time.Duration) {
	first := s.tally.First
	if first.IsZero() {
		first = now
	}
	for i := range s.groups {
		servers := s.servers()
		if len(servers) == 0 {
			servers = s.severalOf(s.groups[i], ofEach(of[i]))
		}
		u := &s.tally.Uses[i]
		if len(servers) == 0 || u.Remaining[limit.Requests] <= 0 {
			continue
		}
		all := s.costOf(i, float64(u.Spent[limit.Requests])+float64(u.Remaining[limit.Requests])*attempts)
		d, _ := rate.AtServers(first, all, servers)
		longest = max(longest, d+rate.Lasting(s.tally.Took.Seconds())-now.Sub(first))
	}
	return longest
}

// severalOf are the limits of a group as those of a server, if they are several and all keys may use them wholly.
func (s *gauge) severalOf(g *group, keys []serving) []rate.Server {
	limits := slices.Clone(g.limits())
	if len(limits) < 2 || len(keys) == 0 || len(s.tally.Resources) > 0 {
		return nil
	}
	for i, l := range limits {
		if l.Bucket || !s.isWindowed(l, keys) { // what a bucket had at the beginning is not known
			return nil
		}
		limits[i] = l.Part(s.c.Use)
	}
	return []rate.Server{{Limits: s.untilAnswered(rate.Repeat(limits, len(keys)))}}
}

// evenlyAtServers is atServers as if windows had no beginnings.
func (s *gauge) evenlyAtServers(left float64) time.Duration {
	if len(s.c.Servers) == 0 {
		return 0
	}
	return rate.Lasting(left / rate.SpeedAtServers(s.costOf(0, 1000), s.servers()))
}

// servers are Config.Servers with the time of an answer in each window.
func (s *gauge) servers() []rate.Server {
	all := slices.Clone(s.c.Servers)
	for i := range all {
		all[i].Limits = s.untilAnswered(slices.Clone(all[i].Limits))
	}
	return all
}

// untilAnswered adds the time of an answer to each window: a request counts from its send until a
// window after its answer.
func (s *gauge) untilAnswered(limits []rate.Repeated) []rate.Repeated {
	took := cmp.Or(s.c.Arrivals.OneWayMax, rate.Lasting(s.tally.Took.Seconds()))
	for n := range limits {
		if l := &limits[n]; !l.Bucket && l.Zone == "" {
			l.Per += took
		}
	}
	return limits
}

// costOf is the cost of so many average requests of a group.
func (s *gauge) costOf(group int, requests float64) (cost limit.Cost) {
	for u := range cost {
		cost[u] = int64(math.Ceil(requests * s.tally.Uses[group].Each(limit.Unit(u))))
	}
	return cost
}

// byAnswers returns how long the rest takes if answers stay as slow as they were so far.
func (s *gauge) byAnswers(keys []serving, left float64) time.Duration {
	if s.tally.Totals.Sends == 0 || left == 0 {
		return 0
	}
	flights := s.flights.Most()
	if s.c.Gap == 0 && s.c.nonces {
		flights = min(flights, len(keys))
	}
	return rate.Lasting(keys[0].from.Seconds() + left/float64(flights)*s.tally.Took.Seconds())
}

// units returns how much of a limit the rest of a group takes. With apart, resources have no part in it.
func (s *gauge) units(g *group, l format.Rate, attempts float64) float64 {
	u := &s.tally.Uses[g.index]
	rest := u.Remaining[limit.Requests]
	for _, of := range s.tally.Resources {
		if g.apart {
			rest -= of[limit.Requests]
		}
	}
	return float64(max(rest, 0)) * u.Each(l.Unit) * attempts
}

// isWindowed reports whether a group's rest can be counted in windows: each key has its own, and all may go now.
func (s *gauge) isWindowed(l format.Rate, keys []serving) bool {
	return !l.Bucket && l.Zone == "" && len(keys) > 0 && !slices.ContainsFunc(keys, func(k serving) bool {
		return k.from > 0 || len(k.misfits) > 0 || len(k.shared) > 0
	})
}

// byWindows returns how long a limit needs for so many units at one key, of which each slot lasts for span. The last
// of them goes so many windows after one that may go in the present window, which ready knows. What is not used of
// whole is asked for, as by limit.Headroom.
func (s *gauge) byWindows(now mono.Time, ready func(limit.Cost) mono.Time, whole format.Rate, units float64,
	span time.Duration) time.Duration {
	l := whole.Part(s.c.Use)
	last := int64(math.Ceil(units)) - 1
	if last < 0 {
		return 0
	}
	var cost limit.Cost
	cost[l.Unit] = last%l.N + 1 + whole.N - l.N
	at, windows := ready(cost), time.Duration(last/l.N)
	switch at {
	case limit.Never:
		return 0
	case limit.AfterSettle:
		at = now.Add(span)
	}
	return max(at.Sub(now), 0) + windows*span
}

// byResources returns how long the limits of resources need, at keys of which each has them.
func (s *gauge) byResources(now mono.Time, d *pool.Dispatcher, keys []serving, rest map[string]limit.Cost, attempts float64,
	took time.Duration) (longest time.Duration) {
	for name, of := range rest {
		for _, whole := range s.c.Resources {
			if len(keys) == 0 || !whole.Resource.Match(name) {
				continue
			}
			l, span := whole.Part(s.c.Use), whole.Per+took
			units := float64(of[l.Unit]) * attempts / float64(len(keys))
			if l.Bucket || l.Zone != "" { // a bucket counts as empty, and the day of a zone as new
				longest = max(longest, l.Takes(s.epoch.Add(time.Duration(now)), int64(math.Ceil(units)), 1, 0))
				continue
			}
			ready := func(cost limit.Cost) mono.Time {
				at, _ := d.ExplainRequest(now, keys[0].key, &pool.Request{Resource: name, Cost: cost})
				return at
			}
			longest = max(longest, s.byWindows(now, ready, whole.Rate, units, span))
		}
	}
	return longest
}

// byLimits returns how long the limits need for the rest of the group: those for which byWindows knows nothing better,
// and all of them.
func (s *gauge) byLimits(g *group, now time.Time, keys []serving, attempts float64) (some, all time.Duration) {
	t := s.tally
	keys = ofEach(keys)
	u := &t.Uses[g.index]
	for n, whole := range g.limits() {
		l := whole.Part(s.c.Use)
		left := s.units(g, l, attempts)
		if l.Bucket && !t.First.IsZero() {
			// The present content of the bucket can go at once, and takes no time.
			all := float64(s.quotas())
			room := min(float64(g.rooms[n])/all+l.Speed()*t.First.Sub(s.epoch).Seconds(), float64(l.Most()))
			room += l.Speed()*now.Sub(t.First).Seconds() - float64(u.Spent[l.Unit])/all
			left = max(left-min(max(room, 0), float64(l.Most()))*float64(len(keys)), 0)
		}
		if left <= 0 {
			continue
		}
		d := together(keys, rate.Lasting(left/(l.Speed()*fits(whole, keys))))
		if all = max(all, d); !s.isWindowed(whole, keys) {
			some = max(some, d)
		}
	}
	return some, all
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
