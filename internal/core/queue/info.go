package queue

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

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
	if it.line != nil {
		host = it.line.host.name
	}
	return Info{it.state, &it.request, it.submitted, it.deadline, it.notBefore, it.attempts, it.returned, it.reason,
		host, it.seq}
}

// SetCost changes the cost of a request that waits.
func (q *Queue) SetCost(t Ticket, cost limit.Cost) { q.in(Waiting, "SetCost", t).request.Cost = cost }

// Place returns the place of a request in the line.
func (q *Queue) Place(t Ticket) mono.Time { return q.in(Waiting, "Place", t).place }

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
	for _, l := range q.hosts.lines {
		all = append(append(all, l.ready.entries...), l.aside.entries...)
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

// Open returns how many requests wait, and how many are in flight.
func (q *Queue) Open() (waiting, inFlight int) { return q.counts.Waiting, q.counts.InFlight }

// Check returns an error if the counts do not add up, which would mean that requests were lost or
// counted twice.
func (c Counts) Check() error {
	if sum := c.Waiting + c.InFlight + c.Done + c.Expired + c.Dead + c.Dropped + c.Cancelled; sum != c.Submitted {
		return fmt.Errorf("queue: %d requests were submitted, but %d are accounted for: %+v", c.Submitted, sum, c)
	}
	return nil
}
