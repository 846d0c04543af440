package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// between is the use of a fair limit by two lanes, by their weights, while both had waiting tickets
// all the time.
type between struct {
	ahead     float64 // of the one, before the other
	low, high float64
}

// runShares has lanes of weights 1, 2 and 5 share a fair limit. Each is behind one of its own that
// is not fair and others that are shared and wide. Lanes go idle, are kept away by their own limit,
// and come back.
func runShares(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 6))
	l := scheduler.New(scheduler.Config{})
	fair := l.Limit(must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: int64(rng.IntN(3) + 1), Late: -1})), scheduler.Sharing{Fair: true, Unit: limit.Tokens})
	wide := l.Limit(limit.MustRolling(1<<40, time.Millisecond), scheduler.Sharing{})
	weights := []float64{1, 2, 5, 1, 5}[:rng.IntN(4)+2]
	var lanes []*scheduler.Lane
	var away []*limit.Cooldown
	var own []*scheduler.Limit
	for i, w := range weights {
		away = append(away, must(limit.NewCooldown(0)))
		own = append(own, l.Limit(away[i], scheduler.Sharing{Fair: rng.IntN(4) == 0}))
		way := []*scheduler.Limit{own[i], wide, fair}
		if rng.IntN(2) == 0 {
			way[1], way[2] = fair, wide
		}
		lanes = append(lanes, l.Lane(scheduler.LaneConfig{Weight: w}, way))
	}
	const most = 50 // tokens a ticket
	pairs := map[[2]int]*between{}
	idle := make([]bool, len(lanes))
	kept := make([]int, len(lanes)) // away, how often since its last leave
	var open []*scheduler.Ticket
	now := mono.Time(0)
	var err error
	// Only lanes with waiting tickets that are not kept away have a share.
	busy := func(i int) bool { return lanes[i].Len() > 0 && away[i].Until() <= now }
	forget := func(i int) {
		for p := range pairs {
			if p[0] == i || p[1] == i {
				delete(pairs, p)
			}
		}
	}
	granted := func(u *scheduler.Ticket) {
		i := u.Of.(int)
		open = append(open, u)
		kept[i] = 0
		for p, b := range pairs {
			switch i {
			case p[0]:
				b.ahead += float64(u.Cost[limit.Tokens]) / weights[i]
			case p[1]:
				b.ahead -= float64(u.Cost[limit.Tokens]) / weights[i]
			}
			b.low, b.high = min(b.low, b.ahead), max(b.high, b.ahead)
			if d := b.high - b.low; d > most/weights[p[0]]+most/weights[p[1]]+1e-6 && err == nil {
				err = fmt.Errorf("at %v lanes %v of %v are %v apart", now, p, weights, d)
			}
		}
	}
	fill := func() {
		for i := range lanes {
			for !idle[i] && lanes[i].Len() < 2 {
				u := &scheduler.Ticket{Cost: limit.Cost{limit.Requests: 1, limit.Tokens: int64(rng.IntN(most) + 1)}, Place: now, Deadline: limit.Never, Of: i}
				if l.Enter(now, lanes[i], u) == scheduler.Granted {
					granted(u)
				}
			}
		}
		for i := range lanes {
			if !busy(i) {
				forget(i)
				continue
			}
			for j := range i {
				if p := [2]int{j, i}; busy(j) && pairs[p] == nil {
					pairs[p] = &between{}
				}
			}
		}
	}
	for range 2000 {
		now += ms
		switch i := rng.IntN(len(lanes)); rng.IntN(40) {
		case 0:
			idle[i] = !idle[i]
		case 1:
			if kept[i]++; kept[i] > 2 { // a claim goes before its turn
				break
			}
			forget(i)
			away[i].Extend(now + mono.Time(rng.IntN(50))*ms)
			l.Touch(own[i])
		}
		drain := func() {
			for u := l.Next(now); u != nil; u = l.Next(now) {
				granted(u)
				if lanes[u.Of.(int)].Len() == 0 {
					forget(u.Of.(int))
				}
			}
		}
		drain()
		fill()
		if len(open) > 0 {
			k := rng.IntN(len(open))
			u := open[k]
			open[k] = open[len(open)-1]
			open = open[:len(open)-1]
			l.Settle(now, u.Pass, &accepted)
		}
		drain()
		fill()
	}
	return err
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Law 7: two lanes with waiting tickets share a fair limit by their weights in any span, except for
// a cost each. This also holds beside limits that are not fair. A lane that was idle or away has
// nothing saved up.
func TestFairSharesInNets(t *testing.T) {
	eachSeed(t, 60, runShares)
}

// runStreams has lanes that never run dry cross at limits on requests in flight. Each ticket goes
// within a number of grants after it has become the oldest, at any crossing.
func runStreams(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 7))
	l := scheduler.New(scheduler.Config{})
	var limits []*scheduler.Limit
	slots := int64(0)
	for range rng.IntN(4) + 2 {
		n := int64(rng.IntN(2) + 1)
		slots += n
		limits = append(limits, l.Limit(must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: n, Late: -1})), scheduler.Sharing{Fair: rng.IntN(3) == 0}))
	}
	lanes := []*scheduler.Lane{l.Lane(scheduler.LaneConfig{}, limits)} // one needs them all
	for range rng.IntN(6) + len(limits) {
		var way []*scheduler.Limit
		for _, i := range rng.Perm(len(limits))[:1+rng.IntN(2)*rng.IntN(len(limits))] {
			way = append(way, limits[i])
		}
		lanes = append(lanes, l.Lane(scheduler.LaneConfig{Weight: float64(rng.IntN(5) + 1)}, way))
	}
	type stream struct {
		scheduler.Ticket
		n     int
		lane  int
		since int // how many had gone when it became the oldest
	}
	var waits, open []*stream
	made, gone := 0, 0
	heads := rng.IntN(2) * 20 // of a start, in ms
	now := mono.Time(0)
	oldest := func() {
		if len(waits) > 0 && waits[0].since < 0 {
			waits[0].since = gone
		}
	}
	grant := func(s *stream) {
		gone++
		open = append(open, s)
		for i, w := range waits {
			if w == s {
				waits = append(waits[:i], waits[i+1:]...)
				break
			}
		}
		oldest()
	}
	drain := func() {
		for t := l.Next(now); t != nil; t = l.Next(now) {
			grant(t.Of.(*stream))
		}
	}
	for range 600 {
		now += ms
		for i, a := range lanes {
			for a.Len() < 2 {
				s := &stream{n: made, lane: i, since: -1, Ticket: scheduler.Ticket{Cost: limit.One, Place: now, Deadline: limit.Never}}
				s.Place -= mono.Time(rng.IntN(heads+1)) * ms
				s.Of = s
				made++
				if l.Enter(now, a, &s.Ticket) == scheduler.Granted {
					grant(s)
				} else {
					waits = append(waits, s)
				}
				drain()
			}
		}
		oldest()
		if len(open) == 0 {
			return fmt.Errorf("%d hold up each other", len(waits))
		}
		k := rng.IntN(len(open))
		s := open[k]
		open[k] = open[len(open)-1]
		open = open[:len(open)-1]
		l.Settle(now, s.Pass, &accepted)
		drain()
		if bound := int(slots+1) * 40; len(waits) > 0 && waits[0].since >= 0 && gone-waits[0].since > bound {
			return fmt.Errorf("%d of lane %d has been the oldest while %d went", waits[0].n, waits[0].lane, gone-waits[0].since)
		}
	}
	return nil
}

// Law 9: no ticket starves.
func TestNobodyStarvesInStreams(t *testing.T) {
	eachSeed(t, 300, runStreams)
}
