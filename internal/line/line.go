// Package line decides who goes next before limits that several share: for a Gate, a Junction, the transport, a Pool and the
// simulator alike.
//
//	Limit    a limit.Limiter, and the ways that wait for it
//	Way      a conjunction of Limits, narrowest first: admitted by all of them at once, or by none
//	Lane     tickets that may go the same ways, one after the other, in the order of their Place
//	Ticket   a cost that waits: granted, refused, or it leaves
//
// Order within a lane is one number, Place: an arrival, less a head start. Order between lanes at a limit is Place too, or, where
// the limit is fair, start-time fair queueing: each lane's share of what it uses is in proportion to its weight.
//
// Only the first of a lane is ever asked about, and each way of a lane is parked at one limit: the last of its own that will
// be ready. When that limit changes or its instant comes, the ways parked there are looked at by turn: the first goes, or parks at
// what it really waits for, or stays, and with it all behind it. So 40,000 tickets of one lane cost what one does, and a limit
// that is closed holds up nobody who does not need it.
//
// Being parked at one limit means that later ones may take what the others have left. After some such thefts the first of a lane
// claims all its limits: nobody later gets them until it has gone. So nobody starves.
//
// A driver calls Next after every other call and at the instant Wake, until it returns nil. Everything is arithmetic on a now
// that the driver supplies. A Line owns no clock or lock and is not safe for concurrent use; Tickets must not move.
package line

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// MaxLimits is how many limits a way may have.
const MaxLimits = 8

// Config describes a Line.
type Config struct {
	// Fill is how many behind the first of a lane are looked at for one that may go ahead of it, and how often anybody may be
	// overtaken so: it has room now at all its limits, and leaves enough for the first to go at the instant foreseen for it. Lanes
	// of several ways are not filled. If zero, none.
	Fill int
	// Size is the most tickets that may wait, in all lanes together. If zero, any number.
	Size int
	// Watch, if not nil, is told of each lane with Watched set whose first was looked at and stays, or in which nobody waits any
	// more. It must not use the Line but for what changes nothing.
	Watch func(now mono.Time, a *Lane)
}

// Line is who waits for which limits. Made by New.
type Line struct {
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

// New returns a Line without limits or lanes.
func New(c Config) *Line { return &Line{config: c, last: mono.Min, wake: limit.Never} }

// State is what became of a Ticket.
type State uint8

const (
	None    State = iota // not in line
	Waiting              //
	Granted              // Pass holds
	Never                // its cost is larger than a limit of every way
	Late                 // it cannot go before At, which is after its Deadline
	Full                 // too many wait already: in the Line, or in its Lane
)

// Ticket is a cost that waits. The driver embeds it and fills in the first part; it must not move or change while it waits. Once it
// has its verdict it may be used again.
//
// Its fields are in this order since of 100,000 hardly any is in the cache when its turn comes: what puts it in order is one cache
// line, its cost the next, what it is told the third; Least is touched only if it holds.
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

// Ask sets what t costs, and the least of that.
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
	lease  [1]limit.Lease // of the limit, or of the Line's book
	booked bool
}

// kept is what the book has of a pass that one lease cannot tell.
type kept struct {
	leases  [MaxLimits]limit.Lease // as many as the way has limits; the rest is of a pass before
	metered bool                   // spare holds
	spare   limit.Cost             // reserved beyond what is surely used
}

// Limit is a limit.Limiter that lanes share, and who waits for it.
type Limit struct {
	Limiter limit.Limiter

	parked heap[*Way] // those that wait for it
	claims []*Way     // by the place of their first
	// Up to here it is one cache line, which is all that is read of it while nobody waits for it.

	first   mono.Time // the verdict on the first of them
	wake    mono.Time // when to look at it
	timer   int32     // in timers; -1: not
	due     int32     // in the agenda; -1: not
	barred  int       // of those parked, that it is too small for
	line    *Line
	fair    bool
	unit    limit.Unit
	virtual float64 // fair: the start tag of whoever went last
	lanes   int

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
}

// Limit adds a limit to the line. The limiter belongs to it from now on: change it, and then call Touch.
func (l *Line) Limit(m limit.Limiter, s Sharing) *Limit {
	return &Limit{Limiter: m, line: l, fair: s.Fair, unit: s.Unit, timer: -1, due: -1, first: limit.Never, wake: limit.Never}
}

// Way is one conjunction of limits that a lane's tickets may go by.
type Way struct {
	lane   *Lane
	limits []*Limit
	few    [4]*Limit // what limits is of, if there are no more: with it in one cache line

	at      *Limit    // where it is parked
	ready   mono.Time // its latest verdict
	start   float64   // its rank where it is parked
	place   mono.Time
	seq     int64
	on      *Limit // where it would be, by the latest choose
	spot    int32  // in at.parked
	state   wayState
	claims  bool
	doubted bool // it is in lane.loose, whatever its state
	barred  bool // its first is too large for where it is parked
	fair    bool // one of its limits is

	finish     []float64 // fair: the finish tag in each limit
	spots      []int32   // where in the ways of each limit
	used       int64     // of several ways: its latest turn
	asked      int64     // the ticket that found it ready
	prev, next *Way      // in lane.ready

	// Index is the number of the way in its lane.
	Index int
	_     [40]byte // 256 bytes: that begins with a cache line
}

type wayState uint8

const (
	loose  wayState = iota // to be asked
	parked                 // at a limit
	ready                  // in lane.ready: it was ready when asked, and nobody waits
)

// Limits returns the limits of the way, which are not to be changed.
func (w *Way) Limits() []*Limit { return w.limits }

// Lane returns the lane that the way is of.
func (w *Way) Lane() *Lane { return w.lane }

// LaneConfig describes a Lane.
type LaneConfig struct {
	// Weight is the lane's share where a limit is fair. If zero, 1.
	Weight float64
	// Size is the most tickets that may wait in it. If zero, any number.
	Size int
}

// Lane adds a lane whose tickets go by any one of the ways, at least one, each of 1 to MaxLimits different limits, narrowest first.
// It panics otherwise.
func (l *Line) Lane(c LaneConfig, ways ...[]*Limit) *Lane {
	if len(ways) == 0 {
		panic("line: a lane without a way")
	}
	if c.Weight <= 0 {
		c.Weight = 1
	}
	a := &Lane{line: l, config: c, ways: make([]*Way, len(ways)), own: len(ways) > 1}
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
			if m.fair && !w.fair {
				w.fair, w.finish = true, make([]float64, len(limits))
			}
		}
		a.ways[i] = w
	}
	if len(ways) == 1 {
		a.sole = a.ways[0]
	}
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
func (l *Line) Retire(a *Lane) {
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
	l.lanes++
}

// Waiting returns how many wait, in all lanes.
func (l *Line) Waiting() int { return l.waiting }
