package micro

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/RussellLuo/slidingwindow"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// Case is one operation that is timed.
type Case struct {
	Group, Name string
	N           int64   // the limit; 0: the operation does not depend on it
	Aim         float64 // the time in ns that the operation should not exceed; 0: there is no aim
	// Setup returns a function that does n operations. Each call of that function goes on where the
	// one before ended. It panics if an operation turns out to be another than the case is about, such
	// as an admission where refusals are timed.
	Setup func() (run func(n int))
	// Clocked takes the place of Setup where only a part of the work is to be timed: run returns the
	// time that the operations took.
	Clocked func() (run func(n int) time.Duration)
}

// Run prepares the case. The function that it returns does n operations and says how long they took.
func (c Case) Run() func(n int) time.Duration {
	if c.Clocked != nil {
		return c.Clocked()
	}
	run := c.Setup()
	return func(n int) time.Duration {
		start := time.Now()
		run(n)
		return time.Since(start)
	}
}

// Sizes are the limits per window with which cases are run. The histories of the larger ones do not
// fit into the nearest caches.
var Sizes = []int64{20, 300, 6000, 100_000}

const span = time.Second

const (
	sizeOfLog     = int(unsafe.Sizeof(window.Log{}))
	sizeOfRuns    = int(unsafe.Sizeof(window.Runs{}))
	sizeOfSlots   = int(unsafe.Sizeof(window.Slots{}))
	sizeOfRolling = int(unsafe.Sizeof(limit.Rolling{}))
	sizeOfGate    = int(unsafe.Sizeof(paceline.Gate{}))
)

