package costs

import (
	"container/list"
	"encoding/json"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// mostShapes is how many shapes of requests are remembered. The one that was used least lately is
// forgotten first.
const mostShapes = 4096

var seed = maphash.MakeSeed()

// Shapes remember what GraphQL queries of a shape did cost, where only the answer knows it. Queries have
// one shape if they have the same charge and host, the same text and operationName, and the same
// variables named first, last and limit. The zero Shapes are empty. Safe for concurrent use.
type Shapes struct {
	lessons atomic.Int64 // how often a cost was new or changed

	mu     sync.Mutex
	all    map[uint64]*list.Element
	recent list.List // of *shape, the latest first
}

// shape is the requests of one shape.
type shape struct {
	id     uint64
	known  bool
	silent bool          // an answer did not say what its request cost
	cost   limit.Cost    // what the latest one did cost; guarded by Shapes.mu, as known, silent and asks
	asks   chan struct{} // closed when the one that finds the cost out has ended; nil: there is none
}

// Finder is a request whose answer tells what its shape costs.
type Finder struct {
	of   *shape
	asks chan struct{} // its own, of which others wait for the end; nil: they wait for none
	once sync.Once
}

// ShapeOf hashes what requests of a shape have in common. It returns 0 if what requests did cost says
// nothing of the next one: the body is no GraphQL query, or the charge states a bound.
func ShapeOf(host string, row *provider.Charge, body []byte) uint64 {
	learns := false
	for unit := range row.Answer {
		learns = learns || Learns(row, unit)
	}
	var ask struct {
		Query         string                     `json:"query"`
		OperationName string                     `json:"operationName"`
		Variables     map[string]json.RawMessage `json:"variables"`
	}
	// A search has a query in words, and no braces.
	if !learns || json.Unmarshal(body, &ask) != nil || !strings.Contains(ask.Query, "{") {
		return 0
	}
	texts := []string{host, row.On, ask.Query, ask.OperationName}
	for _, name := range [...]string{"first", "last", "limit"} {
		texts = append(texts, string(ask.Variables[name]))
	}
	return hash(texts...)
}

// FirstOf is the shape of the requests of a route with a key that no charge names.
func FirstOf(host, key, route string) uint64 { return hash(host, key, route) }

func hash(texts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, text := range texts {
		h.WriteString(text)
		h.WriteByte('\n')
	}
	return h.Sum64()
}

// Learns reports whether requests of a shape cost, until their answers, what the latest one did cost. A
// bound of the charge holds, unless the charge gives it up.
func Learns(row *provider.Charge, unit provider.Unit) bool {
	return row.Learns || row.Cost[unit] == 0 && row.Body[unit] == nil
}

// Reserved returns what a request costs until its answer, in the units that only the answer knows: what its
// shape did cost last if its charge learns that, or else what its charge says, or else all that the limits
// hold at once. worth is what the charge says.
func Reserved(worth limit.Cost, row *provider.Charge, cost limit.Cost, known bool) limit.Cost {
	for unit := range row.Answer {
		u, ok := classify.UnitOf(unit)
		switch {
		case !ok:
		case known && Learns(row, unit):
			worth[u] = cost[u]
		case worth[u] == 0:
			worth[u] = limit.MaxCost
		}
	}
	return worth
}

// Enter returns the shape, and its cost if that is known. If not, either f is the request that finds it
// out, or wait is closed when that one has ended. Where an answer has not told the cost, nobody waits.
func (s *Shapes) Enter(id uint64) (f *Finder, cost limit.Cost, known bool, wait <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.shape(id)
	switch {
	case x.asks != nil: // also if the cost is known by now: what it did cost may not count in the limits yet
		return nil, cost, false, x.asks
	case x.known || x.silent:
		return &Finder{of: x}, x.cost, x.known, nil
	}
	x.asks = make(chan struct{})
	return &Finder{of: x, asks: x.asks}, cost, false, nil
}

// shape returns a shape, and notes that it is used. The lock is held.
func (s *Shapes) shape(id uint64) *shape {
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
	return e.Value.(*shape)
}

// Learn notes what a request did cost; nil: the request did not wait until it may find that out.
func (s *Shapes) Learn(f *Finder, cost limit.Cost) {
	if f == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.of.known, f.of.cost = true, cost
}

// Untold notes that an answer did not say what its request cost.
func (s *Shapes) Untold(f *Finder) {
	if f == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.of.silent = true
}

// Ends lets those go that wait for the request. The next of them finds the cost out, if this one did not.
func (s *Shapes) Ends(f *Finder) {
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

// Teach notes what a request of a shape did cost, for those that wait in a line with a cost that may change.
// It reports whether they have to: their cost was not known, or is more now. A lower one is for later requests.
func (s *Shapes) Teach(id uint64, cost limit.Cost) (changes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.shape(id)
	changes = !x.known
	for u := range cost {
		changes = changes || cost[u] > x.cost[u]
	}
	if x.known, x.cost = true, cost; changes {
		s.lessons.Add(1)
	}
	return changes
}

// Taught returns what the latest request of a shape did cost.
func (s *Shapes) Taught(id uint64) (cost limit.Cost, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all[id]; e != nil {
		x := e.Value.(*shape)
		return x.cost, x.known
	}
	return cost, false
}

// Lessons counts changes for those that wait: see Teach.
func (s *Shapes) Lessons() int64 { return s.lessons.Load() }
