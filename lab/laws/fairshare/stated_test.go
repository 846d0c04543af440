package fairshare_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// taughtFair is a Fair whose server states a limit with each answer.
type taughtFair struct {
	*fairshare.Fair
	all []limit.Rule
}

func (f taughtFair) Settle(now mono.Time, l *limit.Sent, o *limit.Outcome) {
	ability.State(f.Fair, now, f.all)
	f.Fair.Settle(now, l, o)
}

// A bucket of 300 a minute that holds 30, of which clients know no more than 300 a minute: they would save for a reserve that it cannot hold,
// ever more slowly, if the server did not state what remains is out of.
func TestFairHearsWhatABucketHolds(t *testing.T) {
	for _, c := range []struct {
		name   string
		all    []limit.Rule
		unused float64 // at most, in percent
	}{
		{"the limit that remains is out of, without a window", []limit.Rule{{N: 30}}, 3},
		{"a burst, and another limit", []limit.Rule{{N: 5, Per: time.Second, Burst: 30}, {N: 300, Per: minute}}, 3},
		{"a burst below the limit, documented", []limit.Rule{{N: 300, Per: minute, Burst: 30, Documented: true}}, 3},
		{"another limit's, of which there are fewer, and one of this", []limit.Rule{{N: 2, Per: time.Second}, {N: 4, Per: time.Hour}, {N: 30, Per: 6 * time.Second}}, 3},
		{"another unit's, and one that is documented, first", []limit.Rule{{Unit: limit.Tokens, N: 2}, {N: 3, Documented: true}, {N: 30}}, 3},
	} {
		law := strategy.Strategy{Name: "taught", NewLimiter: func(_ strategy.Params, rng *rand.Rand) (limit.Limiter, error) {
			fair, err := fairshare.NewFair(fairshare.FairConfig{Limit: 300, Window: minute, Rng: rng})
			return taughtFair{fair, c.all}, err
		}}
		f := must(fleet.New(fleet.Scenario{
			Duration: 10 * minute, Seed: 1, Server: fleet.Quota{Kind: fleet.Bucket, Limit: 300, Window: minute, Capacity: 30},
			Groups: []fleet.Group{{Strategy: law, Processes: 3, Threads: 4, Link: near, Spread: 14 * time.Second}},
		}))
		f.Advance(10 * minute)
		r := f.Report()
		if unused := 100 * (1 - float64(r.Served)/3000); unused > c.unused || r.Limited > 6 {
			t.Errorf("%s: %.1f %% unused, %d refused; want at most %v %% and 6", c.name, unused, r.Limited, c.unused)
		}
	}
}

// A quota of 5,000 in windows of an hour becomes one of 10,000 or of 5,250 after an hour and a half, and answers state it: from the third window on all
// are as even as before, and use it up. What remains does not say it alike to all: they differed by 33 and 7 % then, window by window.
func TestFairHearsOfAnotherLimit(t *testing.T) {
	for factor, unused := range map[float64]float64{2: 1, 1.05: 1, 0.5: 1} {
		law := strategy.Strategy{Name: "taught", NewLimiter: func(_ strategy.Params, rng *rand.Rand) (limit.Limiter, error) {
			fair, err := fairshare.NewFair(fairshare.FairConfig{Limit: 5000, Window: time.Hour, Rng: rng})
			return &restatedFair{Fair: fair, factor: factor}, err
		}}
		f := must(fleet.New(fleet.Scenario{
			Duration: 12 * hour, Seed: 1,
			Server: fleet.Quota{Kind: fleet.Calendar, Limit: 5000, Window: hour, Headers: fleet.Headers{Reset: fleet.WholeSeconds}, Changes: []fleet.Change{{At: 90 * minute, Factor: factor}}},
			Groups: []fleet.Group{{Strategy: law, Processes: 10, Link: near, Spread: minute}},
		}))
		f.Advance(12 * hour)
		if r := f.Report(); r.Windows.CV.Median > 0.2 || r.Windows.Unused.Median > unused || r.Steady.Limited > 0 {
			t.Errorf("%v times as much: CV in a window %.2f %%, %.2f %% unused, %d refused", factor, r.Windows.CV.Median, r.Windows.Unused.Median, r.Steady.Limited)
		}
	}
}

// restatedFair is a Fair whose server states its limit, which becomes factor times as much after an hour and a half.
type restatedFair struct {
	*fairshare.Fair
	factor float64
}

func (f *restatedFair) Settle(now mono.Time, l *limit.Sent, o *limit.Outcome) {
	n := 5000.0
	if now >= mono.Time(0).Add(90*minute) {
		n *= f.factor
	}
	ability.State(f.Fair, now, []limit.Rule{{N: int64(n)}})
	f.Fair.Settle(now, l, o)
}
