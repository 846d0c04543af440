package paceline_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/frontend"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// If a limit gains room without a settlement, as many waiting requests as fit go at once, the first
// ones first.
func TestGroupIsSupplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, f := group(t, paceline.GroupConfig{}), &frontend.Fed{}
		lane := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: f})})
		var went []int
		var all sync.WaitGroup
		var mu sync.Mutex
		for i := range 5 {
			goes(t, &all, lane, 0, func() {
				mu.Lock()
				defer mu.Unlock()
				went = append(went, i)
			})
			synctest.Wait()
		}
		if n := f.Waiting(); n != 5 || len(went) != 0 {
			t.Errorf("%d wait, want 5; went: %v", n, went)
		}
		for _, more := range []int{2, 3} {
			time.Sleep(time.Second)
			j.Update(func(mono.Time) { f.Room = more })
			synctest.Wait()
			had := len(went)
			f.Again()
			synctest.Wait()
			if len(went) != had+more {
				t.Errorf("went: %v, want %d more", went, more)
			}
			slices.Sort(went[had:]) // they go at one instant
		}
		all.Wait()
		if !slices.IsSorted(went) || f.Waiting() != 0 || len(f.Ended) != 5 {
			t.Errorf("went: %v; %d wait; settled %d", went, f.Waiting(), len(f.Ended))
		}
		f.Note(observe.EventAlone, "the store is away")
		if all := j.Snapshot().Events; len(all) != 1 || all[0].Kind != observe.EventAlone || all[0].Text != "the store is away" {
			t.Errorf("events: %+v", all)
		}
	})
}

// A request that was refused at once goes when there is more, even before the instant of the
// refusal.
func TestTryWaitIsSupplied(t *testing.T) {
	f := &frontend.Fed{}
	g := paceline.NewGate(f)
	for range 3 {
		if _, _, ok := g.TryWait(limit.One); ok {
			t.Error("went where there is no room")
		}
	}
	f.Room = 1
	f.Again()
	if _, _, ok := g.TryWait(limit.One); !ok {
		t.Error("refused where there is room")
	}
}

// A permit lapses when the limit says so, be it new, or the limit of a Group that had none that lapse.
func TestPermitLapses(t *testing.T) {
	j, f := group(t, paceline.GroupConfig{}), &frontend.Fed{Room: 9}
	varying := limit.NewVarying(limit.MustRolling(9, time.Second))
	was := j.Limit(paceline.LimitConfig{Limiter: varying})
	lane := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{was})
	if p := must(lane.Wait(t.Context(), limit.One)); !p.Fresh() {
		t.Error("a permit of a limit that does not lapse has lapsed")
	}
	j.Update(func(now mono.Time) { varying.Change(now, f) }, was)
	check := func(lane *paceline.Lane) {
		t.Helper()
		f.Stale = false
		p := must(lane.Wait(t.Context(), limit.One))
		if !p.Fresh() {
			t.Error("lapsed")
		}
		if f.Stale = true; p.Fresh() {
			t.Error("not lapsed")
		}
		p.Settle(limit.Outcome{Result: limit.Unsent})
	}
	check(lane)
	j = group(t, paceline.GroupConfig{})
	check(j.Lane(paceline.LaneConfig{}, []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: &frontend.Fed{Room: 9}}), j.Limit(paceline.LimitConfig{Limiter: f})}))
}

// SettleEach settles each limit with its own outcome. The lane counts the common outcome, and
// waiting requests go.
func TestSettleEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		a, b := &frontend.Fed{Room: 9}, &frontend.Fed{Room: 9}
		at := func(l limit.Limiter) *paceline.Limit { return j.Limit(paceline.LimitConfig{Limiter: l}) }
		limits := []*paceline.Limit{at(a), at(concurrency(t, 1)), at(b)}
		lane := j.Lane(paceline.LaneConfig{Client: "c"}, limits)
		p := must(lane.Wait(t.Context(), limit.One))
		var all sync.WaitGroup
		var went time.Duration // guarded by all
		began := time.Now()
		goes(t, &all, lane, 0, func() { went = time.Since(began) })
		time.Sleep(time.Second)
		p.SettleEach(limit.Outcome{Result: limit.Limited, Metered: true, Actual: limit.Cost{limit.Tokens: 5}}, func(m *paceline.Limit) limit.Outcome {
			return limit.Outcome{Result: limit.Limited, RetryAfter: time.Duration(1 + slices.Index(limits, m))}
		})
		all.Wait()
		if went != time.Second {
			t.Errorf("who waits goes after %v, want 1s", went)
		}
		if len(a.Ended) != 2 || a.Ended[0].RetryAfter != 1 || len(b.Ended) != 2 || b.Ended[0].RetryAfter != 3 {
			t.Errorf("they heard %+v and %+v", a.Ended, b.Ended)
		}
		if s := lane.Stats(); s.Limited != 1 || s.Used[limit.Tokens] != 5 || s.Accepted != 1 {
			t.Errorf("%+v", s)
		}
		if e := j.Snapshot().Events; len(e) != 1 || e[0].Kind != observe.EventRefused || e[0].Whose.Client != "c" {
			t.Errorf("%+v", e)
		}
	})
}

// A request in flight counts in a limit that it joins until it is settled there, and then who waits for
// that limit goes. A request that does not count in all of the limits stays out.
func TestGroupJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		own := j.Limit(paceline.LimitConfig{Limiter: concurrency(t, 9)})
		other, third := j.Limit(paceline.LimitConfig{Limiter: concurrency(t, 1)}), j.Limit(paceline.LimitConfig{Limiter: concurrency(t, 9)})
		p := must(j.Lane(paceline.LaneConfig{}, []*paceline.Limit{own}).Wait(t.Context(), limit.One))
		apart := must(j.Lane(paceline.LaneConfig{}, []*paceline.Limit{third}).Wait(t.Context(), limit.One))
		for _, m := range []*paceline.Limit{own, other, other} {
			j.Update(func(now mono.Time) {
				j.Join(now, []*paceline.Limit{own}, m)
				j.Join(now, []*paceline.Limit{own, third}, m)
			}, m)
		}
		lane := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{other})
		var all sync.WaitGroup
		var went time.Duration // guarded by all
		began := time.Now()
		goes(t, &all, lane, 0, func() { went = time.Since(began) })
		time.Sleep(time.Second)
		of := map[*paceline.Limit]int{}
		p.SettleEach(accepted, func(m *paceline.Limit) limit.Outcome {
			of[m]++
			return accepted
		})
		all.Wait()
		if went != time.Second {
			t.Errorf("who waits goes after %v, want 1s", went)
		}
		apart.SettleEach(accepted, func(m *paceline.Limit) limit.Outcome {
			of[m]++
			return accepted
		})
		if len(of) != 3 || of[third] != 1 || of[own] != 1 || of[other] != 1 {
			t.Errorf("outcomes of the own limit %d, of the other %d, want 1 each", of[own], of[other])
		}
	})
}
