// Package snooze decides when a job that has to wait for a limit leaves its worker, and when the
// job comes back.
//
// A job queue, such as River, hands jobs to workers. While a job waits for a limit in its worker,
// that worker can do no other job. So a job that would wait for more than Config.MaxWait, by
// default 250 ms, leaves its worker and names an instant. The job queue brings the job back at
// about that instant. Sometimes only the answer of a request in flight can tell when there is room.
// Then up to two jobs wait for the answer in workers, and all others leave.
//
// A Book records the jobs of one key that have left their workers. The place of a job is the
// instant at which the job was made or first came, and does not change, however often the job goes
// away. A Book forgets a job that has not come back 10 minutes after it was due. A job waits only
// for jobs with an earlier place, and for those that wait in workers. So no job starves behind
// newer ones. A newer job goes before older ones that are away only if there is room now for it and
// for all older jobs that are due back. If an older job does not come back when it is due, newer
// jobs wait for it a little longer. They wait 100 ms plus twice the mean delay of the job queue, at
// most 2 s. With Config.Many (other processes work on the jobs, too), they do not wait for it.
//
// A Forecast gives a lower bound for the instant at which a job may go. The job comes back a little
// before that bound, by default about 30 to 125 ms plus the mean delay of the queue. So the job may
// come too early, but hardly too late. If only an answer can tell the instant, the job comes back
// after a guessed time, a second at first. A job that comes too early waits in its worker or goes
// away again, and its place in the order of jobs stays the same.
//
// The package owns no clock and no lock.
package snooze

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

const (
	// DefaultMaxWait and DefaultSpread are the values of a zero Config.
	DefaultMaxWait = 250 * time.Millisecond
	DefaultSpread  = 10 * time.Millisecond
	// late is the most that a job holds up those behind it after its nap: see Book.late.
	late = 2 * time.Second
	// kept is how long after its instant the place of a job is remembered.
	kept = 10 * time.Minute
	// blind is the nap of a job whose turn depends on an answer, where nothing else is known, and blindMost
	// the longest one; blindLine is how many wait in workers for one.
	blind, blindMost = time.Second, 10 * time.Minute
	blindLine        = 2
	shortest         = time.Millisecond // the shortest nap
)

// Config describes a Book. The zero value is ready.
type Config struct {
	// MaxWait is the longest time that a job waits in its worker. If zero, DefaultMaxWait.
	MaxWait time.Duration
	// Each is the time that the limit needs for a job in the long run. If zero, it is not known. A job comes
	// back before its turn: by as much as jobs came back late so far, and by twice this time, from an
	// eighth to a half of MaxWait. So about two wait in workers, and a late one leaves no room unused.
	Each time.Duration
	// Spread is the least time between two jobs that come back, so that a limit with room for many
	// at once does not take all workers. If zero, DefaultSpread. It must not be more than the time
	// that the limit needs for a job.
	Spread time.Duration
	// Many means that other processes work on the jobs, too. Half of those away may come back there, so
	// a job holds up others for its nap alone.
	Many bool
}

// Place is a job's place among all jobs of its key. Earlier ones go first.
type Place struct {
	// Came is when the job was made, or first seen.
	Came mono.Time
	// Order decides between equal instants: a number that rises from job to job.
	Order int64
}

// Before reports whether p goes before q.
func (p Place) Before(q Place) bool { return p.compare(q) < 0 }

func (p Place) compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Came, q.Came), cmp.Compare(p.Order, q.Order))
}

// Forecast returns the earliest instant at which a cost may go if n jobs that cost ahead together go
// before it. limit.AfterSettle: only an answer can tell.
type Forecast func(n int, ahead limit.Cost) mono.Time

// Book has the jobs of a key that are away. New makes it. Not safe for concurrent use.
type Book struct {
	maxWait, spread, early time.Duration
	many                   bool
	jobs                   map[string]*job
	away                   []*job // those that others wait for, by their place
	looks                  dueHeap
	cost                   limit.Cost    // of those in away
	lateness               time.Duration // by which jobs come back after the end of their nap, on average
	went                   mono.Time     // when a job last went
	gap                    time.Duration // from one that went to the next, on average, while others are away
}

