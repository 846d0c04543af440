package micro

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// contender is a limiter of n per span, by a clock that it reads itself or that is read for it on every call. ask admits
// now (0, true), or says how long to wait: either to ask again, or, if the place is reserved, to go.
type contender struct {
	name  string
	never bool // it promises never to admit more than its limit in a window
	make  func(n int) (ask func() (wait time.Duration, ok bool))
}

// polled is a limiter that only says no.
func polled(allow func() bool) func() (time.Duration, bool) {
	return func() (time.Duration, bool) {
		if allow() {
			return 0, true
		}
		return time.Millisecond, false
	}
}

func gated(l limit.Limiter) func() (time.Duration, bool) {
	g := paceline.NewGate(l)
	return func() (time.Duration, bool) {
		p, retry, ok := g.TryWait(limit.One)
		if ok {
			p.Settle(limit.Outcome{Result: limit.Accepted})
		}
		return retry, ok
	}
}

// Closed windows: an event as old as the window counts.
const exactly = time.Nanosecond

var contenders = []contender{
	{"window.Log", true, func(n int) func() (time.Duration, bool) {
		l, base := must(window.NewLog(n, span)), time.Now()
		return polled(func() bool { return l.Take(mono.Time(time.Since(base))) })
	}},
	{"window.Runs", true, func(n int) func() (time.Duration, bool) {
		r, base := must(window.NewRuns(span, n+1)), time.Now()
		return polled(func() bool { return under(r.Total, r.Add, mono.Time(time.Since(base)), n) })
	}},
	{"window.Slots, 11", true, func(n int) func() (time.Duration, bool) {
		s, base := must(window.NewSlots(span, span/10)), time.Now()
		return polled(func() bool { return under(s.Total, s.Add, mono.Time(time.Since(base)), n) })
	}},
	{"Gate, limit.Rolling", true, func(n int) func() (time.Duration, bool) {
		return gated(must(limit.NewRolling(limit.RollingConfig{Limit: int64(n), Window: span, Margin: exactly})))
	}},
	{"Gate, limit.Weighted", true, func(n int) func() (time.Duration, bool) {
		return gated(must(limit.NewWeighted(limit.WeightedConfig{Limit: int64(n), Window: span, Margin: exactly})))
	}},
	// These are for servers that let through more than N in some windows.
	{"Gate, limit.Anchored", false, func(n int) func() (time.Duration, bool) {
		return gated(must(limit.NewAnchored(limit.AnchoredConfig{Limit: int64(n), Window: span, Margin: exactly})))
	}},
	{"Gate, limit.Calendar", false, func(n int) func() (time.Duration, bool) {
		return gated(must(limit.NewCalendar(limit.CalendarConfig{Limit: int64(n), Window: span, Skew: exactly})))
	}},
	{"Gate, limit.Bucket", false, func(n int) func() (time.Duration, bool) {
		return gated(must(limit.NewBucket(limit.BucketConfig{Limit: int64(n), Window: span, Margin: exactly})))
	}},
	{"x/time/rate Allow, burst N", false, func(n int) func() (time.Duration, bool) {
		return polled(rate.NewLimiter(rate.Every(span/time.Duration(n)), n).Allow)
	}},
	{"x/time/rate Reserve, burst N", false, func(n int) func() (time.Duration, bool) {
		return reserve(rate.NewLimiter(rate.Every(span/time.Duration(n)), n))
	}},
	{"x/time/rate Reserve, burst 1", false, func(n int) func() (time.Duration, bool) {
		return reserve(rate.NewLimiter(rate.Every(span/time.Duration(n)), 1))
	}},
	{"uber Take", false, func(n int) func() (time.Duration, bool) { return take(n) }},
	{"uber Take, no slack", false, func(n int) func() (time.Duration, bool) { return take(n, uber.WithoutSlack) }},
	{"failsafe smooth, try", false, func(n int) func() (time.Duration, bool) {
		return polled(ratelimiter.NewSmooth[any](uint(n), span).TryAcquirePermit)
	}},
	{"failsafe smooth, reserve", false, func(n int) func() (time.Duration, bool) {
		l := ratelimiter.NewSmooth[any](uint(n), span)
		return func() (time.Duration, bool) { return l.ReservePermit(), true }
	}},
	{"failsafe bursty, try", false, func(n int) func() (time.Duration, bool) {
		return polled(ratelimiter.NewBursty[any](uint(n), span).TryAcquirePermit)
	}},
	{"failsafe bursty, reserve", false, func(n int) func() (time.Duration, bool) {
		l := ratelimiter.NewBursty[any](uint(n), span)
		return func() (time.Duration, bool) { return l.ReservePermit(), true }
	}},
	{"slidingwindow", false, func(n int) func() (time.Duration, bool) {
		l, _ := slidingwindow.NewLimiter(span, int64(n), local)
		return polled(l.Allow)
	}},
}

