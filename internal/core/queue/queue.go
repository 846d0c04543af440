package queue

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Errors of Submit and Requeue.
var (
	// ErrFull: MaxLen requests or more wait. The next Take makes room.
	ErrFull = errors.New("queue is full")
	// ErrDuplicate: a request with this id waits or is in flight.
	ErrDuplicate = errors.New("duplicate request")
	// ErrDead: the request with this id is a dead letter. The id is refused until that is requeued
	// or dropped.
	ErrDead = errors.New("request is a dead letter")
	// ErrGone: the ticket names no dead letter, or no longer.
	ErrGone = errors.New("no such dead letter")
)

// Request is a piece of work: its cost, its deadline and its priority. The zero value is one
// request of cost limit.One that never expires.
type Request struct {
	// ID, if not empty, is held at most once: see ErrDuplicate and ErrDead. The queue does not
	// remember the ids of requests that ended in another way.
	ID string
	// Cost is what one attempt uses of the limits. If zero, limit.One.
	Cost limit.Cost
	// Free means that the request uses nothing, and passes every limit on usage. Cost must then be
	// zero.
	Free bool
	// Priority is how many times Config.HeadStart earlier the request counts as submitted. It may
	// be negative.
	Priority int
	// TTL is how long after its submission the request is of use. If zero, for ever; if negative,
	// it has expired already.
	TTL time.Duration
	// Renewal is the TTL of its retries if Config.OnExpiry is Retry. If zero, TTL; if negative, the
	// request has a single deadline, as with End. With End it may say how long the request is of
	// use in all, if TTL is only the rest of that: see Whole.
	Renewal time.Duration
	// Resource names the part of a key's quota in which the request counts. Each has a head of its own:
	// see HeadOf. If empty, the usual one.
	Resource string
	// Attempts is how many attempts were made before, elsewhere. They count as the request's first ones.
	Attempts int
	// Created is when the request was made, if that was before its submission. With Config.Decay its value
	// falls from then on. If zero, from its submission.
	Created mono.Time
	// Value belongs to the caller.
	Value any
}

// Ticket names a request that the queue holds. It is a value of 8 bytes; the zero Ticket is none.
// The ticket is stale once the request is done, expired, cancelled or dropped. Transitions panic at
// a stale ticket, since an attempt that ends twice is a bug. Cancel, Requeue, Drop and Info report
// it instead, since they may come at the same time as the end.
type Ticket struct{ index, generation uint32 }

// State is where a request is.
type State uint8

const (
	None      State = iota // unknown to the queue, or forgotten
	Waiting                // for its turn, or for the end of its backoff
	InFlight               // it was taken, and the attempt has not ended
	Done                   //
	Expired                // its deadline has passed
	Dead                   // given up, and kept with the reason until it is requeued or dropped
	Dropped                // it was a dead letter
	Cancelled              // the caller cancelled it while it waited
	states
)

var stateNames = [states]string{"none", "waiting", "in flight", "done", "expired", "dead", "dropped", "cancelled"}

func (s State) String() string {
	if s >= states {
		return fmt.Sprintf("state %d", uint8(s))
	}
	return stateNames[s]
}

// Ended reports whether s is an end. Nothing more happens to the request, except that a dead one
// may be requeued.
func (s State) Ended() bool { return s > InFlight && s < states }

// OnExpiry decides how a request goes on when its deadline has passed.
type OnExpiry uint8

const (
	End   OnExpiry = iota // it expires
	Retry                 // it is tried again with a fresh deadline
)

