package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// polled is a line before one limiter that looks at all tickets at every tick. It is a Scheduler of
// one lane, written the slow way.
type polled struct {
	limit limit.Limiter
	fill  int
	wait  []*caller
}

type caller struct {
	n      int
	cost   limit.Cost
	passed int
	lease  *limit.Sent
}

// look returns the callers that go now.
func (p *polled) look(now mono.Time) (went []*caller) {
	take := func(i int) {
		c := p.wait[i]
		p.wait = append(p.wait[:i:i], p.wait[i+1:]...)
		c.lease = limittest.Admit(p.limit, now, c.cost)
		went = append(went, c)
	}
	for len(p.wait) > 0 {
		head := p.wait[0]
		at := p.limit.Ready(now, head.cost)
		if at <= now {
			take(0)
			continue
		}
		i := 1
		for n := p.fill; n > 0 && i < len(p.wait) && head.passed < p.fill && at < limit.AfterSettle; {
			if !limit.MayPass(p.limit, now, p.wait[i].cost, head.cost, at) {
				i++
				n--
				continue
			}
			for _, c := range p.wait[:i] {
				c.passed++
			}
			take(i)
			at = p.limit.Ready(now, head.cost)
		}
		if at > now {
			return went
		}
	}
	return went
}

// runPolled drives both with the same arrivals and answers, in ticks of a millisecond, and compares
// when each ticket goes.
func runPolled(seed uint64, fill int, end mono.Time) error {
	rng := rand.New(rand.NewPCG(seed, 2))
	fresh := func() limit.Limiter {
		r, _ := limit.NewRolling(limit.RollingConfig{Limit: 20, Window: 40 * time.Millisecond, Unit: limit.Tokens, Margin: -1})
		q, _ := limit.NewRolling(limit.RollingConfig{Limit: 4, Window: 25 * time.Millisecond, Margin: -1})
		return limit.NewAll(r, q)
	}
	model := &polled{limit: fresh(), fill: fill}
	subject := scheduler.New(scheduler.Config{Fill: fill})
	m := subject.Limit(fresh(), scheduler.Sharing{})
	lane := subject.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m})
	type flight struct {
		until mono.Time
		pass  scheduler.Pass
		lease *limit.Sent
		used  limit.Outcome
	}
	var open []flight
	tickets := map[int]*scheduler.Ticket{}
	made := 0
	for now := mono.Time(0); now < end; now += ms {
		var theirs, ours []int
		leases, passes := map[int]*limit.Sent{}, map[int]scheduler.Pass{}
		look := func() {
			for _, c := range model.look(now) {
				theirs, leases[c.n] = append(theirs, c.n), c.lease
			}
			for t := subject.Next(now); t != nil; t = subject.Next(now) {
				ours, passes[t.Of.(int)] = append(ours, t.Of.(int)), t.Pass
			}
		}
		kept := open[:0]
		for _, f := range open {
			if f.until > now {
				kept = append(kept, f)
				continue
			}
			model.limit.Settle(now, f.lease, &f.used)
			subject.Settle(now, f.pass, &f.used)
			look()
		}
		open = kept
		if n := len(model.wait); n > 0 && rng.IntN(8) == 0 {
			i := rng.IntN(n)
			if !subject.Leave(now, tickets[model.wait[i].n]) {
				return fmt.Errorf("at %v %d could not leave", now, model.wait[i].n)
			}
			model.wait = slices.Delete(model.wait, i, i+1)
			look()
		}
		for range rng.IntN(3) / 2 * rng.IntN(6) {
			cost := limit.Cost{limit.Requests: 1, limit.Tokens: int64(rng.IntN(20) + 1)}
			model.wait = append(model.wait, &caller{n: made, cost: cost})
			t := &scheduler.Ticket{Cost: cost, Place: now, Deadline: limit.Never, Of: made}
			tickets[made] = t
			if subject.Enter(now, lane, t) == scheduler.Granted {
				ours, passes[made] = append(ours, made), t.Pass
			}
			made++
			look()
		}
		look()
		if fmt.Sprint(ours) != fmt.Sprint(theirs) {
			return fmt.Errorf("at %v %v went, want %v", now, ours, theirs)
		}
		for _, n := range theirs {
			f := flight{until: now + mono.Time(rng.IntN(30))*ms, pass: passes[n], lease: leases[n], used: accepted}
			if rng.IntN(3) == 0 {
				f.used.Metered, f.used.Actual = true, limit.Cost{limit.Requests: 1, limit.Tokens: int64(rng.IntN(3))}
			}
			open = append(open, f)
		}
	}
	return nil
}

// Law 2: one lane before one limiter grants whom a line that looks at everybody all the time does,
// and when it does.
func TestAgainstPolling(t *testing.T) {
	for seed := range uint64(25) {
		for _, fill := range []int{0, 1, 4, 64} {
			if err := runPolled(seed, fill, 1500*ms); err != nil {
				t.Fatalf("seed %d, fill %d: %v", seed, fill, err)
			}
		}
	}
}

