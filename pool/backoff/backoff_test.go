package backoff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/pool/backoff"
)

const ms = time.Millisecond

func TestDelayWithoutJitter(t *testing.T) {
	const forever = math.MaxInt64
	for _, c := range []struct {
		name   string
		policy backoff.Policy
		want   map[int]time.Duration // by attempt
	}{
		{"zero", backoff.Policy{}, map[int]time.Duration{
			1: 100 * ms, 2: 200 * ms, 3: 400 * ms, 9: 25600 * ms, 10: 30 * time.Second, math.MaxInt: 30 * time.Second,
			0: 100 * ms, -1: 100 * ms, math.MinInt: 100 * ms}},
		{"fixed", backoff.Policy{Base: time.Second, Factor: 1}, map[int]time.Duration{1: time.Second, 2: time.Second, math.MaxInt: time.Second}},
		{"none", backoff.Policy{Base: -1}, map[int]time.Duration{1: 0, 2: 0, math.MaxInt: 0}},
		{"thirds", backoff.Policy{Base: 2, Max: 1000, Factor: 1.5}, map[int]time.Duration{1: 2, 2: 3, 3: 5, 4: 7, 5: 11}}, // 4.5, 6.75, 10.125 rounded up
		{"at the bound", backoff.Policy{Base: 3, Max: 9, Factor: 3}, map[int]time.Duration{1: 3, 2: 9, 3: 9}},
		{"exact", backoff.Policy{Base: 1, Max: forever, Factor: 3}, map[int]time.Duration{34: 5559060566555523}}, // 3^33
		{"to the end", backoff.Policy{Base: 1, Max: forever}, map[int]time.Duration{63: 1 << 62, 64: forever, 65: forever, 2000: forever}},
		{"near the end", backoff.Policy{Base: forever - 1, Max: forever}, map[int]time.Duration{1: forever - 1, 2: forever}},
		{"slow", backoff.Policy{Base: 1, Max: forever, Factor: 1 + 1e-9}, map[int]time.Duration{1e9: 3}}, // e rounded up
	} {
		if err := c.policy.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		none := c.policy
		none.Jitter = -1
		for attempt, want := range c.want {
			if got := c.policy.Delay(attempt, nil); got != want {
				t.Errorf("%s: after attempt %d: %v, want %v", c.name, attempt, got, want)
			}
			if got := none.Delay(attempt, rand.New(rand.NewPCG(1, 2))); got != want {
				t.Errorf("%s, negative jitter: after attempt %d: %v, want %v", c.name, attempt, got, want)
			}
		}
	}
}

// The delays of a jitter lie evenly between its bounds, both of which are reached.
func TestJitterIsEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		jitter   float64
		from, to int // what is drawn, with Base 10
	}{
		{0, 5, 10}, {0.5, 5, 10}, {1, 0, 10}, {0.3, 7, 10}, {0.05, 10, 10},
	} {
		p := backoff.Policy{Base: 10, Factor: 1, Jitter: c.jitter}
		const draws = 20_000
		drawn := map[int]int{}
		for range draws {
			drawn[int(p.Delay(1, rng))]++
		}
		n := c.to - c.from + 1
		if len(drawn) != n {
			t.Errorf("jitter %v: drew %v, want all of %d to %d", c.jitter, drawn, c.from, c.to)
		}
		for d := c.from; d <= c.to; d++ {
			if share := float64(drawn[d]) * float64(n) / draws; share < 0.9 || share > 1.1 {
				t.Errorf("jitter %v: drew %d %.2f times as often as it should", c.jitter, d, share)
			}
		}
	}
}

func TestSameSeedSameDelays(t *testing.T) {
	draw := func(seed uint64) (ds []time.Duration) {
		rng := rand.New(rand.NewPCG(seed, 0))
		for n := range 20 {
			ds = append(ds, backoff.Policy{}.Delay(n, rng))
		}
		return ds
	}
	if a, b := draw(1), draw(1); !slices.Equal(a, b) {
		t.Errorf("%v, then %v", a, b)
	}
	if a, b := draw(1), draw(2); slices.Equal(a, b) {
		t.Errorf("seeds 1 and 2 both draw %v", a)
	}
}

