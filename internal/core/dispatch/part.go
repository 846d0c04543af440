package dispatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// mostParts is the most resources whose limits are kept. Requests of further ones wait until nothing
// counts any more in one of them.
const mostParts = 256

// partTrial is how long the first request of a resource goes alone, if nothing is known of its limits. Its answer
// may state them.
const partTrial = 3 * time.Second

// part is the requests of one resource. They have a place in the line of their own, so that no other
// requests wait where the resource has no room. The first part is that of requests without a resource.
type part struct {
	resource string
	lane     *scheduler.Lane // with a way for each key
	head     scheduler.Ticket
	stacks   []*stack.Stack      // the resource's limits for each key; nil: that of requests without one
	limits   []*scheduler.Limit  // of the same
	of       map[*Shared]*Shared // the resource's limits for the keys of a Shared together

	place mono.Time // of its first request, and seq its order among those of one place
	seq   uint64
	// What the latest look found:
	next      queue.Ticket
	request   *queue.Request // next; no end of another moves it
	submitted mono.Time
	life      uint64
	host      *host
	due       mono.Time // when next can no longer be answered in time
	alone     bool      // it goes although all of its time may be too short
}

// lay makes the lane of a part.
func (d *Dispatcher) lay(p *part) {
	ways := make([][]*scheduler.Limit, len(d.keys))
	for i := range ways {
		k := &d.keys[i]
		if ways[i] = k.way; p.limits == nil {
			continue
		}
		its := p.limits[i : i+1 : i+1]
		for _, s := range k.shared {
			if of := d.together(p, s); of != nil {
				its = append(its, of.limit)
			}
		}
		if k.apart {
			ways[i] = k.way[:1]
		}
		ways[i] = slices.Concat(its, ways[i])
	}
	p.lane = d.line.Lane(scheduler.LaneConfig{}, ways...)
}

// together returns the limits of a part's resource for the keys of a Shared together; nil: it has none.
func (d *Dispatcher) together(p *part, s *Shared) *Shared {
	if p.limits == nil || s.Resource == nil {
		return nil
	}
	its := p.of[s]
	if its == nil {
		its = &Shared{Name: s.Name, Limiter: s.Resource(p.resource), Pause: s.Pause, Use: s.Use, Ramp: s.Ramp, whole: s}
		if err := d.enroll(its, p.resource); err != nil {
			panic(err) // shares has checked all but the Limiter
		}
		if p.of == nil {
			p.of = map[*Shared]*Shared{}
		}
		p.of[s] = its
	}
	return its
}

// ofAll is the Shared that a key has: not the limits of one resource, but those of all.
func (s *Shared) ofAll() *Shared {
	if s.whole != nil {
		return s.whole
	}
	return s
}

// partOf returns the part of a key's request in flight.
func (d *Dispatcher) partOf(sent *limit.Sent, key int) *part {
	for _, p := range d.parts[1:] {
		if d.line.Counts(sent, p.limits[key]) {
			return p
		}
	}
	return d.parts[0]
}

// ofKey returns the stacks with the limits of the resource in which a key counts: its own, then the shared ones.
func (p *part) ofKey(d *Dispatcher, key int) (all []*stack.Stack) {
	all = append(all, p.stacks[key])
	for _, s := range d.keys[key].shared {
		if its := p.of[s]; its != nil {
			all = append(all, its.stack)
		}
	}
	return all
}

// refills is Refills for the limits of the resource that a key shares; is says that there are some. What is
// left belongs to all that share it.
func (p *part) refills(k *key, o *limit.Outcome) (units uint8, is bool) {
	for _, s := range k.shared {
		if its := p.of[s]; its != nil {
			units, is = units|its.stack.Refills(o), true
		}
	}
	return units, is
}

