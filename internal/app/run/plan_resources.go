package run

import (
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/limit"
)

// mostResources is how many resources a plan tells apart. Requests of more count in none.
const mostResources = 256

// addResource adds a request to those of its resource, if that has limits of its own.
func (p *planning) addResource(q *format.Request) {
	name := apart(q)
	if name == "" {
		return
	}
	of := p.resources[name]
	if of == nil {
		if len(p.resources) >= mostResources {
			return
		}
		if p.resources == nil {
			p.resources = map[string]*limit.Cost{}
		}
		of = new(limit.Cost)
		p.resources[name] = of
	}
	tally.Add(of, q.Cost, 1)
}

// inKeys returns the part of a cost that counts in the limits of the keys: without that of resources, if
// those limits are the usual resource's alone.
func (p *planning) inKeys(cost limit.Cost) limit.Cost {
	if p.apart {
		for _, of := range p.resources {
			tally.Add(&cost, *of, -1)
		}
	}
	return cost
}

// ofResources adds to a plan how long the limits of resources need. Each resource has a limit for itself. It
// returns the longest of these times, and its place in the plan; negative: there is none.
func (p *planning) ofResources(now time.Time, plan *Plan, quotas int) (longest time.Duration, binds int) {
	longest = -1
	for _, l := range p.c.Resources {
		used := l.Part(p.c.Use)
		d, all := time.Duration(-1), int64(0)
		for name, cost := range p.resources {
			if l.Resource.Match(name) {
				all += cost[l.Unit]
				d = max(d, used.Takes(now, cost[l.Unit], quotas, used.Most()*int64(quotas)))
			}
		}
		if d >= 0 {
			if d > longest {
				longest, binds = d, len(plan.Limits)
			}
			plan.Limits = append(plan.Limits, PlanLimit{Limit: string(l.Resource) + ": " + l.Text, Unit: l.Unit.String(),
				Cost: all, Seconds: d.Seconds()})
		}
	}
	return longest, binds
}
