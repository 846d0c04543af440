package queue

import (
	"cmp"
	"fmt"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Head returns the request whose turn it is, or false if none is ready that is not held. It does
// not check deadlines: call Expire first, or it may return an overdue request. The Request belongs
// to the queue. It is valid until the next change of the queue, and must not be changed.
func (q *Queue) Head(now mono.Time) (Ticket, *Request, bool) {
	q.tick(now)
	return q.ticket(q.hosts.first())
}

func (q *Queue) ticket(e *entry) (Ticket, *Request, bool) {
	if e == nil {
		return Ticket{}, nil, false
	}
	it := &q.items[e.index]
	return Ticket{e.index, it.generation}, &it.request, true
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
	wake := limit.Never
	if len(q.later.entries) > 0 {
		wake = q.later.first().at
	}
	if len(q.deadlines.entries) > 0 {
		wake = min(wake, q.deadlines.first().at)
	}
	return max(wake, now), wake != limit.Never
}

// Expires reports whether the deadline of a waiting request is now or has passed. So most calls of
// Expire are saved, whose result is large.
func (q *Queue) Expires(now mono.Time) bool {
	return len(q.deadlines.entries) > 0 && q.deadlines.first().at <= max(q.last, now)
}

// Expire ends one waiting request whose deadline is now or has passed, the earliest first. With
// OnExpiry Retry the request waits again, or dies. Call Expire until it returns false.
func (q *Queue) Expire(now mono.Time) (Ended, bool) {
	now = q.tick(now)
	if !q.Expires(now) {
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
		it.place = q.placeOf(it.notBefore, &it.request)
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
func (q *Queue) end(i uint32, it *item, s State) (e Ended) {
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
	e = q.report(i, it)
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
