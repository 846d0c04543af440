package transport

import (
	"cmp"
	"errors"
	"math"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// turn is a call's place in line, and the permit that it got there.
type turn struct {
	came    time.Time     // when the request came: its place at later attempts, too
	maxWait time.Duration // the bound of waited; 0: none
	waited  time.Duration // for its turns, in all
	waits   paceline.WaitStats
	anew    bool           // it waited elsewhere, and moved
	leads   bool           // it waits before all others of its key: see newcomer.go
	lane    *paceline.Lane // a lane for this call alone, with the only ways left to it; nil: the leaf's lane
	only    []*way
	permit  paceline.Permit
	way     *way // the way of the permit

	openings int // how often a limit was shut while it waited, and then opened
}

const mostOpenings = 8

// acquire gets one permit of every limit in which the request counts, or none.
func (c *call) acquire() error {
	for {
		if c.leaf.moved.Load() != nil {
			if err := c.move(); err != nil {
				return err
			}
		}
		if err := c.leaf.look(); err != nil {
			if c.t.alone(c.leaf) {
				continue
			}
			err.Client = c.leaf.partition.Client
			return err
		}
		if err := c.within(); err != nil {
			return err
		}
		turn := paceline.Turn{Came: c.came, Costs: c.costs, Again: c.anew}
		if c.maxWait > 0 {
			turn.MaxWait = max(c.maxWait-c.waited, 1)
		}
		if c.session != 0 {
			if turn.Homes = c.homes(); turn.Homes != 0 {
				turn.Hold = cmp.Or(c.t.config.Affinity.Hold, defaultHold)
			}
		}
		if c.leaf.newcomer != nil {
			turn = c.leaf.newcomer.turn(c, turn)
		}
		lane := c.leaf.lane
		if c.lane != nil {
			lane = c.lane
		}
		p, waited, err := lane.WaitTurn(c.ctx, c.cost, turn)
		c.waits = c.waits.Add(waited)
		c.waited += waited.Waited
		ok := err == nil && c.ctx.Err() == nil && c.leaf.moved.Load() == nil
		if c.leads && !ok { // the others of its key must not wait for it
			c.t.alone(c.leaf)
		}
		c.leads = false
		switch {
		case ok:
			c.permit, c.way = p, c.leaf.by(p.Way())
			if c.lane != nil {
				c.way = c.only[p.Way()]
				c.retire()
			}
			c.moves, c.anew = false, false
			return nil
		case err == nil: // a call that is giving up, or whose key has joined another, may get a permit all the same
			c.permit = p
			c.giveBack()
			continue
		case c.leaf.moved.Load() != nil && c.ctx.Err() == nil:
			continue
		}
		if err := c.refusal(err); err != nil {
			return err
		}
	}
}

// refusal returns the error of a call that got no permit; nil: there is another way to get one.
func (c *call) refusal(err error) error {
	if errors.Is(err, ErrDrained) {
		return &Error{Partition: c.leaf.partition, Client: c.leaf.partition.Client, Err: ErrDrained}
	}
	if c.anywhere() {
		return nil
	}
	n := c.leaf.node(err)
	if len(c.leaf.more) > 0 && errors.Is(err, paceline.ErrNever) {
		if c.retire(); n.shut.Load() {
			if n = c.narrow(); n == nil { // no way is open any more, or one is open again
				return nil
			}
		}
	}
	if errors.Is(err, paceline.ErrNever) && (n.shut.Load() || c.shrink(n) || c.opened(n)) {
		return nil
	}
	if c.ctx.Err() == nil && !errors.Is(err, paceline.ErrFull) && c.t.alone(c.leaf) {
		return nil
	}
	e := n.refuse(err, *c.asksOf(n))
	e.Client, e.others = c.leaf.partition.Client, c.leaf.others(n)
	if c.maxWait > 0 && errors.Is(err, paceline.ErrDeadline) && c.left() > c.maxWait-c.waited {
		e.MaxWait = c.maxWait
	}
	//lint:ignore SA1019 http.Client sets it, with a deadline, if it has a Timeout
	e.client = c.req.Cancel != nil
	return e
}

// opened reports whether a request that never fits was refused by a limit that was shut then, and is open again. It
// does so a few times for a call: what else refuses it must not be asked for ever.
func (c *call) opened(n *node) bool {
	if _, _, tooLarge := n.most(*c.asksOf(n)); tooLarge || c.openings >= mostOpenings {
		return false
	}
	c.openings++
	return true
}

// move takes a call to the limits of the key that its own key has joined, or to the ways of the latest Keys. Its
// place in line there is by its arrival.
func (c *call) move() error {
	old := c.leaf
	l, err := c.t.latest.Load().find(old.partition, &c.who)
	if err != nil {
		return err
	}
	c.retire() // it is of ways from there
	c.leaf, c.anew = l, true
	old.release()
	switch {
	case c.moves:
		c.moves = c.reroute(c.untried)
	case c.denied.Any():
		c.others()
	}
	return nil
}

// shrink lowers the cost of a request to what fits, as far as it is an estimate: the input, and the
// output of a body that states no maximum. So the request waits for the whole limit and goes alone.
// It reports whether the cost is less now.
func (c *call) shrink(n *node) bool {
	if c.costs != nil {
		return c.shrinkEach(n)
	}
	return c.shrinks(n, &c.cost, &c.least)
}

func (c *call) shrinks(n *node, cost, least *limit.Cost) (changed bool) {
	for _, u := range [...]limit.Unit{limit.Input, limit.Output, limit.Tokens, limit.Money, limit.Weight, limit.Orders} {
		var alone limit.Cost
		alone[u] = cost[u]
		if _, most, ok := n.most(alone); ok && cost[u] > least[u] {
			c.t.log.Debug("a cost by estimate is more than the whole limit: it goes alone", "partition", *n.in(),
				"unit", u.String(), "cost", cost[u], "limit", most)
			cost[u] = max(most, least[u])
			changed = true
		}
	}
	return changed
}

// left returns the time until the request's deadline.
func (c *call) left() time.Duration {
	if deadline, ok := c.ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return math.MaxInt64
}

// leave ends the call, and its use of its body and of the limits. Nothing may keep it.
func (c *call) leave() {
	if c.body != nil {
		c.body.Close()
	}
	c.retire()
	if !c.begun && c.finds != nil { // otherwise its attempt ends that
		c.t.shapes.Ends(c.finds)
	}
	if c.leaf != nil {
		c.leaf.release()
	}
	*c = call{}
	calls.Put(c)
}

// giveBack returns an unused permit. Inlined, its Outcome would be on the stack of each request in
// line: see calls.
//
//go:noinline
func (c *call) giveBack() {
	c.permit.Settle(limit.Outcome{Result: limit.Unsent})
}

// others lets the next attempt use a key that has not denied the request, and reports whether there
// is one.
func (c *call) others() bool { return c.reroute(func(w *way) bool { return w.account != nil }) }

// retire retires the lane that was made for this call alone.
func (c *call) retire() {
	if c.lane != nil {
		c.leaf.asideEnds(c.lane)
		c.lane.Retire()
		c.lane = nil
	}
}
