package nodesim

import (
	"fmt"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// node is a process: a ledger.Node, its driver, its line of requests, and what befalls it.
type member struct {
	*world
	place  int
	id     string
	core   *node.Node
	number uint64        // of its latest request
	offset time.Duration // of its clock
	rate   float64       // of its clock
	began  mono.Time
	dead   bool
	paused mono.Time
	cut    mono.Time // from the store until then
	jammed mono.Time // its way to the server: what it sends arrives then
	turns  *Turns
	line   []waiting
	wake   mono.Time // what is planned
	on     bool
	doomed func(told int) // what befalls after a turn that was put
	mute   bool           // as by Trouble.Mute
	open   int64          // requests in flight, with Places
	late   bool           // it came later, or took another's place, and nothing of it has arrived
}

type waiting struct {
	came mono.Time
	cost limit.Cost
}

func (w *world) start(place int) {
	w.ids++
	n := &member{world: w, place: place, id: fmt.Sprint(w.ids), offset: time.Duration(w.rng.Int64N(1e15)), rate: 1,
		began: w.now(), wake: mono.Max, on: true}
	if !w.NoClock {
		n.rate = 1 + (w.rng.Float64()-0.5)*1e-4
	}
	c := node.Config{New: w.Limit, ID: n.id, Poll: w.Poll, Split: w.Split && place >= w.Wait}
	if w.ever[n.id] = n; w.Seen {
		c.Ended = func(id string) bool {
			of := w.ever[id]
			return of != nil && of.dead
		}
	}
	if w.Weights != nil {
		c.Weight = w.Weights[place]
	}
	if w.Leasts != nil {
		c.Least = w.Leasts[place]
	}
	n.core = node.New(c)
	n.turns = n.newTurns()
	n.late = w.nodes[place] != nil || place >= w.Nodes-w.Later
	w.nodes[place] = n
	if w.Newborn && w.ids > w.Nodes {
		w.store.set += w.upTo(10*time.Second) - 5*time.Second
	}
	if w.Only > 0 && place >= w.Only {
		return
	}
	if w.OnOff > 0 && place >= w.Busy {
		n.flip()
	}
	// Not all in one instant, as processes do not start.
	n.later(w.upTo(50*time.Millisecond), func() {
		n.refill()
		n.serve()
	})
	if n.demand() == 0 {
		n.come()
	}
}

// leaves is the part of the limit that the node's requests leave free.
func (n *member) leaves() float64 {
	if n.Leaves == nil {
		return 0
	}
	return n.Leaves[n.place]
}

// demand is how many requests the node always has waiting. Beside nodes that leave something free the others
// have requests that come.
func (n *member) demand() int {
	if n.Leaves != nil && n.leaves() == 0 && n.Rate > 0 {
		return 0
	}
	return n.Demand
}

// p is the node's clock.
func (n *member) p() mono.Time {
	return mono.Time(n.offset).Add(time.Duration(float64(n.now().Sub(n.began)) * n.rate))
}

// until is how long the loop has to wait for an instant of the node's clock.
func (n *member) until(p mono.Time) time.Duration {
	d := p.Sub(n.p())
	if d <= 0 {
		return 0
	}
	return time.Duration(float64(d)/n.rate) + 1
}

// later calls f after d, or when a pause is over, unless the node is dead by then.
func (n *member) later(d time.Duration, f func()) {
	n.after(d, func() { n.whenRuns(f) })
}

func (n *member) whenRuns(f func()) {
	switch {
	case n.dead:
	case n.paused > n.now():
		n.loop.At(n.paused, func() { n.whenRuns(f) })
	default:
		f()
	}
}

func (n *member) flip() {
	n.later(n.OnOff/2+n.upTo(n.OnOff), func() {
		n.on = !n.on
		n.refill()
		n.serve()
		n.flip()
	})
}

func (n *member) come() {
	n.later(time.Duration(n.rng.ExpFloat64()/n.Rate*1e9), func() {
		if n.on {
			n.line = append(n.line, waiting{n.now(), n.Cost(n.rng)})
			n.serve()
		}
		n.come()
	})
}

func (n *member) refill() {
	if !n.on {
		n.line = nil
	}
	for n.on && len(n.line) < n.demand() {
		n.line = append(n.line, waiting{n.now(), n.Cost(n.rng)})
	}
}

// serve sends who may go, as a driver does, and plans what is next.
func (n *member) serve() {
	for len(n.line) > 0 {
		head := n.line[0]
		p, free := n.p(), n.leaves()
		n.core.Line(len(n.line), head.cost, free)
		at := n.core.ReadyLeaving(p, head.cost, free)
		if at <= p {
			n.number++
			sent := &limit.Sent{At: p, Number: n.number, Cost: head.cost, Leaves: free}
			n.core.Admit(sent)
			n.line = n.line[1:]
			n.waited(head)
			soon := time.Duration(0)
			if n.rng.Float64() < n.Stall {
				n.paused = max(n.paused, n.now().Add(6*time.Second+n.upTo(8*time.Second)))
				if n.Slow > 0 {
					soon = n.paused.Sub(n.now()) + n.upTo(n.Slow)
				}
			}
			// A little later it is written.
			n.later(soon+n.upTo(time.Millisecond), func() { n.write(sent) })
			n.refill()
			continue
		}
		if at < limit.AfterSettle && at < n.wake {
			n.wake = at
			n.later(n.until(at), func() {
				n.wake = mono.Max
				n.serve()
			})
		}
		break
	}
	if len(n.line) == 0 {
		n.core.Line(0, limit.Cost{}, n.leaves())
	}
	n.plan()
}

func (n *member) waited(h waiting) {
	if n.demand() == 0 && n.now() >= mono.Time(n.Warm) {
		n.report.Waits = append(n.report.Waits, n.now().Sub(h.came))
	}
}

// write is the request going out.
func (n *member) write(s *limit.Sent) {
	if !n.core.Fresh(n.p(), s) {
		n.core.Settle(n.p(), s, &limit.Outcome{Result: limit.Unsent})
		n.report.Unsent++
		n.serve()
		return
	}
	way, mute := n.Way(n.rng), n.mute || n.Mute > 0 && n.rng.Float64() < n.Mute
	way, ends := max(way, n.jammed.Sub(n.now())), n.opens()
	if mute {
		way = 4500 * time.Millisecond
		n.core.Settle(n.p(), s, &limit.Outcome{Result: limit.Unknown})
		n.plan()
	}
	n.after(way, func() {
		ok := n.arrive(s.Cost)
		n.report.Seconds[time.Duration(n.now())/time.Second]++
		n.report.BySecond[n.place][time.Duration(n.now())/time.Second]++
		if n.now() >= mono.Time(n.Warm) {
			n.report.Sent++
			n.report.ByNode[n.place]++
			plus(&n.report.Units, &s.Cost)
		}
		if n.report.First[n.place] == 0 {
			n.report.First[n.place] = n.now().Sub(n.began)
		}
		if n.late && !n.dead {
			n.late = false
			n.report.Firsts = append(n.report.Firsts, n.now().Sub(n.began))
			n.report.Came = append(n.report.Came, time.Duration(n.began))
		}
		if !ok {
			n.report.Refused++
			n.report.Refusals = append(n.report.Refusals, time.Duration(n.now()))
		}
		if mute {
			n.report.Answered++
			ends()
			return
		}
		n.later(n.works()+n.Way(n.rng), func() {
			n.report.Answered++
			ends()
			n.core.Settle(n.p(), s, &limit.Outcome{Result: limit.Accepted})
			if n.Places > 0 { // its place may serve the next
				n.serve()
			}
			n.plan()
		})
	})
}

// plan sees to the next turn.
func (n *member) plan() { n.turns.Plan() }

// ended is the return of the store's call.
func (n *member) ended(err error) {
	if err != nil {
		n.report.Lost++
		n.report.Errors[err.Error()]++
	}
	n.serve()
}

// put notes a turn that was put.
func (n *member) put(told, tries int) {
	n.report.Told += told
	if n.doomed != nil {
		n.doomed(told)
	}
	if n.now() >= mono.Time(n.Warm) {
		n.report.Turns++
		n.report.Tries += tries
	}
}

// held is how many requests the node holds by what was put last.
func (n *member) held() int64 {
	b, err := node.Decode(n.store.blob)
	if err != nil {
		return 0
	}
	i := slices.IndexFunc(b.Nodes, func(e node.Entry) bool { return e.ID == n.id })
	if i < 0 {
		return 0
	}
	return b.Nodes[i].Open[limit.Requests]
}

// isCut says that the node cannot reach the store now.
func (n *member) isCut() bool {
	return n.cut > n.now() || n.away > n.now() || n.place < n.Cut && n.now() >= mono.Time(n.CutFrom)
}

// newTurns has the node's turns taken at the world's store.
func (n *member) newTurns() *Turns {
	t := &Turns{Core: n.core, Store: &n.store, Now: n.now, Clock: n.p, After: n.after, Later: n.later, Until: n.until,
		Way: func() time.Duration { return n.StoreWay(n.rng) }, Away: n.isCut, UpTo: n.upTo,
		Lost:    func() bool { return n.rng.Float64() < n.Lose },
		Unheard: func() bool { return n.hears != nil && n.hears != n }, Put: n.put, Ended: n.ended}
	if n.Work != nil {
		t.Work = func() time.Duration { return n.Work(n.rng) }
	}
	return t
}
