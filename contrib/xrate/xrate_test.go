package xrate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/contrib/xrate"
	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// kind is a server and the limiter for it.
type kind struct {
	name    string
	limiter func() (limit.Limiter, error)
	rule    func() (rule.Rule, error)
	least   float64 // of 20 in a second, with 100 ms: the least that must go
}

var kinds = []kind{
	{"rolling", func() (limit.Limiter, error) { return limit.MustRolling(20, time.Second), nil },
		func() (rule.Rule, error) { return rule.NewRolling(rule.RollingConfig{Limit: 20, Window: time.Second}) }, 0.99},
	{"calendar", func() (limit.Limiter, error) {
		return limit.NewCalendar(limit.CalendarConfig{Limit: 20, Window: time.Second})
	}, func() (rule.Rule, error) {
		return rule.NewCalendar(rule.CalendarConfig{Limit: 20, Window: time.Second})
	}, 0.99},
	{"anchored", func() (limit.Limiter, error) {
		return limit.NewAnchored(limit.AnchoredConfig{Limit: 20, Window: time.Second})
	}, func() (rule.Rule, error) {
		return rule.NewAnchored(rule.AnchoredConfig{Limit: 20, Window: time.Second})
	}, 0.99},
	{"bucket", func() (limit.Limiter, error) {
		return limit.NewBucket(limit.BucketConfig{Limit: 20, Window: time.Second})
	}, func() (rule.Rule, error) { return rule.NewBucket(rule.BucketConfig{Limit: 20, Window: time.Second}) }, 0.99},
	{"weighted", func() (limit.Limiter, error) {
		return limit.NewWeighted(limit.WeightedConfig{Limit: 20, Window: time.Second})
	}, func() (rule.Rule, error) {
		return rule.NewWeighted(rule.WeightedConfig{Limit: 20, Window: time.Second})
	}, 0.9},
}

// server counts arrivals, each up to longest after it went.
type server struct {
	mu               sync.Mutex
	rule             rule.Rule
	rng              *rand.Rand
	began            time.Time
	longest          time.Duration
	arrived, refused int
	wg               sync.WaitGroup
}

func (s *server) send() {
	s.mu.Lock()
	d := time.Duration(s.rng.Int64N(int64(s.longest) + 1))
	if s.rng.IntN(8) == 0 {
		d = s.longest
	}
	s.mu.Unlock()
	s.wg.Go(func() {
		time.Sleep(d)
		s.mu.Lock()
		defer s.mu.Unlock()
		now := mono.Of(s.began, time.Now())
		ok := s.rule.Fits(now, 1)
		s.rule.Count(now, 1, ok)
		if s.arrived++; !ok {
			s.refused++
		}
	})
}

const (
	within = 100 * time.Millisecond
	driven = 15 * time.Second
)

// drive makes callers call one of the methods for 15 virtual seconds, and returns the server. late
// is the time of requests beyond within.
func drive(t *testing.T, k kind, method string, late time.Duration) *server {
	t.Helper()
	l, err := k.limiter()
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.rule()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{rule: r, rng: rand.New(rand.NewPCG(1, 2)), began: time.Now(), longest: within + late}
	rl, err := xrate.New(xrate.Config{Limiter: l, Within: within})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), driven)
	defer cancel()
	callers := map[string]func(*rand.Rand){
		"Wait": func(*rand.Rand) {
			if rl.Wait(ctx) == nil {
				s.send()
			} else { // at once, since it cannot go in time any more
				<-ctx.Done()
			}
		},
		"Allow": func(*rand.Rand) {
			if rl.Allow() {
				s.send()
			}
			time.Sleep(time.Millisecond)
		},
		"Reserve": func(rng *rand.Rand) {
			if r := rl.Reserve(); !r.OK() {
				t.Error("a reservation is not OK though nobody waits")
				time.Sleep(time.Second)
			} else {
				time.Sleep(r.Delay())
				s.send()
			}
		},
		"Cancel": func(rng *rand.Rand) {
			r := rl.Reserve()
			if d := r.Delay(); rng.IntN(2) == 0 && d > 0 {
				time.Sleep(d / 2)
				r.Cancel()
				time.Sleep(time.Millisecond)
				return
			}
			time.Sleep(r.Delay())
			s.send()
		},
	}
	var wg sync.WaitGroup
	do := callers[method]
	run := func(do func(*rand.Rand), seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		wg.Go(func() {
			for ctx.Err() == nil {
				do(rng)
			}
		})
	}
	if method == "all" {
		callers["Reserve"] = func(rng *rand.Rand) {
			if r := rl.Reserve(); r.OK() {
				time.Sleep(r.Delay())
				s.send()
			}
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		}
		run(callers["Wait"], 1)
		run(callers["Allow"], 2)
		run(callers["Reserve"], 3)
	} else {
		for i := range 30 { // more than the limit: reservations reach beyond the window
			run(do, uint64(i))
		}
	}
	wg.Wait()
	s.wg.Wait()
	return s
}

