package costs_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// inMinute is a served answer that states a used weight in a minute that ends then.
func inMinute(used int64, ends time.Time) *classify.Verdict {
	v := used1m(used)
	v.Said.Limits[0].Reset = ends
	return v
}

func used1m(n int64) *classify.Verdict {
	v := used(n)
	v.Said.Policies = []provider.Policy{{Unit: provider.Weight, Window: time.Minute}}
	return v
}

// perMinute is a limit of 1,000 requests a minute.
var perMinute = []costs.Configured{{Scope: provider.Key, Rules: []limit.Rule{{Unit: limit.Requests, N: 1000, Per: time.Minute}}}}

// Requests of random durations, up to twenty at once, go to a server that counts each once, at some time while it is in
// flight. Their answers come in any order, over ends of minutes, and a stranger uses twenty at once now and then. A
// server that counts 1 is never said to count more, and one that counts 3 is always.
func TestOnlyAServerThatCountsMoreIsSaidTo(t *testing.T) {
	type flight struct {
		seen    *costs.Seen
		arrives int
		ends    int
		verdict *classify.Verdict
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		weight, said, slow := int64(1+2*(seed%2)), 0, 1+rng.IntN(30)
		var n costs.Notices
		var open []*flight
		begin, minute := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), map[int]int64{}
		for step := range 1500 {
			m := step / 600 // a minute is 600 steps
			if step%211 == 210 && weight == 1 {
				minute[m] += 20
			}
			for len(open) < 20 && rng.IntN(4) == 0 {
				takes := 2 + rng.IntN(slow)
				open = append(open, &flight{seen: n.Began("h", "k", limit.One, 10), arrives: step + rng.IntN(takes), ends: step + takes})
			}
			for _, f := range open {
				if f.arrives == step {
					minute[m] += weight
					f.verdict = inMinute(minute[m], begin.Add(time.Duration(m+1)*time.Minute))
				}
			}
			open = slices.DeleteFunc(open, func(f *flight) bool {
				if f.ends > step {
					return false
				}
				wrong, _ := n.Compares(f.seen, f.verdict, perMinute)
				said += len(wrong)
				if weight == 1 && f.verdict.Known != 0 {
					t.Fatalf("seed %d: a limit of requests is bounded by weight: %v", seed, f.verdict.Remaining)
				}
				n.Ends(f.seen)
				return true
			})
		}
		if want := int(weight / 2); said != want {
			t.Fatalf("seed %d: said %d times of a server that counts %d, want %d", seed, said, weight, want)
		}
	}
}

// An answer of the minute before that comes late hides nothing of the new one.
func TestALateAnswerHidesNothing(t *testing.T) {
	var n costs.Notices
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	said := 0
	ask := func(used int64, ends time.Time) {
		seen := n.Began("h", "k", limit.One, 10)
		wrong, _ := n.Compares(seen, inMinute(used, ends), perMinute)
		said += len(wrong)
		n.Ends(seen)
	}
	ask(490, noon)
	ask(10, noon.Add(time.Minute))
	ask(500, noon)
	for used := range int64(10) {
		ask(20+10*used, noon.Add(time.Minute))
	}
	if said != 1 {
		t.Errorf("said %d times that ten count for one", said)
	}
}
