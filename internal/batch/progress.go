package batch

import (
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

// ceiling is the cost per second that the keys allow in the long run; 0: no limit.
func (r *Run) ceiling() float64 {
	least := math.Inf(1)
	for _, l := range r.c.Limits {
		least = min(least, float64(l.N)/l.Per.Seconds())
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least * float64(len(r.c.Keys))
}

// percent is cost as a part of the most that can be sent within d: N at once and N for every window that has passed.
// While the run goes on only whole windows count, and one that has just begun does not.
func (r *Run) percent(cost int64, d time.Duration, goesOn bool) float64 {
	most := math.Inf(1)
	for _, l := range r.c.Limits {
		windows := d.Seconds() / l.Per.Seconds()
		if goesOn {
			windows = math.Floor(max(windows-0.02, 0))
		}
		most = min(most, float64(l.N)*(1+windows))
	}
	p := 100 * float64(cost) / (most * float64(len(r.c.Keys)))
	if goesOn {
		return min(p, 100)
	}
	return p
}

// Progress is the state of a run that goes on.
type Progress struct {
	Totals
	Total    int // requests in the input that have to be sent; 0: not known
	InFlight int
	Waiting  int
	ETA      time.Duration // from the limits; 0: not known
	Why      string        // what the next request waits for; empty: for nothing
}

// Progress returns how far the run is.
func (r *Run) Progress() Progress {
	p := Progress{}
	why := ""
	r.pool.Update(func(now mono.Time, q *queue.Queue, d *dispatch.Dispatcher) {
		c := q.Counts()
		p.InFlight, p.Waiting = c.InFlight, c.Waiting
		why = r.why(now, q, d)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Totals, p.Why = r.totals, why
	if !r.first.IsZero() {
		d := time.Since(r.first)
		p.Seconds = d.Seconds()
		p.Rate = float64(p.Done) / p.Seconds
		p.Ceiling, p.Percent = r.ceiling(), r.percent(p.Cost, d, true)
	}
	if r.checked {
		p.Total = p.Input - p.SkippedDone - p.SkippedDead
		if c := r.ceiling(); c > 0 {
			p.ETA = time.Duration(float64(r.remaining) / c * float64(time.Second))
		}
	}
	return p
}

// why says in words what the next request waits for.
func (r *Run) why(now mono.Time, q *queue.Queue, d *dispatch.Dispatcher) string {
	c := q.Counts()
	if c.Waiting == 0 {
		if c.InFlight > 0 {
			return "answers"
		}
		return "input"
	}
	if c.InFlight >= r.c.Concurrency {
		return fmt.Sprintf("answers: %d in flight is the most that --concurrency allows", c.InFlight)
	}
	_, head, ok := q.Head(now)
	if !ok {
		wake, _ := q.Wake(now)
		return "the next attempt of a request that failed, " + left(wake.Sub(now))
	}
	best, text := limit.Never, "a key that is not banned"
	for i := range r.limiters {
		info := d.KeyInfo(now, i)
		at, what := now, ""
		switch info.State {
		case dispatch.Banned:
			continue
		case dispatch.Cooling:
			at, what = info.Until, fmt.Sprintf("key %s, which the server told to stay away, ", info.Name)
		}
		for n, l := range r.limiters[i] {
			if t := l.Ready(now, head.Cost); t > at {
				at, what = t, fmt.Sprintf("limit %s of key %s, ", r.c.Limits[n].Text, info.Name)
			}
		}
		if at < best || best == limit.Never {
			best = at
			switch {
			case at <= now && info.InFlight > 0:
				text = "the answer before it on key " + info.Name
			case at <= now:
				text = ""
			case at == limit.AfterSettle:
				text = what + "until an answer comes"
			default:
				text = what + left(at.Sub(now))
			}
		}
	}
	return text
}

func left(d time.Duration) string { return fmt.Sprintf("%.1f s left", max(d.Seconds(), 0)) }
