package run

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// gauge computes how far a run is, and how much its limits allow. It is made with the groups. Methods
// that read the tally are called with its lock held.
type gauge struct {
	c             *Config
	tally         *tally.Tally
	groups        pools
	flights       *sending.Flights
	organizations *organizations
	epoch         time.Time
}

// quotas returns how many times over the keys have the limits, as far as that is known.
func (s *gauge) quotas() int {
	n, _ := s.organizations.count()
	return n
}

// ceiling returns how many requests per second the limits of all keys allow; 0: there is no limit.
// If lines of the input have a cost, it is the cost per second. Limits of tokens are converted by
// the average usage of a request.
//
// For d above 0 it is the average over the first d of the run, with buckets full at the start, as
// in percent. For d of 0 it is the rate in the long run.
func (s *gauge) ceiling(d time.Duration, goesOn bool) float64 {
	least := s.allowed(d, goesOn)
	if ordered := s.tally.Figures.InOrder(); ordered > 0 {
		least = min(least, ordered)
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// allowed is ceiling without the order of nonces. It is infinite if there is no limit.
func (s *gauge) allowed(d time.Duration, goesOn bool) (sum float64) {
	for i := range s.groups {
		sum += s.ceilingOf(s.groups[i], d, goesOn)
	}
	return sum
}

// ceilingOf is ceiling for one group. It is infinite if there is no limit.
func (s *gauge) ceilingOf(g *group, d time.Duration, goesOn bool) float64 {
	u, least := &s.tally.Uses[g.index], math.Inf(1)
	for n, l := range g.limits() {
		each, allowed := u.Each(l.Unit), l.Speed()
		if d > 0 {
			each, allowed = u.SentEach(l.Unit), g.within(n, s.tally.First, d, goesOn)/d.Seconds()
		}
		if each > 0 {
			least = min(least, allowed/each)
		}
	}
	if d > 0 {
		least = min(least, g.together(u.Spent, s.tally.First, d, goesOn)/d.Seconds())
	}
	return least * float64(s.quotas())
}

// percent returns the cost that was sent within d, in percent of the most that the limits allow in
// that time. It is the percentage of the most used limit.
func (s *gauge) percent(d time.Duration, goesOn bool) float64 {
	p := s.ofLimits(d, goesOn)
	if ordered := s.tally.Figures.InOrder(); ordered > 0 {
		p = max(p, 100*float64(s.tally.Uses[0].Spent[limit.Requests])/(ordered*d.Seconds()))
	}
	if goesOn {
		return min(p, 100)
	}
	return p
}

// ofLimits is percent without the order of nonces.
func (s *gauge) ofLimits(d time.Duration, goesOn bool) (p float64) {
	for i, g := range s.groups {
		for n, l := range g.limits() {
			most := g.within(n, s.tally.First, d, goesOn) * float64(s.quotas())
			p = max(p, 100*float64(s.tally.Uses[i].Spent[l.Unit])/most)
		}
		if spent := s.tally.Uses[i].Spent; spent[limit.Requests] > 0 {
			most := g.together(spent, s.tally.First, d, goesOn) * float64(s.quotas())
			p = max(p, 100*float64(spent[limit.Requests])/most)
		}
	}
	return p
}

// Progress is the state of a run while it goes on.
type Progress struct {
	tally.Totals
	Total    int  // requests of the input to send; 0: not known
	Paged    bool // further pages may follow, which neither Total nor ETA has
	ToGo     int  // requests that have not ended; if Total is not known, of those read
	InFlight int
	Waiting  int             // requests that were read and not sent
	ETA      time.Duration   // 0: not known, or no request ends
	Lasting  float64         // requests that end per second, as the line shows them
	Allowed  float64         // requests per second that the limits allow in the long run; 0: no limit
	Why      string          // why the next request waits; empty: it does not
	WaitLeft time.Duration   // how long it will wait; 0: not known
	Down     []string        // of each host that is down: the outage, its duration and the reason
	Lately   []tally.Failure // the attempts that failed in the last minute
	Limits   []string        // those of a key now: see Run.Limits
}

// Ended returns how many requests of the input were done and how many have ended, in this run or in one before, of how
// many. With further pages it counts lines: each line that has not ended has one page that has not.
func (p *Progress) Ended() (done, ended, of int) {
	of = p.Input - p.Pages
	ended = of - p.NotEnded()
	return ended - p.Dead - p.Expired - p.SkippedDead - p.SkippedExpired, ended, of
}

// Progress returns how far the run is.
func (r *Run) Progress() Progress {
	p := r.gauge.progress()
	r.polls.progress(&p.Totals)
	p.Limits = r.Limits()
	return p
}

func (s *gauge) progress() Progress {
	p := Progress{Paged: s.c.Next != nil}
	short, most, keys := "", -1, make([][]serving, len(s.groups))
	var least time.Duration // no request goes sooner
	for i, g := range s.groups {
		g.pool.Update(func(now mono.Time, q *pool.Queue, d *pool.Dispatcher) {
			c := q.Counts()
			p.InFlight, p.Waiting = p.InFlight+c.InFlight, p.Waiting+c.Waiting
			if c.Waiting > most { // the reason of the group with the most waiting requests is shown
				most = c.Waiting
				var next mono.Time
				next, short, p.Why = g.why(now, q, d)
				least = max(next.Sub(now), 0)
				p.WaitLeft = least
			}
			if i == 0 { // one group is enough: all groups send to the same hosts
				for _, h := range d.Down(now) {
					p.Down = append(p.Down,
						fmt.Sprintf("%s %s for %v: %s", outageOf(&h), called(h.Host), now.Sub(h.Since).Round(time.Second), inWords(&h)))
				}
			}
			keys[i] = s.serves(now, d)
		})
	}
	p.InFlight = min(p.InFlight, s.flights.Most())
	windows := s.windows(keys, p.InFlight)
	s.tally.Mu.Lock()
	defer s.tally.Mu.Unlock()
	p.Totals = s.tally.Totals
	if !s.tally.First.IsZero() {
		d := time.Since(s.tally.First)
		p.Seconds = d.Seconds()
		p.Rate = float64(p.Done) / p.Seconds
		p.Ceiling, p.Sustained, p.Percent = s.ceiling(d, true), s.ceiling(0, true), s.percent(d, true)
		if allowed := s.allowed(0, true); !math.IsInf(allowed, 1) {
			p.Allowed = allowed / s.tally.CostOfOne()
		}
		if all := rate.SpeedAtServers(s.costOf(0, 1000), s.c.Servers); !math.IsInf(all, 1) && all > 0 {
			p.Allowed = all
		}
		p.Lasting = s.tally.Pace.ForPeople(time.Now(), s.tally.First, p.Done)
		p.Latency = s.tally.Figures.All()
	}
	p.Lately = s.tally.Failed.Lately(time.Now())
	p.ToGo = p.NotEnded()
	if s.tally.Checked {
		p.Total = p.Input - p.Before()
		windows = max(windows, s.atServers(time.Now(), s.tally.Attempts(p.InFlight), keys))
		p.ETA = s.eta(time.Now(), keys, p.Waiting > 0, short, s.tally.Attempts(p.InFlight), windows)
		if p.ETA > 0 && len(s.groups) == 1 {
			p.ETA = max(p.ETA, least)
		}
	}
	return p
}

// windows returns how long the limits with windows need for the rest. Their limiters belong to the pools, and the rest
// to the tally, so one is asked after the other.
func (s *gauge) windows(of [][]serving, inFlight int) (longest time.Duration) {
	rest := make([][]float64, len(s.groups))
	s.tally.Mu.Lock()
	attempts, took := s.tally.Attempts(inFlight), rate.Lasting(s.tally.Took.Seconds())
	resources := maps.Clone(s.tally.Resources)
	for i, g := range s.groups {
		for _, l := range g.limits() {
			flying := float64(inFlight) * s.tally.Uses[i].Each(l.Unit) / float64(len(s.groups)) // they have their place
			rest[i] = append(rest[i], max(s.units(g, l, attempts)-flying, 0))
		}
	}
	s.tally.Mu.Unlock()
	if s.c.Arrivals.OneWayMax > 0 {
		took = s.c.Arrivals.OneWayMax
	}
	for i, g := range s.groups {
		keys := ofEach(of[i])
		g.pool.Update(func(now mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
			for n, l := range g.limits() {
				if s.isWindowed(l, keys) { // a request counts from its send until a window after its answer
					ready := func(cost limit.Cost) mono.Time {
						if s.c.Share != nil { // the limiter of this process knows nothing of the others
							return g.room(now, keys[0].key, "", cost)
						}
						return g.of[keys[0].key].limiters[n].Ready(now, cost)
					}
					longest = max(longest, s.byWindows(now, ready, l, rest[i][n]/float64(len(keys)), l.Per+took))
				}
			}
			longest = max(longest, s.byResources(now, d, keys, resources, attempts, took))
		})
	}
	return longest
}

// limitOf and sharedLimit begin the reason of a wait for a limit. nonceOrder is the reason while a key has a request in
// flight.
const limitOf, sharedLimit, nonceOrder = "limit ", "the shared limit ", "nonce order"

func isLimit(waits string) bool {
	return strings.HasPrefix(waits, limitOf) || strings.HasPrefix(waits, sharedLimit)
}

// room returns when the shared limit of a key, or that of a resource, has room for a cost.
func (g *group) room(now mono.Time, key int, resource string, cost limit.Cost) mono.Time {
	var l limit.Limiter = g.of[key].fitted
	if one := g.of[key].joined[resource]; one != nil {
		l = one
	}
	at := now
	limit.Ask(l, func(m interface {
		Room(now mono.Time, cost limit.Cost) mono.Time
	}) {
		at = max(at, m.Room(now, cost))
	})
	return at
}

// why returns why the next request of the group waits: short in a word or two, and text for people.
// at is the end of the wait, or now if that is not known.
func (g *group) why(now mono.Time, q *pool.Queue, d *pool.Dispatcher) (at mono.Time, short, text string) {
	r := g.r
	c := q.Counts()
	if c.Waiting == 0 {
		if c.InFlight > 0 {
			return now, "", "answers"
		}
		return now, "", "input"
	}
	if r.tokens != nil && r.tokens.Waits() {
		return now, "token", "a token that is accepted"
	}
	if most := r.flights.Most(); c.InFlight >= most {
		if n := r.sender.InLine(); n > 0 { // more of them in flight would only make its line longer
			return now, "proxy", fmt.Sprintf("paceline proxy, in whose line %d of them are", n)
		}
		return now, "concurrency", r.flights.Reason(c.InFlight)
	}
	_, head, ok := q.Head(now)
	if !ok {
		if down := d.Down(now); len(down) > 0 {
			at, text := probe(down)
			return max(at, now), "outage of " + called(down[0].Host), text
		}
		wake, _ := q.Wake(now)
		return min(wake, now.Add(r.c.Backoff.Max)), "backoff",
			"the next attempt of a request that failed"
	}
	best := limit.Never
	short, text = "ban", "a key that is not banned"
	for i := range g.of {
		info := d.KeyInfo(now, i)
		if info.Banned() {
			continue
		}
		if at, s, t := g.whyKey(now, d, i, &info, head); at < best || best == limit.Never {
			best, short, text = at, s, t
		}
	}
	if best >= limit.AfterSettle {
		best = now
	}
	return best, short, text
}

// whyKey returns when a key may send a request, and why it waits until then.
func (g *group) whyKey(now mono.Time, d *pool.Dispatcher, key int, info *pool.KeyInfo, head *pool.Request) (at mono.Time,
	short, text string) {
	r := g.r
	at = now
	if info.Rests {
		return max(at, info.Until), "rest", restText(info, g.r.c.keyless)
	}
	if info.Cooling() {
		whose := " of key " + info.Name
		if at, short = info.Until, "pause of "+info.Name; r.c.keyless {
			short, whose = "pause", ""
		}
		if text = "the pause" + whose + " that the server asked for"; info.Guessed {
			text = "the next test" + whose + ", since it was refused"
			if r.c.keyless {
				text = "the next test of the server, which refuses"
			}
		}
	}
	for n, l := range g.of[key].limiters {
		if t := l.Ready(now, head.Cost); t > at && (head.Resource == "" || !g.apart) {
			at, short = t, limitOf+g.limits()[n].Text
			if text = short; !r.c.keyless {
				text = fmt.Sprintf("%s of key %s", short, info.Name)
			}
		}
	}
	if at <= now {
		at, short = g.bound(now, d, key, head)
		if text = short; !r.c.keyless {
			text = fmt.Sprintf("%s of key %s", short, info.Name)
		}
	}
	retreats := func(of limit.Retreat) bool { return of.Until == at }
	switch {
	case at <= now:
		return at, "", ""
	case short == nonceOrder && slices.ContainsFunc(info.Retreats, retreats): // an answer lets the next one go sooner
		return limit.AfterSettle, short, text
	case at == limit.AfterSettle && strings.HasPrefix(short, sharedLimit):
		return at, short, text + ", until the next transaction with its store"
	case at == limit.AfterSettle && short != nonceOrder:
		return at, short, text + ", until an answer comes"
	}
	return at, short, text
}

// bound returns why a key waits, if that is neither a limit of the user nor a pause.
func (g *group) bound(now mono.Time, d *pool.Dispatcher, key int, head *pool.Request) (at mono.Time, short string) {
	at, b := d.ExplainRequest(now, key, head)
	if g.r.c.Share != nil && (b.Name == g.sharedName(key, "") || b.Name == g.sharedName(key, head.Resource)) {
		if room := g.room(now, key, head.Resource, head.Cost); at == limit.AfterSettle && room > now {
			at = room
		}
		return at, sharedLimit + b.Name
	}
	if head.Resource != "" {
		return at, limitOf + "of " + head.Resource
	}
	switch b.Name {
	case "hint":
		return at, "what is left"
	case "trial":
		return at, "the first answer"
	case "beginning":
		return at, "slow beginning"
	case "spacing":
		return at, "nonce gap"
	case nonceOrder, "sequence":
		return at, nonceOrder
	}
	return at, "what fits" // the dispatcher keeps a lower rate, since a limit proved too high
}

// ceilingEvery is the time between two looks at the ceiling, in the shortest times between two looks
// of watch. A look at all keys costs more than a look at the head of the queue.
const ceilingEvery = 25

// ceilings keeps the last ceiling that was computed. The zero value has none. Safe for concurrent
// use.
type ceilings struct{ bits atomic.Uint64 }

func (c *ceilings) note(perSecond float64) { c.bits.Store(math.Float64bits(perSecond)) }

func (c *ceilings) now() float64 { return math.Float64frombits(c.bits.Load()) }

// sustained returns how many requests per second the limits allow from now on in the long run. It
// counts the keys that serve, and for a wrong limit the rate that proved to fit. It is 0 without a
// limit, or if no key serves.
func (s *gauge) sustained() float64 {
	of := make([][]serving, len(s.groups))
	for i, g := range s.groups {
		g.pool.Update(func(now mono.Time, _ *pool.Queue, d *pool.Dispatcher) { of[i] = ofEach(s.serves(now, d)) })
	}
	s.tally.Mu.Lock()
	defer s.tally.Mu.Unlock()
	all := 0.0
	for i, g := range s.groups {
		least := math.Inf(1)
		for _, l := range g.limits() {
			if each := s.tally.Uses[i].Each(l.Unit); each > 0 {
				least = min(least, l.Speed()*fits(l, of[i])/each)
			}
		}
		if len(of[i]) > 0 {
			all += least * float64(len(of[i]))
		}
	}
	if ordered := s.tally.Figures.InOrder(); ordered > 0 {
		all = min(all, ordered)
	}
	all /= s.tally.CostOfOne()     // limits count cost
	const digits, most = 1e6, 1e12 // so that it needs no exponent
	if all > most {
		return 0
	}
	return math.Round(all*digits) / digits
}

// DeadBecause names the file of this run's dead letters and their most frequent reason. It is empty
// if there are none.
func (r *Run) DeadBecause() string {
	most, n, all := r.tally.DeadBecause()
	if most == "" {
		return ""
	}
	where := ""
	if dead := r.store.Dead; dead != nil && dead != r.store.Out {
		where = " in " + dead.Name()
	}
	if all == 1 {
		return fmt.Sprintf("1 dead letter%s, because: %s", where, most)
	}
	return fmt.Sprintf("%d dead letters%s, %d of them because: %s", all, where, n, most)
}

// DeadAgain says how many requests of the input are dead or expired, why, and how to send them
// again. It is empty if there are none. It says how only if another run can know of them.
func (r *Run) DeadAgain() string {
	r.tally.Mu.Lock()
	defer r.tally.Mu.Unlock()
	e := r.tally.Bad
	switch e.Again = r.c.Out != "-"; {
	case !e.Again:
		e.Lapsed, e.Again = 0, r.c.Dead != "-" && !output.IsNowhere(r.c.Dead)
	case output.IsNowhere(r.c.Dead):
		e.Again = false // no file keeps them, so another run sends them again in any case
	}
	text := e.String()
	if t := &r.tally.Totals; text == "" && r.c.RetryDead != 0 && t.Done > 0 && t.NotEnded() == 0 && r.store.Dead.Began() {
		return fmt.Sprintf("no dead letters are left: all of %s are done now, and it keeps their lines", r.store.Dead.Name())
	}
	return text
}