func FuzzAgainstPolling(f *testing.F) {
	f.Add(uint64(7), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, fill uint8) {
		if err := runPolled(seed, int(fill), 400*ms); err != nil {
			t.Fatal(err)
		}
	})
}

// A thousand callers, a hundred per six seconds, ten seconds to live: eight hundred are refused at
// once.
func TestTooLateAtOnce(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(rolling(t, 100, 6*time.Second), scheduler.Sharing{})})
	states := map[scheduler.State]int{}
	for range 1000 {
		u := ticket("", 0)
		u.Deadline = 10 * second
		states[l.Enter(0, lane, u)]++
		if u.State == scheduler.Late && u.At <= 10*second {
			t.Fatalf("refused though it could go at %v", u.At)
		}
	}
	want(t, fmt.Sprint(states), fmt.Sprint(map[scheduler.State]int{scheduler.Granted: 100, scheduler.Waiting: 100, scheduler.Late: 800}))
	// A ticket before the others is asked about there.
	u := ticket("", -second)
	u.Deadline = 10 * second
	want(t, l.Enter(0, lane, u), scheduler.Waiting)
}

// Unused reservations refuse no ticket: a thousand prompts that reserve a thousand tokens and use
// none.
func TestReservedTooMuch(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	r, err := limit.NewRolling(limit.RollingConfig{Limit: 30_000, Window: time.Minute, Unit: limit.Tokens, Margin: -1})
	if err != nil {
		t.Fatal(err)
	}
	lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(r, scheduler.Sharing{})})
	for i := range 1000 {
		u := &scheduler.Ticket{Cost: limit.Cost{limit.Requests: 1, limit.Tokens: 1000}, Deadline: mono.Time(10 * time.Minute)}
		u.Ask(&u.Cost)
		if s := l.Enter(0, lane, u); s == scheduler.Late {
			t.Fatalf("%d is refused, until %v", i, u.At)
		}
	}
}

// When the answers are there, their reservations beyond the least use count no more: the next
// ticket is refused at once.
func TestReservedIsForgotten(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	r := must(limit.NewRolling(limit.RollingConfig{Limit: 100, Window: time.Minute, Unit: limit.Tokens, Margin: -1}))
	lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(r, scheduler.Sharing{})})
	prompt := func(n int64) *scheduler.Ticket {
		u := &scheduler.Ticket{Cost: limit.Cost{limit.Requests: 1, limit.Tokens: n}, Deadline: 10 * second}
		u.Ask(&u.Cost)
		return u
	}
	a := prompt(100)
	want(t, l.Enter(0, lane, a), scheduler.Granted)
	b := prompt(100)
	want(t, l.Enter(0, lane, b), scheduler.Waiting) // a may come to use nothing
	l.Leave(0, b)
	l.Settle(second, a.Pass, &accepted)
	c := prompt(100)
	want(t, l.Enter(second, lane, c), scheduler.Late)
	want(t, c.At, 61*second)
}

// A cost that never fits one way waits for the other, and holds up no ticket at the first. When the
// first grows, it goes there.
func TestTooLargeHoldsUpNobody(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	small := must(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: time.Second, Margin: -1}))
	a, b := l.Limit(small, scheduler.Sharing{}), l.Limit(slots(t, 1), scheduler.Sharing{})
	either, ofA := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{a}, []*scheduler.Limit{b}), l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{a})
	big := func(name string) *scheduler.Ticket {
		u := ticket(name, 0)
		u.Cost = limit.Cost{limit.Requests: 3}
		return u
	}
	first, x, y := big("first"), ticket("x", 0), ticket("y", 0)
	want(t, l.Enter(0, either, first), scheduler.Granted)
	want(t, first.Pass.Way.Index, 1)
	want(t, l.Enter(0, either, big("big")), scheduler.Waiting)
	want(t, l.Enter(0, ofA, x), scheduler.Granted)
	want(t, l.Enter(0, ofA, y), scheduler.Granted)
	want(t, l.Enter(0, ofA, ticket("z", 0)), scheduler.Waiting)
	want(t, l.Enter(0, ofA, big("never")), scheduler.Never) // at once, though others wait
	l.Settle(second, x.Pass, &accepted)
	l.Settle(second, y.Pass, &accepted)
	want(t, next(l, second), "")
	want(t, next(l, 2*second), "z")
	if err := small.SetLimit(3*second, 4); err != nil {
		t.Fatal(err)
	}
	l.Touch(a)
	want(t, next(l, 3*second), "big")
}

