package backlog

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// rules are what the store and the driver do. The zero value is right; each field breaks one law.
type rules struct {
	keepsRows    bool // law 1: a result leaves its row
	marksBefore  bool // law 2: a turn counts as committed when it is sent
	givesUpEarly bool // law 4: a look counts five times
	neverStale   bool // law 5: a request is written without a look at Fresh
	anyBeat      bool // law 6: a turn of an old number fits
	unnamed      bool // law 7: requests of a worker that was given up have no doubt
	forgetful    bool // after the store has lost turns, nothing has a doubt
	trustsRows   bool // what a row shows is marked, whether a standby has it or not
}

// row is a request that has not ended.
type row struct {
	Job
	worker int64
	due    mono.Time
}

type workerRow struct {
	beat    int64
	dead    bool
	sending []int64
}

type result struct {
	repeat bool
	worker int64
}

// store has the tables, and does each transaction at one instant.
type store struct {
	rules
	queue   map[int64]*row
	order   []int64 // by place
	results map[int64][]result
	workers map[int64]*workerRow
	next    int64
}

// copied is the store as it is now.
func (s *store) copied() *store {
	c := &store{rules: s.rules, queue: map[int64]*row{}, order: slices.Clone(s.order), results: map[int64][]result{},
		workers: map[int64]*workerRow{}, next: s.next}
	for seq, r := range s.queue {
		c.queue[seq] = new(*r)
	}
	for seq, all := range s.results {
		c.results[seq] = slices.Clone(all)
	}
	for id, w := range s.workers {
		c.workers[id] = new(*w)
	}
	return c
}

func (s *store) register() int64 {
	s.next++
	s.workers[s.next] = &workerRow{}
	return s.next
}

func (s *store) turn(now mono.Time, t *Turn) (d Done) {
	w := s.workers[t.Worker]
	d.Fits = w != nil && !w.dead && (w.beat == t.Beat || s.anyBeat)
	if d.Fits {
		w.beat, w.sending = t.Beat+1, t.Sending
	}
	for _, seq := range t.Doubts {
		if r := s.queue[seq]; r != nil && !s.forgetful {
			r.Doubt = true
		}
		for i := range s.results[seq] {
			s.results[seq][i].repeat = s.results[seq][i].repeat || !s.forgetful
		}
	}
	for _, e := range t.Ends {
		if r := s.queue[e.Seq]; r != nil {
			s.results[e.Seq] = append(s.results[e.Seq], result{r.Doubt || e.Doubt, t.Worker})
			if !s.keepsRows {
				delete(s.queue, e.Seq)
			}
		}
	}
	if !d.Fits {
		return d
	}
	for _, back := range t.Returns {
		if r := s.queue[back.Seq]; r != nil && r.worker == t.Worker {
			r.worker, r.due, r.Attempts, r.Doubt = 0, now.Add(back.Rest), back.Attempts, r.Doubt || back.Doubt
		}
	}
	for _, c := range t.Claims {
		n := c.N
		for _, seq := range s.order {
			r := s.queue[seq]
			if n == 0 {
				break
			}
			if r == nil || r.worker != 0 || r.Lane != c.Lane || r.due > now || r.Place.compare(c.From) <= 0 {
				continue
			}
			r.worker = t.Worker
			d.Claimed = append(d.Claimed, r.Job)
			n--
		}
	}
	s.order = slices.DeleteFunc(s.order, func(seq int64) bool { return s.queue[seq] == nil })
	return d
}

func (s *store) read(id int64) (r Row) {
	w := s.workers[id]
	if w == nil {
		return Row{Dead: true, Beat: -1}
	}
	r.Dead, r.Beat, r.Sending = w.dead, w.beat, w.sending
	for _, seq := range s.order {
		if q := s.queue[seq]; q != nil && q.worker == id {
			r.Held = append(r.Held, q.Job)
		}
	}
	return r
}

func (s *store) look() (all []Beat) {
	for id := int64(1); id <= s.next; id++ {
		if w := s.workers[id]; w != nil && !w.dead {
			all = append(all, Beat{id, w.beat})
		}
	}
	return all
}

func (s *store) giveUp(b Beat) {
	w := s.workers[b.Worker]
	if w == nil || w.dead || w.beat != b.Beat {
		return
	}
	w.dead = true
	for _, r := range s.queue {
		if r.worker == b.Worker {
			r.worker = 0
			if slices.Contains(w.sending, r.Seq) {
				r.Attempts++
				r.Doubt = r.Doubt || !s.unnamed
			}
		}
	}
}

