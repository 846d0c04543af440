package backlog

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

const (
	// beatEvery is the longest time between two turns of a worker that has work. One that has none
	// looks for some more often.
	beatEvery = time.Second
	lookIdle  = 500 * time.Millisecond
	// tellAfter is how long results wait for others, and soonest the least time between two turns.
	tellAfter = 100 * time.Millisecond
	soonest   = 25 * time.Millisecond
	// mostClaims is of how many lanes a turn claims.
	mostClaims = 100
)

// Turn is what a worker says in one transaction. The store does, in this order:
//
//   - If the worker's row is alive and has the beat Beat, it gets Beat+1 and Sending. The turn fits.
//   - Doubts: the row of each request, whoever has it, has a doubt. If it has a result, that is a
//     repeat, also if this worker told of it. That holds whether the turn fits or not.
//   - Ends: the row of each request goes, and its result is written, with the doubt of the row. That
//     holds whether the turn fits or not. A request without a row has a result already.
//   - If the turn fits: Returns, of requests that the worker has.
//   - If the turn fits: Claims, of requests that nobody has and that do not rest.
type Turn struct {
	Worker, Beat int64
	Sending      []int64
	Doubts       []int64
	Ends         []End
	Returns      []Return
	Claims       []Claim

	fresh []*held // marked by this turn for the first time
}

// Claim asks for requests of a lane, the first N by their places, after From.
type Claim struct {
	Lane int32
	N    int
	From Place
}

// Done is what a committed turn returned.
type Done struct {
	// Fits is false if the row is dead or has another beat.
	Fits bool
	// Paused says that nothing of the backlog is to be sent.
	Paused bool
	// Claimed are the requests that the worker has now.
	Claimed []Job
}

// Row is what the store has of a worker: its row, and the requests that it has. Of a row that is not there
// Dead is true, and Beat is -1.
type Row struct {
	Dead    bool
	Beat    int64
	Sending []int64
	Held    []Job
}

// Due returns when the next turn begins, for the lanes that have room in their limits; Max: not before
// the one under way has ended. A worker that has to be registered, or to read its row, has no turn.
func (w *Worker) Due(now mono.Time, open []int32) mono.Time {
	switch {
	case w.turn != nil || w.id == 0:
		return mono.Max
	case !w.took:
		return now
	case w.urgent(now, open):
		return max(now, w.last.Add(soonest))
	case len(w.ends)+len(w.returns)+len(w.doubts) > 0:
		return max(now, w.last.Add(tellAfter))
	case len(w.jobs) == 0:
		return max(now, w.last.Add(lookIdle))
	}
	return max(now, w.last.Add(beatEvery))
}

// urgent reports whether a turn lets requests go that could not go otherwise.
func (w *Worker) urgent(now mono.Time, open []int32) bool {
	if w.stopping {
		return len(w.returns)+len(w.ends)+len(w.doubts) > 0
	}
	for _, of := range open {
		l := w.lanes[of]
		if l == nil || l.low(now) || !w.paused && l.want(now) > 0 && (!l.empty || now >= l.asked.Add(beatEvery)) {
			return true
		}
	}
	return false
}

// Turn begins the next turn. It claims for the lanes in open, and marks what may go next of each.
func (w *Worker) Turn(now mono.Time, open []int32) *Turn {
	t := &Turn{Worker: w.id, Beat: w.beat}
	w.turn, w.last, w.took = t, now, true
	if !w.stopping {
		if !w.paused {
			t.Claims = w.claims(now, open)
		}
		for _, of := range open {
			l := w.lane(of)
			for n := l.ahead(now) + l.asking - len(l.marked); n > 0 && len(l.idle) > 0; n-- {
				t.fresh = append(t.fresh, l.idle.next())
			}
		}
	}
	for _, h := range w.jobs {
		if h.flying && !h.orphan || h.rests {
			t.Sending = append(t.Sending, h.Seq)
		}
	}
	for _, l := range w.lanes {
		for _, h := range l.marked {
			t.Sending = append(t.Sending, h.Seq)
		}
	}
	for _, h := range t.fresh {
		t.Sending = append(t.Sending, h.Seq)
	}
	slices.Sort(t.Sending)
	if len(w.doubts) > 0 {
		t.Doubts = w.doubts
	}
	t.Ends = slices.SortedFunc(maps.Values(w.ends), func(a, b End) int { return int(a.Seq - b.Seq) })
	t.Returns = slices.SortedFunc(maps.Values(w.returns), func(a, b Return) int { return int(a.Seq - b.Seq) })
	return t
}

