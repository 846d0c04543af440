package slot_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy/slot"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// The promises of Slot to ten clients of an empty bucket: each is refused once, as it must be, and then nobody; all get the
// same; nobody sleeps much longer than the share asks for.
func TestSlotSharesEvenly(t *testing.T) {
	for _, rtt := range []time.Duration{60 * time.Millisecond, 165 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
		for seed := range uint64(4) {
			if testing.Short() && seed > 0 {
				break
			}
			t.Run(fmt.Sprintf("%v/%d", rtt, seed), func(t *testing.T) {
				w := strangers(t, 100+seed, 10, rtt, 1, newSlot, nil).run()
				if n := len(w.rejects); n > 11 {
					t.Errorf("%d requests were refused", n)
				}
				if n := w.rejectsAfter(120); n > 0 {
					t.Errorf("%d requests were refused after two minutes", n)
				}
				if _, sd, _ := w.requests(); sd > 2.5 {
					t.Errorf("the standard deviation of request counts is %.2f", sd)
				}
				if s := w.maxSleep(); s > 17 {
					t.Errorf("a client slept %.1f s where 8 s are its share", s)
				}
			})
		}
	}
}

func TestSlotDay(t *testing.T) {
	for _, n := range []int{100, 10, 1} {
		if testing.Short() && n < 100 {
			break
		}
		w := strangers(t, 7, n, 165*time.Millisecond, 1, newSlot, nil)
		w.length = 86400
		w.run()
		if k := w.rejectsAfter(3600); k > 0 {
			t.Errorf("%d clients: %d requests were refused after the first hour", n, k)
		}
		if unused := (w.level + w.lost) / (w.rate * w.length); unused > 0.0005 {
			t.Errorf("%d clients: %.3f %% unused", n, 100*unused)
		}
		if _, _, cv := w.requests(); cv > 0.08 {
			t.Errorf("%d clients: the counts vary by %.1f %%", n, 100*cv)
		}
	}
}

// From an empty bucket every client is refused once; the rest is what finding out how many they are costs.
func TestSlotColdCrowd(t *testing.T) {
	for n, most := range map[int]int{20: 32, 100: 270, 1000: 4250} {
		if testing.Short() && n > 100 {
			continue
		}
		w := strangers(t, 3, n, 60*time.Millisecond, 1, newSlot, nil).run()
		if len(w.rejects) > most || len(w.rejects) < n {
			t.Errorf("%d clients: %d requests were refused, at most %d expected", n, len(w.rejects), most)
		}
	}
}

func TestSlotSettles(t *testing.T) {
	const change = 1200
	for _, tc := range []struct {
		name          string
		clients, stay int
		rate          float64 // after the change
		most          float64 // seconds until the mean sleep is, and stays, within a quarter of the share
	}{
		{"20 clients become 5", 20, 5, 1.25, 22},
		{"the quota is halved", 10, 10, 0.625, 15},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := strangers(t, 11, tc.clients, 60*time.Millisecond, 1, newSlot, nil)
			w.length = 2400
			w.refill = func(at float64) float64 {
				if at > change {
					return tc.rate
				}
				return 1.25
			}
			for _, c := range w.clients[tc.stay:] {
				c.until = change
			}
			share, last := float64(tc.stay)/tc.rate, 0.0
			w.every = func(at float64) {
				mean := 0.0
				for _, c := range w.clients[:tc.stay] {
					mean += sleep(c) / float64(tc.stay)
				}
				if at > change && math.Abs(mean/share-1) > 0.25 {
					last = at - change
				}
			}
			if w.run(); last > tc.most {
				t.Errorf("settled after %.0f s, not %.0f", last, tc.most)
			}
			if n := w.rejectsAfter(change); n > 0 {
				t.Errorf("%d requests were refused after the change", n)
			}
		})
	}
}