func TestCheckNamesTheField(t *testing.T) {
	for _, c := range []struct {
		policy backoff.Policy
		want   string
	}{
		{backoff.Policy{Max: -time.Second}, "Max -1s"},
		{backoff.Policy{Base: time.Minute}, "Base 1m0s is above Max 30s"},
		{backoff.Policy{Max: ms}, "Base 100ms is above Max 1ms"},
		{backoff.Policy{Factor: 0.5}, "Factor 0.5"},
		{backoff.Policy{Factor: -2}, "Factor -2"},
		{backoff.Policy{Factor: math.NaN()}, "Factor NaN"},
		{backoff.Policy{Factor: math.Inf(1)}, "Factor +Inf"},
		{backoff.Policy{Jitter: 1.5}, "Jitter 1.5"},
		{backoff.Policy{Jitter: math.NaN()}, "Jitter NaN"},
	} {
		if err := c.policy.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.policy, err, c.want)
		}
	}
	// Full jitter, growth by nothing, no delay at all, and the same delay each time make sense.
	for _, p := range []backoff.Policy{{}, {Jitter: 1}, {Jitter: -1}, {Factor: 1}, {Base: -1}, {Base: time.Second, Max: time.Second}} {
		if err := p.Check(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// For any policy and attempt, 0 <= delay <= d <= Max. For a policy that passes Check, delay is at
// least what the jitter leaves. Except for rounding, d does not shrink from one attempt to the
// next.
func FuzzDelay(f *testing.F) {
	f.Add(int64(0), int64(0), 0.0, 0.0, 1, uint64(1))
	f.Add(int64(1), int64(math.MaxInt64), 2.0, 1.0, 64, uint64(2))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), 1.5, 0.999999, math.MaxInt, uint64(3))
	f.Add(int64(math.MinInt64), int64(math.MinInt64), math.NaN(), math.NaN(), math.MinInt, uint64(4))
	f.Add(int64(5), int64(7), -2.0, 7.0, 3, uint64(5))
	f.Add(int64(1)<<62, int64(math.MaxInt64), 1.9999999, 1e-300, 2, uint64(6))
	f.Fuzz(func(t *testing.T, base, most int64, factor, jitter float64, attempt int, seed uint64) {
		p := backoff.Policy{Base: time.Duration(base), Max: time.Duration(most), Factor: factor, Jitter: jitter}
		limit := p.Max
		if limit == 0 {
			limit = 30 * time.Second
		}
		limit = max(limit, 0)
		d := p.Delay(attempt, nil)
		got := p.Delay(attempt, rand.New(rand.NewPCG(seed, 0)))
		if got < 0 || got > d || d > limit {
			t.Fatalf("%+v after attempt %d: 0 <= %d <= %d <= %d does not hold", p, attempt, got, d, limit)
		}
		if p.Check() != nil {
			return
		}
		if jitter == 0 {
			jitter = 0.5
		}
		if least := float64(d) * (1 - max(jitter, 0)); float64(got) < least*(1-1e-12)-1 {
			t.Fatalf("%+v after attempt %d: %d of %d, want at least %v", p, attempt, got, d, least)
		}
		if attempt < math.MaxInt {
			// The error of a power grows with its exponent.
			if next := p.Delay(attempt+1, nil); float64(next) < float64(d)*(1-float64(max(attempt, 0))*1e-15)-1 {
				t.Fatalf("%+v: %d after attempt %d, and %d after the next", p, d, attempt, next)
			}
		}
	})
}

func TestDelayDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := 0
	if got := testing.AllocsPerRun(1000, func() { n++; backoff.Policy{}.Delay(n, rng) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkDelay(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := 0
	for b.Loop() {
		n++
		backoff.Policy{}.Delay(n&7, rng)
	}
}

func ExamplePolicy_Delay() {
	p := backoff.Policy{Base: 250 * time.Millisecond, Max: 2 * time.Second}
	for attempt := 1; attempt <= 5; attempt++ {
		fmt.Println(attempt, p.Delay(attempt, nil))
	}
	// Output:
	// 1 250ms
	// 2 500ms
	// 3 1s
	// 4 2s
	// 5 2s
}

// A policy that is cut short is one that Check takes, with no delay above the cut.
func TestAtMost(t *testing.T) {
	for _, most := range []time.Duration{time.Nanosecond, 50 * time.Millisecond, 3 * time.Second, time.Hour} {
		for _, p := range []backoff.Policy{{}, {Base: 10 * time.Second, Max: time.Minute}, {Base: time.Second, Factor: 3, Jitter: -1}} {
			cut := p.AtMost(most)
			if err := cut.Check(); err != nil {
				t.Errorf("%+v at most %v: %v", p, most, err)
			}
			for attempt := range 70 {
				got, want := cut.Delay(attempt, nil), min(p.Delay(attempt, nil), most)
				if got != want {
					t.Errorf("%+v at most %v, attempt %d: %v, want %v", p, most, attempt, got, want)
				}
			}
		}
	}
}
