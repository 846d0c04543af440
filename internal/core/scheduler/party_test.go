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

// runParties has several classes of several lanes each share a fair limit. The lanes of a class are
// one to it. While two classes both have waiting tickets, their use differs by a cost each. The
// number of their lanes, empty lanes and tickets that leave do not matter. Within a class the order
// is by place, unless a lane is kept away by a limit of its own.
func runParties(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 8))
	l := scheduler.New(scheduler.Config{})
	slots := int64(rng.IntN(3) + 1)
	fair := l.Limit(must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: slots, Late: -1})), scheduler.Sharing{Fair: true, Unit: limit.Tokens})
	const most = 50
	type party struct {
		weight float64
		lanes  []*scheduler.Lane
		waits  map[*scheduler.Ticket]bool
		share  *scheduler.Class
	}
	var parties []*party
	of := map[*scheduler.Lane]*party{}
	away, own := map[*scheduler.Lane]*limit.Cooldown{}, map[*scheduler.Lane]*scheduler.Limit{}
	kept := map[*scheduler.Lane]int{} // away, how often since its last leave
	leaves := seed%2 == 1
	for _, w := range []float64{1, 2, 5, 1}[:rng.IntN(3)+2] {
		p := &party{weight: w, waits: map[*scheduler.Ticket]bool{}, share: l.Share(scheduler.ShareConfig{Weight: w})}
		parties = append(parties, p)
		for range []int{1, 3, 20}[rng.IntN(3)] {
			c := must(limit.NewCooldown(0))
			m := l.Limit(c, scheduler.Sharing{Fair: rng.IntN(2) == 0})
			a := l.Lane(scheduler.LaneConfig{Share: p.share}, []*scheduler.Limit{m, fair})
			p.lanes = append(p.lanes, a)
			of[a], away[a], own[a] = p, c, m
		}
	}
	now, place := mono.Time(0), mono.Time(0)
	var open []*scheduler.Ticket
	ahead := map[[2]int]*between{}
	var err error
	busy := func(p *party) bool {
		for _, a := range p.lanes {
			if a.Len() > 0 && away[a].Until() <= now {
				return true
			}
		}
		return false
	}
	granted := func(t *scheduler.Ticket) {
		p := of[t.Of.(*scheduler.Lane)]
		delete(p.waits, t)
		kept[t.Of.(*scheduler.Lane)] = 0
		open = append(open, t)
		for u := range p.waits {
			if u.Place < t.Place && !leaves {
				err = fmt.Errorf("at %v of place %v before %v", now, t.Place, u.Place)
			}
		}
		for k, b := range ahead {
			n := float64(t.Cost[limit.Tokens])
			switch p {
			case parties[k[0]]:
				b.ahead += n / p.weight
			case parties[k[1]]:
				b.ahead -= n / p.weight
			}
			b.low, b.high = min(b.low, b.ahead), max(b.high, b.ahead)
			if d, bound := b.high-b.low, most/parties[k[0]].weight+most/parties[k[1]].weight+1e-6; d > bound {
				err = fmt.Errorf("at %v shares %v are %v apart, more than %v", now, k, d, bound)
			}
		}
	}
	look := func() {
		for t := l.Next(now); t != nil; t = l.Next(now) {
			granted(t)
		}
		for i := range parties {
			for j := range i {
				k := [2]int{j, i}
				if !busy(parties[i]) || !busy(parties[j]) {
					delete(ahead, k)
				} else if ahead[k] == nil {
					ahead[k] = new(between)
				}
			}
		}
	}
	for range 3000 {
		now += ms
		look()
		p := parties[rng.IntN(len(parties))]
		switch {
		case leaves && rng.IntN(20) == 0:
			a := p.lanes[rng.IntN(len(p.lanes))]
			if kept[a]++; kept[a] > 2 { // a claim goes before its turn
				break
			}
			away[a].Extend(now + mono.Time(rng.IntN(500))*ms)
			l.Touch(own[a])
		case rng.IntN(8) == 0: // somebody leaves
			var last *scheduler.Ticket
			for t := range p.waits {
				if last == nil || t.Place > last.Place {
					last = t
				}
			}
			if rng.IntN(2) == 0 && len(p.waits) > 0 { // or the first of a lane
				last = p.lanes[rng.IntN(len(p.lanes))].First()
			}
			if last != nil {
				l.Leave(now, last)
				delete(p.waits, last)
			}
		case len(p.waits) < 30:
			a := p.lanes[rng.IntN(len(p.lanes))]
			place++
			t := &scheduler.Ticket{Cost: limit.Cost{limit.Requests: 1, limit.Tokens: int64(rng.IntN(most) + 1)}, Place: place, Deadline: limit.Never, Of: a}
			p.waits[t] = true
			if l.Enter(now, a, t) == scheduler.Granted {
				granted(t)
			}
		}
		look()
		if len(open) > 0 && rng.IntN(3) > 0 {
			k := rng.IntN(len(open))
			t := open[k]
			open[k] = open[len(open)-1]
			open = open[:len(open)-1]
			l.Settle(now, t.Pass, &accepted)
			look()
		}
		for i, p := range parties {
			if p.share.Len() != len(p.waits) {
				return fmt.Errorf("at %v %d of share %d wait, and it says %d", now, len(p.waits), i, p.share.Len())
			}
		}
		if err != nil {
			return err
		}
	}
	for _, p := range parties { // nobody is left behind
		for t := range p.waits {
			l.Leave(now, t)
		}
		for _, a := range p.lanes {
			l.Retire(a)
		}
	}
	return err
}