// claims asks for the lanes that want requests, and first for those that have waited longest since they were asked.
// One turn asks for so many lanes and no more, so it lasts no longer where there are a thousand.
func (w *Worker) claims(now mono.Time, open []int32) (all []Claim) {
	var wanting []int32
	for _, of := range open {
		if w.lane(of).want(now) > 0 {
			wanting = append(wanting, of)
		}
	}
	if len(wanting) > mostClaims {
		slices.SortStableFunc(wanting, func(a, b int32) int { return cmp.Compare(w.lanes[a].turn(), w.lanes[b].turn()) })
		wanting = wanting[:mostClaims]
	}
	for _, of := range wanting {
		l := w.lanes[of]
		all = append(all, Claim{of, l.want(now), l.from(now)})
		l.asked = now
	}
	return all
}

// Committed takes what the turn under way returned.
func (w *Worker) Committed(now mono.Time, d Done) {
	t := w.turn
	if !d.Fits {
		w.unknown = true
		return
	}
	// Ends of a turn that does not fit are written, too. They are told again: if the store goes back to
	// before them, only the number of a turn that fits shows it.
	for _, e := range t.Ends {
		delete(w.ends, e.Seq)
		w.told.add(w.last, e.Seq, t.Beat+1, w.row)
	}
	w.doubts = w.doubts[len(t.Doubts):]
	w.turn, w.beat, w.paused = nil, t.Beat+1, d.Paused
	w.began = w.last
	for _, r := range t.Returns {
		if w.returns[r.Seq] == r {
			delete(w.returns, r.Seq)
		}
		if h := w.jobs[r.Seq]; h != nil && h.leaves {
			w.forget(h)
		}
	}
	w.mark(t.fresh)
	got := map[int32]int{}
	for _, j := range d.Claimed {
		got[j.Lane]++
		l := w.lane(j.Lane)
		if l.floor.compare(j.Place) < 0 {
			l.floor = j.Place
		}
		w.take(j)
	}
	for _, c := range t.Claims {
		l := w.lane(c.Lane)
		if l.empty = got[c.Lane] < c.N; l.empty {
			l.front = now // what comes next may stand anywhere
		}
	}
	if w.stopping {
		w.Stop()
	}
}

// mark lets requests go.
func (w *Worker) mark(all []*held) {
	for _, h := range all {
		if w.jobs[h.Seq] == h && !h.flying && !h.leaves {
			h.of.marked = append(h.of.marked, h)
		}
	}
}

// take holds a claimed request, unless it is known. One that was in flight when the worker was given
// up is the worker's again.
func (w *Worker) take(j Job) {
	if _, told := w.ends[j.Seq]; told {
		return
	}
	if h := w.jobs[j.Seq]; h != nil {
		if h.orphan {
			h.orphan, h.Job = false, j
		}
		return
	}
	h := w.add(j)
	h.of.idle.add(h)
}

// Unknown reports that nobody knows whether the turn under way was committed. It may still be.
func (w *Worker) Unknown() { w.unknown = true }

// Reads reports whether the worker's row has to be read before the next turn.
func (w *Worker) Reads() bool { return w.unknown }

// Read takes the worker's row, after a turn that did not fit or whose outcome is not known. What was marked by an
// earlier turn may go on. What the row shows is not marked: a database shows what it has committed and no standby has
// yet, and a standby may take over. The next turn marks it again. lost says that the store has lost turns.
func (w *Worker) Read(r Row) (lost bool) {
	if !w.unknown {
		return false
	}
	if r.Beat < 0 && w.row > 0 { // the row was lost: how much more was, the one before it shows
		w.row--
		w.id, w.beat = w.rows[w.row], math.MaxInt64
		return false
	}
	if lost = r.Beat < w.beat; lost {
		w.rewind(r.Beat)
	}
	if lost || r.Dead {
		w.die()
		return lost
	}
	t := w.turn
	w.turn, w.unknown = nil, false
	w.beat = r.Beat
	has := make(map[int64]bool, len(r.Held))
	for _, j := range r.Held {
		has[j.Seq] = true
	}
	for _, h := range w.sorted() {
		if !has[h.Seq] && !h.flying {
			delete(w.returns, h.Seq)
			w.forget(h)
		}
	}
	for _, h := range t.fresh {
		if w.jobs[h.Seq] == h {
			h.of.idle.add(h)
		}
	}
	for _, j := range r.Held {
		w.take(j)
	}
	if w.stopping {
		w.Stop()
	}
	return false
}
