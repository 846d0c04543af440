// Package queue holds the requests that wait for their turn, and keeps count of every request that
// it ever got. It has priorities, deadlines, retries, dead letters and bounds. It knows nothing of
// keys, limits or nonces: that is package dispatch. The package is for authors of drivers; to send
// requests, use a pool.Pool. docs/request_states.md draws the states and lists every transition.
//
// # Order
//
// Each request has an instant for its place in the line,
//
//	place = submitted − Priority × HeadStart
//
// and the request with the earliest place goes next. Of two with the same place, the one submitted
// first goes first. So a step of priority is worth a submission HeadStart earlier, and a retry
// keeps the place of its first submission.
//
// # No request is passed over for ever
//
// A request r is passed over if another is taken while r is ready. Only requests that were
// submitted no later than this instant pass over r, each of them at most MaxAttempts times:
//
//	r.submitted + (P − r.Priority) × HeadStart
//
// P is the highest priority in use. The reason: a request q at the head has a place no later than
// that of r,
//
//	q.submitted − q.Priority × HeadStart <= r.submitted − r.Priority × HeadStart
//
// which gives the bound on q.submitted, since q.Priority <= P. Places never change, and each Take
// counts as one of the MaxAttempts of q. Time moves on. So after that bound no new request passes
// r, and the requests that may pass are finitely many.
//
// The rule does not count held requests (see Hold and SetAside), or a Take that Return took back,
// which was no attempt. It does not count a dead letter that was requeued by hand, which is a new submission.
// With RetriesLast a retry counts as submitted at the instant at which it is ready again, here as
// in the line.
//
// Everything is arithmetic on a now that the caller supplies. A now before an earlier one counts as
// that one. Instants and durations stop at the ends of their range and do not wrap round. A Queue
// has no clock or lock and is not safe for concurrent use.
package queue

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
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
	host       *host // its host, while it waits
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
	case c.OnExpiry > Retry:
		return nil, fmt.Errorf("queue: OnExpiry %d is neither End nor Retry", c.OnExpiry)
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 5
	}
	if c.HeadStart == 0 {
		c.HeadStart = time.Minute
	}
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
	it.place = q.place(came, it.request.Priority)
	it.deadline = deadline(came, it.request.TTL)
	it.notBefore = now
	it.attempts, it.returned = 0, 0
	it.reason = ""
	q.enqueue(now, i, it)
}

func deadline(start mono.Time, ttl time.Duration) mono.Time {
	if ttl == 0 {
		return limit.Never
	}
	return start.Add(ttl)
}

// place returns submitted − priority × HeadStart.
func (q *Queue) place(submitted mono.Time, priority int) mono.Time {
	if priority == 0 || q.config.HeadStart < 0 {
		return submitted
	}
	size := uint64(priority)
	if priority < 0 {
		size = -size
	}
	over, start := bits.Mul64(size, uint64(q.config.HeadStart))
	if over != 0 {
		start = math.MaxInt64
	}
	d := time.Duration(min(start, math.MaxInt64))
	if priority < 0 {
		return submitted.Add(d)
	}
	return submitted.Add(-d)
}

// enqueue puts a request into the heaps of waiting ones.
func (q *Queue) enqueue(now mono.Time, i uint32, it *item) {
	it.state = Waiting
	q.counts.Waiting++
	it.host = q.hosts.join(q.config.Host, &it.request)
	it.aside = false
	if it.later = it.notBefore > now; it.later {
		q.later.push(it.notBefore, it.seq, i)
	} else {
		q.hosts.push(it.host, it.place, it.seq, i)
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
		q.hosts.remove(it.host, i, it.aside)
	}
	q.hosts.leave(it.host)
	it.host = nil
	if it.deadline != limit.Never {
		q.deadlines.remove(i)
	}
}

// Head returns the request whose turn it is, or false if none is ready that is not held. It does
// not check deadlines: call Expire first, or it may return an overdue request. The Request belongs
// to the queue. It is valid until the next change of the queue, and must not be changed.
func (q *Queue) Head(now mono.Time) (Ticket, *Request, bool) {
	q.promote(q.tick(now))
	h := q.hosts.first()
	if h == nil {
		return Ticket{}, nil, false
	}
	i := h.first().index
	it := &q.items[i]
	return Ticket{i, it.generation}, &it.request, true
}

