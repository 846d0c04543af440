package scheduler

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// MaxLimits is the largest number of limits of a way.
const MaxLimits = 13

// Config describes a Scheduler.
type Config struct {
	// Fill is how many tickets behind the first of a lane may be looked at for one that goes ahead
	// of it. Such a ticket has room now at all its limits, and leaves enough for the first to go at
	// the instant foreseen for it. Fill is also how often a ticket may be overtaken. A lane of
	// several ways is filled at each of them, and its first ticket goes by any. If zero, tickets
	// are overtaken only in lanes with a Fill of their own.
	Fill int
	// Size is the most tickets that may wait, in all lanes together. If zero, any number.
	Size int
	// Watch, if not nil, is called for each lane with Watched set in two cases. Its first ticket
	// was looked at and has to stay. Or no ticket waits there any more. Watch may call only those
	// methods of the Scheduler that change nothing.
	Watch func(now mono.Time, a *Lane)
}

// Scheduler keeps the tickets that wait for limits. New makes it.
type Scheduler struct {
	config  Config
	last    mono.Time
	seq     int64
	turn    int64
	changes uint64
	waiting int
	lanes   int // the number of times that lanes were made or retired
	doors   int // the number of lanes with doors
	reserve int // the number of lanes that leave something free

	wake   mono.Time    // the first of the timers
	timers heap[*Limit] // limits with waiting tickets, by the instant to look at them
	agenda heap[*Limit] // limits to look at now, by the place of their first

	told, untold *Ticket // tickets with a verdict, in the order of the verdicts
	records      records
	ending       *record             // what Settle is about, meanwhile
	joined       map[uint64][]joined // by the Number of an open pass: see Join
	spreads      spreading
	asker        Ticket // for Try; its Least is for Lane.ahead
}

// New returns a Scheduler without limits or lanes.
func New(c Config) *Scheduler { return &Scheduler{config: c, last: mono.Min, wake: limit.Never} }

// State is the state of a Ticket, or its verdict.
type State uint8

const (
	None    State = iota // not in line
	Waiting              //
	Granted              // Pass holds
	Never                // its cost is larger than a limit of every way
	Late                 // it cannot go before At, which is after its Deadline
	Full                 // too many tickets wait already: in the Scheduler, in its Lane or in its Class
)

// Ticket is a cost that waits. The driver embeds it and fills in the first part. It must not move
// or change while it waits. Once it has its verdict it may be used again.
//
// The order of the fields is by cache line: of 100,000 tickets hardly any is in the cache when its
// turn comes. The first line sorts the ticket, the second has its cost, the third its verdict. A turn
// reads no more of a ticket, unless Metered says that Costs and Least hold.
type Ticket struct {
	Place mono.Time
	seq   int64
	prev  *Ticket
	next  [levels]*Ticket

	Cost limit.Cost

	Deadline mono.Time // limit.Never: none
	lane     *Lane
	State    State
	Metered  bool // Least holds; otherwise it uses Cost
	height   uint8
	stolen   uint8 // how often it moved to another limit of its way, as the room of that one was taken
	passed   int32 // how many tickets went ahead of it
	Pass     Pass  // Granted
	Ahead    int   // how many tickets of its lane were before it when it came
	// At belongs to Late: when it could go at the earliest; limit.AfterSettle: unknown.
	At    mono.Time
	Again bool    // it was in line before, in another lane: no bound on how many wait refuses it
	_     [7]byte // what follows is a cache line, too

	// Of belongs to the driver.
	Of any
	// Came is when it came, without a head start. Only lanes with LaneConfig.After read it.
	Came mono.Time
	// Homes are the ways that the ticket prefers, as bits by their Index: it goes by any other only Hold
	// after it came. 0: it prefers none. Only lanes with LaneConfig.Homes read them.
	Homes uint64
	Hold  time.Duration
	// Costs, if Metered, has the cost by each class of ways; nil: Cost by all. See AskEach.
	Costs []limit.Cost

	Least limit.Cost // the cost that it surely uses: see limit.Cost.Least
}

// Ask sets the cost of t, and the least that t will surely have used once it is settled.
func (t *Ticket) Ask(cost *limit.Cost) {
	t.Cost = *cost
	if t.Metered = !sure(cost); t.Metered {
		t.Least, t.Costs = cost.Least(), nil
	}
}

