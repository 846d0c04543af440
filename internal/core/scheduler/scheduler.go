// Package scheduler decides who goes next before limits that several share: for a Gate, a Group, the transport, a Pool and the
// simulator alike.
//
//	Limit    a limit.Limiter, and the ways that wait at it
//	Way      a conjunction of Limits, narrowest first: admitted by all of them at once, or by none
//	Lane     tickets that may go the same ways, one after the other, in the order of their Place
//	Ticket   a cost that waits: granted, refused, or it leaves
//
// Order within a lane is one number, Place: an arrival, less a head start. Order between lanes at a limit is Place too, or, where
// the limit is fair, start-time fair queueing: each lane's share of what it uses is in proportion to its weight.
//
// Only the first ticket of a lane is ever asked about. Each way of a lane is parked at one limit: of all limits of the way, the one that
// will be ready last. When that limit changes, or its instant comes, the ways parked there are looked at in order. The first of them
// goes; or it moves to another limit that it has to wait for; or it stays, and then all behind it stay, too. So 40,000 tickets
// of one lane cost what one does, and a limit that is closed holds up nobody who does not need it.
//
// While a way is parked at one limit, later tickets may take what its other limits have left. When that has happened a few times, the
// first of the lane claims all limits of its way: no later ticket gets any of them until it has gone. So nobody starves.
//
// A driver calls Next after every other call and at the instant Wake, until it returns nil. Everything is arithmetic on a now
// that the driver supplies. A Scheduler owns no clock or lock and is not safe for concurrent use; Tickets must not move.
package scheduler

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// MaxLimits is how many limits a way may have.
const MaxLimits = 8

// Config describes a Scheduler.
type Config struct {
	// Fill is how many tickets behind the first of a lane are looked at for one that may go ahead of it: one that has room now at all
	// its limits, and leaves enough for the first to go at the instant foreseen for it. It is also how often a ticket may be overtaken.
	// A lane of several ways is filled at each of them, and the first of it goes by any. If zero, nobody is overtaken, but in lanes with a Fill of their own.
	Fill int
	// Size is the most tickets that may wait, in all lanes together. If zero, any number.
	Size int
	// Watch, if not nil, is called for each lane with Watched set when its first ticket was looked at and has to stay, and when nobody
	// waits there any more. It may call only those methods of the Scheduler that change nothing.
	Watch func(now mono.Time, a *Lane)
}

// Scheduler is who waits for which limits. Made by New.
type Scheduler struct {
	config  Config
	last    mono.Time
	seq     int64
	turn    int64
	changes uint64
	waiting int
	lanes   int // how often lanes were made or retired

	wake   mono.Time    // the first of the timers
	timers heap[*Limit] // limits that somebody waits for, by the instant to look at them
	agenda heap[*Limit] // limits to look at now, by the place of their first

	told, untold *Ticket // with a verdict, in its order
	book         limit.Book[kept]
	asker        Ticket // of Try; its Least is of Lane.ahead
}

// New returns a Scheduler without limits or lanes.
func New(c Config) *Scheduler { return &Scheduler{config: c, last: mono.Min, wake: limit.Never} }

// State is what became of a Ticket.
type State uint8

const (
	None    State = iota // not in line
	Waiting              //
	Granted              // Pass holds
	Never                // its cost is larger than a limit of every way
	Late                 // it cannot go before At, which is after its Deadline
	Full                 // too many wait already: in the Scheduler, or in its Lane
)

// Ticket is a cost that waits. The driver embeds it and fills in the first part; it must not move or change while it waits. Once it
// has its verdict it may be used again.
//
// The order of the fields is by cache line, since of 100,000 tickets hardly any is in the cache when its turn comes: the first line has
// what sorts it, the second its cost, the third what it is told. Least comes last, and is read only if Metered says that it holds.
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
	stolen   uint8 // how often another took what it waited for
	passed   int32 // how many went ahead of it
	Pass     Pass  // Granted
	Ahead    int   // how many of its lane were before it when it came

	// Of is the driver's.
	Of any
	At mono.Time // Late: when it could go at the earliest; limit.AfterSettle: not known
	_  [40]byte  // what follows is a cache line, too

	Least limit.Cost // what it surely uses: see limit.Cost.Least
}

// Ask sets what t costs, and the least that it will surely have used once it is settled.
func (t *Ticket) Ask(cost *limit.Cost) {
	t.Cost = *cost
	if t.Metered = !sure(cost); t.Metered {
		t.Least = cost.Least()
	}
}

// uses returns what t surely uses.
func (t *Ticket) uses() *limit.Cost {
	if t.Metered {
		return &t.Least
	}
	return &t.Cost
}

func (t *Ticket) before(u *Ticket) bool {
	return t.Place < u.Place || t.Place == u.Place && t.seq < u.seq
}

// Pass is leave that was given: the leases of all limits of a way. It is to be settled once.
type Pass struct {
	Way    *Way
	lease  [1]limit.Lease // of the limit, or of the Scheduler's book
	booked bool
}

// kept is what the book has of a pass that one lease cannot tell.
type kept struct {
	leases  [MaxLimits]limit.Lease // as many as the way has limits; the rest is of a pass before
	metered bool                   // spare holds
	spare   limit.Cost             // reserved beyond what is surely used
}