func TestSharesOfSeveralLanes(t *testing.T) {
	eachSeed(t, 100, runParties)
}

// The result of Expect for a newcomer comes true, within a turn of each other class, if those ahead
// stay and no other ticket comes.
func TestExpect(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		l := scheduler.New(scheduler.Config{})
		fair := seed%2 == 0
		rate := must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Millisecond, Margin: -1}))
		m := l.Limit(rate, scheduler.Sharing{Fair: fair})
		var lanes []*scheduler.Lane
		shares := rng.IntN(5) + 1
		for range shares {
			s := l.Share(scheduler.ShareConfig{Weight: float64([]int{1, 2, 5}[rng.IntN(3)])})
			for range rng.IntN(3) + 1 {
				lanes = append(lanes, l.Lane(scheduler.LaneConfig{Share: s}, []*scheduler.Limit{m}))
			}
		}
		now := mono.Time(0)
		run := func(until func(*scheduler.Ticket) bool) {
			for {
				for u := l.Next(now); u != nil; u = l.Next(now) {
					l.Settle(now, u.Pass, &accepted)
					if until(u) {
						return
					}
				}
				if l.Wake() == limit.Never {
					return
				}
				now = l.Wake()
			}
		}
		enter := func(a *scheduler.Lane, place mono.Time) *scheduler.Ticket {
			u := &scheduler.Ticket{Cost: limit.One, Place: place, Deadline: limit.Never}
			if l.Enter(now, a, u) == scheduler.Granted {
				l.Settle(now, u.Pass, &accepted)
			}
			return u
		}
		for range rng.IntN(60) {
			enter(lanes[rng.IntN(len(lanes))], now)
		}
		for range rng.IntN(20) {
			n := 0
			run(func(*scheduler.Ticket) bool { n++; return n > rng.IntN(3) })
			enter(lanes[rng.IntN(len(lanes))], now)
		}
		a := lanes[rng.IntN(len(lanes))]
		waiting, place := l.Waiting(), now
		if rng.IntN(3) == 0 { // it has come before
			place -= mono.Time(rng.IntN(20)) * ms / 4
		}
		cost := limit.One
		want, _ := l.Expect(now, a, &cost, place)
		began := now
		if u := enter(a, place); u.State == scheduler.Waiting {
			run(func(v *scheduler.Ticket) bool { return u == v })
		}
		off := time.Duration(now - want)
		if bound := time.Duration(shares-1) * time.Millisecond; fair && max(off, -off) > bound || !fair && off != 0 {
			t.Errorf("seed %d, fair %v: %d shares, %d wait: went after %v, expected after %v", seed, fair, shares, waiting, time.Duration(now-began), time.Duration(want-began))
		}
	}
}

// The use of one lane of a class counts for the others at once: here for the lane at the front.
func TestShareIsTaggedAnew(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	m := l.Limit(must(limit.NewRolling(limit.RollingConfig{Limit: 100, Window: time.Second, Margin: -1, Unit: limit.Tokens})), scheduler.Sharing{Fair: true, Unit: limit.Tokens})
	two := l.Share(scheduler.ShareConfig{})
	lane := func(s *scheduler.Class) *scheduler.Lane {
		return l.Lane(scheduler.LaneConfig{Share: s}, []*scheduler.Limit{m})
	}
	one, another, other, before := lane(two), lane(two), lane(nil), lane(nil)
	enter := func(a *scheduler.Lane, name string, tokens int64, place mono.Time) scheduler.State {
		u := &scheduler.Ticket{Cost: limit.Cost{limit.Tokens: tokens}, Place: place, Deadline: limit.Never, Of: name}
		state := l.Enter(ms, a, u)
		if state == scheduler.Granted {
			l.Settle(ms, u.Pass, &accepted)
		}
		return state
	}
	want(t, enter(before, "before", 60, 0), scheduler.Granted)
	want(t, enter(another, "another", 50, 10), scheduler.Waiting)
	want(t, enter(other, "other", 50, 20), scheduler.Waiting)
	want(t, enter(one, "one", 30, 5), scheduler.Granted) // it came earlier, and there is room for it
	want(t, l.Next(second+ms).Of.(string), "other")
}

// No weight, however odd, keeps a share from its turn, or others for ever from theirs.
func TestOddWeights(t *testing.T) {
	for _, w := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 5e-324, math.MaxFloat64} {
		l := scheduler.New(scheduler.Config{})
		m := l.Limit(must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Millisecond, Margin: -1})), scheduler.Sharing{Fair: true})
		odd, usual := l.Lane(scheduler.LaneConfig{Weight: w}, []*scheduler.Limit{m}), l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m})
		now, went := mono.Time(0), map[any]int{}
		enter := func(a *scheduler.Lane) {
			u := &scheduler.Ticket{Cost: limit.One, Place: now, Deadline: limit.Never, Of: a}
			if l.Enter(now, a, u) == scheduler.Granted {
				l.Settle(now, u.Pass, &accepted)
			}
		}
		enter(usual)
		for range 3 {
			enter(odd)
			enter(usual)
		}
		turns := 1000
		if w > 1 { // a million to one
			turns = 1_000_100
		}
		for range turns {
			now += ms
			for u := l.Next(now); u != nil; u = l.Next(now) {
				went[u.Of]++
				l.Settle(now, u.Pass, &accepted)
				enter(u.Of.(*scheduler.Lane))
			}
		}
		if went[odd] == 0 || went[usual] == 0 {
			t.Errorf("with a weight of %v it went %d times, and the other %d times", w, went[odd], went[usual])
		}
	}
}