// promote makes the requests ready whose backoff is over.
func (q *Queue) promote(now mono.Time) {
	for !q.later.empty() && q.later.first().at <= now {
		i := q.later.first().index
		it := &q.items[i]
		q.later.remove(i)
		it.later = false
		q.hosts.push(it.host, it.place, it.seq, i)
	}
}

// Take begins an attempt and returns its number; the first is 1. The request is the one from Head,
// or any other waiting one, even in a backoff or held. But only a caller that always takes the head
// passes over no request for ever.
func (q *Queue) Take(now mono.Time, t Ticket) (attempt int) {
	q.tick(now)
	it := q.in(Waiting, "Take", t)
	q.dequeue(t.index, it)
	it.state = InFlight
	q.counts.InFlight++
	it.attempts++
	return it.attempts
}

// Wake returns the earliest instant, not before now, at which something changes by itself: a
// backoff ends, or a deadline passes. It returns false if nothing will.
func (q *Queue) Wake(now mono.Time) (mono.Time, bool) {
	now = q.tick(now)
	q.promote(now)
	wake := limit.Never
	if !q.later.empty() {
		wake = q.later.first().at
	}
	if !q.deadlines.empty() {
		wake = min(wake, q.deadlines.first().at)
	}
	return max(wake, now), wake != limit.Never
}

// Expire ends one waiting request whose deadline is now or has passed, the earliest first. With
// OnExpiry Retry the request waits again, or dies. Call Expire until it returns false.
func (q *Queue) Expire(now mono.Time) (Ended, bool) {
	now = q.tick(now)
	if q.deadlines.empty() || q.deadlines.first().at > now {
		return Ended{}, false
	}
	i := q.deadlines.first().index
	return q.lapse(now, i, &q.items[i], "deadline passed while waiting"), true
}

// Lapse ends a waiting request before its deadline, as Expire does after it: its answer would come
// too late. It reports the reason.
func (q *Queue) Lapse(now mono.Time, t Ticket, reason string) Ended {
	now = q.tick(now)
	it := q.in(Waiting, "Lapse", t)
	if !q.renews(it) {
		it.reason = reason
	}
	e := q.lapse(now, t.index, it, reason)
	e.Lapsed = e.State == Expired
	return e
}

func (q *Queue) lapse(now mono.Time, i uint32, it *item, reason string) Ended {
	q.dequeue(i, it)
	if !q.renews(it) {
		return q.end(i, it, Expired)
	}
	it.attempts++
	it.reason = reason
	if it.attempts >= q.config.MaxAttempts {
		return q.die(now, i, it)
	}
	return q.again(now, i, it, it.notBefore)
}

// renews reports whether a retry gets a fresh deadline that it can meet.
func (q *Queue) renews(it *item) bool {
	return q.config.OnExpiry == Retry && it.request.TTL >= 0 && it.request.Renewal >= 0
}

// again makes a request wait for another attempt.
func (q *Queue) again(now mono.Time, i uint32, it *item, notBefore mono.Time) Ended {
	it.notBefore = max(notBefore, now)
	it.returned = 0
	if q.renews(it) && it.request.TTL > 0 {
		it.deadline = deadline(it.notBefore, cmp.Or(it.request.Renewal, it.request.TTL))
	}
	if q.config.RetriesLast {
		q.seq++
		it.seq = q.seq
		it.place = q.place(it.notBefore, it.request.Priority)
	}
	q.enqueue(now, i, it)
	return q.report(i, it)
}

// Done ends an attempt that succeeded, and its request. If its deadline has passed meanwhile, it is
// done and Late.
func (q *Queue) Done(now mono.Time, t Ticket) Ended {
	q.tick(now)
	it := q.in(InFlight, "Done", t)
	q.counts.InFlight--
	return q.end(t.index, it, Done)
}

// More ends an attempt that did a part of its request, such as one page. The request waits again,
// in its place, for the next part, which has its own attempts. Its deadline, which is for all
// parts, stays.
func (q *Queue) More(now mono.Time, t Ticket) Ended {
	now = q.tick(now)
	it := q.in(InFlight, "More", t)
	q.counts.InFlight--
	it.attempts, it.returned, it.reason = 0, 0, ""
	q.enqueue(now, t.index, it)
	return q.report(t.index, it)
}