// Config describes a Queue. Its zero value is ready.
type Config struct {
	// MaxLen is the most requests that may wait. If zero, there is no bound. It only restricts
	// Submit and Requeue. A request that comes back from in flight always has room, so at most
	// MaxLen + the most that were ever in flight wait.
	MaxLen int
	// MaxAttempts is the most attempts of a request. If zero, 5.
	MaxAttempts int
	// Host, if not nil, returns the name of a request's host: all requests to one host can be held.
	// It is called whenever a request begins to wait, and must not call the queue. If nil, all
	// requests go to the host "".
	Host func(*Request) string
	// HeadStart is how much earlier a request counts as submitted for each step of Priority. If
	// zero, 1 minute; if negative, priorities do not count.
	HeadStart time.Duration
	// Decay, if not zero, is the time in which a request loses half its value. The request with the
	// greatest value then goes first: of two with the same Priority, the newer one. Each step of
	// Priority doubles the value, and HeadStart has no effect. It does not go with RetriesLast.
	Decay time.Duration
	// OnExpiry decides about late requests. With End, the zero value, a late request expires. With
	// Retry every retry has a fresh deadline, and a deadline that passes counts as an attempt;
	// after the last attempt the request is dead. A published client does this, and loses no
	// request to a deadline. But the deadline is then that of the attempt. A done request may be
	// MaxAttempts × TTL old and worthless to its caller. Under overload it delays work that could
	// have been in time.
	OnExpiry OnExpiry
	// RetriesLast puts retries behind all waiting requests, as a published client does. If false
	// they keep their place, ahead of every request that was submitted later.
	RetriesLast bool
	// KeepDead is the most dead letters that are kept; a further one makes the queue forget the
	// oldest. If zero, all are kept; if negative, none. A forgotten one still counts as dead, its
	// ticket is stale, and its id is free. The transition by which a request dies returns it,
	// whether it is kept or not.
	KeepDead int
}

// Queue holds requests, each in exactly one State, until they end. New makes it; the zero value is
// not usable. Not safe for concurrent use.
type Queue struct {
	config Config
	full   error // says what MaxLen is; made once, since a full queue may be asked very often
	last   mono.Time
	seq    uint64

	items []item
	free  []uint32
	ids   map[string]uint32

	hosts     hosts // ready requests, for each host by place
	later     heap  // requests in a backoff, by its end
	deadlines heap  // waiting requests with a deadline, by the deadline

	dead   list
	counts Counts
	watch  func(Ended) // gets every Kill; nil: none
}

type item struct {
	request    Request
	reason     string
	seq        uint64
	submitted  mono.Time
	place      mono.Time
	deadline   mono.Time // limit.Never if none
	notBefore  mono.Time
	died       mono.Time
	line       *line // while it waits
	attempts   int
	returned   int
	generation uint32
	state      State
	later      bool // it is in a backoff
	aside      bool // see SetAside

	prev, next int32 // in the list of dead letters
}

// New checks the configuration and returns an empty Queue.
func New(c Config) (*Queue, error) {
	switch {
	case c.MaxLen < 0:
		return nil, fmt.Errorf("queue: MaxLen %d is negative", c.MaxLen)
	case c.MaxAttempts < 0:
		return nil, fmt.Errorf("queue: MaxAttempts %d is negative", c.MaxAttempts)
	case c.Decay < 0:
		return nil, fmt.Errorf("queue: Decay %v is negative", c.Decay)
	case c.Decay > 0 && c.RetriesLast:
		return nil, fmt.Errorf("queue: Decay %v with RetriesLast: a retry has the value of its request", c.Decay)
	case c.OnExpiry > Retry:
		return nil, fmt.Errorf("queue: OnExpiry %d is neither End nor Retry", c.OnExpiry)
	}
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 5)
	c.HeadStart = cmp.Or(c.HeadStart, time.Minute)
	q := &Queue{config: c, last: mono.Min, ids: map[string]uint32{}, dead: list{first: -1, last: -1}}
	q.later.spots, q.deadlines.spots = new(spots), new(spots)
	q.hosts.init(q.later.spots)
	q.full = fmt.Errorf("queue: %w: MaxLen %d requests wait", ErrFull, c.MaxLen)
	return q, nil
}

// Submit adds a request, or fails with ErrDuplicate, ErrDead or ErrFull, checked in this order.
// Before that it refuses a request with a negative Cost, or one that is Free and has a Cost.
func (q *Queue) Submit(now mono.Time, r Request) (Ticket, error) {
	return q.SubmitFrom(now, limit.Never, r)
}

