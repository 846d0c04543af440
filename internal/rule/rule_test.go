package rule_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// must is for configurations without errors.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// knock is one request of a timeline: instant, cost, and whether it passes.
type knock struct {
	at   mono.Time
	cost int64
	want bool
}

func TestServerTimelines(t *testing.T) {
	const s, tick = 1000 * ms, ms
	const ok, no = true, false
	rolling := func(c rule.RollingConfig) rule.Rule { return must(rule.NewRolling(c)) }
	calendar := func(c rule.CalendarConfig) rule.Rule { return must(rule.NewCalendar(c)) }
	anchored := func(c rule.AnchoredConfig) rule.Rule { return must(rule.NewAnchored(c)) }
	bucket := func(c rule.BucketConfig) rule.Rule { return must(rule.NewBucket(c)) }
	gcra := func(c rule.GCRAConfig) rule.Rule { return must(rule.NewGCRA(c)) }
	weighted := func(c rule.WeightedConfig) rule.Rule { return must(rule.NewWeighted(c)) }
	type steps []knock
	for _, c := range []struct {
		name  string
		rule  rule.Rule
		steps steps
	}{
		{"rolling: the window is closed, in whole ticks", rolling(rule.RollingConfig{Limit: 2, Window: time.Second}), steps{
			{999_999, 1, ok}, // in millisecond 0
			{500 * ms, 1, ok}, {500 * ms, 1, no},
			{s, 1, no}, {s + tick - 1, 1, no}, // exactly W later
			{s + tick, 1, ok}, // W and a tick later
			{1500*ms + 999_999, 1, no}, {1501 * ms, 1, ok},
		}},
		{"rolling: costs, and a cost above the limit", rolling(rule.RollingConfig{Limit: 10, Window: time.Second, Tick: -1}), steps{
			{0, 11, no}, {0, 0, ok}, {0, 7, ok}, {1, 4, no}, {1, 3, ok}, {2, 1, no}, {2, 0, ok},
			{s, 1, no}, {s + 1, 8, no}, {s + 1, 7, ok}, {s + 2, 4, no}, {s + 2, 3, ok}, {math.MaxInt64, 10, ok},
		}},
		{"rolling: what is refused may count", rolling(rule.RollingConfig{Limit: 2, Window: time.Second, Tick: -1, RefusedCount: true}), steps{
			{0, 1, ok}, {1, 1, ok}, {2, 1, no}, {3, 1, no},
			{s + 2, 1, no}, // 2 (no longer needed) and 3 are in the window
			{s + 3, 1, no}, {2*s + 2, 1, no}, {3*s + 2, 1, ok}, {4*s + 3, 2, ok}, {4*s + 4, 9, no}, {5*s + 4, 1, no}, {6*s + 5, 1, ok},
		}},
		{"rolling: an earlier now is the last one", rolling(rule.RollingConfig{Limit: 1, Window: time.Second, Tick: -1}), steps{
			{5, 1, ok}, {0, 1, no}, {s + 5, 1, no}, {s + 6, 1, ok}, {0, 1, no}, {mono.Min, 1, no}, {2*s + 6, 1, no}, {2*s + 7, 1, ok},
		}},
		{"calendar: at the edges", calendar(rule.CalendarConfig{Limit: 2, Window: time.Second, Phase: 7300 * ms}), steps{
			{299 * ms, 1, ok}, {300*ms - 1, 1, ok}, {300*ms - 1, 1, no},
			{300 * ms, 2, ok}, {1300*ms - 1, 1, no}, {1300 * ms, 3, no}, {1300 * ms, 1, ok}, {9 * s, 2, ok}, {9 * s, 1, no},
		}},
		{"calendar: before the epoch, refused count", calendar(rule.CalendarConfig{Limit: 2, Window: time.Second, Tick: -1, RefusedCount: true}), steps{
			{-s - 1, 1, ok}, {-s, 1, ok}, {-s, 2, no}, {-1, 1, no}, {0, 1, ok}, {0, 1, ok}, {0, 1, no},
		}},
		{"calendar: a clock set back goes on with the counter of the interval before", calendar(rule.CalendarConfig{Limit: 2, Window: time.Second}), steps{
			{0, 1, ok}, {s, 2, ok}, {0, 2, no}, {0, 1, ok}, {0, 1, no}, {s, 1, no}, {2 * s, 1, ok}, {s, 1, no},
			{0, 2, ok}, // forgotten
			{s, 1, no}, {2 * s, 2, ok},
		}},
		{"anchored: half-open", anchored(rule.AnchoredConfig{Limit: 2, Window: time.Second}), steps{
			{250 * ms, 3, no}, // begins nothing
			{300 * ms, 1, ok}, {1299 * ms, 1, ok}, {1300*ms - 1, 1, no},
			{1300 * ms, 1, ok}, {1300 * ms, 1, ok}, {2299 * ms, 1, no}, {2350 * ms, 2, ok}, {3349 * ms, 1, no}, {3350 * ms, 1, ok},
		}},
		{"anchored: closed", anchored(rule.AnchoredConfig{Limit: 1, Window: time.Second, Closed: true}), steps{
			{0, 1, ok}, {s + tick - 1, 1, no}, {s + tick, 1, ok}, {2*s + tick, 1, no}, {2*s + 2*tick, 1, ok},
		}},
		{"bucket: burst, then a token at a time", bucket(rule.BucketConfig{Limit: 3, Window: 10 * time.Nanosecond, Capacity: 4, Tick: -1}), steps{
			{0, 5, no}, {0, 4, ok}, {0, 1, no},
			{3, 1, no}, {4, 1, ok}, // 4/3 at 3.33 ns each
			{6, 1, no}, {7, 1, ok}, {9, 1, no}, {10, 1, ok}, {13, 1, no}, {14, 1, ok}, // nothing was rounded away
			{26, 4, no}, {27, 4, ok}, // 4 × 10/3 = 13.3 after the 0 at 13.3
			{99, 5, no}, {99, 4, ok}, {99, 1, no},
		}},
		{"bucket: what is missing at the start", bucket(rule.BucketConfig{Limit: 10, Window: time.Second, Missing: 10, Start: 2 * s}), steps{
			{s, 1, no}, {2 * s, 1, no}, {2099 * ms, 1, no}, {2100 * ms, 1, ok}, {2100 * ms, 1, no}, {3*s + 100*ms, 10, ok},
		}},
		{"GCRA: burst, then a cell at a time", gcra(rule.GCRAConfig{Limit: 3, Window: 10 * time.Nanosecond, Burst: 4, Tick: -1}), steps{
			{0, 5, no}, {0, 4, ok}, {0, 1, no},
			{3, 1, no}, {4, 1, ok}, {6, 1, no}, {7, 1, ok}, {9, 1, no}, {10, 1, ok}, {13, 1, no}, {14, 1, ok},
			{26, 4, no}, {27, 4, ok}, {99, 5, no}, {99, 4, ok}, {99, 1, no},
		}},
		{"GCRA: no tolerance", gcra(rule.GCRAConfig{Limit: 10, Window: time.Second, Burst: 1}), steps{
			{0, 1, ok}, {99 * ms, 1, no}, {100 * ms, 1, ok}, {199 * ms, 1, no}, {250 * ms, 1, ok}, {349 * ms, 1, no}, {350 * ms, 1, ok},
		}},
		{"weighted: 42 in the minute before, 18 in the first quarter of this one: 49.5", weighted(rule.WeightedConfig{Limit: 50, Window: time.Minute}), steps{
			{30 * s, 42, ok}, {65 * s, 12, no}, {65 * s, 11, ok}, // 42 × 55/60 = 38.5
			{75 * s, 8, no}, {75 * s, 7, ok}, {75 * s, 1, no}, // 31.5 + 18
			{76 * s, 1, ok}, // 42 × 44/60 = 30.8
			{120 * s, 32, no}, {120 * s, 31, ok},
			{240 * s, 50, ok}, {240 * s, 1, no},
		}},
		{"weighted: aligned to a phase", weighted(rule.WeightedConfig{Limit: 4, Window: time.Second, Phase: -700 * ms}), steps{
			{299 * ms, 4, ok}, {300 * ms, 1, no}, {549 * ms, 1, no}, {550 * ms, 1, ok}, {799 * ms, 1, no}, {800 * ms, 1, ok}, {1300 * ms, 3, no}, {1300 * ms, 2, ok},
		}},
		{"weighted: rounded down", weighted(rule.WeightedConfig{Limit: 4, Window: time.Second, RoundsDown: true}), steps{
			{0, 4, ok}, {0, 1, no}, {s, 1, no}, {s + ms, 1, ok}, // 4.996
			{s + 250*ms, 1, no}, {s + 251*ms, 1, ok},
		}},
		{"weighted: refused count", weighted(rule.WeightedConfig{Limit: 4, Window: time.Second, RefusedCount: true}), steps{
			{0, 4, ok}, {0, 4, no}, {s + 499*ms, 1, no}, {s + 749*ms, 1, no}, {s + 999*ms, 1, ok},
		}},
		{"weighted: the rotation begins with the first and, after two idle intervals, anew", weighted(rule.WeightedConfig{Limit: 4, Window: time.Second, Rotating: true}), steps{
			{300 * ms, 4, ok}, {1299 * ms, 1, no}, {1300 * ms, 1, no}, {1549 * ms, 1, no}, {1550 * ms, 1, ok},
			{2300 * ms, 4, no}, {2300 * ms, 3, ok}, {2301 * ms, 1, no}, // the 1 from 1550 counts 0.999
			{4299 * ms, 4, no}, // 3 × 0.001
			{4299 * ms, 3, ok}, {4300 * ms, 1, ok},
			{6299 * ms, 3, ok}, {8299 * ms, 4, ok}, // 2999 ms after the interval of 6299 began: the rotation is from 8299 on
			{9298 * ms, 1, no}, {9299 * ms, 1, no}, {9549 * ms, 1, ok},
		}},
		{"all: counted only where all accept", rule.All(
			rolling(rule.RollingConfig{Limit: 3, Window: time.Second}),
			bucket(rule.BucketConfig{Limit: 10, Window: time.Second, Capacity: 2})), steps{
			{0, 2, ok}, {0, 1, no}, {99 * ms, 1, no}, {100 * ms, 1, ok},
			{500 * ms, 1, no}, // by the window; the bucket keeps its 2
			{s + tick, 3, no}, {s + tick, 2, ok}, {s + tick, 1, no}, {s + 101*ms, 1, ok},
		}},
		{"all: what one refuses counts in the other if refused count", rule.All(
			rolling(rule.RollingConfig{Limit: 2, Window: time.Second, RefusedCount: true}),
			anchored(rule.AnchoredConfig{Limit: 1, Window: 10 * time.Millisecond})), steps{
			{0, 1, ok}, {1 * ms, 1, no}, {20 * ms, 1, no}, {s + 1*ms, 1, no}, {s + 21*ms, 1, ok},
		}},
		{"all: each hears of the time, whichever refuses", rule.All(
			rolling(rule.RollingConfig{Limit: 4, Window: time.Second}),
			bucket(rule.BucketConfig{Limit: 4, Window: 4 * time.Second})), steps{
			{0, 4, ok}, {s + tick, 5, no}, {0, 2, no}, {0, 1, ok}, // 0 is 1.001 s to both
		}},
		{"all of none", rule.All(), steps{{0, 1 << 60, ok}}},
	} {
		for i, k := range c.steps {
			if got := c.rule.Arrive(k.at, k.cost); got != k.want {
				t.Errorf("%s: step %d, %v cost %d: %v, want %v", c.name, i, k.at, k.cost, got, k.want)
			}
		}
	}
}