// event is something that happens at an instant.
type event struct {
	at  mono.Time
	seq int
	of  *process // nil: the world's
	do  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// world has processes, a store, and a network that loses, delays and doubles.
type world struct {
	rules
	rng    *rand.Rand
	now    mono.Time
	events events
	count  int
	store  *store
	lanes  []int32
	all    []*process
	calm   mono.Time // no more faults from then on
	sent   map[int64]int
	first  map[int64]mono.Time // when a request was first written
	by     map[*process]int
	unsure map[int64]bool // an attempt had no answer
	faults []string       // laws that were broken
	away   mono.Time
	lives  int    // how often the store has lost turns: what belongs to an earlier life never arrives
	cut    int    // 1: no standby gets what the next call writes; 2: it has been written
	behind *store // what the standby has then
}

func newWorld(seed uint64, r rules, jobs, lanes int) *world {
	w := &world{rules: r, rng: rand.New(rand.NewPCG(seed, 36)), sent: map[int64]int{}, first: map[int64]mono.Time{}, by: map[*process]int{}, unsure: map[int64]bool{}, store: &store{rules: r,
		queue: map[int64]*row{}, results: map[int64][]result{}, workers: map[int64]*workerRow{}}}
	for i := range lanes {
		w.lanes = append(w.lanes, int32(i))
	}
	for seq := int64(1); seq <= int64(jobs); seq++ {
		w.store.queue[seq] = &row{Job: Job{Place: Place{1000, seq}, Lane: int32(w.rng.IntN(lanes))}}
		w.store.order = append(w.store.order, seq)
	}
	return w
}

func (w *world) broke(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// at plans something. What belongs to a process waits while it is stopped, and is gone when it is killed.
func (w *world) at(of *process, d time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, event{w.now.Add(d), w.count, of, do})
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d) + 1)) }

// run lets time pass until nothing is left, or until the end.
func (w *world) run(end time.Duration) {
	for len(w.events) > 0 && w.now < mono.Time(end) {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		if p := e.of; p != nil {
			if p.killed {
				continue
			}
			if w.now < p.wakes {
				e.at = p.wakes
				heap.Push(&w.events, e)
				continue
			}
		}
		e.do()
	}
}

// process is one worker with its driver.
type process struct {
	world  *world
	worker *Worker
	watch  Watch
	killed bool
	wakes  mono.Time // stopped until then
	gap    time.Duration
	permit []mono.Time // of each lane, when the next request may go
	busy   bool        // a call of the store is under way
}

func (w *world) start(gap time.Duration) *process {
	p := &process{world: w, worker: New(), gap: gap, permit: make([]mono.Time, len(w.lanes))}
	w.all = append(w.all, p)
	w.at(p, 0, p.step)
	w.at(p, w.upTo(time.Second), p.look)
	return p
}

// call has the store do something. reply gets false if nobody knows whether it was done.
func (p *process) call(do func(), reply func(known bool)) {
	w := p.world
	life, does, replies := w.lives, do, reply
	do = func() {
		if w.lives == life {
			does()
		}
	}
	reply = func(known bool) { replies(known && w.lives == life) }
	there, back := 1+w.upTo(8*time.Millisecond), w.upTo(8*time.Millisecond)
	const patience = 2 * time.Second
	if w.cut > 0 { // nobody hears that it was committed
		w.at(nil, there, func() {
			if w.cut == 1 {
				w.cut, w.behind = 2, w.store.copied()
				do()
			}
			w.at(p, back, func() { reply(false) })
		})
		return
	}
	if down := w.away.Sub(w.now); down > 0 && w.rng.IntN(2) == 0 {
		w.at(p, min(down, patience), func() { reply(false) })
		return
	}
	fault := 0
	if w.now < w.calm {
		fault = w.rng.IntN(60)
	}
	switch fault {
	case 1: // lost before it was done
		w.at(p, patience, func() { reply(false) })
	case 2: // done, and the answer is lost
		w.at(nil, there, do)
		w.at(p, patience, func() { reply(false) })
	case 3: // done late, when nobody waits for it any more
		w.at(nil, patience+w.upTo(20*time.Second), do)
		w.at(p, patience, func() { reply(false) })
	case 4: // done twice, and not at once
		w.at(nil, there+w.upTo(10*time.Second), do)
		fallthrough
	default:
		w.at(nil, there, func() {
			do()
			w.at(p, back, func() { reply(true) })
		})
	}
}