// SubmitFrom is Submit for a request that came earlier, at came, and had to wait for room: its
// place and its TTL count from came.
func (q *Queue) SubmitFrom(now, came mono.Time, r Request) (Ticket, error) {
	now = q.tick(now)
	switch used := r.Cost != (limit.Cost{}); {
	case r.Cost.Negative():
		return Ticket{}, fmt.Errorf("queue: request %q: its cost of %s is negative", r.ID, r.Cost)
	case used && r.Free:
		return Ticket{}, fmt.Errorf("queue: request %q is Free and costs %s", r.ID, r.Cost)
	case !used && !r.Free:
		r.Cost = limit.One
	}
	if r.ID != "" {
		if i, held := q.ids[r.ID]; held {
			it := &q.items[i]
			if it.state == Dead {
				return Ticket{}, fmt.Errorf("queue: %w: %q (%s)", ErrDead, r.ID, it.reason)
			}
			return Ticket{}, fmt.Errorf("queue: %w: %q is %v", ErrDuplicate, r.ID, it.state)
		}
	}
	if !q.hasRoom() {
		return Ticket{}, q.full
	}
	var i uint32
	if n := len(q.free); n > 0 {
		i = q.free[n-1]
		q.free = q.free[:n-1]
	} else {
		i = uint32(len(q.items))
		q.items = append(q.items, item{generation: 1})
		q.later.spots.grow()
		q.deadlines.spots.grow()
	}
	if r.ID != "" {
		q.ids[r.ID] = i
	}
	it := &q.items[i]
	it.request = r
	q.begin(now, min(came, now), i, it)
	q.counts.Submitted++
	return Ticket{i, it.generation}, nil
}

func (q *Queue) hasRoom() bool { return q.config.MaxLen == 0 || q.counts.Waiting < q.config.MaxLen }

// begin starts the life of a request that was submitted or requeued and came at came.
func (q *Queue) begin(now, came mono.Time, i uint32, it *item) {
	q.seq++
	it.seq = q.seq
	it.submitted = came
	it.place = q.placeOf(came, &it.request)
	it.deadline = deadline(came, it.request.TTL)
	it.notBefore = now
	it.attempts, it.returned = it.request.Attempts, 0
	it.reason = ""
	q.enqueue(now, i, it)
}

func deadline(start mono.Time, ttl time.Duration) mono.Time {
	if ttl == 0 {
		return limit.Never
	}
	return start.Add(ttl)
}

// placeOf returns the place of a request that came at came.
func (q *Queue) placeOf(came mono.Time, r *Request) mono.Time {
	if q.config.Decay == 0 {
		return place(came, r.Priority, q.config.HeadStart)
	}
	// value(now) = 2 ^ (Priority − (now − created) / Decay)
	//
	// So at every now, the order of values is that of created + Priority × Decay.
	created := came
	if r.Created != 0 {
		created = min(came, r.Created)
	}
	return -max(place(created, -r.Priority, q.config.Decay), -mono.Max)
}

// place returns at − priority × step. Without a positive step it returns at.
func place(at mono.Time, priority int, step time.Duration) mono.Time {
	if priority == 0 || step < 0 {
		return at
	}
	size := uint64(priority)
	if priority < 0 {
		size = -size
	}
	over, start := bits.Mul64(size, uint64(step))
	if over != 0 {
		start = math.MaxInt64
	}
	d := time.Duration(min(start, math.MaxInt64))
	if priority < 0 {
		return at.Add(d)
	}
	return at.Add(-d)
}

// enqueue puts a request into the heaps of waiting ones.
func (q *Queue) enqueue(now mono.Time, i uint32, it *item) {
	it.state = Waiting
	q.counts.Waiting++
	it.line = q.hosts.join(q.config.Host, &it.request)
	it.aside = false
	if it.later = it.notBefore > now; it.later {
		q.later.push(it.notBefore, it.seq, i)
	} else {
		q.hosts.push(it.line, it.place, it.seq, i)
	}
	if it.deadline != limit.Never {
		q.deadlines.push(it.deadline, it.seq, i)
	}
}

// dequeue undoes enqueue.
func (q *Queue) dequeue(i uint32, it *item) {
	q.counts.Waiting--
	if it.later {
		q.later.remove(i)
	} else {
		q.hosts.remove(it.line, i, it.aside)
	}
	q.hosts.leave(it.line)
	it.line = nil
	if it.deadline != limit.Never {
		q.deadlines.remove(i)
	}
}

// tick returns the present: the latest now so far. It makes the requests ready whose backoff is over.
func (q *Queue) tick(now mono.Time) mono.Time {
	q.last = min(max(now, q.last), mono.Max)
	if len(q.later.entries) > 0 {
		q.promote()
	}
	return q.last
}

func (q *Queue) promote() {
	for len(q.later.entries) > 0 && q.later.first().at <= q.last {
		i := q.later.first().index
		it := &q.items[i]
		q.later.remove(i)
		it.later = false
		q.hosts.push(it.line, it.place, it.seq, i)
	}
}
