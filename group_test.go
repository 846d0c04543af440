package paceline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

func group(t testing.TB, c paceline.GroupConfig) *paceline.Group {
	t.Helper()
	j, err := paceline.NewGroup(c)
	try(t, err)
	return j
}

// goes waits in a lane, for one request, and notes when it went; answered after rtt.
func goes(t testing.TB, wg *sync.WaitGroup, a *paceline.Lane, rtt time.Duration, went func()) {
	wg.Go(func() {
		p, err := a.Wait(bg, limit.One)
		if err != nil {
			t.Error(err)
			return
		}
		went()
		time.Sleep(rtt)
		p.Settle(accepted)
	})
}

// Thirty that wait for a slow limit delay none that shares another limit with them.
func TestGroupHoldsNothingWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		shared := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(20, time.Second)})
		slow := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(1, 10*time.Second)}), shared})
		fast := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{shared})
		start := time.Now()
		var late, wg sync.WaitGroup
		for range 30 {
			goes(t, &late, slow, 0, func() {})
		}
		synctest.Wait()
		for range 200 {
			goes(t, &wg, fast, 0, func() {})
		}
		wg.Wait()
		if d := time.Since(start); d > 10200*ms {
			t.Errorf("the fast ones took %v", d)
		}
		late.Wait()
		if s := slow.Stats(); s.Admitted != 30 || s.Accepted != 30 || s.Waiting != 0 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Tenants of weights 1 and 3 that always have waiting requests get a quarter and three quarters.
// One with a head start goes first.
func TestGroupShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		fair := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(1, time.Second), Fair: true})
		var mu sync.Mutex
		var order strings.Builder // guarded by mu
		goes := func(a *paceline.Lane, wg *sync.WaitGroup, name string) {
			goes(t, wg, a, 0, func() {
				mu.Lock()
				defer mu.Unlock()
				order.WriteString(name)
			})
		}
		var wg sync.WaitGroup
		for _, c := range []struct {
			name   string
			weight float64
		}{{"a", 1}, {"b", 3}} {
			a := j.Lane(paceline.LaneConfig{Weight: c.weight}, []*paceline.Limit{fair})
			for range 40 {
				goes(a, &wg, c.name)
			}
		}
		time.Sleep(40 * time.Second)
		synctest.Wait() // somebody goes at this very instant
		mu.Lock()
		if n := strings.Count(order.String(), "b"); n < 29 || n > 32 {
			t.Errorf("%s: b went %d times of %d", order.String(), n, order.Len())
		}
		mu.Unlock()
		wg.Wait()

		byPlace := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(1, time.Second)})
		usual := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{byPlace})
		urgent := j.Lane(paceline.LaneConfig{HeadStart: 10 * time.Second}, []*paceline.Limit{byPlace})
		order.Reset()
		for range 3 {
			goes(usual, &wg, "u")
		}
		synctest.Wait()
		time.Sleep(ms)
		goes(urgent, &wg, "!")
		wg.Wait()
		if order.String() != "u!uu" {
			t.Errorf("they went %s", order.String())
		}
	})
}

// Any one of several ways will do. A changed limit wakes those that wait for it. One too many is
// refused. A retired lane leaves nothing behind.
func TestGroupWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{MaxWaiting: 1})
		one, two := limit.MustRolling(1, time.Minute), limit.MustRolling(1, time.Minute)
		first, second := j.Limit(paceline.LimitConfig{Limiter: one}), j.Limit(paceline.LimitConfig{Limiter: two})
		a := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{first}, []*paceline.Limit{second})
		ways := map[int]bool{}
		for range 2 {
			p, err := a.Wait(bg, limit.One)
			try(t, err)
			ways[p.Way()] = true
			p.Settle(accepted)
		}
		if len(ways) != 2 {
			t.Errorf("both went by %v", ways)
		}
		start := time.Now()
		var wg sync.WaitGroup
		goes(t, &wg, a, 0, func() {})
		synctest.Wait()
		if _, err := a.Wait(bg, limit.One); !errors.Is(err, paceline.ErrFull) {
			t.Error(err)
		}
		if at, ahead, err := a.Ask(limit.One); ahead != 1 || err != nil {
			t.Error(at, ahead, err)
		}
		if _, _, err := a.Ask(limit.Cost{limit.Requests: 2}); !errors.Is(err, paceline.ErrNever) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		j.Update(func(now mono.Time) { try(t, two.SetLimit(now, 2)) }, second)
		wg.Wait()
		if d := time.Since(start); d != time.Second {
			t.Errorf("it went at %v", d)
		}
		a.Retire()
	})
}