var (
	served = limit.Outcome{Result: limit.Accepted, RTT: 30 * time.Millisecond}
	bg     = context.Background()
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(ok bool, what string) {
	if !ok {
		panic("bench: " + what)
	}
}

// These are the names of the groups of cases.
const (
	Counters = "counters, caller's now"
	Leases   = "leases: Ready, Admit, Settle through the interface"
	Refusals = "a refused Ready"
	Gates    = "own clock, one goroutine"
	Refused  = "own clock, refused"
	Parallel = "own clock, all cores at once"
	Cold     = "one of 200,000 limiters, none in the nearest cache"
)

// Cases returns all cases.
func Cases() []Case {
	var all []Case
	all = append(all, counters()...)
	all = append(all, leases()...)
	all = append(all, gates()...)
	all = append(all, cold()...)
	return all
}

func counters() (cs []Case) {
	for _, n := range Sizes {
		gap := mono.Time(span)/mono.Time(n) + 1 // the shortest gap that the limit allows
		cs = append(cs, counted(n, gap)...)
		cs = append(cs, countedByOthers(n, gap)...)
	}
	cs = append(cs, slots()...)
	return append(cs, threeWindows())
}

// counted has the cases of package window: an event comes after each gap, and the window holds n events.
func counted(n int64, gap mono.Time) []Case {
	return []Case{
		{Group: Counters, Name: "window.Log Take", N: n, Aim: 2, Setup: func() func(int) {
			l := must(window.NewLog(int(n), span))
			now := mono.Time(0)
			return func(ops int) {
				refused := 0
				for range ops {
					now += gap
					if !l.Take(now) {
						refused++
					}
				}
				check(refused == 0, "refused")
			}
		}},
		{Group: Counters, Name: "window.Log Take, locked", N: n, Setup: func() func(int) {
			l := must(window.NewLog(int(n), span))
			var mu sync.Mutex
			now := mono.Time(0)
			return func(ops int) {
				for range ops {
					now += gap
					mu.Lock()
					ok := l.Take(now)
					mu.Unlock()
					check(ok, "refused")
				}
			}
		}},
		{Group: Counters, Name: "window.Runs Add", N: n, Aim: 7, Setup: func() func(int) {
			r := must(window.NewRuns(span, int(n)+1))
			now := mono.Time(0)
			return func(ops int) {
				for range ops {
					now += gap
					r.Add(now, 3)
				}
				check(r.Total(now) > 0, "nothing counted")
			}
		}},
	}
}

// countedByOthers has the same cases for counters of others, as far as those take the time from their caller.
func countedByOthers(n int64, gap mono.Time) []Case {
	epoch := time.Now()
	return []Case{
		{Group: Counters, Name: "x/time/rate AllowN", N: n, Setup: func() func(int) {
			l := rate.NewLimiter(rate.Every(span/time.Duration(n)), int(n))
			now := epoch
			return func(ops int) {
				for range ops {
					now = now.Add(time.Duration(gap))
					check(l.AllowN(now, 1), "refused")
				}
			}
		}},
		{Group: Counters, Name: "slidingwindow AllowN", N: n, Setup: func() func(int) {
			l, _ := slidingwindow.NewLimiter(span, n, local)
			now := epoch
			refused, asked := 0, 0
			return func(ops int) {
				for range ops {
					now = now.Add(time.Duration(gap))
					if !l.AllowN(now, 1) {
						refused++
					}
				}
				asked += ops
				check(refused <= asked/10+int(n), "refused")
			}
		}},
	}
}

// slots has the cases of window.Slots. The time that an Add takes depends on how many slots lie between two events.
func slots() (cs []Case) {
	const precision = time.Millisecond // 65 slots
	for _, c := range []struct {
		name string
		step time.Duration
		aim  float64
	}{{"same slot", 0, 3}, {"next slot", precision, 0}, {"big jump", 1000*precision + 1, 12}} {
		cs = append(cs, Case{Group: Counters, Name: "window.Slots Add, " + c.name, Aim: c.aim, Setup: func() func(int) {
			s := must(window.NewSlots(64*precision, precision))
			now := mono.Time(0)
			return func(ops int) {
				for range ops {
					now += mono.Time(c.step)
					s.Add(now, 3)
				}
				check(s.Total(now) > 0, "nothing counted")
			}
		}})
	}
	return cs
}

// threeWindows has the cases of a server with limits per second, minute and hour.
func threeWindows() Case {
	return Case{Group: Counters, Name: "three windows, Full and Add of each", Aim: 6, Setup: func() func(int) {
		second, minute, hour := must(window.NewLog(20, time.Second)), must(window.NewLog(600, time.Minute)),
			must(window.NewLog(18000, time.Hour))
		now := mono.Time(0)
		return func(ops int) {
			refused := 0
			for range ops {
				now += mono.Time(time.Hour)/18000 + 1
				if second.Full(now) || minute.Full(now) || hour.Full(now) {
					refused++
					continue
				}
				second.Add(now)
				minute.Add(now)
				hour.Add(now)
			}
			check(refused == 0, "refused")
		}
	}}
}

func local() (slidingwindow.Window, slidingwindow.StopFunc) { return slidingwindow.NewLocalWindow() }

// kinds has the limiters of package limit that are timed, each for n requests per second.
func kinds(n int64) []struct {
	name string
	aim  [2]float64 // the aims for a lease and for a refusal
	make func() limit.Limiter
} {
	type kind = struct {
		name string
		aim  [2]float64
		make func() limit.Limiter
	}
	rolling := func() limit.Limiter { return must(limit.NewRolling(limit.RollingConfig{Limit: n, Window: span})) }
	return []kind{
		{"limit.Rolling", [2]float64{18, 4}, rolling},
		{"limit.Calendar", [2]float64{},
			func() limit.Limiter { return must(limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: span})) }},
		{"limit.Anchored", [2]float64{},
			func() limit.Limiter { return must(limit.NewAnchored(limit.AnchoredConfig{Limit: n, Window: span})) }},
		{"limit.Bucket", [2]float64{},
			func() limit.Limiter { return must(limit.NewBucket(limit.BucketConfig{Limit: n, Window: span})) }},
		{"limit.Weighted", [2]float64{},
			func() limit.Limiter { return must(limit.NewWeighted(limit.WeightedConfig{Limit: n, Window: span})) }},
		{"All of four Rolling", [2]float64{95, 0}, func() limit.Limiter {
			return limit.NewAll(rolling(), rolling(), rolling(), rolling())
		}},
	}
}

