package run

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// ceiling returns how many requests per second the limits of all keys allow; 0: there is no limit.
// If lines of the input have a cost, it is the cost per second. Limits of tokens are converted by
// the average usage of a request.
//
// For d above 0 it is the average over the first d of the run, with buckets full at the start, as
// in percent. For d of 0 it is the rate in the long run.
func (r *Run) ceiling(d time.Duration, goesOn bool) float64 {
	least := 0.0
	for i := range r.groups {
		least += r.groups[i].ceiling(d, goesOn)
	}
	if ordered := r.tally.figures.inOrder(); ordered > 0 {
		least = min(least, ordered)
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// ceiling is Run.ceiling for one group. It is infinite if there is no limit.
func (g *group) ceiling(d time.Duration, goesOn bool) float64 {
	u, least := &g.r.tally.uses[g.index], math.Inf(1)
	for _, l := range g.limits {
		each, allowed := u.each(l.Unit), l.Speed()
		if d > 0 {
			each, allowed = u.sentEach(l.Unit), l.Within(g.r.tally.first, d, goesOn)/d.Seconds()
		}
		if each > 0 {
			least = min(least, allowed/each)
		}
	}
	return least * float64(g.r.quotas())
}

// each returns how much of a unit a request takes, on average. It counts the sent requests once
// there are enough, and until then those that are left.
func (g *use) each(u limit.Unit) float64 {
	const enough = 20
	of := &g.remaining
	if g.spent[limit.Requests] >= enough || of[limit.Requests] <= 0 {
		of = &g.spent
	}
	if u == limit.Requests {
		return 1
	}
	return float64(max(of[u], 0)) / float64(max(of[limit.Requests], 1))
}

// sentEach returns how much of a unit a sent request took, on average.
func (g *use) sentEach(u limit.Unit) float64 {
	of := &g.spent
	if u == limit.Requests || of[limit.Requests] <= 0 {
		return 1
	}
	return float64(max(of[u], 0)) / float64(of[limit.Requests])
}

// percent returns the cost that was sent within d, in percent of the most that the limits allow in
// that time. It is the percentage of the most used limit.
func (r *Run) percent(d time.Duration, goesOn bool) float64 {
	p := 0.0
	for i, g := range r.groups {
		for _, l := range g.limits {
			p = max(p, 100*float64(r.tally.uses[i].spent[l.Unit])/(l.Within(r.tally.first, d, goesOn)*float64(r.quotas())))
		}
	}
	if ordered := r.tally.figures.inOrder(); ordered > 0 {
		p = max(p, 100*float64(r.tally.uses[0].spent[limit.Requests])/(ordered*d.Seconds()))
	}
	if goesOn {
		return min(p, 100)
	}
	return p
}

// Progress is the state of a run while it goes on.
type Progress struct {
	Totals
	Total    int // requests of the input to send; 0: not known
	ToGo     int // requests that have not ended; if Total is not known, of those read
	InFlight int
	Waiting  int           // requests that were read and not sent
	ETA      time.Duration // 0: not known, or no request ends
	Why      string        // why the next request waits; empty: it does not
	Down     []string      // hosts where nothing arrives, each with the reason and the duration
	Lately   []Failure     // the attempts that failed in the last minute
}

// Progress returns how far the run is.
func (r *Run) Progress() Progress {
	p := Progress{}
	short, most, keys := "", -1, make([][]serving, len(r.groups))
	var least time.Duration // no request goes sooner
	for i, g := range r.groups {
		g.pool.Update(func(now mono.Time, q *pool.Queue, d *pool.Dispatcher) {
			c := q.Counts()
			p.InFlight, p.Waiting = p.InFlight+c.InFlight, p.Waiting+c.Waiting
			if c.Waiting > most { // the reason of the group with the most waiting requests is shown
				most = c.Waiting
				var next mono.Time
				next, short, p.Why = g.why(now, q, d)
				least = max(next.Sub(now), 0)
			}
			if i == 0 { // one group is enough: all groups send to the same hosts
				for _, h := range d.Down(now) {
					p.Down = append(p.Down,
						fmt.Sprintf("%s for %v: %s", called(h.Host), now.Sub(h.Since).Round(time.Second), inWords(&h)))
				}
			}
			keys[i] = r.serves(now, d)
		})
	}
	p.InFlight = min(p.InFlight, r.c.Concurrency)
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	p.Totals = r.tally.totals
	if !r.tally.first.IsZero() {
		d := time.Since(r.tally.first)
		p.Seconds = d.Seconds()
		p.Rate = float64(p.Done) / p.Seconds
		p.Ceiling, p.Sustained, p.Percent = r.ceiling(d, true), r.ceiling(0, true), r.percent(d, true)
	}
	p.Lately = r.tally.failed.lately(time.Now())
	p.ToGo = p.toGo()
	if r.tally.checked {
		p.Total = p.Input - p.before()
		p.ETA = r.eta(time.Now(), keys, p.Waiting > 0, short)
		if p.ETA > 0 && len(r.groups) == 1 {
			p.ETA = max(p.ETA, least)
		}
	}
	return p
}

// limitOf begins the reason of a wait for a limit.
const limitOf = "limit "

func isLimit(waits string) bool { return strings.HasPrefix(waits, limitOf) }

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
	if c.InFlight >= r.c.Concurrency {
		return now, "concurrency", fmt.Sprintf("answers: %d in flight is the most that --concurrency allows", c.InFlight)
	}
	_, head, ok := q.Head(now)
	if !ok {
		if down := d.Down(now); len(down) > 0 {
			return now, "outage of " + called(down[0].Host), probe(now, down)
		}
		wake, _ := q.Wake(now)
		return min(wake, now.Add(r.c.Backoff.Max)), "backoff",
			"the next attempt of a request that failed, " + left(wake.Sub(now))
	}
	best := limit.Never
	short, text = "ban", "a key that is not banned"
	for i := range g.limiters {
		info := d.KeyInfo(now, i)
		if info.State == pool.KeyBanned {
			continue
		}
		if at, s, t := g.whyKey(now, d, i, &info, head.Cost); at < best || best == limit.Never {
			best, short, text = at, s, t
		}
	}
	if best == limit.Never || best == limit.AfterSettle {
		best = now
	}
	return best, short, text
}

// whyKey returns when a key may send a request of this cost, and why it waits until then.
func (g *group) whyKey(now mono.Time, d *pool.Dispatcher, key int, info *pool.KeyInfo, cost limit.Cost) (at mono.Time,
	short, text string) {
	r := g.r
	at = now
	if info.State == pool.KeyCooling {
		at, short, text = info.Until, "pause of "+info.Name,
			fmt.Sprintf("key %s, which the server told to stay away, ", info.Name)
		if r.c.keyless {
			short, text = "pause", "the server, which asked to stay away, "
		}
	}
	for n, l := range g.limiters[key] {
		if t := l.Ready(now, cost); t > at {
			at, short = t, limitOf+g.limits[n].Text
			if text = short + ", "; !r.c.keyless {
				text = fmt.Sprintf("%s of key %s, ", short, info.Name)
			}
		}
	}
	if at <= now {
		at, short = g.bound(now, d, key, cost)
		if text = short + ", "; !r.c.keyless {
			text = fmt.Sprintf("%s of key %s, ", short, info.Name)
		}
	}
	switch {
	case at <= now:
		return at, "", ""
	case at == limit.AfterSettle:
		return at, short, text + "until an answer comes"
	}
	return at, short, text + left(at.Sub(now))
}

// bound returns why a key waits, if that is neither a limit of the user nor a pause.
func (g *group) bound(now mono.Time, d *pool.Dispatcher, key int, cost limit.Cost) (at mono.Time, short string) {
	at, b := d.Explain(now, key, cost)
	if g.r.c.Share != nil && b.Name == g.sharedName(key) {
		return at, "the shared limit " + b.Name
	}
	switch b.Name {
	case "told":
		return at, "what is left"
	case "trial":
		return at, "the first answer"
	case "beginning":
		return at, "slow beginning"
	case "spacing":
		return at, "nonce gap"
	case "concurrency", "sequence":
		return at, "nonce order"
	}
	return at, "what fits" // the dispatcher keeps a lower rate, since a limit proved too high
}

func left(d time.Duration) string {
	if d >= 10*time.Minute {
		return d.Round(time.Second).String() + " left"
	}
	return fmt.Sprintf("%.1f s left", max(d.Seconds(), 0))
}
