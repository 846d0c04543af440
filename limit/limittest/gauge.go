package limittest

import (
	"fmt"
	"slices"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// gauge has the facts of a run that law 15 needs.
type gauge struct {
	kept    bool // each request was Ready when it went, and cost no more than admitted
	counted limit.Cost
	before  []int64 // totals at the beginning
}

// settled records an outcome that the subject is about to get.
func (g *gauge) settled(r *run, cost limit.Cost, o *limit.Outcome) {
	if o.Metered {
		g.kept = g.kept && atMost(o.Actual, cost)
		cost = o.Actual
	}
	if r.OneWayMax > 0 && o.Result == limit.Limited { // the end of an opt-in makes more count
		g.kept = false
	}
	if o.Result == limit.Unsent || o.Result == limit.Limited && r.RejectsFree {
		return
	}
	for u, n := range cost {
		g.counted[u] += n
	}
}

// gauged checks law 15.
func (r *run) gauged(ready []mono.Time) error {
	all := limit.AppendUsage(nil, r.subject, r.now)
	if again := limit.AppendUsage(nil, r.subject, r.now); !slices.Equal(again, all) {
		return fmt.Errorf("law 15: asked twice, %+v and %+v are used", all, again)
	}
	if now := r.readiness(r.subject); !slices.Equal(now, ready) {
		return fmt.Errorf("law 15: asked what is used, it is ready at %v in place of %v", now, ready)
	}
	if len(all) == 0 {
		return nil
	}
	g := &r.gauge
	if g.before == nil {
		g.before = r.totals()
	}
	for i, u := range all {
		switch {
		case u.Open < 0 || u.Used < u.Open || u.Recent < 0:
			return fmt.Errorf("law 15: %+v: something is below nothing, or what is open is not used", u)
		case u.Used > u.Allowed && g.kept && !r.ClosedLoop && !r.Lapses && r.News == nil:
			return fmt.Errorf("law 15: only what was ready went, and %d of %d are used: %+v", u.Used, u.Allowed, u)
		case !u.InFlight && !r.Rough && u.Total-g.before[i] != g.counted[u.Unit]:
			return fmt.Errorf("law 15: %d %v were settled and count; the total is %d", g.counted[u.Unit], u.Unit, u.Total-g.before[i])
		}
	}
	if r.Bounded || r.Rough || r.ClosedLoop || r.Lapses {
		return nil
	}
	for i, c := range r.Costs {
		if fits := fits(all, c); fits != (ready[i] <= max(r.now, r.latest)) {
			return fmt.Errorf("law 15: %+v are used; that cost %v fits is %v, and it is ready at %v", all, c, fits, ready[i])
		}
	}
	return nil
}

func (r *run) totals() (totals []int64) {
	for _, u := range limit.AppendUsage(nil, r.New(), r.now) {
		totals = append(totals, u.Total)
	}
	return totals
}

// fits reports whether a cost fits into the free part.
func fits(all []limit.Usage, c limit.Cost) bool {
	for _, u := range all {
		n := c[u.Unit]
		if u.InFlight {
			n = 1
		}
		if n > 0 && u.Used+n > u.Allowed {
			return false
		}
	}
	return true
}

// idle checks the part of law 15 about a long time later.
func (r *run) idle() error {
	for _, u := range limit.AppendUsage(nil, r.subject, max(r.now, r.latest).Add(1000*r.Scale+2*r.Late)) {
		if u.Used != u.Open || u.Recent != 0 {
			return fmt.Errorf("law 15: long after the last change %+v is used", u)
		}
	}
	return nil
}