func ExampleGroup() {
	j, err := paceline.NewGroup(paceline.GroupConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	account := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(500, time.Minute)}) // whatever the model
	large := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(20, time.Minute)})
	lane := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{large, account})

	permit, err := lane.Wait(context.Background(), limit.One) // leave of both at once, or of none
	if err != nil {
		fmt.Println(err)
		return
	}
	permit.Settle(limit.Outcome{Result: limit.Accepted})
	fmt.Println(lane.Stats().Accepted)
	// Output: 1
}

// A thousand callers, a hundred per six seconds, ten seconds to live: eight hundred are refused at
// once, and the others wait and go.
func TestTooLateAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := paceline.NewGate(rolling(t, 100, 6*time.Second))
		start := time.Now()
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		var mu sync.Mutex
		went, late := map[time.Duration]int{}, map[time.Duration]int{}
		for range 1000 {
			wg.Go(func() {
				p, err := g.Wait(ctx, limit.Cost{limit.Weight: 1})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					p.Settle(accepted)
					went[time.Since(start)]++
				} else if errors.Is(err, paceline.ErrDeadline) {
					late[time.Since(start)]++
				}
			})
		}
		wg.Wait()
		if fmt.Sprint(went) != "map[0s:100 6s:100]" || fmt.Sprint(late) != "map[0s:800]" {
			t.Errorf("went %v, late %v", went, late)
		}
		if s := g.Stats(); s.Late != 800 || s.Accepted != 200 {
			t.Errorf("%+v", s)
		}
	})
}

func TestNewGroupRefuses(t *testing.T) {
	for want, c := range map[string]paceline.GroupConfig{"Fill -1": {Fill: -1}, "MaxWaiting -1": {MaxWaiting: -1}} {
		if j, err := paceline.NewGroup(c); j != nil || err == nil || !strings.Contains(err.Error(), "Group") || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v, want %s", c, j, err, want)
		}
	}
}

// However one waits, a wait that ends without a permit has an error.
func TestEveryWaitSaysWhyItEnded(t *testing.T) {
	j := group(t, paceline.GroupConfig{})
	a := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(1, time.Hour)})})
	large := limit.Cost{limit.Requests: 2}
	_, plain := a.Wait(bg, large)
	_, _, stats := a.WaitWithStats(bg, large)
	_, _, from := a.WaitFrom(bg, large, time.Now().Add(-time.Minute))
	for name, err := range map[string]error{"Wait": plain, "WaitWithStats": stats, "WaitFrom": from} {
		if !errors.Is(err, paceline.ErrNever) {
			t.Errorf("%s of two where one is allowed: %v", name, err)
		}
	}
}

// A Permit that is settled twice panics, and makes no room the second time. That holds also when
// another request was admitted meanwhile. The Group can be used afterwards.
func TestSettledTwice(t *testing.T) {
	dear := limit.Cost{limit.Requests: 1, limit.Tokens: 7} // a request may use less than that
	for name, cost := range map[string]limit.Cost{"one": limit.One, "metered": dear} {
		for _, each := range []bool{false, true} {
			j := group(t, paceline.GroupConfig{})
			most, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 2})
			try(t, err)
			a := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{
				j.Limit(paceline.LimitConfig{Limiter: most}),
				j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(1000, time.Hour)}),
			})
			first, _, ok := a.TryWait(cost)
			if !ok {
				t.Fatal("the first did not go")
			}
			first.Settle(accepted)
			for range 2 {
				if _, _, ok := a.TryWait(cost); !ok {
					t.Fatal("two did not go at once")
				}
				twice := func() { first.Settle(accepted) }
				if each {
					twice = func() { first.SettleEach(accepted, func(*paceline.Limit) limit.Outcome { return accepted }) }
				}
				const want = "paceline: a request is settled twice, or was never admitted"
				if got := panics(twice); got != want {
					t.Errorf("%s, each %t: the panic is %v, want %q", name, each, got, want)
				}
			}
			if _, _, ok := a.TryWait(cost); ok {
				t.Errorf("%s, each %t: the second Settle made room", name, each)
			}
		}
	}
}

// panics returns the value of f's panic.
func panics(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}
