package scheduler_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

const never = time.Duration(math.MaxInt64)

// host is a limiter of a host, which is shut while it is down. A probe goes each second.
type host struct {
	down bool
	next mono.Time
}

func (h *host) Ready(now mono.Time, _ limit.Cost) mono.Time {
	if h.down {
		return max(now, h.next)
	}
	return now
}
func (h *host) Admit(s *limit.Sent) { h.next = s.At + second }
func (h *host) Settle(now mono.Time, _ *limit.Sent, o *limit.Outcome) {
	h.down = o.Link >= limit.Broken || h.down && o.Result != limit.Accepted
	h.next = now + second
}
func (h *host) Shut(mono.Time) bool { return h.down }

// came is a ticket that comes now.
func came(name string, now mono.Time) *scheduler.Ticket {
	t := ticket(name, now)
	t.Came = now
	return t
}

// after is a lane of two ways, of which the second opens later.
func after(l *scheduler.Scheduler, d time.Duration, first, second *scheduler.Limit) *scheduler.Lane {
	return l.Lane(scheduler.LaneConfig{After: []time.Duration{0, d}}, []*scheduler.Limit{first}, []*scheduler.Limit{second})
}

// A ticket goes by a way with a door at its arrival and that span, and before by the ways without.
func TestDoorOpensAfterItsSpan(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	lane := after(l, 5*time.Second, l.Limit(slots(t, 1), scheduler.Sharing{}), l.Limit(slots(t, 9), scheduler.Sharing{}))
	a, b, c, d := came("a", 0), came("b", 0), came("c", second), came("d", 2*second)
	want(t, l.Enter(0, lane, a), scheduler.Granted)
	want(t, a.Pass.Way.Index, 0)
	_, at := l.Try(0, lane, &limit.One, nil)
	want(t, at, 5*second)
	want(t, l.Enter(0, lane, b), scheduler.Waiting)
	want(t, l.Enter(second, lane, c), scheduler.Waiting)
	want(t, l.Enter(2*second, lane, d), scheduler.Waiting)
	want(t, l.Wake(), 5*second)
	want(t, next(l, 5*second-1), "")
	want(t, next(l, 5*second), "b")
	want(t, b.Pass.Way.Index, 1)
	l.Settle(5*second, a.Pass, &accepted)
	want(t, next(l, 5*second), "c")
	want(t, c.Pass.Way.Index, 0)
	want(t, next(l, 7*second), "d")
	want(t, d.Pass.Way.Index, 1)
}

// A ticket that was sent before may go by any way. It takes the one that opens first.
func TestDoorGivesWayToTheWaysBefore(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	lane := after(l, time.Second, l.Limit(slots(t, 9), scheduler.Sharing{}), l.Limit(slots(t, 9), scheduler.Sharing{}))
	for range 3 {
		old := came("old", 0)
		want(t, l.Enter(9*second, lane, old), scheduler.Granted)
		want(t, old.Pass.Way.Index, 0)
	}

	away := &host{down: true, next: 20 * second}
	lane = after(l, time.Second, l.Limit(away, scheduler.Sharing{}), l.Limit(slots(t, 9), scheduler.Sharing{}))
	for _, want := range []int{1, 1, 0, 0} {
		old := came("old", 0)
		if l.Enter(9*second, lane, old) != scheduler.Granted || old.Pass.Way.Index != want {
			t.Fatalf("by way %d, want %d", old.Pass.Way.Index, want)
		}
		away.down = want == 1 && l.Waiting() == 0 && lane.Granted() < 2
	}
}

// A door opens by the arrival of the ticket that waits there now, whoever waited there before.
func TestDoorOfTheNextTicket(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	lane := after(l, 5*time.Second, l.Limit(occupied(t), scheduler.Sharing{}), l.Limit(slots(t, 9), scheduler.Sharing{}))
	a, b := came("a", 0), came("b", 4*second)
	want(t, l.Enter(0, lane, a), scheduler.Waiting)
	want(t, l.Leave(4*second, a), true)
	want(t, next(l, 4*second), "")
	want(t, l.Enter(4*second, lane, b), scheduler.Waiting)
	want(t, next(l, 9*second-1), "")
	want(t, next(l, 9*second), "b")
}

