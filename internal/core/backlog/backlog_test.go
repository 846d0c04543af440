package backlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit/mono"
)

// storm runs a fleet through kills, stops and outages, and then without any until all has ended.
func storm(seed uint64, r rules, jobs int) (w *world) {
	w = newWorld(seed, r, jobs, 1+int(seed%3))
	const faulty = 90 * time.Second
	w.calm = mono.Time(faulty)
	for range 4 {
		w.start(20 * time.Millisecond)
	}
	var trouble func()
	trouble = func() {
		if w.now >= w.calm {
			return
		}
		p := w.all[w.rng.IntN(len(w.all))]
		switch w.rng.IntN(5) {
		case 0, 1:
			if !p.killed {
				p.killed = true
				w.at(nil, w.upTo(5*time.Second), func() { w.start(20 * time.Millisecond) })
			}
		case 2:
			p.wakes = w.now.Add(w.upTo(40 * time.Second))
		case 3:
			w.away = w.now.Add(w.upTo(10 * time.Second))
		case 4:
			p.wakes = w.now.Add(w.upTo(3 * time.Second))
		}
		w.at(nil, w.upTo(6*time.Second), trouble)
	}
	w.at(nil, time.Second, trouble)
	w.run(10 * time.Minute)
	w.check(jobs)
	return w
}

// check looks for requests that have no result, or several, and for repeats that nothing names.
func (w *world) check(jobs int) {
	for seq := int64(1); seq <= int64(jobs); seq++ {
		switch results := w.store.results[seq]; {
		case len(results) == 0:
			w.broke("%d is lost", seq)
		case len(results) > 1:
			w.broke("law 1: %d has %d results", seq, len(results))
		case w.sent[seq] > 1 && !results[0].repeat:
			w.broke("%d was sent %d times, and nothing names it", seq, w.sent[seq])
		}
	}
}

// No storm loses a request, and each that was sent twice is named.
func TestStorms(t *testing.T) {
	seeds := uint64(24)
	switch {
	case need.Long():
		seeds = 1000 // a million requests
	case testing.Short():
		seeds = 8
	}
	sent, named, twice := 0, 0, 0
	const jobs = 1000
	for seed := range seeds {
		w := storm(seed, rules{}, jobs)
		for i, f := range w.faults {
			if i < 5 {
				t.Errorf("seed %d: %s", seed, f)
			}
		}
		for seq, all := range w.store.results {
			sent += w.sent[seq]
			if all[0].repeat {
				named++
			}
			if w.sent[seq] > 1 {
				twice++
			}
		}
	}
	t.Logf("%d requests, %d sends, %d twice, %d named", seeds*jobs, sent, twice, named)
}

// rewound is a storm in which the store loses the last seconds, some times, as a standby may that takes over.
// Workers are stopped and cut off, and none is killed: what a worker sent that died in the lost time nobody
// can name.
func rewound(seed uint64, r rules, jobs int) (w *world) {
	w = newWorld(seed, r, jobs, 1+int(seed%3))
	const faulty = 60 * time.Second
	w.calm = mono.Time(faulty)
	for range 4 {
		w.start(20 * time.Millisecond)
	}
	var trouble func()
	trouble = func() {
		if w.now >= w.calm {
			return
		}
		p := w.all[w.rng.IntN(len(w.all))]
		switch w.rng.IntN(4) {
		case 0:
			p.wakes = w.now.Add(w.upTo(20 * time.Second))
		case 1:
			w.away = w.now.Add(w.upTo(5 * time.Second))
		default:
			old := w.store.copied()
			w.at(nil, w.upTo(5*time.Second), func() {
				w.lives++
				old.next = max(old.next, w.store.next) + 32 // numbers never come again
				w.store = old
				w.at(nil, w.upTo(12*time.Second), trouble)
			})
			return
		}
		w.at(nil, w.upTo(6*time.Second), trouble)
	}
	w.at(nil, time.Second, trouble)
	w.run(10 * time.Minute)
	w.check(jobs)
	return w
}

