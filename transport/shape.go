package transport

import (
	"context"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/limit"
)

// reserve sets what a request costs until its answer: by its charge, or by its shape if it has one. While
// another request finds out what the shape costs, it waits.
func (c *call) reserve(host string, body []byte) (err error) {
	var cost limit.Cost
	known := false
	if shape := costs.ShapeOf(host, c.row, body); shape != 0 {
		if cost, known, err = c.enter(shape); err != nil {
			return err
		}
	}
	c.worth = costs.Reserved(c.worth, c.row, cost, known)
	c.guessed = !known
	return nil
}

// introduce lets the first request of a route that no row names go before others of it, until it is
// answered, where answers state what is used: then its cost shows.
func (c *call) introduce(p *Partition) error {
	if c.row != nil && !catchAll(c.row.On) || !c.t.notices.Reads(p.Host) {
		return nil
	}
	_, known, err := c.enter(costs.FirstOf(p.Host, p.Key, routeOf(c.req)))
	c.first = !known && c.finds != nil
	return err
}

// catchAll reports whether a charge is for all that no other one names: "* *", "* /api/*".
func catchAll(on string) bool {
	return strings.HasPrefix(on, "* ") && strings.HasSuffix(on, "*") && !strings.Contains(on, "?")
}

// enter returns what requests of a shape did cost last. If that is not known, this one finds it out, or
// waits for the end of one that does.
func (c *call) enter(id uint64) (cost limit.Cost, known bool, err error) {
	began := time.Now()
	for {
		f, cost, known, wait := c.t.shapes.Enter(id)
		if wait != nil && c.maxWait > 0 && time.Since(began) >= c.maxWait {
			wait = nil // it goes as if it were the first
		}
		if wait == nil {
			c.finds = f
			c.waited += time.Since(began)
			return cost, known, nil
		}
		if err := c.awaits(wait, began); err != nil {
			return cost, false, err
		}
	}
}

// awaits waits for the end of another request, but no longer than the request may wait.
func (c *call) awaits(end <-chan struct{}, began time.Time) error {
	var over <-chan time.Time
	if c.maxWait > 0 {
		timer := time.NewTimer(c.maxWait - time.Since(began))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-end:
	case <-over:
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
	return nil
}