// Limit is a limit.Limiter that lanes share, with the ways that wait at it.
type Limit struct {
	Limiter limit.Limiter

	parked heap[*Way] // the ways that wait at it
	claims []*Way     // the ways that claim it, in the order of their first tickets
	// Up to here it is one cache line, which is all that is read of it while nobody waits for it.

	first  mono.Time // when the first of the parked ways may go
	wake   mono.Time // when to look at it
	timer  int32     // its index in timers; -1: not there
	due    int32     // its index in the agenda; -1: not there
	barred int       // how many of the parked ways want more than it ever has
	line   *Scheduler
	fair   *fairness // nil: lanes take turns by place
	lanes  int
	_      [8]byte // what follows is a cache line, too

	spare limit.Cost // reserved by open passes beyond what they surely use

	ways []*Way // all, in any order
	// Of is the driver's.
	Of any
	_  [24]byte // 256 bytes: that begins with a cache line
}

// Sharing says how lanes share a limit.
type Sharing struct {
	// Fair has lanes take turns by weight instead of by place, in what they use of Unit.
	Fair bool
	Unit limit.Unit
	// Use, if not nil, says instead how much a cost uses: for a limit of several units. It must be quick and change nothing.
	Use func(limit.Cost) float64
}

// Limit adds a limit to the line. The limiter belongs to it from now on: change it, and then call Touch.
func (l *Scheduler) Limit(m limit.Limiter, s Sharing) *Limit {
	n := &Limit{Limiter: m, line: l, timer: -1, due: -1, first: limit.Never, wake: limit.Never}
	if s.Fair {
		n.fair = &fairness{unit: s.Unit, use: s.Use, past: past{idle: mono.Min}}
	}
	return n
}

// Waiting returns how many tickets wait that may come to need the limit. Where a lane has several ways, its tickets are divided among them.
func (m *Limit) Waiting() (n int) {
	for _, w := range m.ways {
		n += (w.lane.count + len(w.lane.ways) - 1) / len(w.lane.ways)
	}
	return n
}

// Way is one conjunction of limits that a lane's tickets may go by.
type Way struct {
	lane   *Lane
	limits []*Limit
	few    [4]*Limit // what limits is of, if there are no more: with it in one cache line

	at      *Limit    // where it is parked
	ready   mono.Time // when it may go, as it was told last
	start   float64   // start, place and seq are its rank where it is parked
	place   mono.Time
	seq     int64
	on      *Limit // where it would have to wait, as choose found last
	spot    int32  // its index in at.parked, or among the rest of its share
	state   wayState
	claims  bool
	doubted bool // it is in lane.loose, whatever its state
	barred  bool // the lane's first ticket wants more than the limit where it is parked ever has
	fair    bool // one of its limits is fair

	flows      []*flow // if fair: its share at each limit; nil: that is not fair
	spots      []int32 // its index in the ways of each limit
	used       int64   // in a lane of several ways: the number of the turn that took it last
	asked      int64   // seq of the ticket that found it ready
	prev, next *Way    // in lane.ready

	// Index is the number of the way in its lane.
	Index int
	_     [40]byte // 256 bytes: that begins with a cache line
}

type wayState uint8

const (
	loose  wayState = iota // its limits are to be asked
	parked                 // it waits at a limit
	ready                  // it is in lane.ready: it was ready when it was asked, and nobody waits
)

// Limits returns the limits of the way, which are not to be changed.
func (w *Way) Limits() []*Limit { return w.limits }

// Lane returns the lane that the way is of.
func (w *Way) Lane() *Lane { return w.lane }

// LaneConfig describes a Lane.
type LaneConfig struct {
	// Weight is the lane's share where a limit is fair, as ShareConfig has it. If zero, 1.
	Weight float64
	// Class is what the lane is a part of, and whose weight then counts. If nil, it is a party of its own.
	Share *Class
	// Size is the most tickets that may wait in it. If zero, any number.
	Size int
	// Fill is Config.Fill for this lane, if it is larger than that.
	Fill int
}

// Lane adds a lane whose tickets go by any one of the ways, at least one, each of 1 to MaxLimits different limits, narrowest first.
// It panics otherwise.
func (l *Scheduler) Lane(c LaneConfig, ways ...[]*Limit) *Lane {
	if len(ways) == 0 {
		panic("line: a lane without a way")
	}
	a := &Lane{line: l, config: c, ways: make([]*Way, len(ways)), own: len(ways) > 1, fill: int32(max(c.Fill, l.config.Fill))}
	for i, limits := range ways {
		if len(limits) == 0 || len(limits) > MaxLimits {
			panic("line: a way of no limit, or of too many")
		}
		w := &Way{Index: i, lane: a, spots: make([]int32, len(limits)), spot: -1}
		w.limits = append(w.few[:0], limits...)
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
	}
	a.join(c.Share)
	for m := range a.distinct() {
		m.lanes++
	}
	for _, w := range a.ways {
		a.doubt(w)
	}
	a.lanes = -1
	l.lanes++
	return a
}

// Retire takes a lane in which nobody waits out of the line. Its passes may still be settled. It panics if somebody waits.
func (l *Scheduler) Retire(a *Lane) {
	if a.count > 0 {
		panic("line: Retire of a lane in which somebody waits")
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
	l.lanes++
}

// Waiting returns how many wait, in all lanes.
func (l *Scheduler) Waiting() int { return l.waiting }