// After the store has lost its last turns, all requests have results, and what was sent twice is named.
func TestRewound(t *testing.T) {
	seeds := uint64(6)
	switch {
	case need.Long():
		seeds = 100
	case testing.Short():
		seeds = 3
	}
	for _, r := range []rules{{}, {forgetful: true}} {
		broken, named := 0, 0
		for seed := range seeds {
			w := rewound(seed, r, 500)
			broken += len(w.faults)
			for _, all := range w.store.results {
				if all[0].repeat {
					named++
				}
			}
			for i, f := range w.faults {
				if i < 3 && !r.forgetful {
					t.Errorf("seed %d: %s", seed, f)
				}
			}
		}
		t.Logf("%+v: %d faults, %d of %d named", r, broken, named, 500*seeds)
		if r.forgetful && broken == 0 {
			t.Error("without doubts nothing shows")
		}
	}
}

// failedOver is a storm in which a standby takes over, some times. It has all that a worker knows to be committed. But
// the primary shows more before it dies, and a worker dies with it.
func failedOver(seed uint64, r rules, jobs int) (w *world) {
	w = newWorld(seed, r, jobs, 1+int(seed%3))
	w.calm = mono.Time(60 * time.Second)
	for range 4 {
		w.start(20 * time.Millisecond)
	}
	var trouble func()
	trouble = func() {
		if w.now >= w.calm {
			return
		}
		w.cut = 1
		w.at(nil, 50*time.Millisecond+w.upTo(2*time.Second), func() {
			if w.cut == 2 {
				w.behind.next = w.store.next + 32 // numbers never come again
				w.store = w.behind
				w.lives++
			}
			w.cut, w.away = 0, w.now.Add(w.upTo(8*time.Second))
			w.all[w.rng.IntN(len(w.all))].killed = true
			w.start(20 * time.Millisecond)
			w.at(nil, w.upTo(12*time.Second), trouble)
		})
	}
	w.at(nil, time.Second, trouble)
	w.run(3 * time.Minute)
	w.check(jobs)
	return w
}

// A synchronous standby takes over: nothing is lost, and what was sent twice is named. A worker that took what the
// primary shows for committed would break that.
func TestFailedOver(t *testing.T) {
	const first = uint64(18) // the harm shows in few storms
	seeds := uint64(6)
	if need.Long() {
		seeds = 60
	}
	for _, r := range []rules{{}, {trustsRows: true}} {
		broken, named := 0, 0
		for seed := first; seed < first+seeds; seed++ {
			w := failedOver(seed, r, 500)
			broken += len(w.faults)
			for i, f := range w.faults {
				if i < 3 && !r.trustsRows {
					t.Errorf("seed %d: %s", seed, f)
				}
			}
			for _, all := range w.store.results {
				if all[0].repeat {
					named++
				}
			}
		}
		t.Logf("%+v: %d faults, %d of %d named", r, broken, named, 500*seeds)
		if r.trustsRows && broken == 0 {
			t.Error("rows that are trusted do no harm")
		}
	}
}

// Each law that is broken shows in a few storms.
func TestBrokenLaws(t *testing.T) {
	for name, r := range map[string]rules{
		"a result leaves its row":    {keepsRows: true},
		"marked before the commit":   {marksBefore: true},
		"given up after three looks": {givesUpEarly: true},
		"written without Fresh":      {neverStale: true},
		"turns of any number":        {anyBeat: true},
		"given up without a doubt":   {unnamed: true},
	} {
		found := ""
		for seed := uint64(120); seed < 160; seed++ {
			if w := storm(seed, r, 1000); len(w.faults) > 0 {
				found = fmt.Sprintf("seed %d: %s", seed, w.faults[0])
				break
			}
		}
		if found == "" {
			t.Errorf("%s: nothing shows it", name)
		}
		t.Logf("%s: %s", name, found)
	}
}

