package run

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

const (
	paceSlots = 30
	// standstill is for how long requests may wait with none of them ending before the ETA is taken to be unknown.
	standstill = 10 * time.Second
)

// pace counts the requests that ended lately. The tally's lock stacks it.
type pace struct {
	slot  time.Duration // the length of a slot; the latest paceSlots slots are counted
	began time.Time
	last  time.Time // when the last request ended
	ends  [paceSlots + 1]int
	at    int64 // the latest slot up to which the ring is up to date
}

// begin starts the count. It looks back over 30 s, or further if a limit has a longer period: over twice that period its bursts even out.
func (p *pace) begin(now time.Time, limits []Rate) {
	span := paceSlots * time.Second
	for _, l := range limits {
		if l.Bucket {
			span = max(span, 2*l.Per/time.Duration(l.N))
		} else {
			span = max(span, 2*l.Per)
		}
	}
	*p = pace{slot: span / paceSlots, began: now, last: now}
}

func (p *pace) turn(now time.Time) {
	for n := int64(now.Sub(p.began) / p.slot); p.at < n; {
		p.at = max(p.at+1, n-paceSlots)
		p.ends[p.at%(paceSlots+1)] = 0
	}
}

func (p *pace) ended(now time.Time) {
	p.turn(now)
	p.ends[p.at%(paceSlots+1)]++
	p.last = now
}

// perSecond is how many requests ended per second within the latest slots that are over. It returns false until there are enough slots.
func (p *pace) perSecond(now time.Time) (float64, bool) {
	p.turn(now)
	n := 0
	for i, ends := range p.ends {
		if int64(i) != p.at%(paceSlots+1) {
			n += ends
		}
	}
	return float64(n) / (paceSlots * p.slot).Seconds(), p.at >= paceSlots
}

// rests is the longest time for which the limits, when they are kept, may let no request go.
func rests(limits []Rate) (d time.Duration) {
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
	from    time.Duration // how long until the key may be used; 0: it may be used now
	misfits []limit.Misfit
	shared  []*pool.Shared // what it counts in together with other keys
}

// serves returns the keys that are not banned and do not get one refusal after the other, in the order in which they may be used.
func (r *Run) serves(now mono.Time, d *pool.Dispatcher) (all []serving) {
	for i := range r.c.Keys {
		info := d.KeyInfo(now, i)
		if info.State == pool.KeyBanned || max(info.Refusals, info.Denials, info.Nonces) >= inARow {
			continue
		}
		s := serving{misfits: info.Misfits, shared: info.Shared}
		if info.State == pool.KeyCooling {
			s.from = max(info.Until.Sub(now), 0)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b serving) int { return int(a.from - b.from) })
	return all
}

// ofEach leaves one of the keys that have limits together.
func ofEach(keys []serving) (some []serving) {
	var seen []*pool.Shared
	for _, k := range keys {
		if !slices.ContainsFunc(k.shared, func(s *pool.Shared) bool { return slices.Contains(seen, s) }) {
			some, seen = append(some, k), append(seen, k.shared...)
		}
	}
	return some
}

// together is how long the keys take together for what one of them would take d for. Each key begins when it may be used.
func together(keys []serving, d time.Duration) (at time.Duration) {
	for n := range keys {
		d += keys[n].from
		at = d / time.Duration(n+1)
		if n+1 == len(keys) || at <= keys[n+1].from {
			break
		}
	}
	return at
}

// eta is how long the rest of the run takes; 0: not known. It is the longest of what the limits of the serving keys take and of what
// the answers take where Concurrency binds. If requests ended much more slowly of late, that pace counts instead. of has the serving
// keys of each group; waits names in a word what the next request waits for.
func (r *Run) eta(now time.Time, of [][]serving, waiting bool, waits string) time.Duration {
	t := &r.tally
	keys := of[0]
	for i := range of {
		if t.uses[i].remaining[limit.Requests] > 0 {
			keys = of[i]
		}
	}
	patience := standstill
	if isLimit(waits) {
		patience += rests(r.c.Limits)
	}
	if len(keys) == 0 || waiting && now.Sub(t.pace.last) > patience {
		return 0
	}
	n := &t.totals
	left := float64(n.toGo())
	longest := r.byAnswers(keys, left)
	for i := range of {
		if len(of[i]) == 0 {
			continue // no key serves this group, so nobody knows when it will end
		}
		longest = max(longest, r.groups[i].byLimits(now, of[i]))
	}
	const wellBelow = 2
	if rate, known := t.pace.perSecond(now); known && left > rate*longest.Seconds()*wellBelow {
		if rate == 0 {
			return 0
		}
		longest = time.Duration(left / rate * float64(time.Second))
	}
	return longest
}

// byAnswers is how long the rest takes if answers take as long as they did so far.
func (r *Run) byAnswers(keys []serving, left float64) time.Duration {
	n := r.tally.totals.Sends
	if n == 0 || left == 0 {
		return 0
	}
	flights := r.c.Concurrency
	if r.c.Gap == 0 && r.numbered {
		flights = min(flights, len(keys))
	}
	return keys[0].from + time.Duration(left/float64(flights)*float64(r.tally.busy)/float64(n))
}

// byLimits is how long the limits take to let the rest of the group go.
func (g *group) byLimits(now time.Time, keys []serving) (longest time.Duration) {
	r, t := g.r, &g.r.tally
	keys = ofEach(keys)
	u := &t.uses[g.index]
	for n, l := range g.limits {
		left := float64(max(u.remaining[limit.Requests], 0)) * u.each(l.Unit)
		if l.Bucket && !t.first.IsZero() {
			// What the bucket holds now can go at once, and takes no time.
			all := float64(r.quotas())
			room := min(float64(g.rooms[n])/all+l.Speed()*t.first.Sub(r.epoch).Seconds(), float64(l.Most()))
			room += l.Speed()*now.Sub(t.first).Seconds() - float64(u.spent[l.Unit])/all
			left = max(left-min(max(room, 0), float64(l.Most()))*float64(len(keys)), 0)
		}
		if left > 0 {
			longest = max(longest, together(keys, time.Duration(left/(l.Speed()*fits(l, keys))*float64(time.Second))))
		}
	}
	return longest
}

// fits is what part of a limit the keys can use, on average, where the limit proved too high.
func fits(l Rate, keys []serving) float64 {
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