func TestNegativeCostPanics(t *testing.T) {
	for name, s := range servers(t) {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "negative cost -1") {
					t.Errorf("%s: %v", name, r)
				}
			}()
			s.Arrive(0, -1)
		}()
	}
}

func TestConfigErrors(t *testing.T) {
	const s = time.Second
	rolling := func(c rule.RollingConfig) error { _, err := rule.NewRolling(c); return same(t, err, c.Witness) }
	calendar := func(c rule.CalendarConfig) error { _, err := rule.NewCalendar(c); return same(t, err, c.Witness) }
	anchored := func(c rule.AnchoredConfig) error { _, err := rule.NewAnchored(c); return same(t, err, c.Witness) }
	bucket := func(c rule.BucketConfig) error { _, err := rule.NewBucket(c); return same(t, err, c.Witness) }
	gcra := func(c rule.GCRAConfig) error { _, err := rule.NewGCRA(c); return same(t, err, c.Witness) }
	weighted := func(c rule.WeightedConfig) error { _, err := rule.NewWeighted(c); return same(t, err, c.Witness) }
	clocked := func(c rule.Clock) error { _, err := rule.NewClocked(rule.All(), c); return err }
	densest := func(window, tick time.Duration) error { _, err := rule.NewDensest(window, tick); return err }
	for _, c := range []struct {
		err  error
		want string // all lines, by ; or none
	}{
		{rolling(rule.RollingConfig{}), "rule: Limit 0 is not from 1 to 281474976710656;rule: Window 0s is not from 1ns to 160127h59m12.303423488s"},
		{rolling(rule.RollingConfig{Limit: -1, Window: -s}), "Limit -1 ;Window -1s "},
		{rolling(rule.RollingConfig{Limit: math.MaxInt64, Window: math.MaxInt64, Tick: math.MaxInt64}), "Limit 9223372036854775807 ;Window 2562047h;Tick 2562047h"},
		{rolling(rule.RollingConfig{Limit: 1, Window: s, Tick: -1}), ""},
		{calendar(rule.CalendarConfig{Limit: 0, Window: s}), "Limit 0 "},
		{calendar(rule.CalendarConfig{Limit: 1, Window: s, Phase: mono.Min}), ""},
		{anchored(rule.AnchoredConfig{Limit: 1}), "Window 0s "},
		{bucket(rule.BucketConfig{}), "Limit 0 ;Window 0s ;Capacity 0 "},
		{bucket(rule.BucketConfig{Limit: 5, Window: s, Capacity: -3, Missing: -1}), "Capacity -3 ;Missing -1 is not from 0 to the capacity of -3"},
		{bucket(rule.BucketConfig{Limit: 5, Window: s, Missing: 6}), "Missing 6 is not from 0 to the capacity of 5"},
		{bucket(rule.BucketConfig{Limit: 5, Window: s, Missing: 5}), ""},
		{gcra(rule.GCRAConfig{Limit: 5, Window: s, Burst: -1}), "Burst -1 "},
		{gcra(rule.GCRAConfig{Limit: 1, Window: 24 * time.Hour, Burst: 6672}), "Burst 6672 of 1 per 24h0m0s are more than those of 160127h"},
		{gcra(rule.GCRAConfig{Limit: 1, Window: 24 * time.Hour, Burst: 1 << 48}), "Burst 281474976710656 "},
		{gcra(rule.GCRAConfig{Limit: 1, Window: 24 * time.Hour, Burst: 6671}), ""},
		{weighted(rule.WeightedConfig{Limit: 1, Window: s, Phase: 5, Rotating: true}), "Phase 5ns of a Rotating"},
		{weighted(rule.WeightedConfig{Limit: 1, Window: s, Phase: 5}), ""},
		{clocked(rule.Clock{DriftPPM: -1_000_000, Offset: math.MinInt64}), "DriftPPM -1000000 ;Offset -2562047h"},
		{clocked(rule.Clock{Steps: []rule.Step{{By: 1 << 58}, {By: -1 << 59}}}), "Steps[1].By -160127h"},
		{clocked(rule.Clock{DriftPPM: 1_000_000, Offset: -s, Steps: []rule.Step{{By: s}}}), ""},
		{densest(0, 0), "Window 0s "},
		{densest(s, math.MaxInt64), "Tick 2562047h"},
	} {
		if c.want == "" {
			if c.err != nil {
				t.Errorf("%v, want none", c.err)
			}
			continue
		}
		if c.err == nil {
			t.Errorf("no error, want %q", c.want)
			continue
		}
		lines, wants := strings.Split(c.err.Error(), "\n"), strings.Split(c.want, ";")
		for i, want := range wants {
			if len(lines) != len(wants) || !strings.HasPrefix(lines[i], "rule: ") || !strings.Contains(lines[i], want) {
				t.Errorf("%q, want %q", c.err, c.want)
				break
			}
		}
	}
}

