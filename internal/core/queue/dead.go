package queue

import (
	"fmt"

	"github.com/paceline-go/paceline/limit/mono"
)

// DeadLetter is a request that was given up, after its last attempt or by Kill, and the reason.
type DeadLetter struct {
	Ticket    Ticket
	Request   Request
	Submitted mono.Time
	Died      mono.Time
	Attempts  int
	Reason    string
}

// DeadLetters lists the dead letters that are kept, in the order in which they died.
func (q *Queue) DeadLetters() []DeadLetter {
	letters := make([]DeadLetter, 0, q.dead.len)
	for i := q.dead.first; i >= 0; i = q.items[i].next {
		it := &q.items[i]
		letters = append(letters,
			DeadLetter{Ticket{uint32(i), it.generation}, it.request, it.submitted, it.died, it.attempts, it.reason})
	}
	return letters
}

// Requeue makes a dead letter wait again, like a new submission: with all its attempts, a fresh
// deadline, and the place of now. It fails with ErrFull, or with ErrGone if t is not a dead letter.
// It may have been requeued or dropped before, or KeepDead had no room for it.
func (q *Queue) Requeue(now mono.Time, t Ticket) error {
	now = q.tick(now)
	it := q.at(t)
	if it == nil || it.state != Dead {
		return fmt.Errorf("queue: %w", ErrGone)
	}
	if !q.hasRoom() {
		return q.full
	}
	q.unlink(t.index)
	q.counts.Dead--
	it.request.Attempts = 0
	q.begin(now, now, t.index, it)
	return nil
}

// Drop forgets a dead letter. It returns false if t is not a dead letter, as with Requeue.
func (q *Queue) Drop(now mono.Time, t Ticket) bool {
	q.tick(now)
	it := q.at(t)
	if it == nil || it.state != Dead {
		return false
	}
	q.unlink(t.index)
	q.counts.Dead--
	q.end(t.index, it, Dropped)
	return true
}

// die makes a dead letter of a request that is in none of the heaps.
func (q *Queue) die(now mono.Time, i uint32, it *item) Ended {
	q.counts.Dead++
	it.state = Dead
	it.died = now
	e := q.report(i, it)
	keep := q.config.KeepDead
	if keep < 0 {
		q.forget(i, it)
		return e
	}
	if keep > 0 && q.dead.len == keep {
		oldest := uint32(q.dead.first)
		q.unlink(oldest)
		q.forget(oldest, &q.items[oldest])
	}
	q.link(i, it)
	return e
}

// list has the dead letters, the oldest first. Its links are indexes in the slab; −1 is none.
type list struct {
	first, last int32
	len         int
}

func (q *Queue) link(i uint32, it *item) {
	it.prev, it.next = q.dead.last, -1
	if it.prev < 0 {
		q.dead.first = int32(i)
	} else {
		q.items[it.prev].next = int32(i)
	}
	q.dead.last = int32(i)
	q.dead.len++
}

func (q *Queue) unlink(i uint32) {
	it := &q.items[i]
	if it.prev < 0 {
		q.dead.first = it.next
	} else {
		q.items[it.prev].next = it.next
	}
	if it.next < 0 {
		q.dead.last = it.prev
	} else {
		q.items[it.next].prev = it.prev
	}
	q.dead.len--
}
