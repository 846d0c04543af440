package micro

import (
	"runtime"
	"sync"
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

func onAllCores() (cs []Case) {
	for _, n := range Sizes {
		cs = append(cs, parallel("Gate TryWait, refused", n, 35, func() func() {
			g := full(n)
			return func() { g.TryWait(limit.One) }
		}))
	}
	for _, n := range Sizes {
		// At most n leases are open at a time, and n are settled in some 100 µs. So about n settled
		// requests are in the window.
		cs = append(cs, parallel("Gate Wait and Settle", n, 0, func() func() {
			g := paceline.NewGate(must(limit.NewRolling(limit.RollingConfig{Limit: 1 << 40, Window: time.Duration(n) * 100,
				Margin: -1})))
			return func() {
				p, _ := g.Wait(bg, limit.One)
				p.Settle(served)
			}
		}))
	}
	for _, p := range peers(1_000_000_000) {
		cs = append(cs, parallel(p.name, 0, 0, p.make))
	}
	return cs
}

// parallel does operations on all cores at once. The time per operation is wall time, so with two
// cores it is half of what one operation takes.
func parallel(name string, n int64, aim float64, make func() func()) Case {
	return Case{Group: Parallel, Name: name, N: n, Aim: aim, Setup: func() func(int) {
		one := make()
		return func(ops int) {
			var wg sync.WaitGroup
			cores := runtime.GOMAXPROCS(0)
			for range cores {
				wg.Go(func() {
					for range ops/cores + 1 {
						one()
					}
				})
			}
			wg.Wait()
		}
	}}
}

type peer struct {
	name string
	make func() (take func())
}

// peers has limiters of others that read the clock themselves. Their limits are so large that they admit at once.
func peers(n int) []peer {
	const per = time.Second
	return []peer{
		{"x/time/rate Allow", func() func() {
			l := rate.NewLimiter(rate.Limit(n), n)
			return func() { l.Allow() }
		}},
		{"x/time/rate Wait", func() func() {
			l := rate.NewLimiter(rate.Limit(n), n)
			return func() { l.Wait(bg) }
		}},
		{"uber Take", func() func() {
			l := uber.New(n)
			return func() { l.Take() }
		}},
		{"failsafe smooth", func() func() {
			l := ratelimiter.NewSmooth[any](uint(n), per)
			return func() { l.TryAcquirePermit() }
		}},
		{"failsafe bursty", func() func() {
			l := ratelimiter.NewBursty[any](uint(n), per)
			return func() { l.TryAcquirePermit() }
		}},
		{"slidingwindow Allow", func() func() {
			l, _ := slidingwindow.NewLimiter(per, int64(n), local)
			return func() { l.Allow() }
		}},
	}
}

type refuser struct {
	name string
	make func(n int, per time.Duration) (ask func() bool)
}

// refusers has limiters of others that read the clock themselves and are asked when their limit is used up.
func refusers() []refuser {
	return []refuser{
		{"x/time/rate Allow", func(n int, per time.Duration) func() bool {
			return rate.NewLimiter(rate.Every(per/time.Duration(n)), n).Allow
		}},
		{"failsafe smooth", func(n int, per time.Duration) func() bool {
			return ratelimiter.NewSmooth[any](uint(n), per).TryAcquirePermit
		}},
		{"failsafe bursty", func(n int, per time.Duration) func() bool {
			return ratelimiter.NewBursty[any](uint(n), per).TryAcquirePermit
		}},
		{"slidingwindow Allow", func(n int, per time.Duration) func() bool {
			l, _ := slidingwindow.NewLimiter(per, int64(n), local)
			return l.Allow
		}},
	}
}

// keyed makes one limiter per key.
func keyed[T any](make1 func() T, use func(T, mono.Time)) func(keys int) func(int, mono.Time) {
	return func(keys int) func(int, mono.Time) {
		all := make([]T, keys)
		for i := range all {
			all[i] = make1()
		}
		return func(key int, now mono.Time) { use(all[key], now) }
	}
}

func cold() (cs []Case) {
	const keys, stride = 200_000, 76_801 // the two have no common factor, so that the stride visits all keys
	for _, h := range holdings {
		cs = append(cs, Case{Group: Cold, Name: h.name, Setup: func() func(int) {
			use := h.make(keys)
			key, now := 0, mono.Time(0)
			next := func() {
				if key += stride; key >= keys {
					key -= keys
				}
				now++
				use(key, now)
			}
			for range keys {
				next() // whatever is allocated at first use is allocated now
			}
			return func(ops int) {
				for range ops {
					next()
				}
			}
		}})
	}
	return cs
}
