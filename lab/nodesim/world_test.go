package nodesim

import (
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Config says what is simulated.
type Config struct {
	Seed  uint64
	Nodes int
	// Limit makes the limiter that the nodes share, and Server the rule that judges what they send, by unit of cost.
	Limit  func() limit.Limiter
	Server func() map[limit.Unit]rule.Server
	// Cost draws what a request costs. If nil, limit.One.
	Cost func(rng *rand.Rand) limit.Cost
	// Places is how many requests the server takes at once; 0: any number. Holds draws how long it works on one. If nil, no
	// time.
	Places int64
	// Seen says that nodes see that one was killed.
	Seen  bool
	Holds func(rng *rand.Rand) time.Duration
	// Way draws the latency of a request or answer one way, and StoreWay that of a message to or from the store.
	Way, StoreWay func(rng *rand.Rand) time.Duration
	// Work draws how long the store takes for a turn. If nil, no time.
	Work func(rng *rand.Rand) time.Duration
	// Demand is how many requests each node always has waiting; if 0, Rate is how many come to it in a
	// second. Only is how many of the nodes have any, if not 0.
	Demand int
	Rate   float64
	Only   int
	// Later is how many of the nodes, the last ones, come at LaterAt, each a tenth of a second after
	// the one before. Not with a Trouble of nodes.
	Later   int
	LaterAt time.Duration
	Length  time.Duration
	// Warm is how much of the beginning is left out of the figures.
	Warm time.Duration
	Poll time.Duration
	// Weights are those of the nodes, 1 if nil.
	Weights []float64
	// Leaves are the parts of the limit that their requests leave free, 0 if nil. Where it is not nil, nodes that
	// leave nothing free have Rate, if that is not 0, and the others Demand.
	Leaves []float64
	// Leasts are their least parts of the whole, 0 if nil.
	Leasts []float64
	// Alter, if not nil, changes the limit for all, by the first node, at AlterAt.
	Alter   node.Change
	AlterAt time.Duration
	// Rested has the store been there for long when they begin; otherwise it is new, and quiet first.
	Rested bool
	// Split has nodes go on with their parts while they cannot reach the store, but for the first Wait of them.
	Split bool
	Wait  int
	// Until, if not nil, ends the run once it is true. It is asked after each event.
	Until func(*Report) bool
	Trouble
}

// Trouble is what befalls nodes and the store: each every so often on average, never if zero.
type Trouble struct {
	Kill   time.Duration // of a node; another takes its place a second later
	Dies   time.Duration // when the last node is killed, and no other takes its place
	Pause  time.Duration // of a node, for 6 to 14 s, or Short: up to 4 s
	Outage time.Duration // of the way from a node to the store, for up to 6 s
	Apart  time.Duration // the same, for up to two minutes
	Lose   float64       // so many of the store's answers are lost, and as many puts are delivered again later
	Set    time.Duration // the store's clock is set by up to 5 s, either way
	Forget time.Duration // the store loses all that it had, and says so by its incarnation
	Rewind time.Duration // the store goes back to what it had 3 to 40 s before: see rewind
	Waken  bool          // right after that a node without demand has some, or a process starts
	// At half of each so many puts the store goes back to one of the last hundred: see undo. Young has
	// it go back also to copies that no node can tell from the present.
	Undo    int
	Young   bool
	Steady  bool          // nobody can set the store's clock
	Restart time.Duration // the store is away for a second, for all, and has then lost all that it had, and says so
	Doom    time.Duration // the store forgets at the worst instant: see doom
	// all but one do not hear whether they put anything, when the store forgets by Doom, and that one
	// came to hold much meanwhile
	Deaf bool
	// all but Inside of the nodes are cut off from the store, until it forgets and those few are killed: see siege
	Siege  time.Duration
	Inside int
	Heir   bool          // the first of those few has just come
	Hush   bool          // they do as by Mute
	Remove time.Duration // somebody has the store lose the limit, of which it says nothing
	OnOff  time.Duration // each node has demand for so long, and none for as long
	Busy   int           // but so many of the nodes, the first ones, always have
	// so many requests are 4.5 s on their way, and the node gives up waiting for their answer at once
	Mute  float64
	Stall float64       // so many requests meet a pause of 6 to 14 s between the last question and the write
	Slow  time.Duration // and are written up to so much later, when the node has had a turn
	// a node is killed, whose place another takes at once, or one is stopped for up to 9 s, exactly so often
	Crew    time.Duration
	Struck  bool // and in the instant of every second one of those the store restarts, as by Restart
	Newborn bool // whenever a process starts, the store's clock was just set
	Short   bool
	Crash   time.Duration // the store is away for a second, for all
	Away    time.Duration // the store, for all, for up to 40 s, and then it is there for 4 s at least
	// Cut is how many of the nodes cannot reach the store from CutFrom on.
	Cut     int
	CutFrom time.Duration
	NoClock bool // nodes' clocks run as the store's; if false, up to 50 ppm apart
}

// Report is what came of it.
type Report struct {
	Sent, Refused, Unsent int
	ByNode                []float64 // how many each place of a node sent, after Warm
	Rate                  float64   // requests sent in a second, after Warm
	Units                 limit.Cost
	InFlight              []time.Duration // of each place, with Places: the sum of its requests, after Warm
	Restarts              int
	Turns                 int             // that were put, after Warm
	Tries                 int             // of those; each is two statements
	Lost                  int             // turns that failed, or lost the race until they were given up
	First                 []time.Duration // of each place, the first time
	Firsts                []time.Duration // of those who came later, or took a place: from the start to the first arrival
	Came                  []time.Duration // when those started
	Waits                 []time.Duration // of requests that came, with Rate
	BlobBytes             int
	// answers, and how many were told by turns that were put: no more, but after the store forgot
	Answered, Told int
	Errors         map[string]int
	Seconds        []int           // requests sent in each
	BySecond       [][]int         // as Seconds, by the place of the node
	Faults         []time.Duration // when nodes were killed or paused, and the store crashed or went back
	Refusals       []time.Duration // when requests were refused
	Ended          time.Duration   // when the run did
	// Beyond says that the run ended early: the store's clock had been set forward while nobody was
	// there who could notice, which is trusted not to happen.
	Beyond bool
}

// Jain is how evenly the nodes were served: 1 is perfectly so.
func (r *Report) Jain() float64 {
	sum, squares := 0.0, 0.0
	for _, n := range r.ByNode {
		sum += n
		squares += n * n
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(r.ByNode)) * squares)
}