// Too many, in all and in one lane.
func TestFull(t *testing.T) {
	l := scheduler.New(scheduler.Config{Size: 3})
	m := l.Limit(slots(t, 1), scheduler.Sharing{})
	a, b := l.Lane(scheduler.LaneConfig{Size: 2}, []*scheduler.Limit{m}), l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m})
	var got strings.Builder
	for _, lane := range []*scheduler.Lane{a, a, a, a, b, b} {
		got.WriteString(fmt.Sprint(l.Enter(0, lane, ticket("", 0)), " "))
	}
	want(t, got.String(), fmt.Sprintf("%d %d %d %d %d %d ", scheduler.Granted, scheduler.Waiting, scheduler.Waiting, scheduler.Full, scheduler.Waiting, scheduler.Full))
	want(t, l.Waiting(), 3)
	again := ticket("", 0)
	again.Again = true
	want(t, fmt.Sprint(l.Enter(0, a, again)), fmt.Sprint(scheduler.Waiting))
}

// Lanes of weights 1, 2 and 5 that always have waiting tickets share a fair limit in these
// proportions, within a cost each.
func TestFairShares(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	m := l.Limit(slots(t, 1), scheduler.Sharing{Fair: true, Unit: limit.Tokens})
	weights := []float64{1, 2, 5}
	used := make([]int64, 3)
	rng := rand.New(rand.NewPCG(5, 5))
	var lanes []*scheduler.Lane
	var under *scheduler.Ticket
	enter := func(i int) {
		u := &scheduler.Ticket{Cost: limit.Cost{limit.Requests: 1, limit.Tokens: int64(rng.IntN(100) + 1)}, Deadline: limit.Never, Of: i}
		if l.Enter(0, lanes[i], u) == scheduler.Granted {
			under = u
			used[i] += u.Cost[limit.Tokens]
		}
	}
	for i, w := range weights {
		lanes = append(lanes, l.Lane(scheduler.LaneConfig{Weight: w}, []*scheduler.Limit{m}))
		enter(i)
		enter(i)
	}
	for range 4000 {
		l.Settle(0, under.Pass, &accepted)
		under = l.Next(0)
		i := under.Of.(int)
		used[i] += under.Cost[limit.Tokens]
		enter(i)
		for j, w := range weights {
			if d := float64(used[j])/w - float64(used[i])/weights[i]; d > 100/w+100/weights[i] || -d > 100/w+100/weights[i] {
				t.Fatalf("used %v by weights %v", used, weights)
			}
		}
	}
}

// A ticket that needs both limits goes, although others take first the one and then the other for
// good.
func TestNobodyStarves(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	a, b := l.Limit(slots(t, 1), scheduler.Sharing{}), l.Limit(slots(t, 1), scheduler.Sharing{})
	ofA, ofB := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{a}), l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{b})
	both := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{a, b})
	streams := map[string]*scheduler.Lane{"a": ofA, "b": ofB}
	under := map[string]*scheduler.Ticket{}
	enter := func(now mono.Time, name string) {
		if u := ticket(name, now); l.Enter(now, streams[name], u) == scheduler.Granted {
			under[name] = u
		}
	}
	enter(0, "a")
	enter(0, "b")
	want(t, l.Enter(0, both, ticket("x", 0)), scheduler.Waiting)
	for now := second; now < 30*second; now += second {
		enter(now, "a")
		enter(now, "b")
		name := "a"
		if now/second%2 == 0 {
			name = "b"
		}
		if u := under[name]; u != nil {
			under[name] = nil
			l.Settle(now, u.Pass, &accepted)
		}
		for u := l.Next(now); u != nil; u = l.Next(now) {
			if u.Of == "x" {
				return
			}
			under[u.Of.(string)] = u
		}
	}
	t.Fatal("it waits still")
}

// A lane of several ways takes the one that is ready first, and equals take turns.
func TestWaysTakeTurns(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	var ways [][]*scheduler.Limit
	for range 3 {
		ways = append(ways, []*scheduler.Limit{l.Limit(rolling(t, 2, time.Second), scheduler.Sharing{})})
	}
	lane := l.Lane(scheduler.LaneConfig{}, ways...)
	var got strings.Builder
	var under []*scheduler.Ticket
	for range 6 {
		u := ticket("", 0)
		want(t, l.Enter(0, lane, u), scheduler.Granted)
		got.WriteString(fmt.Sprint(u.Pass.Way.Index))
		under = append(under, u)
	}
	want(t, got.String(), "012012")
	want(t, l.Enter(0, lane, ticket("x", 0)), scheduler.Waiting)
	want(t, l.Enter(0, lane, ticket("y", 0)), scheduler.Waiting)
	for i, u := range under {
		l.Settle(mono.Time(i), u.Pass, &accepted)
		want(t, next(l, mono.Time(i)), "")
	}
	want(t, l.Wake(), second)
	want(t, next(l, second), "x")
	want(t, next(l, second+1), "y")
	big := ticket("z", 0)
	big.Cost, big.Metered, big.Least = limit.Cost{limit.Requests: 3}, true, limit.One
	want(t, l.Enter(second+1, lane, big), scheduler.Never)
}