// While every request is counted within Within, no method gets a refusal. Little of the
// remaining rate is unused.
func TestNothingIsRefused(t *testing.T) {
	for _, k := range kinds {
		for _, method := range []string{"Wait", "Allow", "Reserve", "Cancel", "all"} {
			if race.Enabled && method != "all" {
				continue // it has the methods side by side
			}
			t.Run(k.name+"/"+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := drive(t, k, method, 0)
					if s.refused > 0 {
						t.Errorf("%d of %d were refused", s.refused, s.arrived)
					}
					least := k.least
					if method == "Cancel" {
						least *= 0.5 // a cancellation at half its delay leaves unused instants
					}
					if k.name == "weighted" && method != "Wait" && method != "Allow" {
						least *= 0.6 // a reservation counts in full until it goes
					}
					if most := driven.Seconds() / 1.1 * 20; float64(s.arrived) < least*most {
						t.Errorf("%d went, want %.0f at least", s.arrived, least*most)
					}
				})
			})
		}
	}
}

// A broken promise of Within shows here: the limit depends on it.
func TestPromiseOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if s := drive(t, kinds[0], "Wait", time.Second); s.refused == 0 {
			t.Errorf("of %d requests that take up to a second longer than promised none was refused", s.arrived)
		}
	})
}

// in runs f in virtual time with a Limiter of n in any window and a margin of nothing.
func in(t *testing.T, n int64, window, within time.Duration, f func(t *testing.T, l *xrate.Limiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: window, Margin: -1})
		if err != nil {
			t.Fatal(err)
		}
		l, err := xrate.New(xrate.Config{Limiter: r, Within: within})
		if err != nil {
			t.Fatal(err)
		}
		f(t, l)
	})
}

// Two in 10 s, each counted within a second. The third goes after 11 s, and so on, for any number
// of reservations.
func TestReserveAhead(t *testing.T) {
	in(t, 2, 10*time.Second, time.Second, func(t *testing.T, l *xrate.Limiter) {
		for i, want := range []time.Duration{0, 0, 11, 11, 22, 22, 33} {
			if r := l.Reserve(); !r.OK() || r.Delay() != want*time.Second {
				t.Errorf("reservation %d: OK %v, in %v, want in %v", i, r.OK(), r.Delay(), want*time.Second)
			}
		}
		began := time.Now()
		if err := l.Wait(t.Context()); err != nil || time.Since(began) != 33*time.Second {
			t.Errorf("who waits goes after %v, %v, want 33s, behind all that was reserved", time.Since(began), err)
		}
	})
}

// A reservation only for its delay costs nothing, however often.
func TestCancelGivesBack(t *testing.T) {
	in(t, 2, 10*time.Second, time.Second, func(t *testing.T, l *xrate.Limiter) {
		if !l.AllowN(2) {
			t.Fatal("the limit is free, and 2 may not go")
		}
		for range 10 {
			r := l.Reserve()
			if !r.OK() || r.Delay() != 11*time.Second {
				t.Fatalf("OK %v, in %v, want in 11s", r.OK(), r.Delay())
			}
			r.Cancel()
			r.Cancel() // a second Cancel does nothing
		}
		time.Sleep(11 * time.Second)
		if !l.AllowN(2) {
			t.Error("what was cancelled still counts")
		}
		late := l.Reserve()
		time.Sleep(late.Delay() + time.Second)
		late.Cancel() // it may have gone by now
		if l.AllowN(2) {
			t.Error("who cancels after the instant gets back what may have gone")
		}
	})
}