// fill sends requests for three windows, as fast as l allows. Each is answered at once.
func fill(l limit.Limiter, n int64) (now mono.Time) {
	gap, sent := span/time.Duration(n), limit.Sent{Cost: limit.One}
	for range 3 * n {
		now = max(l.Ready(now, limit.One), now.Add(gap))
		pass(l, &sent, now)
	}
	return now
}

// pass sends a request through l, which is answered at once.
func pass(l limit.Limiter, sent *limit.Sent, now mono.Time) {
	sent.At = now
	sent.Number++
	l.Admit(sent)
	l.Settle(now, sent, &served)
}

func leases() (cs []Case) {
	for _, n := range Sizes {
		for _, k := range kinds(n) {
			cs = append(cs, Case{Group: Leases, Name: k.name, N: n, Aim: k.aim[0], Setup: func() func(int) {
				l := k.make()
				now, sent := fill(l, n), limit.Sent{Number: 1 << 32, Cost: limit.One}
				return func(ops int) {
					for range ops {
						now = l.Ready(now, limit.One)
						pass(l, &sent, now)
					}
					check(now < limit.AfterSettle, "not an instant")
				}
			}})
			cs = append(cs, Case{Group: Refusals, Name: k.name, N: n, Aim: k.aim[1], Setup: func() func(int) {
				l := k.make()
				now, sent := fill(l, n), limit.Sent{Number: 1 << 32, Cost: limit.One}
				for l.Ready(now, limit.One) <= now {
					pass(l, &sent, now)
				}
				return func(ops int) {
					earliest := limit.Never
					for range ops {
						earliest = min(earliest, l.Ready(now, limit.One))
					}
					check(earliest > now, "not refused")
				}
			}})
		}
		cs = append(cs, Case{Group: Leases, Name: "x/time/rate ReserveN", N: n, Setup: func() func(int) {
			l := rate.NewLimiter(rate.Every(span/time.Duration(n)), int(n))
			now := time.Now()
			l.ReserveN(now, int(n))
			return func(ops int) {
				for range ops {
					now = now.Add(l.ReserveN(now, 1).DelayFrom(now))
				}
			}
		}})
	}
	return cs
}

// gates has the cases of Gates, which read the clock themselves. Where admissions are timed, the
// limit is so large that it is never reached.
func gates() (cs []Case) {
	cs = append(cs, admitting()...)
	cs = append(cs, refusing()...)
	return append(cs, onAllCores()...)
}

// wide is a limit so large that it is never reached.
func wide() limit.Limiter { return limit.MustRolling(1<<40, time.Millisecond) }

// waits times open. What open has begun is ended afterwards, which is not timed.
func waits(name string, aim float64, open func(g *paceline.Gate, into []paceline.Permit)) Case {
	const block = 128
	return Case{Group: Gates, Name: name, Aim: aim, Clocked: func() func(int) time.Duration {
		g := paceline.NewGate(wide())
		var permits [block]paceline.Permit
		return func(ops int) (took time.Duration) {
			for done := 0; done < ops; done += block {
				start := time.Now()
				open(g, permits[:])
				took += time.Since(start)
				for _, p := range permits {
					p.Settle(served)
				}
			}
			return took * time.Duration(ops) / time.Duration((ops+block-1)/block*block)
		}
	}}
}