// Retry ends an attempt that failed. The request is
//
//	expired   if its deadline has passed
//	dead      if this was its last attempt
//	expired   if its deadline is not after notBefore: the next attempt could not be made in time
//	waiting   otherwise, until notBefore at least
//
// With OnExpiry Retry it is dead or waiting; its next deadline is its Renewal after now or
// notBefore, whichever is later.
func (q *Queue) Retry(now mono.Time, t Ticket, notBefore mono.Time, reason string) Ended {
	now = q.tick(now)
	it := q.in(InFlight, "Retry", t)
	q.counts.InFlight--
	it.reason = reason
	renews := q.renews(it)
	switch {
	case !renews && it.deadline <= now:
		return q.end(t.index, it, Expired)
	case it.attempts >= q.config.MaxAttempts:
		return q.die(now, t.index, it)
	case !renews && it.deadline <= notBefore:
		return q.end(t.index, it, Expired)
	}
	return q.again(now, t.index, it, notBefore)
}

// Return ends an attempt that never left this machine, and its request waits again. The attempt is
// not counted, and the request has its old place from notBefore on. Its deadline stays, even if it
// comes before notBefore.
func (q *Queue) Return(now mono.Time, t Ticket, notBefore mono.Time) Ended {
	now = q.tick(now)
	it := q.in(InFlight, "Return", t)
	q.counts.InFlight--
	it.attempts--
	it.returned++
	it.notBefore = max(it.notBefore, notBefore)
	q.enqueue(now, t.index, it)
	return q.report(t.index, it)
}

// Kill makes a dead letter of a request that waits or is in flight: it is invalid, and would be
// refused every time.
func (q *Queue) Kill(now mono.Time, t Ticket, reason string) Ended {
	now = q.tick(now)
	it := q.at(t)
	switch {
	case it != nil && it.state == Waiting:
		q.dequeue(t.index, it)
	case it != nil && it.state == InFlight:
		q.counts.InFlight--
	default:
		q.misused("Kill", t)
	}
	it.reason = reason
	e := q.die(now, t.index, it)
	if q.watch != nil {
		q.watch(e)
	}
	return e
}

// Watch makes the queue call f at every Kill from now on, within Kill; nil: no call. f must not
// call the queue.
func (q *Queue) Watch(f func(Ended)) { q.watch = f }

// Cancel ends a request that waits. It returns false if the request is in flight or has ended.
func (q *Queue) Cancel(now mono.Time, t Ticket) bool {
	q.tick(now)
	it := q.at(t)
	if it == nil || it.state != Waiting {
		return false
	}
	q.dequeue(t.index, it)
	q.end(t.index, it, Cancelled)
	return true
}

// Ended is the result of a transition. Despite the name, the request may wait again: see
// State.Ended.
type Ended struct {
	Ticket    Ticket // stale unless the request waits or is a kept dead letter
	State     State
	Late      bool // it is done, and was answered at its deadline or later
	Lapsed    bool // it expired before its deadline, since its answer would have come later
	Request   Request
	Submitted mono.Time // or requeued
	Attempts  int
	Reason    string // the latest reason given to Retry, Kill or Lapse; empty if none was called
}

func (q *Queue) report(i uint32, it *item) Ended {
	return Ended{
		Ticket: Ticket{i, it.generation}, State: it.state, Late: it.state == Done && it.deadline <= q.last,
		Request: it.request, Submitted: it.submitted,
		Attempts: it.attempts, Reason: it.reason,
	}
}

// end counts a request that is in none of the heaps as s, and forgets it.
func (q *Queue) end(i uint32, it *item, s State) Ended {
	switch s {
	case Done:
		if q.counts.Done++; it.deadline <= q.last {
			q.counts.Late++
		}
	case Expired:
		q.counts.Expired++
	case Dropped:
		q.counts.Dropped++
	case Cancelled:
		q.counts.Cancelled++
	}
	it.state = s
	e := q.report(i, it)
	q.forget(i, it)
	return e
}

// forget frees the place of a request in the slab.
func (q *Queue) forget(i uint32, it *item) {
	if it.request.ID != "" {
		delete(q.ids, it.request.ID)
	}
	it.request.ID, it.request.Value, it.reason = "", nil, "" // for the garbage collector
	it.state = None
	it.generation++
	if it.generation == 0 { // the zero Ticket is none
		it.generation = 1
	}
	q.free = append(q.free, i)
}