// 4500 requests of ten clients from a full bucket, 450 each, one at a time over 165 ms: 74.25 s at best. Slow clients are
// as quick.
func TestSlotClears(t *testing.T) {
	for _, start := range []time.Duration{0, 10 * time.Second} {
		for _, refill := range []float64{1.25, 0} {
			w := strangers(t, 5, 10, 165*time.Millisecond, 1, newSlot, func(_ int, c *slot.Config) { c.Start = start })
			w.level = w.burst
			w.refill = func(float64) float64 { return refill }
			for _, c := range w.clients {
				c.backlog = 450
			}
			w.run()
			for i, c := range w.clients {
				if c.backlog != 0 || c.done > 78 {
					t.Errorf("start %v, refill %v/s: client %d has %d left after %.1f s", start, refill, i, c.backlog, c.done)
				}
			}
			if len(w.rejects) > 0 {
				t.Errorf("start %v, refill %v/s: %d requests were refused", start, refill, len(w.rejects))
			}
		}
	}
	w := strangers(t, 5, 1, 165*time.Millisecond, 1, newSlot, nil)
	w.level, w.clients[0].backlog = w.burst, 4500
	if w.run(); w.clients[0].done > 1.1*4500*0.165 {
		t.Errorf("a lone client took %.1f s for 4500 requests of 165 ms", w.clients[0].done)
	}
}

func TestSlotHiddenQuota(t *testing.T) {
	for _, n := range []int{1, 10} {
		for factor, most := range map[float64]int{0.2: 24, 0.5: 17, 2: 11, 4: 11} {
			w := strangers(t, 9, n, 165*time.Millisecond, 1, newSlot, nil)
			w.length = 3600
			w.refill = func(float64) float64 { return 1.25 * factor }
			w.run()
			if used := float64(w.served) / (1.25 * factor * w.length); used < 0.95 || len(w.rejects) > most {
				t.Errorf("%d clients, true quota × %v: %.1f %% used, %d refused", n, factor, 100*used, len(w.rejects))
			}
			if _, _, cv := w.requests(); cv > 0.25 || factor > 1 && cv > 0.12 {
				t.Errorf("%d clients, true quota × %v: the counts vary by %.1f %%", n, factor, 100*cv)
			}
		}
	}
}

// At sixteen times the quota nothing is stable that does not find that out.
func TestSlotFindsScale(t *testing.T) {
	w := strangers(t, 3, 10, 165*time.Millisecond, 20, newSlot, nil)
	w.refill = func(float64) float64 { return 16 * w.rate }
	w.length = 1200
	w.run()
	if used := float64(w.served) / (16 * w.rate * w.length); used < 0.95 || len(w.rejects) > 15 {
		t.Errorf("%.1f %% used, %d refused", 100*used, len(w.rejects))
	}
}

// A client that sleeps 20 s comes to what one beside it gets that sleeps 4 s.
func TestSlotSlowBesideFast(t *testing.T) {
	w := strangers(t, 2, 2, 165*time.Millisecond, 1, newSlot, func(i int, c *slot.Config) {
		c.Start = []time.Duration{20 * time.Second, 4 * time.Second}[i]
	})
	w.level, w.length = 22, 1200
	w.run()
	counts := [2]int{}
	for i, c := range w.clients {
		for _, at := range c.sent {
			if at > 600 {
				counts[i]++
			}
		}
	}
	if r := float64(counts[0]) / float64(counts[1]); r < 0.9 || r > 1.1 {
		t.Errorf("in the second ten minutes they sent %v", counts)
	}
}

// A round trip of 20 s is longer than the spacing of requests: several are in flight.
func TestSlotManyInFlight(t *testing.T) {
	for n, threads := range map[int]int{1: 100, 10: 20} {
		w := strangers(t, 4, n, 20*time.Second, threads, newSlot, nil)
		w.length = 7200
		w.run()
		if used := float64(w.served) / (w.rate * w.length); used < 0.99 || len(w.rejects) > 0 {
			t.Errorf("%d clients: %.2f %% used, %d refused", n, 100*used, len(w.rejects))
		}
		if _, _, cv := w.requests(); cv > 0.01 {
			t.Errorf("%d clients: the counts vary by %.2f %%", n, 100*cv)
		}
	}
}

func TestSlotWeight(t *testing.T) {
	weights := []float64{1, 2, 1, 4}
	w := strangers(t, 6, 4, 165*time.Millisecond, 5, newSlot, func(i int, c *slot.Config) { c.Weight = weights[i] })
	w.length = 3600
	w.run()
	for i, c := range w.clients {
		if per := float64(c.requests) / weights[i] / (4500 / 8.0); per < 0.93 || per > 1.07 {
			t.Errorf("weight %v got %.3f of its share", weights[i], per)
		}
	}
}