// job is one that is away, or was and has not come back.
type job struct {
	id     string
	place  Place
	cost   limit.Cost
	ends   mono.Time // of its nap
	looked mono.Time // when it is looked at if it has not come back
	counts bool      // it is in Book.away
	index  int       // in Book.looks
}

// New returns an empty Book.
func New(c Config) *Book {
	wait := cmp.Or(c.MaxWait, DefaultMaxWait)
	return &Book{many: c.Many, maxWait: wait, early: min(max(2*c.Each, wait/8), wait/2), spread: cmp.Or(c.Spread, DefaultSpread), jobs: map[string]*job{}, went: mono.Min}
}

// MaxWait returns the longest time that a job waits in its worker.
func (b *Book) MaxWait() time.Duration { return b.maxWait }

// Away returns how many jobs are away and expected back.
func (b *Book) Away(now mono.Time) int {
	b.sweep(now)
	return len(b.away)
}

// Soon returns how many jobs come back by t, from those that are away.
func (b *Book) Soon(t mono.Time) (n int) {
	for _, j := range b.away {
		if j.ends <= t {
			n++
		}
	}
	return n
}

// Came notes that a job is in a worker, and returns its place: the one that it had, or that of first.
func (b *Book) Came(now mono.Time, id string, first Place) Place {
	b.sweep(now)
	j := b.jobs[id]
	if j == nil {
		return first
	}
	if !b.many { // it may have been elsewhere since
		b.learn(now.Sub(j.ends))
	}
	b.forget(j)
	if j.place.Before(first) {
		return j.place
	}
	return first
}

// Went notes that a job's request goes now. Where only answers make room, the time between two that go is
// the forecast.
func (b *Book) Went(now mono.Time) {
	if len(b.away) > 0 && b.went > mono.Min {
		if d := now.Sub(b.went); b.gap == 0 {
			b.gap = d
		} else {
			b.gap += (min(d, 8*b.gap) - b.gap) / 16
		}
	}
	b.went = now
}

// learn takes in how late a job came back.
func (b *Book) learn(d time.Duration) {
	b.lateness += (min(max(d, 0), late) - b.lateness) / 16
}

// lead returns how long before its turn a job comes back. The longer, the more workers wait.
func (b *Book) lead() time.Duration { return b.lateness + b.early }

// late returns how long after its nap a job still holds up those behind it: as long as it may well be on its
// way. After that the queue has others first, or it was cancelled, or another process works on it.
func (b *Book) late() time.Duration {
	if b.many {
		return 0
	}
	return min(late, 100*time.Millisecond+2*b.lateness)
}

// Turn returns the instant at which a job with that place may go, as far as is known, and whether it
// is near enough to wait in the worker. inLine are the jobs that wait in workers now, each at the
// same cost. limit.Never: the cost never fits.
func (b *Book) Turn(now mono.Time, p Place, inLine int, cost limit.Cost, f Forecast) (at mono.Time, near bool) {
	b.sweep(now)
	n := b.ahead(p)
	with := func(n int) (int, limit.Cost) {
		ahead := b.mean(n)
		for u := range ahead {
			ahead[u] += int64(inLine) * cost[u]
		}
		return n + inLine, ahead
	}
	if at = f(with(b.due(now, n))); at <= now {
		return at, true
	}
	n, ahead := with(n)
	at = f(n, ahead)
	switch {
	case at == limit.Never:
		return at, false
	case at == limit.AfterSettle: // room may come at any time, for one who is here
		if b.gap > 0 { // a part of the gap: late jobs would lengthen it
			at = now.Add(time.Duration(min(float64(n+1)*float64(b.gap)/4, float64(blindMost))))
		}
		return at, inLine < blindLine
	case at > now:
		at = at.Add(time.Duration(together(n, ahead, at, f)) * b.spread)
	}
	return at, at <= now.Add(b.maxWait)
}