func under(total func(mono.Time) int64, add func(mono.Time, int64) int64, now mono.Time, n int) bool {
	if total(now) >= int64(n) {
		return false
	}
	add(now, 1)
	return true
}

func reserve(l *rate.Limiter) func() (time.Duration, bool) {
	return func() (time.Duration, bool) { return l.Reserve().Delay(), true }
}

// remembers is a clock whose Sleep only notes how long it was asked for: the test moves time on.
type remembers struct{ wait time.Duration }

func (*remembers) Now() time.Time          { return time.Now() }
func (c *remembers) Sleep(d time.Duration) { c.wait = d }

func take(n int, o ...uber.Option) func() (time.Duration, bool) {
	c := new(remembers)
	l := uber.New(n, append(o, uber.Per(span), uber.WithClock(c))...)
	return func() (time.Duration, bool) {
		c.wait = 0
		l.Take()
		return c.wait, true
	}
}

// schedule is when an adversary asks: at first once; from then on, after a pause, whenever it might be admitted. The
// machine stalls from stall on until stalled: whoever would wake meanwhile wakes at its end.
type schedule struct{ first, pause, stall, stalled time.Duration }

func schedules() (all []schedule) {
	for _, first := range []time.Duration{0, span / 3, span/10 - 1, 666 * time.Millisecond, span - 1} {
		for _, pause := range []time.Duration{time.Millisecond, span / 4, span / 2, span - time.Millisecond, span} {
			for _, length := range []time.Duration{0, span / 10, span / 2, span} {
				all = append(all, schedule{first, pause, 3 * span / 2, 3*span/2 + length})
			}
		}
	}
	return all
}

// attack returns when requests went: those of one goroutine that asks as often as it is admitted, or, where places are
// reserved, one that reserves on the second half of a window more than now and lets each go at its time.
func attack(ask func() (time.Duration, bool), s schedule) (went []time.Duration) {
	begin := time.Now()
	sleep := func(until time.Duration) {
		if until > s.stall && until < s.stalled {
			until = s.stalled
		}
		time.Sleep(until - time.Since(begin))
	}
	sleep(s.first)
	var due []time.Duration // reserved
	next := s.first
	for once := true; time.Since(begin) < 4*span; {
		now := time.Since(begin)
		for len(due) > 0 && due[0] <= now {
			went = append(went, now)
			due = due[1:]
		}
		for len(due) < 1000 && now >= next { // more waiters than places in a window
			wait, ok := ask()
			switch {
			case !ok:
				next = now + min(wait, time.Millisecond)
			case wait > 0:
				due = append(due, now+wait)
			default:
				went = append(went, now)
			}
			if once {
				once, next = false, now+s.pause
			}
		}
		until := next
		if len(due) > 0 {
			until = due[0]
			if len(due) < 1000 {
				until = min(until, next)
			}
		}
		sleep(max(until, now+1))
	}
	return went
}

