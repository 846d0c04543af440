package limit_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// A limit comes, goes and is replaced while requests are in flight.
func TestVaryingTimeline(t *testing.T) {
	minute := limit.MustRolling(5, time.Minute)
	v := limit.NewVarying(limit.Named("5/m", minute))
	l := timeline{t, v, map[string]*limit.Sent{}}
	l.send(0, 1, "a")
	l.send(0, 1, "b")
	l.answered(1*time.Second, "a", limit.Accepted)

	second := limit.MustRolling(1, time.Second)
	v.Change(at(1500*ms), limit.Named("five", minute), limit.Named("1/s", second))
	if bound := func() string { _, b := limit.Explain(v, at(1500*ms), limit.Cost{4}); return b.Name }(); bound != "1/s" && bound != "five" {
		t.Errorf("bound by %q", bound)
	}
	l.ready(1500*ms, 1, limit.AfterSettle) // b is in flight, and counts in the new one
	l.answered(1600*ms, "b", limit.Accepted)
	l.ready(1700*ms, 1, at(1600*ms+time.Second+1200*time.Microsecond))
	l.send(3*time.Second, 1, "c")

	// The first limit goes, and the new one stays.
	v.Change(at(3*time.Second), second)
	l.answered(3100*ms, "c", limit.Accepted)
	for i := range 10 {
		now := time.Duration(5+2*i) * time.Second
		l.send(now, 1, "d")
		l.answered(now+10*ms, "d", limit.Accepted)
	}
	// No limit holds. Later all requests in flight count again.
	v.Change(at(30 * time.Second))
	for i := range 7 {
		l.send(30*time.Second, 1, string(rune('h'+i)))
	}
	if err := second.SetLimit(at(31*time.Second), 8); err != nil {
		t.Fatal(err)
	}
	again := limit.MustRolling(8, time.Second)
	v.Change(at(31*time.Second), again)
	l.ready(31*time.Second, 2, limit.AfterSettle)
	l.send(31*time.Second, 1, "p")
	for i := range 7 {
		l.answered(32*time.Second, string(rune('h'+i)), limit.Accepted)
	}
	l.answered(32*time.Second, "p", limit.Accepted)
	if n := limit.Unsettled(v); n != 0 {
		t.Errorf("%d are open", n)
	}
}

func TestVaryingPanics(t *testing.T) {
	l := limit.MustRolling(1, time.Second)
	v := limit.NewVarying(l)
	for name, f := range map[string]func(){
		"nil":             func() { v.Change(0, nil) },
		"twice":           func() { v.Change(0, l, l) },
		"under two names": func() { v.Change(0, limit.Named("a", l), limit.Named("b", l)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// Limits come and go at random. No window of a limit holds more than it allows. That counts the
// requests admitted or in flight while it held.
func FuzzVarying(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		random := rand.New(rand.NewPCG(a, b))
		type request struct {
			lease             *limit.Sent
			sent, ends, there mono.Time
		}
		type part struct {
			n, before int64 // before: in flight at its beginning
			window    time.Duration
			limiter   *limit.Rolling
			since     mono.Time
			arrivals  []mono.Time
		}
		makePart := func(now mono.Time) *part {
			p := &part{n: 1 + random.Int64N(5), window: time.Duration(1+random.IntN(2000)) * time.Millisecond, since: now}
			p.limiter = limit.MustRolling(p.n, p.window)
			return p
		}
		held := []*part{makePart(0)}
		ever := slices.Clone(held)
		v := limit.NewVarying(held[0].limiter)
		watched := limit.NewFitted(v)
		var open []request
		now := mono.Time(0)
		for range 300 {
			now = now.Add(time.Duration(random.IntN(150)) * time.Millisecond)
			open = slices.DeleteFunc(open, func(r request) bool {
				if r.ends > now {
					return false
				}
				watched.Settle(now, r.lease, &limit.Outcome{Result: limit.Accepted})
				return true
			})
			if random.IntN(10) == 0 {
				if len(held) > 0 && random.IntN(2) == 0 {
					held = slices.Delete(held, 0, 1)
				} else {
					p := makePart(now)
					p.before = int64(len(open))
					for _, r := range open { // the request may still arrive
						p.arrivals = append(p.arrivals, max(r.there, now))
					}
					held, ever = append(held, p), append(ever, p)
				}
				random.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
				var all []limit.Limiter
				for _, p := range held {
					all = append(all, limit.Named("x", p.limiter))
				}
				v.Change(now, all...)
				watched.Follow(now)
				if rates, ok := limit.Rates(watched); !ok || len(rates) != len(held) {
					t.Fatalf("%d rates of %d", len(rates), len(held))
				}
			}
			for watched.Ready(now, limit.One) <= now && len(open) < 20 {
				r := request{lease: limittest.Admit(watched, now, limit.One), sent: now}
				r.there = now.Add(time.Duration(random.IntN(300)) * time.Millisecond)
				r.ends = r.there.Add(time.Duration(random.IntN(300)) * time.Millisecond)
				open = append(open, r)
				for _, p := range held {
					p.arrivals = append(p.arrivals, r.there)
				}
			}
		}
		for _, p := range ever {
			slices.Sort(p.arrivals)
			for i := range p.arrivals {
				n := int64(0)
				for _, a := range p.arrivals[i:] {
					if a.Sub(p.arrivals[i]) < p.window {
						n++
					}
				}
				// Requests in flight at its beginning may exceed the limit. Then nothing else goes
				// beside them.
				if n > max(p.n, p.before) {
					t.Fatalf("%d in %v of a limit of %d since %v, from %v on", n, p.window, p.n, p.since, p.arrivals[i])
				}
			}
		}
	})
}