func admitting() (cs []Case) {
	cs = append(cs,
		Case{Group: Gates, Name: "time.Since, the clock alone", Setup: func() func(int) {
			base := time.Now()
			return func(ops int) {
				var sum time.Duration
				for range ops {
					sum += time.Since(base)
				}
				check(sum > 0, "no time")
			}
		}},
		waits("Gate Wait", 50, func(g *paceline.Gate, into []paceline.Permit) {
			for i := range into {
				into[i], _ = g.Wait(bg, limit.One)
			}
		}),
		waits("Gate TryWait", 0, func(g *paceline.Gate, into []paceline.Permit) {
			for i := range into {
				into[i], _, _ = g.TryWait(limit.One)
			}
		}),
		Case{Group: Gates, Name: "Gate Wait and Settle", Aim: 118, Setup: func() func(int) {
			g := paceline.NewGate(wide())
			return func(ops int) {
				for range ops {
					p, _ := g.Wait(bg, limit.One)
					p.Settle(served)
				}
			}
		}},
		Case{Group: Gates, Name: "Gate Wait and Settle, All of four", Setup: func() func(int) {
			g := paceline.NewGate(limit.NewAll(wide(), wide(), wide(), wide()))
			return func(ops int) {
				for range ops {
					p, _ := g.Wait(bg, limit.One)
					p.Settle(served)
				}
			}
		}},
	)
	for _, p := range peers(1_000_000_000) {
		cs = append(cs, Case{Group: Gates, Name: p.name, Setup: func() func(int) {
			take := p.make()
			return func(ops int) {
				for range ops {
					take()
				}
			}
		}})
	}
	return cs
}

// full returns a Gate of n per hour that admits no more.
func full(n int64) *paceline.Gate {
	g := paceline.NewGate(limit.MustRolling(n, time.Hour))
	for {
		p, _, ok := g.TryWait(limit.One)
		if !ok {
			return g
		}
		p.Settle(served)
	}
}

func refusing() (cs []Case) {
	for _, n := range Sizes {
		cs = append(cs, Case{Group: Refused, Name: "Gate TryWait", N: n, Aim: 35, Setup: func() func(int) {
			g := full(n)
			return func(ops int) {
				for range ops {
					_, _, ok := g.TryWait(limit.One)
					check(!ok, "not refused")
				}
			}
		}})
	}
	for _, p := range refusers() {
		cs = append(cs, Case{Group: Refused, Name: p.name, N: 20, Setup: func() func(int) {
			ask := p.make(20, time.Hour)
			for ask() {
			}
			return func(ops int) {
				for range ops {
					check(!ask(), "not refused")
				}
			}
		}})
	}
	return cs
}

// holdings has limiters of 20 per second, to measure how much memory one takes and how long an
// operation takes when none of that memory is in a cache. touched is how many bytes of the limiter
// an operation reads or writes; 0: that is not known.
var holdings = []struct {
	name    string
	touched int
	make    func(keys int) (use func(key int, now mono.Time))
}{
	{"nothing", 0, func(keys int) func(int, mono.Time) { return func(int, mono.Time) {} }},
	{"window.Log Take", sizeOfLog + 8, keyed(
		func() *window.Log { return must(window.NewLog(20, span)) },
		func(l *window.Log, now mono.Time) { l.Take(now) })},
	{"window.Runs Add", sizeOfRuns + 2*16, keyed(
		func() *window.Runs { return must(window.NewRuns(span, 20)) },
		func(r *window.Runs, now mono.Time) { r.Add(now, 1) })},
	{"window.Slots Add, 11 slots", sizeOfSlots + 8, keyed(
		func() *window.Slots { return must(window.NewSlots(span, span/10)) },
		func(s *window.Slots, now mono.Time) { s.Add(now, 1) })},
	// In the ring of settled requests these are the oldest and the newest entry.
	{"limit.Rolling, a lease", sizeOfRolling + 2*16, keyed(
		func() *limit.Rolling { return must(limit.NewRolling(limit.RollingConfig{Limit: 20, Window: span})) },
		func(l *limit.Rolling, now mono.Time) { pass(l, &limit.Sent{Cost: limit.One}, now) })},
	{"Gate of it, Wait and Settle", sizeOfGate + sizeOfRolling + 16 + 4 + 4 + 2*16, keyed(
		func() *paceline.Gate { return paceline.NewGate(limit.MustRolling(1<<40, span)) },
		func(g *paceline.Gate, _ mono.Time) {
			p, _ := g.Wait(bg, limit.One)
			p.Settle(served)
		})},
	{"x/time/rate AllowN", 0, keyed(
		func() *rate.Limiter { return rate.NewLimiter(20, 20) },
		func(l *rate.Limiter, now mono.Time) { l.AllowN(coldEpoch.Add(time.Duration(now)), 1) })},
	{"slidingwindow AllowN", 0, keyed(
		func() *slidingwindow.Limiter {
			l, _ := slidingwindow.NewLimiter(span, 20, local)
			return l
		},
		func(l *slidingwindow.Limiter, now mono.Time) { l.AllowN(coldEpoch.Add(time.Duration(now)), 1) })},
	{"uber Take", 0, keyed(
		func() uber.Limiter { return uber.New(1_000_000_000) },
		func(l uber.Limiter, _ mono.Time) { l.Take() })},
	{"failsafe smooth", 0, keyed(
		func() ratelimiter.RateLimiter[any] { return ratelimiter.NewSmooth[any](1_000_000_000, time.Second) },
		func(l ratelimiter.RateLimiter[any], _ mono.Time) { l.TryAcquirePermit() })},
	{"failsafe bursty", 0, keyed(
		func() ratelimiter.RateLimiter[any] { return ratelimiter.NewBursty[any](1_000_000_000, time.Second) },
		func(l ratelimiter.RateLimiter[any], _ mono.Time) { l.TryAcquirePermit() })},
}