func TestReserveNotOK(t *testing.T) {
	in(t, 2, 10*time.Second, time.Second, func(t *testing.T, l *xrate.Limiter) {
		if r := l.ReserveN(3); r.OK() || r.Delay() != xrate.Never {
			t.Errorf("3 of 2: OK %v, in %v", r.OK(), r.Delay())
		}
		l.ReserveN(3).Cancel() // which has nothing to give back
		permit, err := l.Gate().Wait(t.Context(), limit.Cost{limit.Requests: 2})
		if err != nil {
			t.Fatal(err)
		}
		if r := l.Reserve(); r.OK() {
			t.Errorf("nobody knows when what is on its way will be answered: in %v", r.Delay())
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := l.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		permit.Settle(limit.Outcome{Result: limit.Accepted})
		if r := l.Reserve(); r.OK() {
			t.Errorf("it goes in %v, before one who waits", r.Delay())
		}
		wg.Wait()
	})
}

func TestWaitFails(t *testing.T) {
	in(t, 2, 10*time.Second, time.Second, func(t *testing.T, l *xrate.Limiter) {
		if err := l.WaitN(t.Context(), 3); !errors.Is(err, paceline.ErrNever) {
			t.Errorf("3 of 2: %v", err)
		}
		if !l.AllowN(2) {
			t.Fatal("the limit is free, and 2 may not go")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		if err := l.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 0 {
			t.Errorf("%v after %v, want that it fails at once", err, time.Since(began))
		}
	})
}

func TestLimitAndBurst(t *testing.T) {
	tokens, err := limit.NewRolling(limit.RollingConfig{Limit: 6000, Window: time.Minute, Unit: limit.Tokens})
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := limit.NewBucket(limit.BucketConfig{Limit: 10, Window: time.Second, Burst: 50})
	if err != nil {
		t.Fatal(err)
	}
	pause, err := limit.NewCooldown(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		l     limit.Limiter
		unit  limit.Unit
		rate  float64
		burst int
	}{
		{bucket, limit.Requests, 10, 50},
		{limit.NewAll(limit.MustRolling(300, time.Minute), tokens), limit.Tokens, 100, 6000},
		{limit.NewAll(limit.MustRolling(300, time.Minute), limit.MustRolling(10, time.Second)), limit.Requests, 5, 10},
		{pause, limit.Requests, math.Inf(1), limit.MaxCost},
		{struct{ limit.Limiter }{bucket}, limit.Requests, 0, 50}, // a limiter without Rates
	} {
		l, err := xrate.New(xrate.Config{Limiter: c.l, Within: time.Second, Unit: c.unit})
		if err != nil {
			t.Fatal(err)
		}
		if l.Limit() != c.rate || l.Burst() != c.burst {
			t.Errorf("%T: %v a second, burst %d; want %v and %d", c.l, l.Limit(), l.Burst(), c.rate, c.burst)
		}
	}
}

func TestNewErrors(t *testing.T) {
	inFlight, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	fair, err := fairshare.NewFair(fairshare.FairConfig{Limit: 10, Window: time.Second, Rng: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	rolling := limit.MustRolling(20, time.Second)
	for _, c := range []struct {
		config xrate.Config
		want   string
	}{
		{xrate.Config{Within: time.Second}, "xrate: the Limiter is nil"},
		{xrate.Config{Limiter: rolling}, "xrate: Within 0s is not positive: nobody tells when a request was answered, so how long it takes to be counted must be known"},
		{xrate.Config{Limiter: rolling, Within: time.Second, Unit: 99}, "xrate: no such Unit: 99"},
		{xrate.Config{Limiter: rolling, Within: time.Second, Unit: limit.Unit(len(limit.Cost{}))}, fmt.Sprintf("xrate: no such Unit: %d", len(limit.Cost{}))},
		{xrate.Config{Limiter: rolling, Within: time.Second, MaxWaiting: -1}, "xrate: paceline: Gate: MaxWaiting -1 is negative"},
		{xrate.Config{Limiter: limit.NewAll(rolling, inFlight), Within: time.Second},
			"xrate: the Limiter is or has a *limit.Concurrency, which needs to know when a request was answered: use Gate.Do"},
		{xrate.Config{Limiter: fair, Within: time.Second},
			"xrate: the Limiter, *fairshare.Fair, learns from refusals, of which nothing is heard here: use Gate.DoWith"},
	} {
		if _, err := xrate.New(c.config); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v\nwant %s", c.config, err, c.want)
		}
	}
	if _, err := xrate.New(xrate.Config{Limiter: rolling, Within: 1, Unit: limit.Unit(len(limit.Cost{}) - 1)}); err != nil {
		t.Error(err)
	}
}

// Code for x/time/rate stays as it is. The server accepts 20 in any second, and a request arrives
// within 100 ms.
func Example() {
	limiter, err := xrate.New(xrate.Config{Limiter: limit.MustRolling(20, time.Second), Within: 100 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(limiter.Wait(context.Background()))
	fmt.Println(limiter.AllowN(19), limiter.Allow())

	reservation := limiter.Reserve()
	if reservation.OK() && reservation.Delay() > time.Second { // too long to be of use
		reservation.Cancel()
		fmt.Println("not within a second")
	}
	fmt.Println(limiter.Limit(), limiter.Burst())
	// Output:
	// <nil>
	// true false
	// not within a second
	// 20 20
}
