package rate

import (
	"math"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Played is how many requests several limits let go together. Each limit alone lets more go: 20/10s
// and 4/s together let the 21st request go after 10 s and the 35th after 13 s, and neither limit alone
// needs longer than 10 s for these.
type Played struct {
	tops []top // in the order of time; not empty, unless no limit counts the requests
	// From the last top on, more requests go in each period. If periodic, all tops of the last period repeat.
	more     float64
	period   time.Duration
	periodic bool
	short    time.Duration // the shortest window
}

// top is the number of requests that may have gone at an instant after the start.
type top struct {
	at  time.Duration
	sum float64
}

// player is a limit while it is played. Its numbers are requests.
type player struct {
	Limit
	of     float64       // how much it holds
	speed  float64       // of a bucket, in requests a second
	level  float64       // of a bucket
	seen   time.Duration // when level was that
	gone   int           // of a window: how many tops have left it
	base   float64       // how many had gone when the interval of a zone began
	passed int64         // how many intervals of a zone have ended
	ends   time.Duration // of that interval
}

// mostTops bounds what is played. Behind it the slowest limit counts alone.
const mostTops = 1 << 17

// almost is the part of a request by which sums may differ, as they are rounded.
const almost = 1e-6

// Play plays limits together from a standing start at from, until n requests have gone and d has
// passed. Each request costs the average of cost, and goes at the first instant at which all limits
// let it go. rooms has the contents of the buckets at the start, in the order of limits; nil: they are
// full.
func Play(from time.Time, limits []Repeated, cost limit.Cost, rooms []int64, n float64, d time.Duration) *Played {
	p := &Played{short: longest}
	each := eachOf(cost)
	var all []*player
	slowest := -1
	for i, l := range limits {
		if each[l.Unit] <= 0 {
			continue
		}
		times := float64(l.Times) / each[l.Unit]
		one := &player{Limit: l.Limit, of: float64(l.Most()) * times, speed: l.Speed() * times, ends: longest}
		if one.level = one.of; rooms != nil {
			one.level = min(one.level, float64(rooms[i])/each[l.Unit])
		}
		if l.Zone != "" {
			one.ends = l.ends(from, 0).Sub(from)
		}
		if slowest < 0 || one.speed < all[slowest].speed {
			slowest = len(all)
		}
		all, p.short = append(all, one), min(p.short, l.Per)
	}
	if len(all) > 0 {
		p.play(from, all, all[slowest], n, d)
	}
	return p
}

// play fills in the tops. It ends early if they repeat.
func (p *Played) play(from time.Time, all []*player, slowest *player, n float64, d time.Duration) {
	p.period, p.more = slowest.Per, slowest.speed*slowest.Per.Seconds()
	widest := p.more
	for _, l := range all {
		widest = max(widest, l.of)
	}
	now, sum, other := time.Duration(0), 0.0, 0.0
	for {
		goes, next := math.Inf(1), longest
		for _, l := range all {
			goes = min(goes, l.room(p.tops, from, now, sum))
		}
		if goes > almost || len(p.tops) == 0 {
			sum += goes
			if !slowest.repeats(p.tops, now, goes) {
				other = sum
			}
			for _, l := range all {
				l.level -= goes
			}
			p.tops = append(p.tops, top{now, sum})
		}
		// What all limits let go after a whole width of the slowest limit alone depends on nothing before.
		p.periodic = sum-other > widest+almost
		if p.periodic || sum >= n-almost && now >= d || len(p.tops) >= mostTops {
			return
		}
		for _, l := range all {
			next = min(next, l.next(p.tops, now))
		}
		if next == longest {
			return
		}
		now = next
	}
}

// room is how many requests may go now.
func (l *player) room(tops []top, from time.Time, now time.Duration, sum float64) float64 {
	switch {
	case l.Bucket:
		l.level, l.seen = min(l.level+l.speed*(now-l.seen).Seconds(), max(l.of, l.level)), now
		one := min(1, l.of)
		return max(math.Floor(l.level/one+almost)*one, 0)
	case l.Zone != "":
		for now >= l.ends {
			l.passed++
			l.base, l.ends = sum, l.Limit.ends(from, l.passed).Sub(from)
		}
		return l.base + l.of - sum
	}
	for l.gone < len(tops) && tops[l.gone].at+l.Per <= now {
		l.gone++
	}
	return l.of - (sum - l.left(tops))
}

// left is how many requests have left a window.
func (l *player) left(tops []top) float64 {
	if l.gone == 0 {
		return 0
	}
	return tops[l.gone-1].sum
}

// repeats reports whether so many go as went a period ago, since this limit lets no more go.
func (l *player) repeats(tops []top, now time.Duration, goes float64) bool {
	switch {
	case l.Bucket:
		return len(tops) > 0 && l.level <= min(1, l.of)+almost
	case l.Zone != "" || l.gone == 0 || tops[l.gone-1].at+l.Per != now:
		return false
	}
	return l.of-(tops[len(tops)-1].sum-l.left(tops)) <= goes+almost
}

// next is when the limit may let more go than now.
func (l *player) next(tops []top, now time.Duration) time.Duration {
	switch {
	case l.Bucket:
		if lacks := min(1, l.of) - l.level; lacks > 0 {
			return later(now, max(Lasting(math.Ceil(lacks/l.speed*1e9)/1e9), 1))
		}
		return longest
	case l.Zone != "":
		return l.ends
	case l.gone < len(tops):
		return later(tops[l.gone].at, l.Per)
	}
	return longest
}

func later(at, d time.Duration) time.Duration { return at + min(d, longest-at) }

// Takes is how long n requests take, from the first to the last.
func (p *Played) Takes(n float64) time.Duration {
	if len(p.tops) == 0 {
		return 0
	}
	end, periods := p.tops[len(p.tops)-1], 0.0
	if over := n - end.sum; over > almost {
		if !p.periodic {
			return later(end.at, Lasting(over/p.more*p.period.Seconds()))
		}
		periods = math.Ceil((over - almost) / p.more)
	}
	n -= periods * p.more
	i := sort.Search(len(p.tops)-1, func(i int) bool { return p.tops[i].sum >= n-almost })
	return later(p.tops[i].at, Lasting(periods*p.period.Seconds()))
}

// Begun is how many requests may have gone after d.
func (p *Played) Begun(d time.Duration) float64 { sum, _ := p.around(d); return sum }

// Within is Begun as Limit.Within is of one limit: as if requests went evenly between two instants, so that a request a
// nanosecond early is no excess. While a run goes on, only whole steps count.
func (p *Played) Within(d time.Duration, goesOn bool) float64 {
	if goesOn {
		return p.Begun(max(d-time.Duration(unsure*float64(p.short)), 0))
	}
	_, evenly := p.around(d)
	return evenly
}

// around is how many requests may have gone after d, and how many if they go evenly between two tops.
func (p *Played) around(d time.Duration) (sum, evenly float64) {
	if len(p.tops) == 0 {
		return math.Inf(1), math.Inf(1)
	}
	last, before := len(p.tops)-1, 0.0
	if over := d - p.tops[last].at; over >= 0 {
		periods := over.Seconds() / p.period.Seconds()
		if !p.periodic {
			return p.tops[last].sum + p.more*math.Floor(periods), p.tops[last].sum + p.more*periods
		}
		periods = math.Floor(periods) + 1
		before, d = periods*p.more, d-time.Duration(periods)*p.period
	}
	i := sort.Search(last, func(i int) bool { return p.tops[i].at > d })
	a, b := p.tops[max(i-1, 0)], p.tops[i]
	sum = before + a.sum
	if b.at == a.at {
		return sum, sum
	}
	return sum, sum + (b.sum-a.sum)*float64(d-a.at)/float64(b.at-a.at)
}
