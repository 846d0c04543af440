package bench

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/ceiling"
	"github.com/paceline-go/paceline/lab/parallel"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Virtual runs every row in the simulator, with seeds 1 to seeds, on all cores. progress, if not
// nil, is told how many of the runs are finished.
func Virtual(ctx context.Context, rows []Row, law latency.Law, seeds int, length time.Duration,
	progress func(done, all int)) ([]Result, error) {
	type job struct {
		row  int
		seed uint64
	}
	var jobs []job
	results := make([]Result, len(rows))
	all := make([]samples, len(rows))
	for i := range rows {
		results[i] = rows[i].result(rows[i].length(length))
		var err error
		if results[i].Ceiling, err = rows[i].ceiling(law, rows[i].length(length)); err != nil {
			return nil, err
		}
		all[i] = newSamples()
		for s := range seeds {
			jobs = append(jobs, job{i, uint64(s + 1)})
		}
	}
	// The longest run goes first, so that no long one runs alone at the end.
	slices.SortStableFunc(jobs, func(a, b job) int {
		return cmp.Compare(rows[b.row].Scenario.Server.Keys, rows[a.row].Scenario.Server.Keys)
	})

	done := 0
	tallies := make([][]sim.Tally, len(rows))
	for i := range tallies {
		tallies[i] = make([]sim.Tally, seeds)
	}
	err := parallel.OnAll(ctx, len(jobs), func() func(int) (func(), error) {
		s := newSamples()
		return func(i int) (func(), error) {
			j := jobs[i]
			x := rows[j.row].Scenario
			x.Seed, x.Duration = j.seed, rows[j.row].length(length)
			x.OnSend = func(d time.Duration) { record(s.delay, d) }
			x.OnAnswer = func(made, sent time.Duration) { record(s.sinceMade, made); record(s.sinceSent, sent) }
			tally, err := x.Run()
			return func() {
				tallies[j.row][j.seed-1] = tally
				all[j.row].merge(s)
				s.delay.Reset()
				s.sinceMade.Reset()
				s.sinceSent.Reset()
				if done++; progress != nil {
					progress(done, len(jobs))
				}
			}, err
		}
	})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, err
	}
	for i := range rows {
		for _, t := range tallies[i] { // in the order of seeds, because the sum of floats depends on the order
			results[i].add(t, rows[i].length(length), seeds)
		}
		results[i].finish(all[i])
	}
	return results, nil
}

// length is how long a run of the row lasts: as long as the table says, but shorter for a row whose
// many keys would make as many requests as all others together.
func (r *Row) length(table time.Duration) time.Duration {
	if keys := r.Scenario.Server.Keys; keys > 50 && r.Group == "keys" {
		return table * 50 / time.Duration(keys)
	}
	return table
}

// offered returns how many requests a second the generator makes in a run of the given length.
func (r *Row) offered(length time.Duration) float64 {
	times := func(every time.Duration) float64 { return math.Ceil(float64(length)/float64(every)) / length.Seconds() }
	switch r.Scenario.Generator {
	case sim.Original:
		return 1000 / 10.5
	case sim.Burst:
		return float64(20*r.Scenario.Server.Keys) * times(3*time.Second)
	case sim.Constant:
		return times(2 * time.Second)
	}
	return math.Inf(1)
}

// ceilingConfig is the knowledge of the row's client.
func (r *Row) ceilingConfig() ceiling.Config {
	server := r.Scenario.Server
	return ceiling.Config{Limit: server.Limit, Window: server.Window, Knowledge: r.Knows, Gap: r.Scenario.Gap,
		Largest: r.Largest}
}

// ceiling returns the most successes a second that theory allows a client of this row's knowledge in a run of the given
// length, its first window included.
func (r *Row) ceiling(law latency.Law, length time.Duration) (float64, error) {
	const keys = 20 // so many are enough: their mean is within 0.02 %
	rng := rand.New(rand.NewPCG(4, 4))
	legs := make([]ceiling.Leg, 2*r.Scenario.Server.Limit*int(length/r.Scenario.Server.Window+1))
	sum := 0
	for range keys {
		for i := range legs {
			legs[i] = ceiling.Leg{Forward: law.Draw(rng), Back: law.Draw(rng)}
		}
		most, err := r.ceilingConfig().Most(length, legs)
		if err != nil {
			return 0, err
		}
		sum += most
	}
	return min(r.offered(length), float64(sum)/keys*float64(r.Scenario.Server.Keys)/length.Seconds()), nil
}