// Whatever the server says, nobody hammers it or stalls: what it says is not trusted for long.
func TestSlotLies(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 1))
	lies := map[string]func(float64, int) (int64, bool){
		"nothing":      mute,
		"full":         func(float64, int) (int64, bool) { return 4500, true },
		"empty":        func(float64, int) (int64, bool) { return 0, true },
		"few":          func(float64, int) (int64, bool) { return 5, true },
		"negative":     func(float64, int) (int64, bool) { return math.MinInt64, true },
		"too many":     func(float64, int) (int64, bool) { return math.MaxInt64, true },
		"noise":        func(float64, int) (int64, bool) { return noise.Int64N(4501), true },
		"rising":       func(_ float64, k int) (int64, bool) { return int64(k*37) % 4500, true },
		"too many by":  func(level float64, _ int) (int64, bool) { return int64(level) + 100, true },
		"now and then": func(level float64, k int) (int64, bool) { return int64(level), k%2 == 0 },
	}
	for name, says := range lies {
		for _, threads := range []int{1, 20} {
			if testing.Short() && threads == 20 {
				continue
			}
			w := strangers(t, 8, 1, 165*time.Millisecond, threads, newSlot, nil)
			w.says, w.length = says, 4*3600
			w.run()
			if used := float64(w.served) / (w.rate * w.length); used < 0.9 {
				t.Errorf("%s, %d threads: only %.1f %% used", name, threads, 100*used)
			}
			if len(w.rejects) > 180 { // 1 %
				t.Errorf("%s, %d threads: %d of %d refused", name, threads, len(w.rejects), w.answers)
			}
		}
	}
	// It recovers: what is true again is used again.
	w := strangers(t, 8, 10, 165*time.Millisecond, 1, newSlot, nil)
	w.length = 6 * 3600
	w.says = func(level float64, k int) (int64, bool) { return int64(level), w.at > 1800 }
	if w.run(); w.rejectsAfter(5*3600) > 0 {
		t.Errorf("%d refused in the last hour, when the server had long been telling what remains", w.rejectsAfter(5*3600))
	}
}

// A server that refuses everything, for ever.
func TestRefusedForEver(t *testing.T) {
	for name, make := range map[string]maker{"Slot": newSlot, "Headerless": newHeaderless} {
		for _, start := range []time.Duration{0, time.Second} {
			w := strangers(t, 1, 1, 10*time.Millisecond, 50, make, func(_ int, c *slot.Config) { c.Start = start })
			w.refill = func(float64) float64 { return 0 }
			w.length = 24 * 3600
			w.run()
			if n := w.clients[0].requests; n < 12 || n > 60 {
				t.Errorf("%s, start %v: %d requests in a day", name, start, n)
			}
			for i, at := range w.clients[0].sent[1:] {
				if gap := at - w.clients[0].sent[i]; gap > 7200.1 {
					t.Errorf("%s, start %v: %.0f s from request %d to the next", name, start, gap, i)
				}
			}
		}
	}
}

func TestHeaderlessShares(t *testing.T) {
	for seed := range uint64(4) {
		w := strangers(t, 40+seed, 10, 60*time.Millisecond, 1, newHeaderless, nil)
		w.says = mute
		w.run()
		sum, _, cv := w.requests()
		if retry := float64(len(w.rejects)) / float64(sum); retry > 0.025 || cv > 0.3 {
			t.Errorf("seed %d: %.2f %% refused, counts vary by %.0f %%", seed, 100*retry, 100*cv)
		}
		if used := float64(w.served) / (w.rate * w.length); used < 0.95 {
			t.Errorf("seed %d: %.1f %% used", seed, 100*used)
		}
	}
	w := strangers(t, 1, 1, 60*time.Millisecond, 1, newHeaderless, nil)
	w.level, w.clients[0].backlog = w.burst, 4500
	if w.run(); w.clients[0].done > 1.1*4500*0.06 {
		t.Errorf("a lone client took %.0f s for 4500 requests of 60 ms", w.clients[0].done)
	}
}