type world struct {
	Config
	rng    *rand.Rand
	loop   sim.Loop[func()]
	nodes  []*member
	ever   map[string]*member // by ID
	server map[limit.Unit]rule.Server
	store  Store
	away   mono.Time // the store, from all until then
	hears  *member   // the others are told of no put
	// besieged is until when there is no other siege.
	besieged mono.Time
	// incarnations is how many there were: one that the store goes back to is not new.
	incarnations int
	past         []copied // the latest puts, with Trouble.Undo
	puts         int
	// noticed is how the store's clock was set when somebody put last.
	noticed time.Duration
	report  Report
	ids     int
}

// Run simulates.
func Run(c Config) *Report {
	w := &world{Config: c, rng: rand.New(rand.NewPCG(c.Seed, 17)), server: c.Server()}
	w.report.Errors, w.ever = map[string]int{}, map[string]*member{}
	w.store.accept, w.store.undo, w.store.steady = w.accept, w.undo, c.Steady
	if c.Rested {
		w.store.Rest(node.Config{New: c.Limit})
	}
	if w.Cost == nil {
		w.Cost = func(*rand.Rand) limit.Cost { return limit.One }
	}
	w.report.ByNode, w.report.InFlight = make([]float64, c.Nodes), make([]time.Duration, c.Nodes)
	w.report.Seconds = make([]int, c.Length/time.Second+1)
	w.report.BySecond = make([][]int, c.Nodes)
	for i := range w.report.BySecond {
		w.report.BySecond[i] = make([]int, len(w.report.Seconds))
	}
	w.report.First = make([]time.Duration, c.Nodes)
	for i := range c.Nodes {
		w.nodes = append(w.nodes, nil)
		if late := i - (c.Nodes - c.Later); late >= 0 {
			w.after(c.LaterAt+time.Duration(late)*time.Second/10, func() { w.start(i) })
			continue
		}
		w.start(i)
	}
	w.trouble()
	end := mono.Time(0).Add(c.Length)
	for f, ok := w.loop.Next(end); ok && !w.report.Beyond; f, ok = w.loop.Next(end) {
		if f(); c.Until != nil && c.Until(&w.report) {
			break
		}
	}
	w.report.Ended = time.Duration(w.now())
	w.report.Rate = float64(w.report.Sent) / (c.Length - c.Warm).Seconds()
	w.report.BlobBytes = len(w.store.blob)
	return &w.report
}