var coldEpoch = time.Now()

// Holding is how much memory a limiter of 20 per second takes.
type Holding struct {
	Name    string
	Bytes   int // how many bytes it takes after 40 operations
	Touched int // how many of them one operation reads or writes; 0: that is not known
}

// Holdings measures how much memory limiters take.
func Holdings() (hs []Holding) {
	const many = 4000
	for _, h := range holdings {
		heap := func() int {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		before := heap()
		use := h.make(many)
		for key := range many {
			for now := range mono.Time(40) {
				use(key, now*mono.Time(span)/20)
			}
		}
		hs = append(hs, Holding{h.name, (heap() - before + many/2) / many, h.touched})
		runtime.KeepAlive(use)
	}
	return hs
}

func (c Case) String() string {
	if c.N > 0 {
		return fmt.Sprintf("%s, N = %d", c.Name, c.N)
	}
	return c.Name
}

// BenchmarkCases times each case. A case with an aim reports it beside its time.
func BenchmarkCases(b *testing.B) {
	for _, c := range Cases() {
		b.Run(c.Group+"/"+c.String(), func(b *testing.B) {
			run := c.Run()
			run(1)
			b.ReportAllocs()
			b.ResetTimer()
			took := run(b.N)
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/op")
			if c.Aim > 0 {
				b.ReportMetric(c.Aim, "aim-ns")
			}
		})
	}
}

// TestCases runs every case but for a moment: those that are not about what they say panic.
func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if name := c.Group + c.String(); seen[name] {
			t.Errorf("%s: twice", name)
		} else {
			seen[name] = true
		}
		if c.Group == Cold || c.N > 6000 {
			continue // seconds to set up
		}
		run := c.Run()
		for range 2 {
			if d := run(256); d <= 0 || d > time.Minute {
				t.Errorf("%s, %v: 256 operations took %v", c.Group, c, d)
			}
		}
	}
}

// TestHoldings: no operation touches more than a limiter holds. With -v it prints both, for a limiter of 20 per second
// after 40 operations.
func TestHoldings(t *testing.T) {
	for i, h := range Holdings() {
		t.Logf("%s: holds %d bytes, and an operation touches %d at most", h.Name, h.Bytes, h.Touched)
		if i == 0 != (h.Bytes == 0) || h.Touched > h.Bytes && i > 0 {
			t.Errorf("%+v", h)
		}
	}
}
