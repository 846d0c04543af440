package bench

import (
	"context"

	"github.com/paceline-go/paceline/lab/parallel"
	"github.com/paceline-go/paceline/lab/sim/compare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// RunSeeds runs each scenario with seeds 1 to n on all cores, and returns the reports of those that were finished.
func RunSeeds(ctx context.Context, scenarios []fleet.Scenario, n int, progress func(done, all int)) ([][]fleet.Report,
	error) {
	reports := make([][]fleet.Report, len(scenarios))
	done, all := 0, n*len(scenarios)
	err := parallel.OnAll(ctx, all, parallel.Each(func(i int) (func(), error) {
		s := scenarios[i/n]
		s.Seed = uint64(i%n + 1)
		r, err := compare.RunScenario(ctx, s, nil)
		if !r.Complete {
			return nil, err
		}
		return func() {
			reports[i/n] = append(reports[i/n], r)
			if done++; progress != nil {
				progress(done, all)
			}
		}, err
	}))
	return reports, err
}