// accept looks at a blob that is put.
func (w *world) accept(blob []byte) {
	s := &w.store
	if s.set > w.noticed && s.blob != nil {
		was, err1 := node.Decode(s.blob)
		is, err2 := node.Decode(blob)
		w.report.Beyond = err1 == nil && err2 == nil && was.Era != is.Era && was.Incarnation == is.Incarnation
	}
	w.noticed = s.set
}

func (w *world) now() mono.Time { return w.loop.Now() }

// fault notes that something befalls.
func (w *world) fault() { w.report.Faults = append(w.report.Faults, time.Duration(w.now())) }

func (w *world) after(d time.Duration, f func()) { w.loop.At(w.now().Add(d), f) }

// trouble plans all that befalls.
func (w *world) trouble() {
	w.every(w.Kill, func() {
		i := w.rng.IntN(w.Nodes)
		if w.nodes[i].dead {
			return
		}
		w.fault()
		w.nodes[i].dead = true
		w.after(time.Second, func() { w.start(i) })
	})
	if w.Dies > 0 {
		w.after(w.Dies, func() { w.nodes[w.Nodes-1].dead = true })
	}
	w.every(w.Pause, func() {
		w.fault()
		d := 6*time.Second + w.upTo(8*time.Second)
		if w.Short {
			d = w.upTo(4 * time.Second)
		}
		n := w.nodes[w.rng.IntN(w.Nodes)]
		n.paused = max(n.paused, w.now().Add(d))
	})
	w.every(w.Outage, func() {
		n := w.nodes[w.rng.IntN(w.Nodes)]
		n.cut = max(n.cut, w.now().Add(w.upTo(6*time.Second)))
	})
	w.every(w.Apart, func() {
		n := w.nodes[w.rng.IntN(w.Nodes)]
		n.cut = max(n.cut, w.now().Add(w.upTo(2*time.Minute)))
	})
	w.every(w.Away, func() {
		if w.now() > w.away.Add(4*time.Second) {
			w.away = w.now().Add(w.upTo(40 * time.Second))
		}
	})
	w.every(w.Crash, func() {
		w.fault()
		w.away = max(w.away, w.now().Add(time.Second))
	})
	w.every(w.Set, func() { w.store.set += w.upTo(10*time.Second) - 5*time.Second })
	if w.Alter != nil {
		w.after(w.AlterAt, func() {
			w.nodes[0].core.Alter(w.Alter)
			w.nodes[0].plan()
		})
	}
	w.every(w.Remove, func() {
		w.store.lose(w.rng.Int())
	})
	w.every(w.Forget, w.forget)
	w.rewind()
	w.every(w.Doom, w.doom)
	w.every(w.Siege, w.siege)
	w.every(w.Restart, func() {
		w.fault()
		w.restart()
	})
	if w.Crew > 0 {
		w.crew(0)
	}
}

func (w *world) restart() {
	w.report.Restarts++
	w.away = max(w.away, w.now().Add(time.Second))
	w.forget()
}

// crew is what befalls by Trouble.Crew: TestSharedThroughFaults does it to processes and a store.
func (w *world) crew(step int) {
	w.after(w.Crew, func() {
		w.fault()
		n := w.nodes[w.rng.IntN(w.Nodes)]
		if step%4 == 0 || step%4 == 3 {
			n.dead = true
			w.start(n.place)
		} else {
			n.paused = max(n.paused, w.now().Add(w.upTo(9*time.Second)))
		}
		if w.Struck && step%2 == 0 {
			w.restart()
		}
		w.crew(step + 1)
	})
}