// in returns the item of t, which must be in state s.
func (q *Queue) in(s State, event string, t Ticket) *item {
	it := q.at(t)
	if it == nil || it.state != s {
		q.misused(event, t)
	}
	return it
}

// at returns the item of t, or nil if t is stale.
func (q *Queue) at(t Ticket) *item {
	if int(t.index) >= len(q.items) || q.items[t.index].generation != t.generation {
		return nil
	}
	return &q.items[t.index]
}

func (q *Queue) misused(event string, t Ticket) {
	if it := q.at(t); it != nil {
		panic(fmt.Sprintf("queue: %s of a request that is %v", event, it.state))
	}
	panic(fmt.Sprintf("queue: %s with a stale ticket", event))
}

// Info is the known state of a request. With State None, the queue does not know it.
type Info struct {
	State     State
	Request   *Request // as in Head
	Submitted mono.Time
	Deadline  mono.Time // limit.Never if none
	NotBefore mono.Time // the end of the latest wait that Retry or Return asked for; otherwise Submitted
	Attempts  int       // attempts begun
	Returned  int       // attempts that Return took back since the last counted one
	Reason    string    // as in Ended
	Host      string    // while it waits: the result of Config.Host
	// Seq is its order among those of the same place. It changes with each Requeue, and with Retry
	// if RetriesLast is set.
	Seq uint64
}

// Info returns the known state of a request.
func (q *Queue) Info(t Ticket) Info {
	it := q.at(t)
	if it == nil {
		return Info{}
	}
	host := ""
	if it.host != nil {
		host = it.host.name
	}
	return Info{it.state, &it.request, it.submitted, it.deadline, it.notBefore, it.attempts, it.returned, it.reason,
		host, it.seq}
}

// Whole returns all of the time that a waiting request was given: its TTL, or what Request.Renewal
// makes of that. If zero, the request has no deadline.
func (q *Queue) Whole(t Ticket) time.Duration {
	it := q.in(Waiting, "Whole", t)
	r := &it.request
	switch {
	case q.config.OnExpiry == End:
		return max(r.TTL, r.Renewal)
	case it.attempts > 0 && q.renews(it):
		return cmp.Or(r.Renewal, r.TTL)
	}
	return r.TTL
}

// Lookup finds a request by its id: one that waits, is in flight, or is a dead letter.
func (q *Queue) Lookup(id string) (Ticket, State, bool) {
	i, held := q.ids[id]
	if !held {
		return Ticket{}, None, false
	}
	it := &q.items[i]
	return Ticket{i, it.generation}, it.state, true
}

// Waiting lists all waiting requests in the order of their places, including those in a backoff or
// held.
func (q *Queue) Waiting() []Ticket {
	all := make([]entry, 0, q.counts.Waiting)
	for _, h := range q.hosts.all {
		all = append(append(all, h.ready.entries...), h.aside.entries...)
	}
	for _, e := range q.later.entries {
		all = append(all, entry{q.items[e.index].place, e.seq, e.index})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	tickets := make([]Ticket, len(all))
	for n, e := range all {
		tickets[n] = Ticket{e.index, q.items[e.index].generation}
	}
	return tickets
}

// Counts has how many requests are in each state. Submitted is always the sum of the states.
type Counts struct {
	Submitted int
	Waiting   int // including those in a backoff or held
	InFlight  int
	Done      int // including those that are Late
	Expired   int
	Dead      int // including those beyond KeepDead
	Dropped   int
	Cancelled int
	Late      int // of Done: answered after their deadline
}

// Counts returns how many requests are in each state.
func (q *Queue) Counts() Counts { return q.counts }

// Check returns an error if the counts do not add up, which would mean that requests were lost or
// counted twice.
func (c Counts) Check() error {
	if sum := c.Waiting + c.InFlight + c.Done + c.Expired + c.Dead + c.Dropped + c.Cancelled; sum != c.Submitted {
		return fmt.Errorf("queue: %d requests were submitted, but %d are accounted for: %+v", c.Submitted, sum, c)
	}
	return nil
}

// tick returns the present: the latest now so far.
func (q *Queue) tick(now mono.Time) mono.Time {
	q.last = min(max(now, q.last), mono.Max)
	return q.last
}
