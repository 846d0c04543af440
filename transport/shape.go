package transport

import (
	"container/list"
	"context"
	"encoding/json"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// mostShapes is how many shapes of requests are remembered. The one that was used least lately is
// forgotten first.
const mostShapes = 4096

// shapes remember what requests of a shape did cost, where only the answer knows it. Requests have one
// shape if they have the same charge and host, the same text and operationName of a GraphQL query, and
// the same variables named first, last and limit. The zero shapes are empty. Safe for concurrent use.
type shapes struct {
	mu     sync.Mutex
	all    map[uint64]*list.Element
	recent list.List // of *shape, the latest first
}

// shape is the requests of one shape.
type shape struct {
	id    uint64
	known bool
	cost  limit.Cost    // what the latest one did cost; guarded by shapes.mu, as known and asks
	asks  chan struct{} // closed when the one that finds the cost out has ended; nil: there is none
}

// finder is the request that finds out what its shape costs.
type finder struct {
	of   *shape
	asks chan struct{} // its own, of which others wait for the end; nil: it finds nothing out
	once sync.Once
}

// shapeOf hashes what requests of a shape have in common.
func shapeOf(host string, row *provider.Charge, body []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(host + "\n" + row.On + "\n")
	var ask struct {
		Query         string                     `json:"query"`
		OperationName string                     `json:"operationName"`
		Variables     map[string]json.RawMessage `json:"variables"`
	}
	if json.Unmarshal(body, &ask) == nil {
		h.WriteString(ask.Query + "\n" + ask.OperationName + "\n")
		for _, name := range [...]string{"first", "last", "limit"} {
			h.Write(ask.Variables[name])
			h.WriteByte('\n')
		}
	}
	return h.Sum64()
}

// enter returns the shape, and its cost if that is known. If not, either f is the request that finds it
// out, or wait is closed when that one has ended.
func (s *shapes) enter(id uint64) (f *finder, cost limit.Cost, known bool, wait <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[uint64]*list.Element{}
	}
	e := s.all[id]
	if e == nil {
		if e = s.recent.PushFront(&shape{id: id}); len(s.all) == mostShapes {
			delete(s.all, s.recent.Remove(s.recent.Back()).(*shape).id)
		}
		s.all[id] = e
	}
	s.recent.MoveToFront(e)
	x := e.Value.(*shape)
	switch {
	case x.known:
		return &finder{of: x}, x.cost, true, nil
	case x.asks != nil:
		return nil, cost, false, x.asks
	}
	x.asks = make(chan struct{})
	return &finder{of: x, asks: x.asks}, cost, false, nil
}

// learn notes what a request did cost.
func (s *shapes) learn(f *finder, cost limit.Cost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.of.known, f.of.cost = true, cost
}

// ends lets those go that wait for the request. The next of them finds the cost out, if this one did not.
func (s *shapes) ends(f *finder) {
	if f.asks == nil {
		return
	}
	f.once.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.of.asks = nil
		close(f.asks)
	})
}

// reserve sets what a request costs until its answer: what its shape did cost last, or else what its
// charge says, or else all that the limits hold at once. While another request finds out what the shape
// costs, it waits.
func (c *call) reserve(host string, body []byte) error {
	cost, known, err := c.enter(shapeOf(host, c.row, body))
	if err != nil {
		return err
	}
	for unit := range c.row.Answer {
		u, ok := classify.UnitOf(unit)
		switch {
		case !ok:
		case known:
			c.worth[u] = cost[u]
		case c.worth[u] == 0:
			c.worth[u] = limit.MaxCost
		}
	}
	c.guessed = !known
	return nil
}

// introduce lets the first request of a route that no row names go before others of it, until it is
// answered, where answers state what is used: then its cost shows.
func (c *call) introduce(p *Partition) error {
	if c.row != nil && !catchAll(c.row.On) || !c.t.notices.Reads(p.Host) {
		return nil
	}
	_, known, err := c.enter(shapeOf(p.Host, &provider.Charge{On: p.Key + "\n" + routeOf(c.req)}, nil))
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
		f, cost, known, wait := c.t.shapes.enter(id)
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