// uses returns the cost that t surely uses, by whichever way.
func (t *Ticket) uses() *limit.Cost {
	if t.Metered {
		return &t.Least
	}
	return &t.Cost
}

func (t *Ticket) before(u *Ticket) bool { return t.precedes(u.Place, u.seq) }

func (t *Ticket) precedes(place mono.Time, seq int64) bool {
	return t.Place < place || t.Place == place && t.seq < seq
}

// Pass is leave to send by all limits of a way. Settle it once.
type Pass struct {
	Way    *Way
	number uint64
}

// Limit is a limit.Limiter that lanes share, with the ways that wait at it.
type Limit struct {
	Limiter limit.Limiter

	parked  heap[*Way] // the ways that wait at it
	claims  *[]*Way    // the ways that claim it, in the order of their first tickets; nil: none
	silent  *bool      // it has nothing to decide, and is skipped
	unaware int32      // the number of open passes without an Admit, since it was silent
	lanes   int32
	// Up to here it is one cache line. Nothing else is read while no ticket waits for the limit.

	first  mono.Time // when the first of the parked ways may go
	wake   mono.Time // when to look at it
	timer  int32     // its index in timers; -1: not there
	due    int32     // its index in the agenda; -1: not there
	barred int       // the number of parked ways that want more than it ever has
	line   *Scheduler
	fair   *fairness // nil: lanes take turns by place
	units  uint16    // of cost that it counts, as bits; 0: not known yet
	own    bool      // no reserve holds here
	_      [13]byte  // what follows is a cache line, too

	spare limit.Cost // reserved by open passes beyond what they surely use

	ways []*Way // all, in any order
	// Of belongs to the driver.
	Of any
	_  [24]byte // 256 bytes: that begins with a cache line
}

// Sharing is how lanes share a limit.
type Sharing struct {
	// Fair makes lanes take turns by weight instead of by place, in their use of Unit.
	Fair bool
	Unit limit.Unit
	// Use, if not nil, returns how much a cost uses, instead of Unit. It is for a limit of several
	// units. It must be quick and change nothing.
	Use func(limit.Cost) float64
	// Own means that the limit is one class's own, which leaves nothing of it free for others.
	Own bool
}

// Limit adds a limit to the scheduler, which owns the limiter from now on. After a change of the
// limiter call Touch.
func (l *Scheduler) Limit(m limit.Limiter, s Sharing) *Limit {
	n := &Limit{Limiter: m, line: l, timer: -1, due: -1, first: limit.Never, wake: limit.Never, own: s.Own}
	n.silent = n.skip()
	if s.Fair {
		n.fair = &fairness{unit: s.Unit, use: s.Use, past: past{idle: mono.Min}}
	}
	return n
}

// Waiting returns the number of waiting tickets that may come to need the limit, and the part of it that
// all of them leave free. Where a lane has several ways, its tickets are divided among them.
func (m *Limit) Waiting() (n int, free float64) {
	free = 1
	for _, w := range m.ways {
		if w.lane.count > 0 {
			n += (w.lane.count + len(w.lane.ways) - 1) / len(w.lane.ways)
			free = min(free, w.lane.reserve)
		}
	}
	switch {
	case n == 0 || m.own:
		return n, 0
	case len(m.parked.all) > 0: // the others wait for another limit
		return n, m.leaves(m.parked.first())
	}
	return n, free
}

// Way is one conjunction of limits that a lane's tickets may go by.
type Way struct {
	lane   *Lane
	limits []*Limit
	few    [4]*Limit // the array of limits, if it has no more: with it in one cache line

	at      *Limit    // where it is parked
	ready   mono.Time // when it may go, by the latest answer
	start   float64   // start, place and seq are its rank where it is parked
	place   mono.Time
	seq     int64
	on      *Limit // the limit at which it would have to wait, by the latest choose
	spot    int32  // its index in at.parked, or among the rest of its share
	state   wayState
	claims  bool
	doubted bool // it is in lane.loose, whatever its state
	barred  bool // the lane's first ticket wants more than the limit where it is parked ever has
	fair    bool // one of its limits is fair
	unused  bool // the lane's first ticket uses nothing of the limit where it is parked
	class   int8 // by LaneConfig.Classes, from 1; 0: there are none

	flows      []*flow // if fair: its share at each limit; nil: that limit is not fair
	spots      []int32 // its index in the ways of each limit
	used       int64   // in a lane of several ways: the number of the turn that took it last
	asked      int64   // seq of the ticket that found it ready
	prev, next *Way    // in lane.ready

	// Index is the number of the way in its lane.
	Index int
	// Of belongs to the driver.
	Of   any
	door *door    // nil: it opens when a ticket comes
	_    [16]byte // 256 bytes: that begins with a cache line
}

