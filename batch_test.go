package paceline_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// crossing is two lanes of a Group that share one of two limits.
type crossing struct {
	lanes [2]*paceline.Lane
	open  [2][]paceline.Permit
	mu    sync.Mutex   // guards open: those that waited add to it
	went  atomic.Int64 // of those that waited
}

// take returns the oldest open Permits of a lane, n at most, and takes them away.
func (x *crossing) take(lane, n int) []paceline.Permit {
	x.mu.Lock()
	defer x.mu.Unlock()
	n = min(n, len(x.open[lane]))
	all := slices.Clone(x.open[lane][:n])
	x.open[lane] = slices.Delete(x.open[lane], 0, n)
	return all
}

func (x *crossing) add(lane int, all ...paceline.Permit) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open[lane] = append(x.open[lane], all...)
}

func newCrossing(t *testing.T) *crossing {
	j := group(t, paceline.GroupConfig{})
	shared := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(12, time.Second), Fair: true})
	own := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(7, time.Second)})
	return &crossing{lanes: [2]*paceline.Lane{
		j.Lane(paceline.LaneConfig{}, []*paceline.Limit{own, shared}),
		j.Lane(paceline.LaneConfig{}, []*paceline.Limit{shared}),
	}}
}

// Many at once are as many one by one: as many go, the next may go at the same instant, and those that
// wait go at the same instants.
func TestManyAreAsOneByOne(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			many, single := newCrossing(t), newCrossing(t)
			for step := range 60 {
				lane, n := rnd.IntN(2), 1+rnd.IntN(9)
				switch rnd.IntN(4) {
				case 0, 1:
					all := make([]paceline.Permit, n)
					got, retry := many.lanes[lane].TryWaitMany(limit.One, all)
					many.add(lane, all[:got]...)
					count, next := 0, time.Duration(0)
					for ; count < n; count++ {
						p, after, ok := single.lanes[lane].TryWait(limit.One)
						if next = after; !ok {
							break
						}
						single.add(lane, p)
					}
					if got != count || retry != next {
						t.Fatalf("seed %d, step %d: %d go, and the next after %v; one by one %d, %v", seed, step, got, retry, count, next)
					}
				case 2:
					o := limit.Outcome{Result: []limit.Result{limit.Accepted, limit.Unsent, limit.Unknown, limit.Failed}[rnd.IntN(4)]}
					paceline.SettleAll(many.take(lane, n), o)
					for _, p := range single.take(lane, n) {
						p.Settle(o)
					}
				default: // of one lane: with a place less, another lane may be the first that can go
					lane = int(seed % 2)
					for _, x := range []*crossing{many, single} {
						go func() {
							if p, err := x.lanes[lane].Wait(t.Context(), limit.One); err == nil {
								x.add(lane, p)
								x.went.Add(1)
							}
						}()
						synctest.Wait()
					}
				}
				time.Sleep(time.Duration(rnd.IntN(300)) * ms)
				synctest.Wait()
				if many.went.Load() != single.went.Load() {
					t.Fatalf("seed %d, step %d: %d that waited went, and one by one %d", seed, step, many.went.Load(), single.went.Load())
				}
			}
			for i := range many.lanes {
				a, b := many.lanes[i].Stats(), single.lanes[i].Stats()
				if a.Admitted != b.Admitted || a.Accepted != b.Accepted || a.InFlight != b.InFlight || a.Waiting != b.Waiting {
					t.Errorf("seed %d: %+v, and one by one %+v", seed, a, b)
				}
			}
		})
	}
}

// What is refused takes nothing, and a caller's mistake panics.
func TestManyOfNothing(t *testing.T) {
	x, y := newCrossing(t), newCrossing(t)
	var all [3]paceline.Permit
	if n, retry := x.lanes[0].TryWaitMany(limit.One, nil); n != 0 || retry != 0 {
		t.Errorf("none: %d, %v", n, retry)
	}
	if n, retry := x.lanes[0].TryWaitMany(weight(0, -1), all[:]); n != 0 || retry != paceline.RetryNever {
		t.Errorf("a negative cost: %d, %v", n, retry)
	}
	if n, retry := x.lanes[0].TryWaitMany(limit.Cost{limit.Requests: 99}, all[:]); n != 0 || retry != paceline.RetryNever {
		t.Errorf("a cost that never fits: %d, %v", n, retry)
	}
	paceline.SettleAll(nil, accepted)
	x.lanes[0].TryWaitMany(limit.One, all[:2])
	y.lanes[0].TryWaitMany(limit.One, all[2:])
	for _, bad := range [][]paceline.Permit{all[1:], {all[0], all[0]}, {{}}} {
		if panics(func() { paceline.SettleAll(slices.Clone(bad), accepted) }) == nil {
			t.Errorf("%v is settled", bad)
		}
	}
}

// Many at once allocate nothing.
func TestManyAllocateNothing(t *testing.T) {
	j := group(t, paceline.GroupConfig{})
	a := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(1e9, time.Second)})})
	all := make([]paceline.Permit, 50)
	if n := testing.AllocsPerRun(1000, func() {
		n, _ := a.TryWaitMany(limit.One, all)
		paceline.SettleAll(all[:n], limit.Outcome{Result: limit.Unsent})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
