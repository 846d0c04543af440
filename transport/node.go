package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/throttle"
)

// node is the limits of one partition: a line to wait in, and what its server said.
type node struct {
	t         *Transport
	partition Partition
	gate      *paceline.Gate
	rule      *rule
	leaves    int                           // guarded by the Transport's lock
	until     atomic.Int64                  // no request goes before it, on the Transport's clock
	strikes   atomic.Int64                  // pauses in a row that the server named no end of; written under mu
	shut      atomic.Bool                   // what rule.closed was last
	provider  quota.Dialect                 // of a host that is known; otherwise nil
	dialect   atomic.Pointer[quota.Dialect] // what the answers of another have shown it to be

	mu      sync.Mutex // guards what follows
	began   time.Duration
	paused  bool // once at least
	refusal quota.Refusal
	said    []quota.Policy
}

func (t *Transport) newNode(p Partition, own limit.Limiter) (*node, error) {
	if t.config.Fill > 0 && own != nil && !limit.Foresees(own) {
		return nil, fmt.Errorf("transport: Fill %d: the limiter of %v, %T, does not foresee", t.config.Fill, p, own)
	}
	r, err := newRule(own, t.slow)
	if err != nil {
		return nil, err
	}
	g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: r, Fill: t.config.Fill, Logger: t.waits(p)})
	if err != nil {
		return nil, err
	}
	n := &node{t: t, partition: p, rule: r, gate: g}
	if d, ok := quota.ForHost(p.Host); ok && p.Scope == quota.IP {
		n.provider = d
	}
	return n, nil
}

// rule is all limits of one partition as one: the configured one, a pause, and what the server says is left. It can only
// be stricter than the configured one. It belongs to the Gate of its node.
type rule struct {
	own    limit.Limiter // nil: none
	pause  *limit.Cooldown
	hints  *throttle.Hints
	book   limit.Book[ruled]
	closed bool // a pause is on that nobody waits for: nobody is to stand in line

	// Hints know the capacity of a bucket from their making on. New ones take over what is in flight as one lease, carry,
	// until the last of it has ended.
	capacity limit.Cost
	open     limit.Cost
	carried  int
	carry    limit.Lease

	// After a pause, where nobody knows a limit, one request goes first, and each that is answered makes room for one more
	// than before it.
	slow bool
	room int // how many may be in flight; 0: any number
}

type ruled struct {
	own, hints limit.Lease
	heard      *throttle.Hints
	cost       limit.Cost
}

// enough in flight, after a pause, is any number.
const enough = 1024

func newRule(own limit.Limiter, slow bool) (*rule, error) {
	pause, err := limit.NewCooldown(0)
	if err != nil {
		return nil, err
	}
	hints, err := throttle.NewHints(throttle.HintsConfig{})
	if err != nil {
		return nil, err
	}
	return &rule{own: own, pause: pause, hints: hints, slow: slow}, nil
}

// waits is who is told of the waits of a partition.
func (t *Transport) waits(p Partition) *slog.Logger {
	if t.config.Logger == nil {
		return nil
	}
	return t.config.Logger.With("partition", p)
}

// Ready implements limit.Limiter.
func (r *rule) Ready(now mono.Time, cost limit.Cost) mono.Time {
	if r.closed {
		return limit.Never
	}
	t := max(r.pause.Ready(now, cost), r.hints.Ready(now, cost))
	if r.own != nil {
		t = max(t, r.own.Ready(now, cost))
	}
	if r.room > 0 && r.book.Len() >= r.room {
		t = max(t, limit.AfterSettle)
	}
	return t
}

// ReadyAfter implements limit.Foreseer.
func (r *rule) ReadyAfter(now mono.Time, first, cost limit.Cost) mono.Time {
	if r.closed {
		return limit.Never
	}
	t := max(r.pause.ReadyAfter(now, first, cost), r.hints.ReadyAfter(now, first, cost))
	if f, ok := r.own.(limit.Foreseer); ok {
		t = max(t, f.ReadyAfter(now, first, cost))
	}
	if r.room > 0 && r.book.Len()+1 >= r.room {
		t = max(t, limit.AfterSettle)
	}
	return t
}