// most returns the most of the instants, which are in order, in one closed window.
func most(went []time.Duration, window time.Duration) (most int) {
	oldest := 0
	for i, t := range went {
		for t-went[oldest] > window {
			oldest++
		}
		most = max(most, i-oldest+1)
	}
	return most
}

// TestWorstWindow prints the most that each limiter let through in one closed window, over its limit, on a machine that
// wakes goroutines on time and on one that stalls for up to a window. Where places are reserved ahead a longer stall has
// more of them go at its end; whoever asks again on waking is not hurt by one. Ours that promise
// so stay at the limit. The others do not, and if they one day do, this should be found out.
func TestWorstWindow(t *testing.T) {
	const n = 100
	var out strings.Builder
	for _, c := range contenders {
		worst, calm := 0, 0
		for _, s := range schedules() {
			synctest.Test(t, func(t *testing.T) {
				n := most(attack(c.make(n), s), span)
				worst = max(worst, n)
				if s.stall == s.stalled {
					calm = max(calm, n)
				}
			})
		}
		fmt.Fprintf(&out, "  %-30s %5.2f %8.2f\n", c.name, float64(calm)/n, float64(worst)/n)
		if c.never && worst != n {
			t.Errorf("%s: %d in one window, want the limit, %d", c.name, worst, n)
		}
		if !c.never && worst <= n {
			t.Errorf("%s: %d in one window: the remark that it admits more than %d is out of date", c.name, worst, n)
		}
	}
	t.Logf("most in one window, over the limit:\n  %30s %5s %8s\n%s", "", "", "stalled", out.String())
}

// TestStaleStamps has 256 goroutines take stamps of a clock, be late by up to 10 ms, and ask with them. An event is
// placed at its stamp, or at that of the one before it if that is later: by these, an exact limiter admits its limit in
// each window, and x/time/rate many times that, because an old stamp takes its state back and what was refilled since is
// refilled again.
func TestStaleStamps(t *testing.T) {
	const n, window1, late, goroutines = 100, 50 * time.Millisecond, 10 * time.Millisecond, 256
	const long = 6*window1 + window1/2
	type subject struct {
		name string
		ours bool
		take func(stamp time.Duration) bool
	}
	epoch := time.Now()
	log := must(window.NewLog(n, window1))
	l := rate.NewLimiter(rate.Every(window1/n), n)
	sw, _ := slidingwindow.NewLimiter(window1, n, local)
	for _, s := range []subject{
		{"window.Log", true, func(now time.Duration) bool { return log.Take(mono.Time(now)) }},
		{"x/time/rate", false, func(now time.Duration) bool { return l.AllowN(epoch.Add(now), 1) }},
		{"slidingwindow", false, func(now time.Duration) bool { return sw.AllowN(epoch.Add(now), 1) }},
	} {
		var mu sync.Mutex
		var went []time.Duration
		begin := time.Since(epoch)
		last := begin - late // the first stamps may be before the epoch
		var wg sync.WaitGroup
		for seed := range uint64(goroutines) {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 3))
				for {
					now := time.Since(epoch)
					if now-begin > long {
						return
					}
					stamp := now - time.Duration(rng.Int64N(int64(late)))
					mu.Lock()
					if s.take(stamp) {
						last = max(last, stamp)
						went = append(went, last)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		worst := most(went, window1)
		t.Logf("%-14s at most %d in one window of a limit of %d (%.2f); %d in all, and its bound is %d (%.2f)",
			s.name, worst, n, float64(worst)/n, len(went), 7*n, float64(len(went))/(7*n))
		if s.ours && worst != n {
			t.Errorf("%s: %d in one window, want the limit, %d", s.name, worst, n)
		}
		if s.name == "x/time/rate" && worst < 3*n {
			t.Errorf("%s: %d in one window: the remark that it admits many times its limit is out of date", s.name, worst)
		}
	}
}
