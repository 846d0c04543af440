package paceline_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/dispatch"
	"github.com/paceline-go/paceline/pool/queue"
)

// fed is a limiter whose room comes from elsewhere, and whose leases may lapse.
type fed struct {
	room    int
	stale   bool
	again   func()
	waiting func() int
	note    func(kind, text string)
	ended   []limit.Outcome
}

func (f *fed) Supply(again func(), waiting func() int, note func(kind, text string)) {
	f.again, f.waiting, f.note = again, waiting, note
}
func (f *fed) Fresh(limit.Lease) bool { return !f.stale }

func (f *fed) Ready(now mono.Time, _ limit.Cost) mono.Time {
	if f.room == 0 {
		return limit.AfterSettle
	}
	return now
}
func (f *fed) Admit(mono.Time, limit.Cost) limit.Lease            { f.room--; return limit.Lease{} }
func (f *fed) Settle(_ mono.Time, _ limit.Lease, o limit.Outcome) { f.ended = append(f.ended, o) }

// Where there is more of a limit than a settlement made, as many of those who wait as fit go, the first ones, and at once.
func TestJunctionIsSupplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, f := junction(t, paceline.JunctionConfig{}), &fed{}
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
		if n := f.waiting(); n != 5 || len(went) != 0 {
			t.Errorf("%d wait, want 5; went: %v", n, went)
		}
		for _, more := range []int{2, 3} {
			time.Sleep(time.Second)
			j.Update(func(mono.Time) { f.room = more })
			synctest.Wait()
			had := len(went)
			f.again()
			synctest.Wait()
			if len(went) != had+more {
				t.Errorf("went: %v, want %d more", went, more)
			}
			slices.Sort(went[had:]) // they go at one instant
		}
		all.Wait()
		if !slices.IsSorted(went) || f.waiting() != 0 || len(f.ended) != 5 {
			t.Errorf("went: %v; %d wait; settled %d", went, f.waiting(), len(f.ended))
		}
		f.note(paceline.EventAlone, "the store is away")
		if all := j.Snapshot().Events; len(all) != 1 || all[0].Kind != paceline.EventAlone || all[0].Text != "the store is away" {
			t.Errorf("events: %+v", all)
		}
	})
}

// Who was refused at once goes when there is more, be it asked for before the time that the refusal told.
func TestTryWaitIsSupplied(t *testing.T) {
	f := &fed{}
	g := paceline.NewGate(f)
	for range 3 {
		if _, _, ok := g.TryWait(limit.One); ok {
			t.Error("went where there is no room")
		}
	}
	f.room = 1
	f.again()
	if _, _, ok := g.TryWait(limit.One); !ok {
		t.Error("refused where there is room")
	}
}

// A permit lapses when the limit says so, be it new, or the limit of a Junction that had none that lapse.
func TestPermitLapses(t *testing.T) {
	j, f := junction(t, paceline.JunctionConfig{}), &fed{room: 9}
	varying := limit.NewVarying(limit.MustRolling(9, time.Second))
	was := j.Limit(paceline.LimitConfig{Limiter: varying})
	lane := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{was})
	if p := must(lane.Wait(t.Context(), limit.One)); !p.Fresh() {
		t.Error("a permit of a limit that does not lapse has lapsed")
	}
	j.Update(func(now mono.Time) { varying.Change(now, f) }, was)
	check := func(lane *paceline.Lane) {
		t.Helper()
		f.stale = false
		p := must(lane.Wait(t.Context(), limit.One))
		if !p.Fresh() {
			t.Error("lapsed")
		}
		if f.stale = true; p.Fresh() {
			t.Error("not lapsed")
		}
		p.Settle(limit.Outcome{Result: limit.Unsent})
	}
	check(lane)
	j = junction(t, paceline.JunctionConfig{})
	check(j.Lane(paceline.LaneConfig{}, []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: &fed{room: 9}}), j.Limit(paceline.LimitConfig{Limiter: f})}))
}

// Settled each for itself, a permit's limits hear what is theirs, the lane counts what is of all, and whoever waits goes.
func TestSettleEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := junction(t, paceline.JunctionConfig{})
		a, b := &fed{room: 9}, &fed{room: 9}
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
		if len(a.ended) != 2 || a.ended[0].RetryAfter != 1 || len(b.ended) != 2 || b.ended[0].RetryAfter != 3 {
			t.Errorf("they heard %+v and %+v", a.ended, b.ended)
		}
		if s := lane.Stats(); s.Limited != 1 || s.Used[limit.Tokens] != 5 || s.Accepted != 1 {
			t.Errorf("%+v", s)
		}
		if e := j.Snapshot().Events; len(e) != 1 || e[0].Kind != paceline.EventRefused || e[0].Whose.Client != "c" {
			t.Errorf("%+v", e)
		}
	})
}

// A Pool is supplied, too: it tells how many requests a key may come to be needed for, and sends when there is more.
func TestPoolIsSupplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feds := []*fed{{}, {}}
		var sent []string
		var fresh []bool
		var p *paceline.Pool
		p = must(paceline.NewPool(paceline.PoolConfig{
			Keys: []dispatch.Key{{Name: "a", Limiter: feds[0]}, {Name: "b", Limiter: feds[1]}},
			Send: func(_ context.Context, a dispatch.Attempt) dispatch.Answer {
				sent, fresh = append(sent, a.Request.ID), append(fresh, p.Fresh(&a))
				return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
			},
		}))
		for _, id := range []string{"1", "2", "3"} {
			try(t, p.Submit(t.Context(), queue.Request{ID: id, Cost: limit.One}))
		}
		if n := feds[0].waiting(); n != 2 {
			t.Errorf("3 requests for 2 keys: each may be needed for %d, want 2", n)
		}
		done := make(chan error)
		go func() { done <- p.Run(t.Context()) }()
		synctest.Wait()
		for i, f := range feds {
			f.room, f.stale = 1, i == 1
			f.again()
			synctest.Wait()
			if len(sent) != i+1 || fresh[i] == f.stale {
				t.Errorf("sent %v, fresh %v", sent, fresh)
			}
		}
		if n := feds[0].waiting(); n != 1 {
			t.Errorf("a request for 2 keys: each may be needed for %d, want 1", n)
		}
		feds[0].room = 1
		feds[0].again()
		p.Close()
		try(t, <-done)
		if !slices.Equal(sent, []string{"1", "2", "3"}) {
			t.Errorf("sent %v", sent)
		}
	})
}

// A limit that some of a Pool's keys share hears of as many requests as may come to them: of what waits, their part, rounded up.
func TestWaitingIsDividedAmongKeys(t *testing.T) {
	limiter := &fed{}
	s := &dispatch.Shared{Limiter: limiter}
	p, err := paceline.NewPool(paceline.PoolConfig{
		Keys: []dispatch.Key{{Shared: []*dispatch.Shared{s}}, {Shared: []*dispatch.Shared{s}}, {Limiter: &fed{}}},
		Send: func(context.Context, dispatch.Attempt) dispatch.Answer { return dispatch.Answer{} },
	})
	try(t, err)
	for n, want := range []int{0, 1, 2, 2, 3, 4, 4} {
		if n > 0 {
			try(t, p.Submit(bg, queue.Request{Cost: limit.One}))
		}
		if got := limiter.waiting(); got != want {
			t.Errorf("of %d that wait for any of three keys, %d may come to the two that share", n, got)
		}
	}
}