// meet makes the part of a resource if it is missing. If there is no room, it returns when there may be.
func (d *Dispatcher) meet(now mono.Time, resource string) (at mono.Time) {
	if resource == "" || d.of[resource] != nil {
		return limit.Never
	}
	if len(d.parts) >= mostParts {
		if at = d.forgetPart(now); at > now {
			return at
		}
	}
	p := &part{resource: resource}
	p.head.Deadline = limit.Never
	for i := range d.keys {
		c := d.keys[i].part
		if of := d.keys[i].resource; of != nil {
			c.Limiter = of(resource)
			d.made(d.keys[i].name, resource, c.Limiter, nil)
		}
		if d.keys[i].isUnbound() {
			c = tries(resource, c)
		}
		g, err := stack.New(c)
		if err != nil {
			panic(err) // New has checked all but the Limiter
		}
		p.stacks, p.limits = append(p.stacks, g), append(p.limits, d.line.Limit(g, scheduler.Sharing{}))
	}
	d.lay(p)
	d.parts = append(d.parts, p)
	d.of[resource] = p
	return limit.Never
}

// tries lets the first request of a resource go alone, if nothing is known of its limits.
func tries(resource string, c stack.Config) stack.Config {
	if resource != "" && c.Limiter == nil {
		c.Trial = partTrial
	}
	return c
}

// isUnbound reports whether the requests of a resource count in no limits of the key but their own, and in none
// of those that it shares.
func (k *key) isUnbound() bool {
	return k.apart && !slices.ContainsFunc(k.shared, func(s *Shared) bool { return s.Resource != nil })
}

// forgetPart forgets a part in which nothing counts any more. Otherwise it returns when that may be so.
func (d *Dispatcher) forgetPart(now mono.Time) (at mono.Time) {
	at = limit.AfterSettle
	for n, p := range d.parts[1:] {
		if _, _, waits := d.queue.HeadOf(now, p.resource); waits {
			continue
		}
		counts := now
		for i := range d.keys {
			for _, g := range p.ofKey(d, i) {
				idle, ok := g.Idle(now)
				if counts = max(counts, idle.Counts); !ok {
					counts = limit.AfterSettle
				}
			}
		}
		if counts <= now {
			d.withdraw(now, p)
			d.line.Retire(p.lane)
			delete(d.of, p.resource)
			d.parts = slices.Delete(d.parts, n+1, n+2)
			return now
		}
		at = min(at, counts)
	}
	return at
}

// goes returns the part whose head goes now. Otherwise it returns when to ask again, as far as limits
// and deadlines decide.
func (d *Dispatcher) goes(now mono.Time) (next *part, at mono.Time) {
	if len(d.parts) == 1 && d.queue.OneResource() {
		p := d.parts[0]
		switch d.look(now, p) {
		case scheduler.Granted:
			return p, 0
		case scheduler.Waiting:
			return nil, min(p.due, d.line.Wake(), limit.AfterSettle)
		}
		return nil, limit.Never
	}
	at = limit.Never
	d.queue.Resources(func(resource string) {
		if at == limit.Never { // otherwise there is no room for more
			at = d.meet(now, resource)
		}
	})
	for again := true; again; again = len(d.parts) > 1 && d.told(now) {
		waits := false
		for _, p := range d.inOrder(now) {
			switch d.look(now, p) {
			case scheduler.Granted:
				return p, 0
			case scheduler.Waiting:
				waits, at = true, min(at, p.due)
			}
		}
		if waits {
			at = min(at, d.line.Wake(), limit.AfterSettle)
		}
	}
	return nil, at
}

// inOrder returns the parts by the places of their heads. So none takes the room of an earlier request.
func (d *Dispatcher) inOrder(now mono.Time) []*part {
	for _, p := range d.parts {
		p.place = limit.Never
		if t, _, ok := d.queue.HeadOf(now, p.resource); ok {
			p.place, p.seq = d.queue.Place(t), d.queue.Info(t).Seq
		}
	}
	d.order = append(d.order[:0], d.parts...)
	slices.SortStableFunc(d.order, func(a, b *part) int { return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.seq, b.seq)) })
	return d.order
}

// told takes the verdicts of the line, which are in the tickets, and reports whether there was one.
func (d *Dispatcher) told(now mono.Time) (any bool) {
	for d.line.Next(now) != nil {
		any = true
	}
	return any
}