// What happens when, for one process that believes in ten sharers of one token a second.
func TestSlotTimeline(t *testing.T) {
	const (
		s    = time.Second
		rest = 26 // the reserve of ten
	)
	limited := limit.Outcome{Result: limit.Limited}
	left := func(n int64) limit.Outcome {
		return limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, Remaining: limit.Cost{limit.Requests: n}}
	}
	for _, tc := range []struct {
		name     string
		outcome  limit.Outcome
		low, top time.Duration // when the next goes, after the first was sent
	}{
		{"at rest", left(rest), 9900 * time.Millisecond, 10100 * time.Millisecond},
		{"two too few", left(rest - 2), 11 * s, 12500 * time.Millisecond},
		{"far too few: a fifth slower at most", left(3), 11 * s, 12500 * time.Millisecond},
		{"three too many", left(rest + 3), 6500 * time.Millisecond, 7100 * time.Millisecond},
		{"plenty: at once", left(2000), 100 * time.Millisecond, 100 * time.Millisecond},
		{"more than there can be: as if nothing had been said", left(4501), 9400 * time.Millisecond, 10500 * time.Millisecond},
		{"less than there can be: the same", left(-1), 9400 * time.Millisecond, 10500 * time.Millisecond},
		{"refused: its interval again, and up to a fifth", limited, 10 * s, 12 * s},
		{"refused, told to stay away", limit.Outcome{Result: limit.Limited, RetryAfter: time.Minute}, 60100 * time.Millisecond, 70100 * time.Millisecond},
		{"refused, told to stay away for a year", limit.Outcome{Result: limit.Limited, RetryAfter: 365 * 24 * time.Hour}, 9000 * s, 9000*s + 100*time.Millisecond},
		{"told to retry sooner than is fair", limit.Outcome{Result: limit.Limited, RetryAfter: 1}, 10 * s, 12 * s},
		{"nobody knows", limit.Outcome{}, 10 * s, 10 * s},
		{"failed, nothing said", limit.Outcome{Result: limit.Failed}, 10 * s, 10500 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := slot.New(slot.Config{Rate: 1, Burst: 4500, Start: 10 * s, Rng: rand.New(rand.NewPCG(1, 2))})
			if err != nil {
				t.Fatal(err)
			}
			const start = mono.Time(5e9)
			if at := l.Ready(start, limit.One); at != start {
				t.Fatalf("the first request has to wait until %v", at)
			}
			lease := l.Admit(start, limit.One)
			if at := l.Ready(start, limit.One).Sub(start); at != 10*s {
				t.Errorf("with the first in flight, the second goes after %v", at)
			}
			answered := start.Add(100 * time.Millisecond)
			l.Settle(answered, lease, tc.outcome)
			if at := l.Ready(answered, limit.One).Sub(start); at < tc.low || at > tc.top {
				t.Errorf("the next goes after %v, not %v to %v", at, tc.low, tc.top)
			}
			if free := l.Ready(answered, limit.Cost{limit.Tokens: 5}); free != answered {
				t.Errorf("what is no request waits until %v", free)
			}
		})
	}
}

