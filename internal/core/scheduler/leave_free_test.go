package scheduler_test

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// office is a batch that always waits, people who come at random, and one fair limit of 20 a second.
type office struct {
	batch, people      scheduler.ShareConfig
	perSecond          float64 // people, in the mean
	limit              limit.Limiter
	batchSent, sent    int
	waits              []time.Duration // of people
	everything         []mono.Time     // sends of all
	busiest, batchOnce int             // the most in any second, of all and of the batch alone
	batchAlone         []mono.Time
}

type answers []struct {
	at   mono.Time
	pass scheduler.Pass
}

func (a answers) Len() int           { return len(a) }
func (a answers) Less(i, j int) bool { return a[i].at < a[j].at }
func (a answers) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *answers) Push(x any) {
	*a = append(*a, x.(struct {
		at   mono.Time
		pass scheduler.Pass
	}))
}
func (a *answers) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// run lets the office work for some seconds. Each answer takes 10 ms.
func (o *office) run(t *testing.T, seconds int) {
	t.Helper()
	if o.limit == nil {
		o.limit = rolling(t, 20, time.Second)
	}
	l := scheduler.New(scheduler.Config{})
	way := []*scheduler.Limit{l.Limit(o.limit, scheduler.Sharing{Fair: true})}
	batch := l.Lane(scheduler.LaneConfig{Share: l.Share(o.batch)}, way)
	people := l.Lane(scheduler.LaneConfig{Share: l.Share(o.people)}, way)
	rng := rand.New(rand.NewPCG(34, 5))
	var under answers
	now, end, comes := mono.Time(0), mono.Time(seconds)*second, mono.Time(0)
	went := func(u *scheduler.Ticket) {
		heap.Push(&under, struct {
			at   mono.Time
			pass scheduler.Pass
		}{now + 10*ms, u.Pass})
		o.everything = append(o.everything, now)
		if u.Of == batch {
			o.batchSent++
			o.batchAlone = append(o.batchAlone, now)
			return
		}
		o.sent++
		o.waits = append(o.waits, now.Sub(u.Place))
	}
	enter := func(a *scheduler.Lane) {
		u := &scheduler.Ticket{Cost: limit.One, Place: now, Deadline: limit.Never, Of: a}
		if l.Enter(now, a, u) == scheduler.Granted {
			went(u)
		}
	}
	for now < end {
		if comes <= now && o.perSecond > 0 {
			enter(people)
			comes = now.Add(time.Duration(rng.ExpFloat64() * float64(time.Second) / o.perSecond))
		}
		for len(under) > 0 && under[0].at <= now {
			l.Settle(now, heap.Pop(&under).(struct {
				at   mono.Time
				pass scheduler.Pass
			}).pass, &accepted)
		}
		for u := l.Next(now); u != nil; u = l.Next(now) {
			went(u)
		}
		for batch.Len() < 50 {
			enter(batch)
		}
		for u := l.Next(now); u != nil; u = l.Next(now) {
			went(u)
		}
		next := min(l.Wake(), end)
		if o.perSecond > 0 {
			next = min(next, comes)
		}
		if len(under) > 0 {
			next = min(next, under[0].at)
		}
		now = max(next, now)
	}
	slices.Sort(o.waits)
	o.busiest, o.batchOnce = busiest(o.everything), busiest(o.batchAlone)
}