// Explain implements limit.Explainer. Beside the names of the configured limits there are "pause" for what the server asked
// for, "told" for what it says is left, and "beginning" after a pause, where nobody knows a limit.
func (r *rule) Explain(now mono.Time, cost limit.Cost) (mono.Time, limit.Bound) {
	at := r.Ready(now, cost)
	if r.own != nil {
		if own, b := limit.Explain(r.own, now, cost); own == at {
			return at, b
		}
	}
	switch at {
	case r.pause.Ready(now, cost):
		return at, limit.Bound{Name: "pause"}
	case r.hints.Ready(now, cost):
		return at, limit.Bound{Name: "told"}
	}
	return at, limit.Bound{Name: "beginning"}
}

// Admit implements limit.Limiter.
func (r *rule) Admit(now mono.Time, cost limit.Cost) limit.Lease {
	l := ruled{cost: cost, heard: r.hints, hints: r.hints.Admit(now, cost)}
	if r.own != nil {
		l.own = r.own.Admit(now, cost)
	}
	for u, n := range cost {
		r.open[u] += n
	}
	return r.book.Open(l)
}

// Settle implements limit.Limiter.
func (r *rule) Settle(now mono.Time, lease limit.Lease, o limit.Outcome) {
	l := r.book.Close(lease)
	for u, n := range l.cost {
		r.open[u] -= n
	}
	if l.heard == r.hints {
		r.hints.Settle(now, l.hints, o)
	} else {
		r.hint(now, &o)
		if r.carried--; r.carried == 0 {
			r.hints.Settle(now, r.carry, unsent)
		}
	}
	if r.own != nil {
		r.own.Settle(now, l.own, o)
	}
	switch {
	case o.RetryAfter > 0:
		r.pause.Extend(now.Add(o.RetryAfter))
		if r.slow {
			r.room = 1
		}
	case r.room > 0 && (o.Result == limit.Accepted || o.Result == limit.Failed):
		if r.room++; r.room > enough {
			r.room = 0
		}
	}
}

// hint tells the hints what an answer said that they have no lease of.
func (r *rule) hint(now mono.Time, o *limit.Outcome) {
	if o.Known == 0 {
		return
	}
	l := r.hints.Admit(now, limit.Cost{})
	r.hints.Settle(now, l, limit.Outcome{Result: limit.Accepted, Known: o.Known, Remaining: o.Remaining, Reset: o.Reset})
}

// contain tells the hints what the server's buckets hold, and again what the answer said that says so.
func (r *rule) contain(now mono.Time, capacity limit.Cost, o *limit.Outcome) {
	for u, n := range capacity {
		if n == 0 { // an answer need not speak of all
			capacity[u] = r.capacity[u]
		}
	}
	if capacity == r.capacity {
		return
	}
	hints, err := throttle.NewHints(throttle.HintsConfig{Capacity: capacity})
	if err != nil {
		return // it is no capacity
	}
	r.capacity, r.hints = capacity, hints
	if r.carried = r.book.Len(); r.carried > 0 {
		r.carry = hints.Admit(now, r.open)
	}
	r.hint(now, o)
}

// most returns the largest cost of one unit that may ever go, given that n may not.
func (n *node) most(u limit.Unit, size int64) int64 {
	var fits int64
	n.gate.Update(func(now mono.Time) {
		if n.rule.own == nil {
			return
		}
		low, high := int64(0), size // low fits, high does not
		for high-low > 1 {
			middle := low + (high-low)/2
			if n.never(now, u, middle) {
				high = middle
			} else {
				low = middle
			}
		}
		fits = low
	})
	return fits
}

func (n *node) never(now mono.Time, u limit.Unit, size int64) bool {
	var c limit.Cost
	c[u] = size
	return n.rule.own != nil && n.rule.own.Ready(now, c) == limit.Never
}

// tooLarge names the unit of cost that never fits.
func (n *node) tooLarge(cost limit.Cost) (limit.Unit, bool) {
	found, ok := limit.Unit(0), false
	n.gate.Update(func(now mono.Time) {
		for u, size := range cost {
			if !ok && size > 0 && n.never(now, limit.Unit(u), size) {
				found, ok = limit.Unit(u), true
			}
		}
	})
	return found, ok
}