// A ticket has no right to the room of a way that has closed again.
func TestClosedDoorClaimsNothing(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	add := func(m limit.Limiter) *scheduler.Limit { return l.Limit(m, scheduler.Sharing{}) }
	away := &host{down: true, next: 1000 * second}
	health, k, m := add(away), add(slots(t, 1)), add(slots(t, 1))
	lane := l.Lane(scheduler.LaneConfig{After: []time.Duration{0, never}}, []*scheduler.Limit{add(occupied(t)), health},
		[]*scheduler.Limit{k, m})
	byK, byM := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{k}), l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m})
	x, y, u := came("x", 0), came("y", 0), came("u", 0)
	want(t, l.Enter(0, byK, x), scheduler.Granted)
	want(t, l.Enter(0, byM, y), scheduler.Granted)
	want(t, l.Enter(0, lane, u), scheduler.Waiting)
	for now := second; now < 12*second; now += second { // others take the room of the one while u waits for the other
		l.Settle(now, x.Pass, &accepted)
		want(t, next(l, now), "")
		z := came("z", now)
		if l.Enter(now, byK, z) != scheduler.Granted {
			break // u has claimed both
		}
		x, y, byK, byM = y, z, byM, byK
	}
	away.down = false
	l.Touch(health)
	l.Settle(20*second, y.Pass, &accepted)
	want(t, next(l, 20*second), "z")
	want(t, u.State, scheduler.Waiting)
}

// A way is passed over at once where its host is down, where it never has room, or not before the
// deadline of the ticket.
func TestDoorOpensAtOnceWhereOthersAreShut(t *testing.T) {
	for _, d := range []time.Duration{time.Hour, never} {
		for _, c := range []struct {
			name     string
			first    limit.Limiter
			deadline mono.Time
			goes     bool
		}{
			{"down", &host{true, second}, limit.Never, true},
			{"works", &host{}, limit.Never, false},
			{"too large", limit.MustRolling(1, time.Second), limit.Never, true},
			{"too late", used(t, 10*time.Second), 3 * second, true},
			{"late by a nanosecond", used(t, 10*time.Second), 10*second - 1, true},
			{"just in time", used(t, 10*time.Second), 10 * second, false},
			{"in time", used(t, 10*time.Second), 20 * second, false},
			{"no deadline", used(t, 10*time.Second), limit.Never, false},
			{"nobody knows", occupied(t), 3 * second, false},
		} {
			t.Run(fmt.Sprint(c.name, d), func(t *testing.T) {
				l := scheduler.New(scheduler.Config{})
				first, spare := l.Limit(c.first, scheduler.Sharing{}), l.Limit(slots(t, 9), scheduler.Sharing{})
				lane := after(l, d, first, spare)
				u := came("u", 0)
				u.Deadline = c.deadline
				if c.name == "too large" {
					u.Cost = limit.Cost{limit.Requests: 2}
				}
				goes := l.Enter(0, lane, u) == scheduler.Granted
				want(t, goes && u.Pass.Way.Index == 1, c.goes)
				want(t, goes, c.goes || c.name == "works")
			})
		}
	}
}

// used is a limiter without room for that long.
func used(t *testing.T, d time.Duration) limit.Limiter {
	l := rolling(t, 2, d)
	for n := range uint64(2) {
		s := &limit.Sent{Cost: limit.One, Number: n + 1}
		l.Admit(s)
		l.Settle(0, s, &accepted)
	}
	return l
}

// occupied is a limiter without room until an answer comes.
func occupied(t *testing.T) limit.Limiter {
	l := slots(t, 1)
	l.Admit(&limit.Sent{Cost: limit.One, Number: 1})
	return l
}

// A waiting ticket is passed on at once when the host of its way goes down, by the answer to another
// lane's request, and when a limit is closed.
func TestDoorOpensWhileATicketWaits(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	way, own := l.Limit(new(host), scheduler.Sharing{}), l.Limit(slots(t, 1), scheduler.Sharing{})
	spare := l.Limit(slots(t, 9), scheduler.Sharing{})
	lane := l.Lane(scheduler.LaneConfig{After: []time.Duration{0, never}}, []*scheduler.Limit{own, way}, []*scheduler.Limit{spare})
	other := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{way})
	a, b, x := came("a", 0), came("b", 0), came("x", 0)
	want(t, l.Enter(0, lane, a), scheduler.Granted)
	want(t, l.Enter(0, lane, b), scheduler.Waiting)
	want(t, l.Enter(0, other, x), scheduler.Granted)
	want(t, next(l, second), "")
	l.Settle(second, x.Pass, &limit.Outcome{Link: limit.Unreachable})
	want(t, next(l, second), "b")
	want(t, b.Pass.Way.Index, 1)

	gate := &gate{}
	first := l.Limit(gate, scheduler.Sharing{})
	lane = after(l, never, first, spare)
	gate.at = limit.AfterSettle
	c := came("c", second)
	want(t, l.Enter(second, lane, c), scheduler.Waiting)
	gate.at = limit.Never
	l.Review(2*second, first)
	want(t, next(l, 2*second), "c")
}

// gate is a limiter with an instant that others set.
type gate struct{ at mono.Time }