// same requires that the witness has the same opinion of the configuration.
func same(t *testing.T, err error, witness func() (rule.Witness, error)) error {
	t.Helper()
	if _, other := witness(); fmt.Sprint(other) != fmt.Sprint(err) {
		t.Errorf("the witness says %v, the server %v", other, err)
	}
	return err
}

// servers is one of each kind, and of each way to count, for 100 in a second.
func servers(t testing.TB) map[string]rule.Rule {
	t.Helper()
	const n, s = 100, time.Second
	return map[string]rule.Rule{
		"rolling":          must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s})),
		"rolling, ns":      must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s, Tick: -1})),
		"rolling, refused": must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s, RefusedCount: true})),
		"calendar":         must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: s, Phase: 123 * ms})),
		"anchored":         must(rule.NewAnchored(rule.AnchoredConfig{Limit: n, Window: s})),
		"bucket":           must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: s})),
		"bucket, odd":      must(rule.NewBucket(rule.BucketConfig{Limit: n + 1, Window: s, Tick: -1})),
		"gcra":             must(rule.NewGCRA(rule.GCRAConfig{Limit: n + 1, Window: s})),
		"weighted":         must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: s})),
		"rotating":         must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: s, Rotating: true})),
		"clocked": must(rule.NewClocked(must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s})),
			rule.Clock{DriftPPM: 80, Offset: time.Hour, Steps: []rule.Step{{At: 0, By: -time.Minute}}})),
		"all": rule.All(must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s})), must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: s}))),
	}
}

func TestServersDoNotAllocate(t *testing.T) {
	for name, s := range servers(t) {
		rng := rand.New(rand.NewPCG(1, 2))
		now := mono.Time(0)
		arrive := func() {
			now += mono.Time(rng.IntN(int(15 * ms)))
			s.Arrive(now, int64(rng.IntN(3)))
		}
		for range 1000 {
			arrive()
		}
		if n := testing.AllocsPerRun(10_000, arrive); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkServers: an arrival of cost 1, 9 in 10 of which pass.
func BenchmarkServers(b *testing.B) {
	for name, s := range servers(b) {
		b.Run(name, func(b *testing.B) {
			now := mono.Time(0)
			for b.Loop() {
				now += 9 * ms
				s.Arrive(now, 1)
			}
		})
	}
}