// strike takes in a refusal of a request that was sent at sent, and returns how long to stay away from now on. asked is
// what the server asked for; 0: it did not say. Requests that were in flight together are refused together, so what came
// back from before the present pause does not begin another, and without a Retry-After of its own does not prolong it.
func (n *node) strike(sent time.Duration, asked time.Duration, why quota.Refusal) time.Duration {
	n.mu.Lock()
	now := n.t.now()
	same := n.paused && sent < n.began
	d := asked
	if d <= 0 {
		if same {
			n.mu.Unlock()
			return 0
		}
		strikes := n.strikes.Add(1)
		d = n.t.delay(int(min(strikes, 1<<20)))
		if most := n.t.config.MaxRetryAfter; most > 0 { // nobody asked for more
			d = min(d, most)
		}
	}
	if !same {
		n.paused, n.began = true, now
		n.t.pauses.Add(1)
	}
	n.refusal = why
	if until := int64(now + d); until > n.until.Load() {
		n.until.Store(until)
	}
	n.mu.Unlock()
	if !same {
		n.t.log.Info("paused", "partition", n.partition, "for", d, "refusal", string(why), "told", asked > 0)
	}
	return d
}

// served takes in that a request that was sent at sent was not refused.
func (n *node) served(sent time.Duration) {
	if n.strikes.Load() == 0 {
		return
	}
	n.mu.Lock()
	if sent >= n.began {
		n.strikes.Store(0)
	}
	n.mu.Unlock()
}