func (g *gate) Ready(now mono.Time, _ limit.Cost) mono.Time               { return max(now, g.at) }
func (*gate) Admit(*limit.Sent)                                           {}
func (*gate) Settle(mono.Time, *limit.Sent, *limit.Outcome)               {}
func (g *gate) NotBefore(now mono.Time, _ int, _, _ limit.Cost) mono.Time { return now }
func (g *gate) ReadyAfter(now mono.Time, _, c limit.Cost) mono.Time       { return g.Ready(now, c) }

// spilled sends so many requests a second by a first way of 20 a second and a spare one of 5. Beside
// them one request a second may go by the spare one alone.
func spilled(t *testing.T, perSecond int, d time.Duration, fill int) (first, spare, alone, left int, waits []time.Duration) {
	l := scheduler.New(scheduler.Config{})
	a, b := l.Limit(rolling(t, 20, time.Second), scheduler.Sharing{}), l.Limit(rolling(t, 5, time.Second), scheduler.Sharing{})
	lane := l.Lane(scheduler.LaneConfig{Fill: fill, After: []time.Duration{0, d}}, []*scheduler.Limit{a}, []*scheduler.Limit{b})
	only := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{b})
	const long = 60
	gone := func(now mono.Time, u *scheduler.Ticket) {
		switch {
		case u.Of == "alone":
			alone++
		case u.Pass.Way.Index == 0:
			first++
			waits = append(waits, now.Sub(u.Came))
		default:
			spare++
			waits = append(waits, now.Sub(u.Came))
			if now.Sub(u.Came) < d {
				t.Errorf("spilled %v after its arrival, want %v at least", now.Sub(u.Came), d)
			}
		}
		l.Settle(now, u.Pass, &accepted)
	}
	serve := func(now mono.Time) {
		for u := l.Next(now); u != nil; u = l.Next(now) {
			gone(now, u)
		}
	}
	until := func(now mono.Time) {
		for l.Wake() <= now {
			serve(l.Wake())
		}
	}
	enter := func(now mono.Time, a *scheduler.Lane, of string) {
		u := came("", now)
		u.Of = of
		if l.Enter(now, a, u) == scheduler.Granted {
			gone(now, u)
		}
		serve(now)
	}
	for i := range long * perSecond {
		now := mono.Time(i) * second / mono.Time(perSecond)
		until(now)
		enter(now, lane, "")
		if i%perSecond == perSecond/2 {
			enter(now, only, "alone")
		}
	}
	until(long * second)
	return first, spare, alone, l.Waiting(), waits
}

// Below the first way's limit nothing spills. Above it the surplus does, and a request that may go by
// the spare way alone is served.
func TestSurplusSpills(t *testing.T) {
	for _, fill := range []int{0, 64} {
		for _, perSecond := range []int{10, 15, 19} {
			first, spare, alone, left, _ := spilled(t, perSecond, time.Second, fill)
			if spare > 0 || alone != 60 || first+left != 60*perSecond {
				t.Errorf("at %d/s: %d by the first way, %d by the spare one, %d alone, %d left", perSecond, first, spare, alone, left)
			}
		}
		first, spare, alone, left, _ := spilled(t, 22, time.Second, fill)
		t.Logf("at 22/s of 20/s, fill %d: %d by the first way, %d by the spare one, %d of 60 alone, %d left", fill, first, spare, alone, left)
		// What the first way has no room for is 120 of 1,320, less those that wait at the end.
		if first < 1180 || spare < 80 || spare > 140 || alone != 60 || left > 25 {
			t.Errorf("at 22/s: %d by the first way, %d by the spare one, %d alone, %d left", first, spare, alone, left)
		}
	}
}

// Lanes with doors, under random traffic, answers and changes: no ticket goes by a way before that
// opens, and each goes in the end.
func TestDoorLaws(t *testing.T) {
	for seed := range uint64(300) {
		doorLaws(t, rand.New(rand.NewPCG(seed, 1)), seed)
	}
}

func FuzzDoorLaws(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { doorLaws(t, rand.New(rand.NewPCG(seed, 2)), seed) })
}