// busiest returns the most sends in any second.
func busiest(sends []mono.Time) (most int) {
	first := 0
	for i, at := range sends {
		for sends[first]+second <= at {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func (o *office) wait(part float64) time.Duration { return o.waits[int(part*float64(len(o.waits)-1))] }

// People at 2/s beside a batch that leaves a quarter of 20/s free do not wait. The batch gets all of
// the rest. Without the reserve people wait for half a second.
func TestReserve(t *testing.T) {
	without := &office{perSecond: 2}
	without.run(t, 600)
	with := &office{perSecond: 2, batch: scheduler.ShareConfig{Reserve: 0.25}}
	with.run(t, 600)
	for _, o := range []*office{without, with} {
		t.Logf("people %d: wait %v, %v at 95 %%, %v at most; batch %.2f/s; busiest second %d", o.sent, o.wait(0.5),
			o.wait(0.95), o.wait(1), float64(o.batchSent)/600, o.busiest)
	}
	if without.wait(0.5) < 100*time.Millisecond {
		t.Errorf("without a reserve people wait %v: there is nothing to show", without.wait(0.5))
	}
	if with.wait(0.5) != 0 || with.wait(0.95) > 50*time.Millisecond {
		t.Errorf("people wait %v, %v at 95 %%", with.wait(0.5), with.wait(0.95))
	}
	if rest := 0.75*20*600 - float64(with.sent); float64(with.batchSent) < 0.95*rest {
		t.Errorf("the batch sent %d of %.0f", with.batchSent, rest)
	}
	if with.batchOnce > 15 || with.busiest > 20 {
		t.Errorf("%d of the batch in a second, %d of all", with.batchOnce, with.busiest)
	}
}

// People who want more than all get the part of their weight, and so does the batch: a reserve takes
// nothing from fairness.
func TestReserveStarvesNobody(t *testing.T) {
	people := scheduler.ShareConfig{Weight: 4}
	without := &office{perSecond: 30, people: people}
	without.run(t, 300)
	with := &office{perSecond: 30, people: people, batch: scheduler.ShareConfig{Weight: 1, Reserve: 0.25}}
	with.run(t, 300)
	t.Logf("without: batch %d, people %d; with: %d, %d", without.batchSent, without.sent, with.batchSent, with.sent)
	for _, n := range [][2]int{{with.batchSent, without.batchSent}, {with.sent, without.sent}} {
		if d := float64(n[0])/float64(n[1]) - 1; d < -0.02 || d > 0.02 {
			t.Errorf("%d with a reserve, %d without", n[0], n[1])
		}
	}
}

// Where all leave a part free, no window has more than the rest.
func TestAllReserve(t *testing.T) {
	for _, perSecond := range []float64{2, 10, 30} {
		o := &office{perSecond: perSecond, batch: scheduler.ShareConfig{Reserve: 0.3},
			people: scheduler.ShareConfig{Reserve: 0.3}}
		o.run(t, 120)
		if o.busiest != 14 {
			t.Errorf("people %v/s: %d in a second, want 14", perSecond, o.busiest)
		}
		all := scheduler.ShareConfig{Reserve: 1}
		o = &office{perSecond: perSecond, batch: all, people: all}
		o.run(t, 20)
		if o.busiest != 1 {
			t.Errorf("people %v/s: %d in a second, want one at a time", perSecond, o.busiest)
		}
	}
}

// A limit of a class' own leaves nothing free for others.
func TestNoReserveOfOnesOwn(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	batch := scheduler.LaneConfig{Reserve: 0.5}
	for _, own := range []bool{true, false} {
		a := l.Lane(batch, []*scheduler.Limit{l.Limit(rolling(t, 4, time.Second), scheduler.Sharing{Own: own})})
		n := 0
		for _, at := l.Try(0, a, &limit.One, nil); at <= 0; _, at = l.Try(0, a, &limit.One, nil) {
			n++
		}
		if want := map[bool]int{true: 4, false: 2}[own]; n != want {
			t.Errorf("own %v: %d went, want %d", own, n, want)
		}
	}
}

// A reserve changes with the configuration of the class, from the next request on.
func TestReserveChanges(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	s := l.Share(scheduler.ShareConfig{Reserve: 1})
	m := l.Limit(rolling(t, 4, time.Second), scheduler.Sharing{})
	a := l.Lane(scheduler.LaneConfig{Share: s}, []*scheduler.Limit{m})
	try := func() bool { _, at := l.Try(0, a, &limit.One, nil); return at <= 0 }
	goes := func() (n int) {
		for try() {
			n++
		}
		return n
	}
	if n := goes(); n != 1 {
		t.Errorf("%d went, want 1", n)
	}
	s.Set(scheduler.ShareConfig{})
	if n := goes(); n != 3 {
		t.Errorf("%d more went, want the other 3", n)
	}
}

// A request that uses nothing of a limit does not queue there. Here a request without tokens passes
// one that waits for tokens. What both use still decides by turns.
func TestWhatUsesNothingDoesNotQueue(t *testing.T) {
	for _, fair := range []bool{false, true} {
		l := scheduler.New(scheduler.Config{})
		tokens, err := limit.NewRolling(limit.RollingConfig{Limit: 10, Window: time.Second, Unit: limit.Tokens})
		if err != nil {
			t.Fatal(err)
		}
		both := []*scheduler.Limit{l.Limit(tokens, scheduler.Sharing{Fair: fair, Unit: limit.Tokens}),
			l.Limit(rolling(t, 3, time.Second), scheduler.Sharing{Fair: fair})}
		a, b := l.Lane(scheduler.LaneConfig{}, both), l.Lane(scheduler.LaneConfig{}, both)
		large := limit.Cost{limit.Requests: 1, limit.Tokens: 10}
		p, at := l.Try(0, a, &large, nil)
		if at > 0 {
			t.Fatal("the first does not go")
		}
		l.Settle(0, p, &accepted)
		waits := &scheduler.Ticket{Cost: large, Deadline: limit.Never}
		want(t, l.Enter(0, a, waits), scheduler.Waiting)
		for i, w := range []scheduler.State{scheduler.Granted, scheduler.Granted, scheduler.Waiting} {
			free := &scheduler.Ticket{Cost: limit.One, Place: 1, Deadline: limit.Never}
			if got := l.Enter(0, b, free); got != w {
				t.Errorf("fair %v: request %d: %v, want %v", fair, i, got, w)
			}
		}
	}
}

// shutUntil is a limiter with a pause that its rules do not tell of, as a stack has.
type shutUntil struct {
	limit.Limiter
	at   mono.Time
	last bool // after one more request only an answer makes room
}

func (s *shutUntil) Unwrap() []limit.Limiter { return []limit.Limiter{s.Limiter} }

func (s *shutUntil) Ready(now mono.Time, c limit.Cost) mono.Time {
	return max(s.at, s.Limiter.Ready(now, c))
}

func (s *shutUntil) ReadyAfter(now mono.Time, first, c limit.Cost) mono.Time {
	if s.last {
		return limit.AfterSettle
	}
	return max(s.at, limit.ReadyAfter(s.Limiter, now, first, c))
}

func (s *shutUntil) NotBefore(now mono.Time, _ int, _, _ limit.Cost) mono.Time { return now }

// A request that uses nothing of a limit waits there for a pause alone, and not for those before it.
func TestWhatUsesNothingWaitsForAPause(t *testing.T) {
	for _, fair := range []bool{false, true} {
		tokens, err := limit.NewRolling(limit.RollingConfig{Limit: 10, Window: time.Second, Unit: limit.Tokens})
		if err != nil {
			t.Fatal(err)
		}
		l := scheduler.New(scheduler.Config{})
		shut := &shutUntil{Limiter: tokens}
		m := []*scheduler.Limit{l.Limit(shut, scheduler.Sharing{Fair: fair, Unit: limit.Tokens})}
		large := limit.Cost{limit.Requests: 1, limit.Tokens: 10}
		used := limit.Sent{Number: 1000, Cost: large}
		tokens.Admit(&used)
		tokens.Settle(0, &used, &accepted) // it is used up until 1 s
		a, b := l.Lane(scheduler.LaneConfig{}, m), l.Lane(scheduler.LaneConfig{}, m)
		if _, at := l.Try(0, b, &limit.One, nil); at > 0 { // from here on its turn is after that of a
			t.Fatal("what uses nothing does not go")
		}
		shut.at = 100 * ms
		first := &scheduler.Ticket{Cost: large, Deadline: limit.Never}
		free := &scheduler.Ticket{Cost: limit.One, Place: 1, Deadline: limit.Never}
		want(t, l.Enter(0, a, first), scheduler.Waiting)
		want(t, l.Enter(0, b, free), scheduler.Waiting)
		want(t, l.Next(0) == nil, true)
		want(t, l.Wake(), 100*ms)
		if got := l.Next(100 * ms); got != free {
			t.Errorf("fair %v: after the pause %v goes, want the one that uses nothing", fair, got)
		}
		shut.last = true // now it would delay the first, by what no rule tells of
		later := &scheduler.Ticket{Cost: limit.One, Place: 2, Deadline: limit.Never}
		want(t, l.Enter(100*ms, b, later), scheduler.Waiting)
	}
}

// Tickets that go ahead of the first of a lane leave as much free as the first, and do not delay it.
func TestFillLeaves(t *testing.T) {
	l := scheduler.New(scheduler.Config{Fill: 3})
	eight := l.Limit(rolling(t, 8, time.Second), scheduler.Sharing{})
	a := l.Lane(scheduler.LaneConfig{Reserve: 0.5}, []*scheduler.Limit{eight})
	enter := func(n int64) scheduler.State {
		return l.Enter(0, a, &scheduler.Ticket{Cost: limit.Cost{n}, Deadline: limit.Never})
	}
	one := limit.Cost{1}
	p, _ := l.Try(0, a, &limit.Cost{2}, nil)
	l.Settle(0, p, &accepted)
	if p, at := l.Try(100*ms, a, &one, nil); at > 100*ms {
		t.Fatal("no room for the third")
	} else {
		l.Settle(100*ms, p, &accepted)
	}
	// 3 of 8 are used, and 4 are to be left. At 1 s there will be 7.
	want(t, enter(3), scheduler.Waiting)
	want(t, enter(1), scheduler.Waiting)
	want(t, enter(1), scheduler.Waiting)
	went := 0
	for u := l.Next(100 * ms); u != nil; u = l.Next(100 * ms) {
		went++
	}
	if went != 0 { // with one more the first could not go at 1 s, and leave four
		t.Errorf("%d passed", went)
	}
	if u := l.Next(second); u == nil || u.Cost[0] != 3 {
		t.Errorf("at 1 s %v went, want the first", u)
	}
	// Here one more would not delay the first, but leave only three.
	m := rolling(t, 8, time.Second)
	b := l.Lane(scheduler.LaneConfig{Reserve: 0.5}, []*scheduler.Limit{l.Limit(m, scheduler.Sharing{})})
	for i := range uint64(4) {
		old := limit.Sent{At: second, Number: 1000 + i, Cost: limit.One}
		m.Admit(&old)
		m.Settle(second, &old, &accepted)
	}
	want(t, l.Enter(second, b, &scheduler.Ticket{Cost: limit.Cost{3}, Deadline: limit.Never}), scheduler.Waiting)
	small := &scheduler.Ticket{Cost: limit.Cost{1}, Place: 1, Deadline: limit.Never}
	want(t, l.Enter(second, b, small), scheduler.Waiting)
	want(t, l.Next(second) == nil, true)
}

// A lane whose tickets have all gone may still be parked. It no longer counts as one that waits.
func TestReserveIgnoresWhoHasGone(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	var m []*scheduler.Limit
	for range 2 {
		m = append(m, l.Limit(rolling(t, 4, time.Second), scheduler.Sharing{}))
	}
	people := l.Lane(scheduler.LaneConfig{}, m[:1], m[1:])
	for range m {
		p, _ := l.Try(0, people, &limit.Cost{2}, nil)
		l.Settle(0, p, &accepted)
	}
	gone := &scheduler.Ticket{Cost: limit.Cost{3}, Deadline: limit.Never}
	want(t, l.Enter(0, people, gone), scheduler.Waiting)
	want(t, l.Leave(0, gone), true)
	batch := l.Lane(scheduler.LaneConfig{Reserve: 0.5}, m[:1])
	if _, at := l.Try(500*ms, batch, &limit.One, nil); at <= 500*ms {
		t.Error("it goes, with two of four used and two to be left")
	}
}

// strict fails a test that admits what a limiter does not let go, and notes for each request what the
// limit would have left free.
type strict struct {
	limit.Limiter
	parts []float64
	left  map[uint64]map[float64]bool
	err   error
}

func (s *strict) Unwrap() []limit.Limiter { return []limit.Limiter{s.Limiter} }

func (s *strict) Admit(sent *limit.Sent) {
	if at := s.Ready(sent.At, sent.Cost); at > sent.At {
		s.err = cmp.Or(s.err, fmt.Errorf("at %v a cost of %v goes before %v", sent.At, sent.Cost, at))
	}
	left := map[float64]bool{}
	for _, free := range s.parts {
		left[free] = limit.ReadyLeaving(s.Limiter, sent.At, nil, sent.Cost, free) <= sent.At
	}
	s.left[sent.Number] = left
	s.Limiter.Admit(sent)
}

// runReserves lets lanes with reserves meet at several limits at random. These are the laws:
//
//   - what goes may go without a reserve, too;
//   - what leaves less than its reserve goes only where one that leaves less waited for that limit;
//   - nothing that may go by one limit waits for an event that never comes;
//   - everyone goes in the end.
func runReserves(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 8))
	several, joint, fill := rng.IntN(3) == 0, rng.IntN(2) == 0, rng.IntN(2)*3
	if several {
		fill = 0 // a lane is not filled by each of its ways
	}
	l := scheduler.New(scheduler.Config{Fill: fill})
	parts := []float64{0, 0.25, 0.5}
	var limits []*scheduler.Limit
	var checks []*strict
	for range 1 + rng.IntN(3) {
		made, err := limit.NewRolling(limit.RollingConfig{Limit: 4 + rng.Int64N(12), Window: time.Second,
			Unit: limit.Unit(rng.IntN(2))})
		if err != nil {
			return err
		}
		s := &strict{Limiter: made, parts: parts, left: map[uint64]map[float64]bool{}}
		checks = append(checks, s)
		limits = append(limits, l.Limit(s, scheduler.Sharing{Fair: rng.IntN(2) == 0}))
	}
	var lanes []*scheduler.Lane
	reserves := map[*scheduler.Lane]float64{}
	for range 2 + rng.IntN(4) {
		free := parts[rng.IntN(len(parts))]
		ways := [][]*scheduler.Limit{{limits[rng.IntN(len(limits))]}}
		switch {
		case several:
			ways = nil
			for _, m := range limits {
				ways = append(ways, []*scheduler.Limit{m})
			}
		case joint && rng.IntN(2) == 0:
			ways[0] = limits
		}
		a := l.Lane(scheduler.LaneConfig{Reserve: free}, ways...)
		lanes = append(lanes, a)
		reserves[a] = free
	}
	var open []*scheduler.Ticket
	var now mono.Time
	granted := func(t *scheduler.Ticket) error {
		free := reserves[t.Of.(*scheduler.Lane)]
		for i := range limits {
			left, ok := checks[i].left[l.Sent(t.Pass).Number]
			if !ok || left[free] {
				continue
			}
			waited := false // in any lane: where it waits may have changed since
			for _, a := range lanes {
				waited = waited || reserves[a] < free && a.Len() > 0
			}
			if !waited && !slices.ContainsFunc(open, func(u *scheduler.Ticket) bool { // it has just gone
				return l.Sent(u.Pass).At == now && reserves[u.Of.(*scheduler.Lane)] < free
			}) {
				return fmt.Errorf("at %v limit %d has less than %v left, and nobody waits who leaves less", now,
					i, free)
			}
		}
		return nil
	}
	drain := func() (n int, err error) {
		first := len(open)
		for t := l.Next(now); t != nil; t = l.Next(now) {
			if n++; t.State == scheduler.Granted {
				open = append(open, t)
			}
		}
		for _, t := range open[first:] {
			err = cmp.Or(err, granted(t))
		}
		return n, err
	}
	look := func() error {
		if _, err := drain(); err != nil {
			return err
		}
		for _, m := range limits { // nothing was overlooked
			l.Touch(m)
		}
		n, err := drain()
		if n > 0 && err == nil && !joint { // at several limits a ticket may move, and claim
			err = fmt.Errorf("at %v %d went only when they were looked at again", now, n)
		}
		return err
	}
	for step := 0; step < 600 || l.Waiting() > 0 && step < 2000; step++ {
		now += mono.Time(rng.IntN(80)) * ms
		if wake := l.Wake(); wake <= now {
			now = max(now-80*ms, wake)
		}
		if err := look(); err != nil {
			return err
		}
		if a := lanes[rng.IntN(len(lanes))]; a.Len() < 4 && step < 400 {
			t := &scheduler.Ticket{Place: now, Deadline: limit.Never, Of: a}
			t.Cost = limit.Cost{1 + rng.Int64N(3), 1 + rng.Int64N(3)}
			if l.Enter(now, a, t) == scheduler.Granted {
				open = append(open, t)
				if err := granted(t); err != nil {
					return err
				}
			}
			if err := look(); err != nil {
				return err
			}
		}
		for len(open) > 0 && (rng.IntN(2) == 0 || step >= 400) {
			k := rng.IntN(len(open))
			p := open[k].Pass
			open = slices.Delete(open, k, k+1)
			l.Settle(now, p, &accepted)
			if err := look(); err != nil {
				return err
			}
		}
		for _, s := range checks {
			if s.err != nil {
				return s.err
			}
		}
	}
	if n := l.Waiting(); n > 0 {
		return fmt.Errorf("%d wait at the end", n)
	}
	return nil
}

// The laws of runReserves hold.
func TestReserves(t *testing.T) { eachSeed(t, 100, runReserves) }

func FuzzReserves(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		if err := runReserves(seed); err != nil {
			t.Fatal(err)
		}
	})
}