// together returns how many of the n jobs ahead may go at the same instant as the one behind them.
// Those that come back at one instant would take all workers.
func together(n int, ahead limit.Cost, at mono.Time, f Forecast) int {
	return n - sort.Search(n, func(m int) bool {
		some := ahead
		for u := range some {
			some[u] = int64(float64(some[u]) * float64(m) / float64(n))
		}
		return f(m, some) >= at
	})
}

// Leave notes that a job goes away, since its turn comes at at, and returns how long for: least at least.
func (b *Book) Leave(now mono.Time, id string, p Place, cost limit.Cost, at mono.Time, least time.Duration) time.Duration {
	b.sweep(now)
	if j := b.jobs[id]; j != nil { // it was given to two workers
		b.forget(j)
	}
	nap := at.Sub(now) - b.lead()
	if at == limit.AfterSettle {
		nap = blind + time.Duration(min(len(b.away), 1<<20))*b.spread
	}
	nap = max(nap, least, shortest)
	j := &job{id: id, place: p, cost: cost, ends: now.Add(nap), looked: now.Add(nap).Add(b.late()), counts: true}
	b.jobs[id] = j
	b.away = slices.Insert(b.away, b.find(j), j)
	for u := range cost {
		b.cost[u] += cost[u]
	}
	heap.Push(&b.looks, j)
	return nap
}

// ahead returns how many jobs have an earlier place.
func (b *Book) ahead(p Place) int {
	n, _ := slices.BinarySearchFunc(b.away, p, func(j *job, p Place) int { return j.place.compare(p) })
	return n
}

// due returns how many of the first n jobs have ended their nap, so that the room of now is theirs. Room for
// which nobody comes is for anybody: those whose queue has others first would leave it unused. Naps end
// about in the order of the places, so only the first few that go on are looked at.
func (b *Book) due(now mono.Time, n int) (due int) {
	const few = 8
	for i, j := range b.away[:n] {
		if j.ends <= now {
			due++
		} else if i-due >= few {
			break
		}
	}
	return due
}

// mean returns the cost of n jobs that are away, if they cost as all do on average.
func (b *Book) mean(n int) (cost limit.Cost) {
	if n == 0 {
		return cost
	}
	part := float64(n) / float64(len(b.away))
	for u := range cost {
		cost[u] = int64(math.Ceil(float64(b.cost[u]) * part))
	}
	return cost
}

// find returns the index in away at which j is, or belongs.
func (b *Book) find(j *job) int {
	i, _ := slices.BinarySearchFunc(b.away, j, func(a, j *job) int {
		return cmp.Or(a.place.compare(j.place), cmp.Compare(a.id, j.id))
	})
	return i
}

// forget removes a job from the Book.
func (b *Book) forget(j *job) {
	b.miss(j)
	heap.Remove(&b.looks, j.index)
	delete(b.jobs, j.id)
}

// miss lets nobody wait for a job any more.
func (b *Book) miss(j *job) {
	if !j.counts {
		return
	}
	i := b.find(j)
	b.away = slices.Delete(b.away, i, i+1)
	for u := range j.cost {
		b.cost[u] -= j.cost[u]
	}
	j.counts = false
}

// sweep looks at the jobs that have not come back.
func (b *Book) sweep(now mono.Time) {
	for len(b.looks) > 0 && b.looks[0].looked <= now {
		j := b.looks[0]
		if !j.counts {
			b.forget(j)
			continue
		}
		b.miss(j)
		j.looked = j.looked.Add(kept)
		heap.Fix(&b.looks, 0)
	}
}

// dueHeap has jobs by the instant at which they are looked at.
type dueHeap []*job

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, k int) bool { return h[i].looked < h[k].looked }
func (h dueHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].index, h[k].index = i, k
}
func (h *dueHeap) Push(x any) {
	j := x.(*job)
	j.index = len(*h)
	*h = append(*h, j)
}
func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