type wayState uint8

const (
	loose  wayState = iota // its limits are to be asked
	parked                 // it waits at a limit
	ready                  // it is in lane.ready: it was ready when it was asked, and nobody waits
)

// Limits returns the limits of the way, which are not to be changed.
func (w *Way) Limits() []*Limit { return w.limits }

// LaneConfig describes a Lane.
type LaneConfig struct {
	// Weight is the lane's share where a limit is fair, as in ShareConfig. If zero, 1.
	Weight float64
	// Share is the Class of the lane, whose weight then counts. If nil, the lane has a Class of its
	// own.
	Share *Class
	// Reserve is the part of each limit that the lane leaves free, as in ShareConfig. Not with Share.
	Reserve float64
	// Size is the most tickets that may wait in the lane. If zero, any number.
	Size int
	// Fill is Config.Fill for this lane, if it is larger.
	Fill int
	// After, if not nil, has for each way how long after its arrival a ticket may go by it. The way
	// opens at once for a ticket to which all ways with a smaller time are shut: see open. With the
	// largest Duration it opens then alone.
	After []time.Duration
	// Homes means that tickets may prefer some of the ways.
	Homes bool
	// Classes, if not nil, has for each way the index in Ticket.Costs, at most mostClass. So a ticket may
	// cost something else by each class of ways.
	Classes []int
}

// Lane adds a lane. Its tickets go by any one of the ways. There is at least one way, each of 1 to
// MaxLimits different limits, narrowest first. Lane panics otherwise.
func (l *Scheduler) Lane(c LaneConfig, ways ...[]*Limit) *Lane {
	if len(ways) == 0 || c.After != nil && len(c.After) != len(ways) || c.Classes != nil && len(c.Classes) != len(ways) {
		panic("scheduler: a lane without a way, or After or Classes for other ways")
	}
	a := &Lane{line: l, config: c, ways: make([]*Way, len(ways)), own: len(ways) > 1,
		fill: int32(max(c.Fill, l.config.Fill))}
	for i, limits := range ways {
		if len(limits) == 0 || len(limits) > MaxLimits {
			panic("scheduler: a way of no limit, or of too many")
		}
		w := &Way{Index: i, lane: a, spots: make([]int32, len(limits)), spot: -1}
		w.limits = append(w.few[:0], limits...)
		w.classify(c.Classes)
		for k, m := range w.limits {
			for _, v := range m.ways {
				l.share(v.lane)
			}
			w.spots[k] = int32(len(m.ways))
			m.ways = append(m.ways, w)
		}
		a.ways[i] = w
	}
	if len(ways) == 1 {
		a.sole = a.ways[0]
	} else {
		a.common = a.shared()
	}
	a.join(c.Share)
	for m := range a.distinct() {
		m.lanes++
	}
	for _, w := range a.ways {
		a.doubt(w)
	}
	a.lanes = -1
	a.hang()
	l.lanes++
	return a
}

// Retire removes a lane without waiting tickets. Its passes may still be settled. It panics if a
// ticket waits.
func (l *Scheduler) Retire(a *Lane) {
	if a.count > 0 {
		panic("scheduler: Retire of a lane in which somebody waits")
	}
	for m := range a.distinct() {
		m.lanes--
	}
	for _, w := range a.ways {
		l.unpark(w)
		for k, m := range w.limits {
			last := m.ways[len(m.ways)-1]
			m.ways = m.ways[:len(m.ways)-1]
			if last == w {
				continue
			}
			m.ways[w.spots[k]] = last
			for j, n := range last.limits {
				if n == m {
					last.spots[j] = w.spots[k]
				}
			}
		}
	}
	a.part()
	a.leave(0)
	l.lanes++
	if len(a.late) > 0 {
		l.doors--
	}
}

// Waiting returns the number of waiting tickets in all lanes.
func (l *Scheduler) Waiting() int { return l.waiting }