// drained is when the last request was written, in a world without faults.
func (w *world) drained() (last mono.Time) {
	for _, at := range w.first {
		last = max(last, at)
	}
	return last
}

// Without faults ten workers share the work evenly, and wait for nothing but their limits.
func TestCalm(t *testing.T) {
	w := newWorld(1, rules{}, 4000, 1)
	for range 10 {
		w.start(50 * time.Millisecond) // 20/s each, 200/s together
	}
	w.run(time.Minute)
	w.check(4000)
	for _, f := range w.faults {
		t.Error(f)
	}
	// 4,000 at 200/s. A tenth are sent again, and a twentieth of the permits lapse: 23.1 s.
	if last := w.drained(); last > mono.Time(24*time.Second) {
		t.Errorf("the last one went after %v", time.Duration(last))
	}
	for _, p := range w.all {
		if n := w.by[p]; n < 340 || n > 500 {
			t.Errorf("a worker sent %d of 4000", n)
		}
	}
}

// A request that goes first by its place goes before the thousands that wait already.
func TestUrgent(t *testing.T) {
	w := newWorld(2, rules{}, 2500, 1)
	for range 10 {
		w.start(50 * time.Millisecond)
	}
	w.run(5 * time.Second)
	began := w.now
	const urgent = 200
	for seq := int64(2501); seq <= 2500+urgent; seq++ {
		w.store.queue[seq] = &row{Job: Job{Place: Place{10, seq}}}
		w.store.order = append(w.store.order[:0:0], append([]int64{seq}, w.store.order...)...)
	}
	w.run(time.Minute)
	w.check(2500 + urgent)
	for _, f := range w.faults {
		t.Error(f)
	}
	within := 0
	for seq := int64(2501); seq <= 2500+urgent; seq++ {
		if w.first[seq].Sub(began) <= 3*time.Second {
			within++
		}
	}
	if within < urgent/2 {
		t.Errorf("%d of %d urgent ones went within 3 s", within, urgent)
	}
	t.Logf("%d of %d urgent ones went within 3 s", within, urgent)
}

// A lane without room holds up no other.
func TestLanes(t *testing.T) {
	w := newWorld(3, rules{}, 2000, 2)
	for range 4 {
		p := w.start(20 * time.Millisecond)
		p.permit[0] = mono.Time(time.Hour) // nothing of the lane goes
	}
	w.run(time.Minute)
	here, other := 0, 0
	for seq := range w.first {
		if w.store.queue[seq] != nil && w.store.queue[seq].Lane == 0 {
			here++
		} else {
			other++
		}
	}
	if here != 0 || other < 900 {
		t.Errorf("%d of the lane that waits went, and %d of the other", here, other)
	}
	if last := w.drained(); last > mono.Time(8*time.Second) { // about 1,000 at 200/s
		t.Errorf("the last one went after %v", time.Duration(last))
	}
}

// steps drives a worker at a store that always answers at once. have is whether a lane has requests. It calls each
// every 5 ms, for d.
func steps(d time.Duration, open []int32, have func(lane int32) bool, turn func(mono.Time, *Turn),
	each func(mono.Time, *Worker),
) {
	w, seq := New(), int64(0)
	w.Registered(0, 1, 0)
	for now := mono.Time(0); now < mono.Time(d); now = now.Add(5 * time.Millisecond) {
		if w.Due(now, open) <= now {
			t, done := w.Turn(now, open), Done{Fits: true}
			turn(now, t)
			for _, c := range t.Claims {
				for range c.N {
					if have(c.Lane) {
						seq++
						done.Claimed = append(done.Claimed, Job{Place: Place{0, seq}, Lane: c.Lane})
					}
				}
			}
			w.Committed(now, done)
		}
		each(now, w)
	}
}