// doom has the store forget just after a node has put something, which from then on cannot reach
// the store, and is killed soon: what it sends until then arrives together, some seconds later. It
// may just have come, or just have begun to want something; or another one that was stopped comes
// back just then. Or it was stopped itself, for a short while or long, and is back just then. Or
// the store forgets, and nothing else befalls. Or the node was told of no answer, and what it sent
// arrives much later.
func (w *world) doom() {
	n := w.nodes[w.rng.IntN(w.Nodes)]
	wait, cut, mute := time.Duration(0), true, false
	switch kind := w.rng.IntN(7); {
	case w.Deaf:
		n.on, wait = false, 3*time.Second
		n.refill()
	case kind == 0:
		n.dead, wait = true, time.Second
		w.after(wait, func() { w.start(n.place) })
	case kind == 1:
		other := w.nodes[(n.place+1)%w.Nodes]
		wait = 4*time.Second + w.upTo(5*time.Second)
		other.paused = max(other.paused, w.now().Add(wait+w.upTo(time.Second/2)))
	case kind == 2:
		n.on, wait = false, 3*time.Second
		n.refill()
	case kind == 3:
		n.on, wait = false, 3*time.Second
		n.refill()
		cut, mute = false, true
	case kind == 4:
		cut = false
	case kind == 5:
		wait = w.upTo(2500*time.Millisecond) +
			[]time.Duration{0, 2300 * time.Millisecond, 4300 * time.Millisecond}[w.rng.IntN(3)]
		n.paused = max(n.paused, w.now().Add(wait))
	}
	w.after(wait, func() {
		n := w.nodes[n.place]
		n.on, n.mute = true, mute
		n.refill()
		n.serve()
		least := int64(1)
		if w.Deaf {
			w.hears, least = n, 6
		}
		n.doomed = func(told int) {
			if n.held() < least || mute && told < 4 {
				return
			}
			n.doomed, n.mute, w.hears = nil, false, nil
			w.after(w.upTo(30*time.Millisecond), w.forget)
			if !cut {
				return
			}
			n.jammed, n.cut = w.now().Add(4*time.Second), w.now().Add(4*time.Second)
			w.after(2200*time.Millisecond, func() {
				n.dead = true
				w.after(time.Second, func() { w.start(n.place) })
			})
		}
	})
}

// siege has few nodes be alone with the store for about as long as grants hold, in which they tell
// what no other knows; then it forgets, they are killed, and the others are back. If it is one that
// has just come, the others saw it never, and what it sent last arrives together, later.
func (w *world) siege() {
	if w.now() < w.besieged {
		return
	}
	lasts := 1500*time.Millisecond + w.upTo(600*time.Millisecond)
	w.besieged = w.now().Add(12 * time.Second)
	first := w.rng.IntN(w.Nodes)
	begin := func() {
		var inside []*member
		for i := range w.nodes {
			n := w.nodes[(first+i)%w.Nodes]
			if i >= w.Inside {
				n.cut = max(n.cut, w.now().Add(lasts))
				continue
			}
			inside, n.mute = append(inside, n), w.Hush
		}
		w.after(lasts, func() {
			w.forget()
			for _, n := range inside {
				n.dead = true
				w.after(time.Second, func() { w.start(n.place) })
			}
		})
	}
	if !w.Heir {
		begin()
		return
	}
	w.nodes[first].dead = true
	w.after(5*time.Second, func() { // the others no longer wait for the one before it
		w.start(first)
		heir := w.nodes[first]
		heir.doomed = func(int) {
			heir.doomed = nil
			begin()
			w.after(lasts-lasts/8, func() { heir.jammed = w.now().Add(lasts) })
		}
	})
}

// forget has the store lose all that it had, and say so by its incarnation.
func (w *world) forget() {
	w.store.lose(w.rng.Int())
	w.incarnations++
	w.store.incarnation = w.incarnations
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }

func (w *world) every(d time.Duration, f func()) {
	if d == 0 {
		return
	}
	w.after(time.Duration(w.rng.ExpFloat64()*float64(d)), func() {
		f()
		w.every(d, f)
	})
}

func plus(sum, c *limit.Cost) {
	for u, n := range c {
		sum[u] += n
	}
}

// arrive is a request at the server.
func (w *world) arrive(cost limit.Cost) bool {
	ok := true
	for u, s := range w.server {
		if cost[u] > 0 && !s.Arrive(Base.Add(time.Duration(w.now())), cost[u]) {
			ok = false
		}
	}
	return ok
}

// lose has the store lose the limit, of which it says nothing. What was read before is not put later.
func (s *Store) lose(version int) { s.blob, s.version = nil, version }