func doorLaws(t *testing.T, r *rand.Rand, seed uint64) {
	l := scheduler.New(scheduler.Config{Fill: r.IntN(2) * 4})
	hosts := []*host{{}, {}, {}}
	var quotas, health []*scheduler.Limit
	for i := range hosts {
		quotas = append(quotas, l.Limit(rolling(t, int64(1+r.IntN(3)), time.Second), scheduler.Sharing{Fair: r.IntN(2) == 0}))
		health = append(health, l.Limit(hosts[i], scheduler.Sharing{}))
	}
	spans := []time.Duration{0, 0, 500 * time.Millisecond, 3 * time.Second, never}
	type lane struct {
		*scheduler.Lane
		after []time.Duration
		of    []int
		homes bool
	}
	var lanes []lane
	for range 1 + r.IntN(3) {
		a := lane{of: r.Perm(3)[:1+r.IntN(3)], homes: r.IntN(3) == 0}
		var ways [][]*scheduler.Limit
		for _, i := range a.of {
			ways = append(ways, []*scheduler.Limit{quotas[i], health[i]})
			a.after = append(a.after, spans[r.IntN(len(spans))])
		}
		a.after[r.IntN(len(a.after))] = 0
		a.Lane = l.Lane(scheduler.LaneConfig{After: a.after, Homes: a.homes}, ways...)
		lanes = append(lanes, a)
	}
	now := mono.Time(0)
	var open []*scheduler.Ticket
	waiting := 0
	goes := func(u *scheduler.Ticket) {
		a := u.Of.(lane)
		span := func(k int) time.Duration {
			if a.homes && len(a.of) > 1 && u.Homes != 0 && u.Homes>>k&1 == 0 {
				return max(a.after[k], u.Hold)
			}
			return a.after[k]
		}
		d := span(u.Pass.Way.Index)
		for k := range a.after {
			before := span(k)
			if before < d && (d == never || u.Came.Add(d) > now) && !hosts[a.of[k]].down {
				t.Fatalf("seed %d: at %v one of %v went by way %d, after %v, and way %d was open", seed, now, u.Came,
					u.Pass.Way.Index, d, k)
			}
		}
		open = append(open, u)
	}
	serve := func() {
		for u := l.Next(now); u != nil; u = l.Next(now) {
			waiting--
			goes(u)
		}
	}
	settle := func(o limit.Outcome) {
		i := r.IntN(len(open))
		u := open[i]
		open = append(open[:i], open[i+1:]...)
		l.Settle(now, u.Pass, &o)
		serve()
	}
	pass := func(d time.Duration) {
		for until := now.Add(d); ; {
			if l.Wake() > until {
				now = until
				return
			}
			now = max(now, l.Wake())
			serve()
		}
	}
	for range 200 {
		switch k := r.IntN(10); {
		case k < 4:
			a := lanes[r.IntN(len(lanes))]
			u := came("", now)
			u.Of = a
			if a.homes {
				u.Homes, u.Hold = r.Uint64N(8), time.Duration(r.Int64N(int64(2*time.Second)))
			}
			switch l.Enter(now, a.Lane, u) {
			case scheduler.Granted:
				goes(u)
			case scheduler.Waiting:
				waiting++
			}
			serve()
		case k < 7 && len(open) > 0:
			settle([]limit.Outcome{accepted, accepted, {Link: limit.Unreachable, Result: limit.Unsent},
				{Result: limit.Limited, Link: limit.Working}}[r.IntN(4)])
		default:
			pass(time.Duration(r.Int64N(int64(time.Second))))
		}
	}
	for range 400 { // all hosts work again, and no ticket comes any more
		for len(open) > 0 {
			settle(accepted)
		}
		pass(time.Second)
	}
	if waiting > 0 || l.Waiting() > 0 {
		t.Fatalf("seed %d: %d tickets wait for ever", seed, waiting)
	}
}

// A ticket waits for the way that it prefers, and goes by another after its hold, or at once where that
// way is shut. Those behind that prefer others do not wait for it.
func TestHomes(t *testing.T) {
	l := scheduler.New(scheduler.Config{Fill: 4})
	down := &host{}
	quota := l.Limit(rolling(t, 1, 10*time.Second), scheduler.Sharing{})
	spare := l.Limit(rolling(t, 99, time.Second), scheduler.Sharing{})
	lane := l.Lane(scheduler.LaneConfig{Homes: true}, []*scheduler.Limit{quota, l.Limit(down, scheduler.Sharing{})}, []*scheduler.Limit{spare})
	enter := func(now mono.Time, homes uint64, state scheduler.State) *scheduler.Ticket {
		t.Helper()
		u := came("u", now)
		u.Homes, u.Hold = homes, 2*time.Second
		want(t, l.Enter(now, lane, u), state)
		return u
	}
	a := enter(0, 1, scheduler.Granted)
	want(t, a.Pass.Way.Index, 0)
	l.Settle(0, a.Pass, &accepted)
	b := enter(0, 1, scheduler.Waiting) // its home has no room before 10 s
	for range 3 {
		c := enter(second, 2, scheduler.Waiting)
		want(t, next(l, second), "u")
		want(t, c.State, scheduler.Granted)
		want(t, c.Pass.Way.Index, 1)
	}
	want(t, next(l, 2*second-1), "")
	want(t, next(l, 2*second), "u")
	want(t, b.Pass.Way.Index, 1)
	for range 2 {
		none := enter(3*second, 0, scheduler.Granted)
		want(t, none.Pass.Way.Index, 1)
	}
	down.down, down.next = true, 100*second
	d := enter(4*second, 1, scheduler.Granted)
	want(t, d.Pass.Way.Index, 1)
}
