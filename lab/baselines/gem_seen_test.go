package baselines

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
)

// seen are scenarios for what the text sees in its charts and says without a figure: how clients of
// proportional-decrease drift where no threads race, and bare backoff by its one number.
func seen() (all []fleet.Scenario) {
	drift := (&gemRun{strategy: proportionalName, multiplier: 1.2, minutes: 120, processes: 2, threads: 5}).scenario()
	drift.Groups[0].Params.Sharing, drift.Sample = strategy.Local, time.Minute
	all = append(all, drift)
	for _, clients := range []int{1, 10} {
		for _, sleep := range fixedSleeps {
			s := (&gemRun{strategy: "fixed-backoff", minutes: 30, processes: clients, threads: 1}).scenario()
			s.Groups[0].Params.MinSleep = sleep
			all = append(all, s)
		}
	}
	return all
}

var fixedSleeps = []time.Duration{800 * time.Millisecond, 8 * time.Second, 80 * time.Second}

// seenClaims judges the runs of seen.
func seenClaims(runs [][]fleet.Report) []Claim {
	crossed := of(runs[0], crossing)
	one, ten := runs[1:1+len(fixedSleeps)], runs[1+len(fixedSleeps):]
	var refused, longest []string
	for i := range fixedSleeps {
		refused = append(refused, fmt.Sprintf("%.0f and %.0f", of(one[i], retry).P50, of(ten[i], retry).P50))
		longest = append(longest, fmt.Sprintf("%.0f", of(ten[i], waited).P50))
	}
	return []Claim{
		claim("proportional-decrease: clients that are", judge(crossed.P50 > 0, crossed.P50 == 0),
			"of ten clients "+crossed.text(0)),
		claim("with a fixed sleep", judge(of(ten[1], retry).P50 > 2*of(one[1], retry).P50),
			refused[0], refused[1], refused[2], longest[0], longest[1], longest[2]),
	}
}

func waited(r *fleet.Report) float64 { return r.LongestWait }

// crossing counts the clients that were among the slower half at an instant and among the faster
// half at another, after ten minutes.
func crossing(r *fleet.Report) (n float64) {
	first := slices.IndexFunc(r.Series.At, func(s float64) bool { return s >= 600 })
	slower, faster := make([]bool, r.Clients), make([]bool, r.Clients)
	for at := first; at < len(r.Series.At); at++ {
		order := make([]int, r.Clients)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.Series.Sleep[a][at], r.Series.Sleep[b][at]) })
		for place, i := range order {
			slower[i] = slower[i] || place >= r.Clients/2
			faster[i] = faster[i] || place < r.Clients/2
		}
	}
	for i := range slower {
		if slower[i] && faster[i] {
			n++
		}
	}
	return n
}

// jumpsDown plays five threads that write the sleep of their process and read it again after a gap,
// in which another may have written: how often one that finds another's value has come down by it.
// Fleets have no such gap. It is longer than a thread's, so that enough happens; by a shorter one
// less does, and the share is the same.
func jumpsDown() Claim {
	const gap, tries = 0.1, 2000
	rng := rand.New(rand.NewPCG(1, 1))
	less, more := 0, 0
	for range tries {
		var value, next [5]float64
		var reads [5]bool
		for i := range value {
			value[i] = 4 + 16*rng.Float64()
			next[i] = rng.Float64() * value[i]
		}
		kept := value[0]
		for now := 0.0; now < 600; {
			i := 0
			for k := range next {
				if next[k] < next[i] {
					i = k
				}
			}
			now = next[i]
			if reads[i] = !reads[i]; reads[i] {
				kept, next[i] = value[i], now+gap
				continue
			}
			if kept < value[i] {
				less++
			} else if kept > value[i] {
				more++
			}
			value[i] = kept
			next[i] = now + kept*(1+0.1*rng.Float64())
		}
	}
	share := 100 * float64(less) / float64(max(less+more, 1))
	return claim("by the race of", judge(share > 55), share, less+more)
}
