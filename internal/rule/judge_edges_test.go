package rule_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// A judge that keeps three arrivals has the last three at any time, oldest first. It knows the
// times of the first and the last arrival.
func TestJudgeKeepsTheLast(t *testing.T) {
	j := must(rule.NewJudge(rule.ExchangeConfig{Keys: 1, Limit: 300}, 3))
	for i := range uint64(50) {
		j.Hear(rule.Arrival{At: mono.Time(1e9 + i*1e6), Nonce: i + 1, Verdict: rule.Accepted})
		var kept []uint64
		for _, a := range j.Arrivals() {
			kept = append(kept, a.Nonce)
		}
		if want := []uint64{i - 1, i, i + 1}[2-min(i, 2):]; !slices.Equal(kept, want) {
			t.Fatalf("after %d it keeps %v, want %v", i+1, kept, want)
		}
		if r := j.Report(); r.First != 1e9 || r.Last != mono.Time(1e9+i*1e6) || r.Faults != 0 {
			t.Fatalf("after %d: from %v to %v, %v", i+1, r.First, r.Last, r.FirstFaults)
		}
	}
}

// Nonces are compared as numbers, also if they are too large and written as digits.
func TestNoncesBeyondNumbers(t *testing.T) {
	const large = "1234567890123456789012"
	number := func(n uint64) rule.Arrival { return rule.Arrival{Nonce: n} }
	digits := func(s string) rule.Arrival { return rule.Arrival{Digits: s} }
	for _, c := range []struct {
		before, after rule.Arrival
		rises         bool
	}{
		{number(5), number(6), true}, {number(6), number(6), false}, {number(9), number(10), true}, {number(10), number(9), false},
		{number(5), digits(large), true}, {digits(large), number(5), false}, {digits(large), digits(large), false},
		{digits(large), digits(large[:21]), false}, {digits(large[:21]), digits(large), true}, {digits("000" + large), digits(large), false},
		{number(5), digits(large[:21] + "x"), false},
	} {
		j := must(rule.NewJudge(rule.ExchangeConfig{Keys: 1}, 0))
		c.before.Verdict, c.after.Verdict, c.after.At = rule.Accepted, rule.Accepted, 5
		j.Hear(c.before)
		if j.Hear(c.after); (j.Report().Faults == 0) != c.rises {
			t.Errorf("%+v after %+v: %v", c.after, c.before, j.Report().FirstFaults)
		}
	}
}

// A burst whose intervals together fit into no number is refused, too.
func TestBurstBeyondAllNumbers(t *testing.T) {
	for _, c := range []rule.GCRAConfig{{Limit: 1, Window: 1 << 32, Burst: 1 << 32}, {Limit: 1, Window: 1 << 59, Burst: 1 << 48}, {Limit: 3, Window: 1 << 33, Burst: 3 << 31}} {
		if _, err := rule.NewGCRA(c); err == nil || !strings.Contains(err.Error(), "are more than those of") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Arrivals on a coarse grid meet every boundary, to the tick. Servers and witnesses agree on all of
// them.
func TestWitnessesAtEveryBoundary(t *testing.T) {
	const w = 4 * time.Millisecond
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n, phase := 1+rng.Int64N(4), mono.Time(rng.Int64N(4))*mono.Time(time.Millisecond)
		for name, k := range map[string]struct {
			server  rule.Rule
			witness rule.Witness
		}{
			"rolling":           {must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: w})), must(rule.RollingConfig{Limit: n, Window: w}.Witness())},
			"calendar":          {must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: w, Phase: phase})), must(rule.CalendarConfig{Limit: n, Window: w, Phase: phase}.Witness())},
			"anchored":          {must(rule.NewAnchored(rule.AnchoredConfig{Limit: n, Window: w})), must(rule.AnchoredConfig{Limit: n, Window: w}.Witness())},
			"bucket":            {must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: w})), must(rule.BucketConfig{Limit: n, Window: w}.Witness())},
			"gcra":              {must(rule.NewGCRA(rule.GCRAConfig{Limit: n, Window: w})), must(rule.GCRAConfig{Limit: n, Window: w}.Witness())},
			"weighted":          {must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: w, Phase: phase})), must(rule.WeightedConfig{Limit: n, Window: w, Phase: phase}.Witness())},
			"weighted, rotates": {must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: w, Rotating: true})), must(rule.WeightedConfig{Limit: n, Window: w, Rotating: true}.Witness())},
		} {
			now := mono.Time(0)
			for range 40 {
				now = now.Add(time.Duration(rng.IntN(6)) * time.Millisecond)
				cost := 1 + rng.Int64N(n)
				k.witness.Hear(now, cost, k.server.Arrive(now, cost))
			}
			if f := k.witness.Finding(); !f.Kept() || f.Needless > 0 {
				t.Fatalf("%s of %d, seed %d: %+v", name, n, seed, f)
			}
		}
	}
}