// long returns an error if a pause is on that nobody waits for.
func (n *node) long() error {
	until, long := n.isLong()
	if !long {
		if n.shut.Load() {
			n.shutOrOpen()
		}
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return &Error{Partition: n.partition, Ready: n.t.epoch.Add(until), Refusal: n.refusal, Err: ErrPaused}
}

func (n *node) isLong() (until time.Duration, long bool) {
	until = time.Duration(n.until.Load())
	if until == 0 {
		return 0, false
	}
	now := n.t.now()
	return until, until > now && until-now > n.t.config.MaxRetryAfter
}

// shutOrOpen has the line be closed for as long as a pause is on that nobody waits for. Whoever is in it is sent away, and
// whoever comes to it in ignorance of the pause, to ask anew. The first who may wait again opens it.
func (n *node) shutOrOpen() {
	n.gate.Update(func(mono.Time) {
		_, n.rule.closed = n.isLong()
		n.shut.Store(n.rule.closed)
	})
}

// fits tells whether the limit allows a cost ever, whatever pause is on.
func (n *node) fits(cost limit.Cost) (ok bool) {
	n.gate.Update(func(now mono.Time) { ok = n.rule.own == nil || n.rule.own.Ready(now, cost) != limit.Never })
	return ok
}

// hear takes in what the server states about its limits themselves, and what its buckets hold, in an answer that says o
// besides.
func (n *node) hear(said []quota.Policy, capacity limit.Cost, o *limit.Outcome) {
	n.mu.Lock()
	same := slices.Equal(n.said, said)
	n.said = said
	n.mu.Unlock()
	if same {
		return
	}
	adopt := n.t.config.Adopt
	n.gate.Update(func(now mono.Time) {
		n.rule.contain(now, capacity, o)
		if adopt != nil && n.rule.own != nil {
			adopt(now, n.partition, n.rule.own, said)
		}
	})
}

var unsent = limit.Outcome{Result: limit.Unsent}

// acquire gets leave from every limit that the request counts in, or none.
func (c *call) acquire() error {
	ctx, nodes := c.ctx, c.leaf.nodes[:c.leaf.count]
	for {
		if ctx.Err() != nil {
			return c.refuse(nodes[0], ctx, nil)
		}
		for _, n := range nodes {
			if err := n.long(); err != nil {
				return err
			}
		}
		i := 0
		for ; i < len(nodes); i++ {
			p, _, ok := nodes[i].gate.TryWait(c.cost)
			if !ok {
				break
			}
			c.permits[i] = p
		}
		if i == len(nodes) {
			return nil
		}
		again, err := c.wait(ctx, i)
		if err != nil || !again {
			return err
		}
	}
}

// wait gets leave from the nodes from the given one on, in line. It has that of those before. again: what has been got was
// given back, and all is to be asked anew.
func (c *call) wait(ctx context.Context, i int) (again bool, err error) {
	nodes := c.leaf.nodes[:c.leaf.count]
	// A limit further on may rule the wait out now.
	for j := i + 1; j < len(nodes); j++ {
		if c.hopeless(ctx, nodes[j]) {
			c.release(i)
			if c.shrink(nodes[j]) {
				return true, nil
			}
			// It is refused at once: it takes no place in the line.
			p, err := nodes[j].gate.Wait(ctx, c.cost)
			if err != nil {
				if errors.Is(err, paceline.ErrNever) && nodes[j].fits(c.cost) {
					return true, nil
				}
				return false, c.refuse(nodes[j], ctx, err)
			}
			p.Settle(unsent)
			return true, nil
		}
	}
	for ; i < len(nodes); i++ {
		n := nodes[i]
		p, waited, err := n.gate.WaitWithStats(ctx, c.cost)
		c.waits = c.waits.Add(waited)
		if err != nil {
			c.release(i)
			if errors.Is(err, paceline.ErrNever) && (n.fits(c.cost) || c.shrink(n)) {
				return true, nil // if it fits, the line is shut
			}
			return false, c.refuse(n, ctx, err)
		}
		c.permits[i] = p
	}
	if ctx.Err() != nil { // a Gate gives leave also to those that are just giving up
		c.release(len(nodes))
		return false, c.refuse(nodes[0], ctx, nil)
	}
	// Since the first leave was given a pause may have begun.
	now := int64(c.t.now())
	for _, n := range nodes {
		if n.until.Load() > now {
			c.release(len(nodes))
			return true, nil
		}
	}
	return false, nil
}

// hopeless tells whether a node cannot let the request go by its deadline, or ever.
func (c *call) hopeless(ctx context.Context, n *node) bool {
	deadline, ok := ctx.Deadline()
	var at, last mono.Time
	n.gate.Update(func(now mono.Time) {
		at, last = n.rule.Ready(now, c.cost), now.Add(time.Until(deadline))
	})
	return at == limit.Never || ok && at < limit.AfterSettle && at > last
}

// release gives back what the first i nodes gave.
func (c *call) release(i int) {
	for j := range i {
		c.permits[j].Settle(unsent)
		c.permits[j] = paceline.Permit{}
	}
}

// refuse makes the error of a node that gave no leave.
func (c *call) refuse(n *node, ctx context.Context, err error) error {
	e := &Error{Partition: n.partition, Err: err}
	if err == nil {
		// A Gate says it better than we would.
		_, e.Err = n.gate.Wait(ctx, c.cost)
	}
	w, ok := errors.AsType[*paceline.WaitError](e.Err)
	if !ok {
		return e
	}
	e.Ready = w.Ready
	if w.Reason == paceline.ErrNever {
		if u, ok := n.tooLarge(c.cost); ok {
			e.Unit, e.Size, e.Limit = u, c.cost[u], n.most(u, c.cost[u])
		}
	}
	return e
}

// shrink makes an estimate fit that is no more than an assumption: a body that states no maximum may use as much as the
// model can, which may be more than the limit. It reports whether the cost is less now.
func (c *call) shrink(n *node) bool {
	if !c.est.Assumed {
		return false
	}
	changed := false
	for _, u := range []limit.Unit{limit.Output, limit.Tokens} {
		least := int64(1)
		if u == limit.Tokens {
			least = max(c.est.Input, 1)
		}
		if c.cost[u] <= least {
			continue
		}
		var alone limit.Cost
		alone[u] = c.cost[u]
		if _, ok := n.tooLarge(alone); ok {
			c.cost[u] = max(n.most(u, c.cost[u]), least)
			changed = true
		}
	}
	return changed
}