// Permits come in bursts. Of a burst like those before, each finds a request that is marked.
func TestBursts(t *testing.T) {
	const burst = 8
	late, last, pending := 0, mono.Time(0), 0
	most := 0
	steps(20*time.Second, []int32{0}, func(int32) bool { return true }, func(_ mono.Time, t *Turn) {
		most = max(most, len(t.Sending))
	}, func(now mono.Time, w *Worker) {
		w.Asks(0, -pending)
		comes := now > 0 && now%mono.Time(500*time.Millisecond) == 0
		if comes {
			pending += burst
		}
		for ; pending > 0; pending-- {
			j, ok := w.Next(now, 0)
			if !ok {
				break
			}
			w.Ended(End{Seq: j.Seq})
		}
		if w.Asks(0, pending); comes && pending > 0 {
			late += pending
			last = now
		}
	})
	if late > 2*burst || last > mono.Time(time.Second) { // it holds few as long as the rate is not known
		t.Errorf("%d permits waited for a mark, the last at %v", late, time.Duration(last))
	}
	if most > 2*burst {
		t.Errorf("%d were marked, for bursts of %d", most, burst)
	}
}

// With 1,000 lanes a turn claims of a bounded number. Those that have requests keep their rate, and one that has none
// is asked each second and a half.
func TestManyLanes(t *testing.T) {
	open := make([]int32, 1000)
	asked := map[int32]mono.Time{}
	for i := range open {
		open[i] = int32(i)
	}
	sent, most, longest := map[int32]int{}, 0, time.Duration(0)
	steps(10*time.Second, open, func(lane int32) bool { return lane%4 == 0 }, func(now mono.Time, t *Turn) {
		most = max(most, len(t.Claims))
		for _, c := range t.Claims {
			longest = max(longest, now.Sub(asked[c.Lane]))
			asked[c.Lane] = now
		}
	}, func(now mono.Time, w *Worker) {
		if now%mono.Time(500*time.Millisecond) != 0 { // two a second
			return
		}
		for _, lane := range open {
			if lane == 0 { // its limit has no room
				continue
			}
			if j, ok := w.Next(now, lane); ok {
				w.Ended(End{Seq: j.Seq})
				sent[lane]++
			}
		}
	})
	for _, lane := range open {
		if n := sent[lane]; lane%4 == 0 && lane > 0 && n < 17 {
			t.Errorf("lane %d sent %d in 10 s, at two a second", lane, n)
		}
		if left := mono.Time(10 * time.Second).Sub(asked[lane]); lane%4 != 0 && left > 1500*time.Millisecond {
			t.Errorf("lane %d was not asked for %v", lane, left)
		}
	}
	if most > mostClaims || len(asked) < len(open) {
		t.Errorf("a turn claims of %d lanes, and %d were asked", most, len(asked))
	}
	t.Logf("%d claims at most, %v between two of a lane", most, longest)
}

// A worker that stops gives back what it did not send, and ends when its answers are told.
func TestStop(t *testing.T) {
	w := newWorld(4, rules{}, 1000, 1)
	for range 2 {
		w.start(20 * time.Millisecond)
	}
	w.run(3 * time.Second)
	first := w.all[0]
	first.worker.Stop()
	w.run(6 * time.Second)
	if !first.worker.Over() {
		all, flying := first.worker.Held()
		t.Errorf("after 3 s it holds %d, %d of them in flight", all, flying)
	}
	first.killed = true
	for seq, r := range w.store.queue {
		if r.worker == first.worker.ID() {
			t.Errorf("%d is its own still", seq)
		}
	}
	w.run(2 * time.Minute)
	w.check(1000)
	for _, f := range w.faults {
		t.Error(f)
	}
	for seq, all := range w.store.results {
		if w.sent[seq] < 2 && all[0].repeat && !w.unsure[seq] {
			t.Errorf("%d was sent once, by a worker that stopped in order, and is named", seq)
		}
	}
}