// ask has the store answer without a write. It does so also while nothing that is written gets to a standby.
func (p *process) ask(do func(), reply func(known bool)) {
	if p.world.cut == 0 {
		p.call(do, reply)
		return
	}
	p.world.at(p, time.Millisecond, func() {
		do()
		reply(true)
	})
}

// read takes the worker's row.
func (p *process) read(r Row) {
	k := p.worker
	k.Read(r)
	if !p.world.trustsRows || k.ID() == 0 {
		return
	}
	k.began = p.world.now
	for _, seq := range r.Sending {
		if h := k.jobs[seq]; h != nil && h.of.idle.remove(h) {
			k.mark([]*held{h})
		}
	}
}

// step does what is due at the store, and sends.
func (p *process) step() {
	w := p.world
	w.at(p, 5*time.Millisecond, p.step)
	k := p.worker
	if !p.busy {
		switch {
		case k.Reads():
			var r Row
			id := k.ID()
			p.busy = true
			p.ask(func() { r = w.store.read(id) }, func(known bool) {
				if p.busy = false; known {
					p.read(r)
				}
			})
		case k.ID() == 0:
			var id int64
			began := w.now
			p.busy = true
			p.call(func() { id = w.store.register() }, func(known bool) {
				if p.busy = false; known {
					k.Registered(began, id, 0)
				}
			})
		case k.Due(w.now, w.lanes) <= w.now:
			p.turn()
		}
	}
	for _, of := range w.lanes {
		if w.now < p.permit[of] || !k.Has(w.now, of) {
			continue
		}
		j, _ := k.Next(w.now, of)
		p.permit[of] = w.now.Add(p.gap)
		if w.rng.IntN(20) == 0 {
			k.Unsent(j.Seq) // its permit lapsed
			continue
		}
		p.send(j)
	}
}

func (p *process) turn() {
	w, k := p.world, p.worker
	t := k.Turn(w.now, w.lanes)
	copied := *t
	first := true
	var d Done
	p.busy = true
	if w.marksBefore {
		k.mark(t.fresh)
		t.fresh = nil
	}
	p.call(func() {
		got := w.store.turn(w.now, &copied)
		if first {
			d, first = got, false
		}
	}, func(known bool) {
		if p.busy = false; known {
			k.Committed(w.now, d)
		} else {
			k.Unknown()
		}
	})
}

// send writes a request once it has its permit. It looks whether it may, and is stopped at times between
// that look and the write.
func (p *process) send(j Job) {
	w, k := p.world, p.worker
	w.at(p, w.upTo(20*time.Millisecond), func() {
		if !k.May(w.now, j.Seq) && !w.neverStale {
			k.Unsent(j.Seq)
			return
		}
		switch row := w.store.workers[k.ID()]; {
		case row == nil, row.beat < k.Beat().Beat: // the store has lost that, and nobody can know yet
		case row.dead:
			w.broke("law 5: %d was given up, and sends %d", k.ID(), j.Seq)
		case !slices.Contains(row.sending, j.Seq):
			w.broke("law 2: %d sends %d, which it has not marked", k.ID(), j.Seq)
		}
		w.at(p, w.upTo(time.Millisecond), func() { p.write(j) })
	})
}

func (p *process) write(j Job) {
	w, k := p.world, p.worker
	if w.sent[j.Seq]++; w.first[j.Seq] == 0 {
		w.first[j.Seq] = w.now
	}
	w.by[p]++
	served := w.rng.IntN(20)
	w.at(p, 5*time.Millisecond+w.upTo(300*time.Millisecond), func() {
		switch {
		case served == 0: // refused, and not served
			w.sent[j.Seq]--
			k.Again(w.now, j.Seq, w.upTo(time.Second), false)
		case served == 1: // nobody knows
			w.unsure[j.Seq] = true
			k.Again(w.now, j.Seq, w.upTo(20*time.Second), true)
		default:
			k.Ended(End{Seq: j.Seq, Attempts: j.Attempts + 1})
		}
	})
}

// look finds workers that are gone.
func (p *process) look() {
	w := p.world
	w.at(p, time.Second, p.look)
	began := w.now
	var all []Beat
	p.call(func() { all = w.store.look() }, func(known bool) {
		if !known {
			p.watch.Failed(w.now)
			return
		}
		dead := p.watch.Look(began, all)
		if w.givesUpEarly {
			for range 4 {
				dead = p.watch.Look(began, all)
			}
		}
		for _, b := range dead {
			p.call(func() { w.store.giveUp(b) }, func(bool) {})
		}
	})
}