// A limit tells how many wait for it, and the part that all of them leave free: the least that one of them does.
func TestWaitingLeavesFree(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	m := l.Limit(rolling(t, 4, time.Second), scheduler.Sharing{})
	lanes := []*scheduler.Lane{
		l.Lane(scheduler.LaneConfig{Share: l.Share(scheduler.ShareConfig{Reserve: 0.5})}, []*scheduler.Limit{m}),
		l.Lane(scheduler.LaneConfig{Share: l.Share(scheduler.ShareConfig{Reserve: 0.25})}, []*scheduler.Limit{m}),
		l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m}),
	}
	waiting := func(n int, free float64) {
		t.Helper()
		if gotN, gotFree := m.Waiting(); gotN != n || gotFree != free {
			t.Errorf("%d wait, who leave %v free; want %d and %v", gotN, gotFree, n, free)
		}
	}
	enter := func(a *scheduler.Lane, want scheduler.State) {
		t.Helper()
		if s := l.Enter(0, a, &scheduler.Ticket{Cost: limit.One, Deadline: limit.Never}); s != want {
			t.Fatalf("%v, want %v", s, want)
		}
	}
	waiting(0, 0)
	enter(lanes[0], scheduler.Granted)
	enter(lanes[0], scheduler.Granted)
	enter(lanes[0], scheduler.Waiting)
	waiting(1, 0.5)
	enter(lanes[1], scheduler.Granted)
	enter(lanes[1], scheduler.Waiting)
	waiting(2, 0.25)
	enter(lanes[2], scheduler.Granted)
	enter(lanes[2], scheduler.Waiting)
	waiting(3, 0)
}