// look finds the head of a part that its host lets go, and gives it to the line: Granted, Waiting, or
// None.
func (d *Dispatcher) look(now mono.Time, p *part) scheduler.State {
	for {
		t, r, ok := d.queue.HeadOf(now, p.resource)
		if !ok {
			d.withdraw(now, p)
			return scheduler.None
		}
		info := d.queue.Info(t)
		h := d.hosts.lets(now, info.Host, &r.Cost)
		if h == nil {
			continue
		}
		p.next, p.request, p.submitted, p.life = t, r, info.Submitted, info.Seq
		p.host, p.due, p.alone = h, limit.Never, false
		if info.Deadline != limit.Never {
			if p.due, p.alone, ok = d.inTime(now, t, h, info.Deadline); !ok {
				continue
			}
		}
		if state := d.ask(now, p, &r.Cost); state != scheduler.Never {
			return state
		}
		d.ended(d.queue.Kill(now, t, d.tooDear(r.Cost)))
	}
}

// ask gives the head of a part to the line: Granted, Waiting, or Never.
func (d *Dispatcher) ask(now mono.Time, p *part, cost *limit.Cost) scheduler.State {
	place, same := mono.Time(0), p.head.Cost == *cost
	if len(d.parts) > 1 { // then the line decides between parts, too
		d.told(now)
		place = d.queue.Place(p.next)
		same = same && p.head.Place == place
	}
	switch {
	case same && p.head.State == scheduler.Waiting:
		d.told(now)
		return p.head.State
	case same && p.head.State == scheduler.Granted: // while another part was asked
		return scheduler.Granted
	}
	if !same || p.head.State != scheduler.None {
		d.withdraw(now, p)
		p.head.Cost, p.head.Place = *cost, place
	}
	return d.line.Enter(now, p.lane, &p.head)
}

// withdraw takes the head of a part out of the line.
func (d *Dispatcher) withdraw(now mono.Time, p *part) {
	d.line.Leave(now, &p.head)
	if p.head.State == scheduler.Granted {
		d.told(now) // the line must not keep the ticket
		d.line.Settle(now, p.head.Pass, &limit.Outcome{Result: limit.Unsent})
	}
	p.head.State = scheduler.None
}

// ofResource returns what an answer says to the limits of its request's resource.
func (ans *Answer) ofResource() limit.Outcome {
	if ans.Resource != nil {
		return *ans.Resource
	}
	return limit.Outcome{Result: ans.Result, Metered: ans.Metered, Actual: ans.Actual, ArrivedAgo: ans.ArrivedAgo, RTT: ans.RTT,
		Elsewhere: ans.Result == limit.Limited}
}

// ofLimits returns what an answer says to the limits of a request without a resource.
func (ans *Answer) ofLimits() *limit.Outcome {
	if ans.Resource != nil {
		return ans.Resource
	}
	return &ans.Outcome
}

// pausedFor returns when a key is asked again for requests of a part, if it is paused for them.
func (d *Dispatcher) pausedFor(now mono.Time, key int, p *part) (next mono.Time, paused bool) {
	k := &d.keys[key]
	if p.limits == nil || !k.apart {
		pause, is := k.paused(now)
		return pause.Next, is
	}
	pause, is := k.stack.Paused(now)
	return pause.Next, is
}

// refusals returns how many times in a row the limits that refused an attempt have refused.
func (d *Dispatcher) refusals(a *Attempt, ans *Answer) int {
	k := &d.keys[a.Key]
	switch o := ans.Resource; {
	case o == nil || o.Result != limit.Limited || o.Elsewhere:
	case a.part.limits != nil:
		return a.part.stacks[a.Key].Refusals()
	case k.apart && len(k.shared) > 0:
		return k.shared[0].stack.Refusals()
	}
	return k.stack.Refusals()
}

// ExplainRequest is Explain for a request, whose resource has limits, too.
func (d *Dispatcher) ExplainRequest(now mono.Time, key int, r *queue.Request) (at mono.Time, b limit.Rule) {
	k := &d.keys[key]
	p := d.of[r.Resource]
	if p == nil || p.limits == nil {
		return d.Explain(now, key, r.Cost)
	}
	at = mono.Min
	stacks := k.stacks
	if k.apart {
		stacks = stacks[:1]
	}
	for _, g := range slices.Concat(p.ofKey(d, key), stacks) {
		if its, binds := g.Explain(now, r.Cost); its > at {
			at, b = its, binds
		}
	}
	return at, b
}
