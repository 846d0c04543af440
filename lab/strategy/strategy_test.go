package strategy_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// hourly is the quota of the published demos: 4500 requests per hour.
var hourly = strategy.Params{Rate: 4500. / 3600, Burst: 4500}

const (
	ms = time.Millisecond
	s  = time.Second
)

func at(d time.Duration) mono.Time { return mono.Time(d) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func process(t testing.TB, name string, p strategy.Params) strategy.Process {
	t.Helper()
	st, err := strategy.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	proc, err := st.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return proc
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// near allows for sums in floating point and for rounding up to a nanosecond.
func near(got, want time.Duration) bool { return (got - want).Abs() <= 10 }

func limited() strategy.Answer { return strategy.Answer{Limited: true, Known: true} }

func served(remaining float64) strategy.Answer {
	return strategy.Answer{Known: true, Remaining: remaining}
}

func TestStrategies(t *testing.T) {
	seen, peer := map[string]bool{}, false
	for _, st := range strategy.All() {
		if st.Name != strings.ToLower(st.Name) || strings.ContainsAny(st.Name, " _") || st.Text == "" || seen[st.Name] {
			t.Errorf("name %q (%q) is not unique lower case with hyphens and a text", st.Name, st.Text)
		}
		seen[st.Name] = true
		if (st.New == nil) == (st.NewLimiter == nil) {
			t.Errorf("%s makes not exactly one of processes and limiters", st.Name)
		}
		if st.GivesUp != (st.Name == "null") {
			t.Errorf("%s gives up: %v", st.Name, st.GivesUp)
		}
		if st.Baseline && peer {
			t.Errorf("%s, a baseline, comes after one that is not", st.Name)
		}
		peer = peer || !st.Baseline
	}
	for _, name := range []string{"null", "retry-only", "fixed-backoff", "exponential-backoff",
		"exponential-increase-gradual-decrease", "exponential-increase-proportional-decrease",
		"exponential-increase-proportional-remaining-decrease", "demo", "demo-remaining-sleep-count", "aimd", "cubic"} {
		if !seen[name] {
			t.Errorf("no strategy %s", name)
		}
	}
	strategy.All()[0].Name = "overwritten"
	if _, err := strategy.Named("null"); err != nil {
		t.Errorf("who writes to the list changes it: %v", err)
	}
	if _, err := strategy.Named("slow"); err == nil || !strings.Contains(err.Error(), `"slow" is none of null, retry-only,`) {
		t.Errorf("Named of an unknown strategy: %v", err)
	}
}

// Fair is a limiter, and nothing of a quota that is none.
func TestOurs(t *testing.T) {
	rng := source(1)
	s, err := strategy.Named("fair")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewLimiter(strategy.Params{Rate: 1, Burst: 100}, rng); err != nil {
		t.Error(err)
	}
	if l, err := s.NewLimiter(strategy.Params{Rate: -1, Burst: 100}, rng); err == nil || l != nil {
		t.Errorf("it made %v of a negative rate", l)
	}
}

func TestNoThrottle(t *testing.T) {
	for _, name := range []string{"null", "retry-only"} {
		th := process(t, name, hourly).Thread(nil)
		for i := range 3 {
			now := at(time.Duration(i) * s)
			if got := th.Send(now); got != now || th.Sleep() != 0 {
				t.Errorf("%s sends at %v and sleeps %v, asked at %v", name, got, th.Sleep(), now)
			}
			th.Answer(now, limited())
		}
	}
}

// Every strategy refuses a quota that is none, and its own constants, by name and value.
func TestBadParams(t *testing.T) {
	const year = 365 * 24 * time.Hour
	sleepers := []string{"fixed-backoff", "exponential-backoff", "exponential-increase-gradual-decrease",
		"exponential-increase-proportional-decrease", "exponential-increase-proportional-remaining-decrease", "demo", "demo-second"}
	gem, limiters := sleepers[:5], []string{"aimd", "cubic"}
	all := append([]string{"null", "retry-only"}, append(sleepers, limiters...)...)
	for _, c := range []struct {
		names []string
		spoil func(*strategy.Params)
		want  string
	}{
		{all, func(p *strategy.Params) { p.Rate = 0 }, "Rate 0 "},
		{all, func(p *strategy.Params) { p.Rate = math.NaN() }, "Rate NaN "},
		{all, func(p *strategy.Params) { p.Rate = math.Inf(1) }, "Rate +Inf "},
		{all, func(p *strategy.Params) { p.Burst = 0.5 }, "Burst 0.5 "},
		{all, func(p *strategy.Params) { p.Burst = math.Inf(1) }, "Burst +Inf "},
		{sleepers, func(p *strategy.Params) { p.MinSleep = -ms }, "MinSleep -1ms "},
		{sleepers, func(p *strategy.Params) { p.MinSleep = year + 1 }, "MinSleep 8760h0m0.000000001s "},
		{append(sleepers, limiters...), func(p *strategy.Params) { p.Start = -s }, "Start -1s "},
		{append(sleepers, limiters...), func(p *strategy.Params) { p.Start = 2 * year }, "Start 17520h0m0s "},
		{sleepers, func(p *strategy.Params) { p.Multiplier = 0.9 }, "Multiplier 0.9 "},
		{sleepers, func(p *strategy.Params) { p.Multiplier = math.NaN() }, "Multiplier NaN "},
		{sleepers, func(p *strategy.Params) { p.Multiplier = math.Inf(1) }, "Multiplier +Inf "},
		{sleepers, func(p *strategy.Params) { p.Divisor = 1e-300 }, "Divisor 1e-300 "},
		{sleepers, func(p *strategy.Params) { p.Divisor = math.NaN() }, "Divisor NaN "},
		{append(sleepers, "aimd"), func(p *strategy.Params) { p.Jitter = 1.5 }, "Jitter 1.5 "},
		{append(sleepers, "aimd"), func(p *strategy.Params) { p.Jitter = math.NaN() }, "Jitter NaN "},
		{gem, func(p *strategy.Params) { p.Sharing = 3 }, "Sharing 3 "},
		{limiters, func(p *strategy.Params) { p.Decrease = 1 }, "Decrease 1 "},
		{limiters, func(p *strategy.Params) { p.Decrease = -0.5 }, "Decrease -0.5 "},
		{limiters, func(p *strategy.Params) { p.Decrease = math.NaN() }, "Decrease NaN "},
		{limiters, func(p *strategy.Params) { p.MinRate = -1 }, "MinRate -1 "},
		{limiters, func(p *strategy.Params) { p.MinRate = 2e9 }, "MinRate 2e+09 "},
		{limiters[:1], func(p *strategy.Params) { p.Increase = -1 }, "Increase -1 "},
		{limiters[:1], func(p *strategy.Params) { p.Increase = math.Inf(1) }, "Increase +Inf "},
		{limiters[1:], func(p *strategy.Params) { p.Scale = -0.4 }, "Scale -0.4 "},
		{limiters[1:], func(p *strategy.Params) { p.Scale = math.NaN() }, "Scale NaN "},
		{limiters[1:], func(p *strategy.Params) { p.Smooth = 1.1 }, "Smooth 1.1 "},
	} {
		for _, name := range c.names {
			p := hourly
			c.spoil(&p)
			st := must(strategy.Named(name))
			var err error
			none := true
			if st.New != nil {
				var got strategy.Process
				got, err = st.New(p)
				none = got == nil
			} else {
				var got limit.Limiter
				got, err = st.NewLimiter(p, source(1))
				none = got == nil
			}
			if err == nil || !none || !strings.Contains(err.Error(), "fairshare: "+name+": "+c.want) {
				t.Errorf("%s with a bad %s: %v, nothing made: %v", name, c.want, err, none)
			}
		}
	}
	if _, err := strategy.NewAIMD(hourly, nil); err == nil {
		t.Error("aimd takes a nil rng though it has jitter")
	}
}

// No answers, however odd, make a sleep that is negative, no number or without end.
func FuzzSleep(f *testing.F) {
	f.Add(uint8(0), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add(uint8(1), []byte(strings.Repeat("\x10", 1500))) // limited without end
	f.Add(uint8(2), []byte(strings.Repeat("\x01\x12\x03\x14\x05\x16\x07", 50)))
	f.Add(uint8(3), []byte(strings.Repeat("\x04\x44\x84\xc4\x10", 50)))
	f.Add(uint8(4), []byte(strings.Repeat("\x10\x10\x01\x05", 50)))
	f.Add(uint8(8), []byte(strings.Repeat("\x10\x05\x10\x10\x25", 50)))
	f.Fuzz(func(t *testing.T, params uint8, answers []byte) {
		p := hourly
		p.Sharing = strategy.Sharing(params % 3)
		if params&4 != 0 {
			p = strategy.Params{Rate: 1e-300, Burst: 1, Multiplier: 1e6, Sharing: p.Sharing, Jitter: 1}
		}
		if params&8 != 0 {
			p = strategy.Params{Rate: 1e9, Burst: 1e12, Divisor: 1e-6, Sharing: p.Sharing, Start: 1}
		}
		for _, st := range strategy.All() {
			if st.New == nil {
				continue
			}
			rng := source(uint64(params))
			proc := must(st.New(p))
			threads := []strategy.Thread{proc.Thread(rng), proc.Thread(rng), proc.Thread(rng)}
			for i, b := range answers[:min(len(answers), 2000)] {
				th, now := threads[int(b>>6)%3], at(time.Duration(i)*ms)
				if b&0x20 != 0 {
					now = at(-time.Duration(b) * time.Hour) // a clock that went back
				}
				const most = 2 * 365 * 24 * time.Hour
				if d := th.Send(now).Sub(now); d < 0 || d > most {
					t.Fatalf("%s: step %d sleeps %v", st.Name, i, d)
				}
				a := strategy.Answer{Limited: b&0x10 != 0, Known: b&0x0f > 0, Sent: now}
				a.Remaining = []float64{0, 0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e308, 4500, 4501, 9000, 0.5, 17, 1e-300, 450, 3}[b&0x0f]
				th.Answer(now, a)
				if d := th.Sleep(); d < 0 || d > most {
					t.Fatalf("%s: step %d shows a sleep of %v", st.Name, i, d)
				}
			}
		}
	})
}

// The same for limiters: whatever the answers, the next request is neither due before now nor put off for ever.
func FuzzPlan(f *testing.F) {
	f.Add(uint8(0), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add(uint8(1), []byte(strings.Repeat("\x02", 1500)))               // limited without end
	f.Add(uint8(2), []byte(strings.Repeat("\x01\xf1\x81\x02\x41", 60))) // served after waits
	f.Fuzz(func(t *testing.T, params uint8, answers []byte) {
		p := hourly
		if params&1 != 0 {
			p = strategy.Params{Rate: 1e-300, Burst: 1, Scale: 1e9, Jitter: 1, MinRate: 1e-7}
		}
		if params&2 != 0 {
			p = strategy.Params{Rate: 1e9, Burst: 1e12, Increase: 1e9, Start: 1, Scale: 1e-9}
		}
		for _, name := range []string{"aimd", "cubic"} {
			l := must(must(strategy.Named(name)).NewLimiter(p, source(uint64(params))))
			now := mono.Time(0)
			for i, b := range answers[:min(len(answers), 2000)] {
				const most = 2 * 365 * 24 * time.Hour
				r := l.Ready(now, limit.One)
				if d := r.Sub(now); d < 0 || d > most {
					t.Fatalf("%s: step %d is ready %v from now", name, i, d)
				}
				if d := l.(strategy.Sleeper).Sleep(); d < 0 || d > most {
					t.Fatalf("%s: step %d shows a sleep of %v", name, i, d)
				}
				if rate := l.(interface{ Rate() float64 }).Rate(); !(rate > 0 && rate <= 1e9) {
					t.Fatalf("%s: step %d has a rate of %v", name, i, rate)
				}
				if now = r; now > at(100*365*24*time.Hour) {
					break
				}
				lease := limittest.Admit(l, now, limit.One)
				now = now.Add(time.Duration(b>>4) << (2 * (b >> 3 & 15))) // to 16 s
				l.Settle(now, lease, &limit.Outcome{Result: limit.Result(b & 7)})
			}
		}
	})
}

func TestNothingIsAllocated(t *testing.T) {
	for _, st := range strategy.All() {
		if !st.Baseline {
			continue // has a test of its own
		}
		now := mono.Time(0)
		var n float64
		if st.New != nil {
			th := must(st.New(hourly)).Thread(source(1))
			n = testing.AllocsPerRun(100, func() {
				now = th.Send(now)
				th.Answer(now, limited())
				now = th.Send(now)
				th.Answer(now, served(17))
			})
		} else {
			l := must(st.NewLimiter(hourly, source(1)))
			sent, served := limit.Sent{Cost: limit.One}, limit.Outcome{Result: limit.Accepted}
			n = testing.AllocsPerRun(100, func() {
				now = l.Ready(now, limit.One)
				limittest.Again(l, now, &sent)
				l.Settle(now, &sent, &served)
			})
		}
		if n != 0 {
			t.Errorf("%s allocates %v times per request", st.Name, n)
		}
	}
}