// An answer that is late counts what went meanwhile, one older than another is not heeded, and many refusals of one burst
// are one.
func TestSlotOutOfOrder(t *testing.T) {
	l, err := slot.New(slot.Config{Rate: 1, Burst: 4500, Start: 10 * time.Second, Rng: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	left := func(n int64) limit.Outcome {
		return limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, Remaining: limit.Cost{limit.Requests: n}}
	}
	var leases []limit.Lease
	now := mono.Time(0)
	for range 4 { // at 0, 10, 20 and 30 s
		now = l.Ready(now, limit.One)
		leases = append(leases, l.Admit(now, limit.One))
	}
	if now != mono.Time(30*time.Second) {
		t.Fatalf("the fourth went at %v", now)
	}
	now = now.Add(time.Second)
	l.Settle(now, leases[0], left(26)) // as it should be
	if at := l.Ready(now, limit.One).Sub(0); at < 39*time.Second || at > 41*time.Second {
		t.Errorf("nothing new: the next goes at %v, not about 40 s", at)
	}
	l.Settle(now, leases[2], left(29)) // three more than it should be
	if at := l.Ready(now, limit.One).Sub(0); at < 36*time.Second || at > 37500*time.Millisecond {
		t.Errorf("the next goes at %v, not three tokens before 40 s", at)
	}
	before := l.Ready(now, limit.One)
	l.Settle(now, leases[1], left(0))
	if at := l.Ready(now, limit.One); at != before {
		t.Errorf("an older answer moved the next from %v to %v", before, at)
	}

	leases = leases[:0]
	for range 3 {
		now = l.Ready(now, limit.One)
		leases = append(leases, l.Admit(now, limit.One))
	}
	l.Settle(now, leases[0], limit.Outcome{Result: limit.Limited})
	refused := l.Ready(now, limit.One)
	l.Settle(now, leases[1], limit.Outcome{Result: limit.Limited})
	l.Settle(now, leases[2], left(4000)) // it left before the refusal
	if at := l.Ready(now, limit.One); at != refused || at.Sub(now) < 9*time.Second {
		t.Errorf("after one refusal %v, after two of the same burst %v", refused, at)
	}
}

// What a process did not send while it could have is no credit, and plenty is taken a few at a time after a refusal.
func TestSlotNoCredit(t *testing.T) {
	l, err := slot.New(slot.Config{Rate: 1, Burst: 4500, Start: 10 * time.Second, Rng: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	now := mono.Time(0)
	send := func(remaining int64) {
		t.Helper()
		lease := l.Admit(now, limit.One)
		now = now.Add(time.Second / 10)
		o := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, Remaining: limit.Cost{limit.Requests: remaining}}
		if remaining < 0 {
			o = limit.Outcome{Result: limit.Limited, RetryAfter: time.Duration(-remaining) * time.Second}
		}
		l.Settle(now, lease, o)
	}
	send(26)
	now = now.Add(time.Hour)
	l.Admit(now, limit.One)
	if wait := l.Ready(now, limit.One).Sub(now); wait < 9*time.Second {
		t.Errorf("after an idle hour the second request goes %v after the first", wait)
	}

	burst := func() (n int) {
		for ; l.Ready(now, limit.One) == now; n++ {
			l.Admit(now, limit.One)
		}
		return n
	}
	l, _ = slot.New(slot.Config{Rate: 1, Burst: 4500, Start: 10 * time.Second, Rng: rand.New(rand.NewPCG(1, 2))})
	now = 0
	for k := range int64(9) {
		now = l.Ready(now, limit.One)
		send(60 - k)
	}
	now = l.Ready(now, limit.One)
	send(-60) // refused, and told to stay away for a minute
	now = l.Ready(now, limit.One)
	send(500)
	if n := burst(); n != 2 {
		t.Errorf("%d requests at once with the first answer after a refusal, not 2", n)
	}
	// The refusal of one that went before the plan, for whatever reason, does not quicken anything.
	l, _ = slot.New(slot.Config{Rate: 1, Burst: 4500, Start: 10 * time.Second, Rng: rand.New(rand.NewPCG(1, 2))})
	now = 0
	send(1)
	now = now.Add(2 * time.Second)
	send(-1)
	if wait := l.Ready(now, limit.One).Sub(now); wait < 9800*time.Millisecond {
		t.Errorf("refused, and sends after %v", wait)
	}
}

func TestSlotConfig(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	good := slot.Config{Rate: 1, Burst: 1, Rng: rng}
	for want, change := range map[string]func(*slot.Config){
		"Rate 0":          func(c *slot.Config) { c.Rate = 0 },
		"Rate NaN":        func(c *slot.Config) { c.Rate = math.NaN() },
		"Burst 0.5":       func(c *slot.Config) { c.Burst = 0.5 },
		"Weight -1":       func(c *slot.Config) { c.Weight = -1 },
		"Weight NaN":      func(c *slot.Config) { c.Weight = math.NaN() },
		"MaxWait -1s":     func(c *slot.Config) { c.MaxWait = -time.Second },
		"Start -1s":       func(c *slot.Config) { c.Start = -time.Second },
		"Rng is nil":      func(c *slot.Config) { c.Rng = nil },
		"Rate +Inf is no": func(c *slot.Config) { c.Rate = math.Inf(1) },
	} {
		c := good
		change(&c)
		for _, make := range []maker{newSlot, newHeaderless} {
			if _, err := make(c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q: %v", want, err)
			}
		}
	}
}

func specs() map[string]limittest.Spec {
	of := func(make maker, burst float64) limittest.Spec {
		return limittest.Spec{
			New: func() limit.Limiter {
				l, err := make(slot.Config{Rate: 1, Burst: burst, Rng: rand.New(rand.NewPCG(1, 1))})
				if err != nil {
					panic(err)
				}
				return l
			},
			Scale:      20 * time.Second,
			ClosedLoop: true,
			Burst:      400,
		}
	}
	return map[string]limittest.Spec{"Slot": of(newSlot, 4500), "Slot of a small bucket": of(newSlot, 3), "Headerless": of(newHeaderless, 4500)}
}

func TestSlotLaws(t *testing.T) {
	for name, spec := range specs() {
		t.Run(name, func(t *testing.T) { limittest.Laws(t, spec) })
	}
}

func FuzzSlotLaws(f *testing.F) { limittest.Fuzz(f, specs()["Slot"]) }

// A server that answers at random and says what it likes. Nothing it says makes a client send sooner than a sixteenth of
// the token's time after a refusal, be refused more often than it was served and tokens can have come, or wait for
// longer than MaxWait.
func FuzzSlotHostileServer(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x01\x00\x00\x02\x00\x00"))
	f.Add([]byte("\x01\x80\xff\x02\x00\x00\x01\x80\xff\x02\x00\x00\x01\x80\xff\x02\x00\x00\x01\x90\xff\x11\x91\xff"))
	for seed := range uint64(30) {
		if testing.Short() && seed > 2 {
			break
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		program := make([]byte, 1500)
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		const maxWait = 2 * time.Hour
		for name, make := range map[string]maker{"Slot": newSlot, "Headerless": newHeaderless} {
			l, err := make(slot.Config{Rate: 1, Burst: 3600, Rng: rand.New(rand.NewPCG(1, 1))})
			if err != nil {
				t.Fatal(err)
			}
			now, sentAt := mono.Time(0), mono.Time(0)
			type sent struct {
				lease  limit.Lease
				number int
			}
			var open []sent
			sends, served, refused := 0, 0, 0
			for i := 0; i+2 < len(program); i += 3 {
				op, a, b := program[i], program[i+1], program[i+2]
				at := l.Ready(now, limit.One)
				if at >= limit.AfterSettle || at.Sub(max(now, sentAt)) > maxWait {
					t.Fatalf("%s: step %d at %v: waits until %v", name, i/3, now, at)
				}
				if len(open) == 0 || op&1 == 1 && len(open) < 8 {
					now, sentAt = at, at
					sends++
					open = append(open, sent{l.Admit(now, limit.One), sends})
					continue
				}
				now = now.Add(time.Duration(a) * 5 * time.Millisecond)
				o := limit.Outcome{Result: limit.Result(op >> 1 % 5), Known: op >> 4 & 1 << limit.Requests}
				o.Remaining[limit.Requests] = int64(int8(b)) << (a % 64)
				if op>>5&1 == 1 {
					o.Remaining[limit.Requests] = int64(b) * 14
				}
				if a&1 == 1 {
					o.RetryAfter = time.Duration(b) << (a % 48)
				}
				switch o.Result {
				case limit.Accepted:
					served++
				case limit.Limited:
					refused++
				}
				k := int(b) % len(open)
				settled := open[k]
				l.Settle(now, settled.lease, o)
				open = append(open[:k], open[k+1:]...)
				// A refusal that a later send has outlived says nothing new.
				if o.Result == limit.Limited && len(open) == 0 && settled.number == sends {
					if next := l.Ready(now, limit.One); next.Sub(sentAt) < time.Second/16 {
						t.Fatalf("%s: step %d: refused, and sends %v after", name, i/3, next.Sub(sentAt))
					}
				}
				if most := served + 16*int(now.Sub(0)/time.Second) + 24; refused > most {
					t.Fatalf("%s: step %d at %v: %d refused, %d served", name, i/3, now, refused, served)
				}
			}
		}
	})
}

func TestSlotAllocates(t *testing.T) {
	for name, make := range map[string]maker{"Slot": newSlot, "Headerless": newHeaderless} {
		l, err := make(slot.Config{Rate: 1, Burst: 4500, Rng: rand.New(rand.NewPCG(1, 1))})
		if err != nil {
			t.Fatal(err)
		}
		now, k := mono.Time(0), 0
		if n := testing.AllocsPerRun(1000, func() {
			now = l.Ready(now, limit.One)
			lease := l.Admit(now, limit.One)
			now = now.Add(time.Second)
			k++
			o := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, Remaining: limit.Cost{limit.Requests: int64(20 + k%9)}}
			if k%50 == 0 {
				o.Result = limit.Limited
			}
			l.Settle(now, lease, o)
		}); n != 0 {
			t.Errorf("%s: %v allocations per request", name, n)
		}
	}
}
