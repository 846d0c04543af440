package strategy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
)

// all has the strategies in the order in which tables show them: baselines first, ours last.
var all = slices.Concat(gem, demo, peers, ours)

// All returns all strategies, baselines first.
func All() []Strategy { return slices.Clone(all) }

// Named returns the strategy of that name. The error lists the names there are.
func Named(name string) (Strategy, error) {
	names := Names()
	if i := slices.Index(names, name); i >= 0 {
		return all[i], nil
	}
	return Strategy{}, fmt.Errorf("strategy %q is none of %s%s", name, strings.Join(names, ", "), text.DidYouMean(name, names))
}

// Names returns the names of All.
func Names() (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// ours are the law of package fairshare, and the one that finds out its quota.
var ours = []Strategy{
	{Name: "fair", Text: "meets at what remains, of buckets and windows; no refusals once settled", NewLimiter: newFair},
	{Name: "auto", Text: "fair where nobody knows the quota: finds it out by what is told, or by refusals",
		NewLimiter: newAuto},
}

func newFair(p Params, rng *rand.Rand) (limit.Limiter, error) {
	if err := p.Check("Fair"); err != nil {
		return nil, err
	}
	c := fairshare.FairConfig{Kind: p.Kind, Window: p.Window, Capacity: int64(p.Burst), Unit: p.Unit, MeanCost: p.MeanCost,
		Weight: p.Weight, Sharers: p.Sharers, MaxWait: p.MaxWait, Start: p.Start, Rng: rng}
	if c.Window == 0 { // in which all of it comes
		c.Window = fairshare.Seconds(p.Burst / p.Rate)
	}
	c.Limit = max(1, int64(math.Round(p.Rate*c.Window.Seconds())))
	return limiter(fairshare.NewFair(c))
}

// newAuto heeds nothing of what is known of the quota but its unit.
func newAuto(p Params, rng *rand.Rand) (limit.Limiter, error) {
	return limiter(fairshare.NewAuto(fairshare.AutoConfig{Unit: p.Unit, Weight: p.Weight, Sharers: p.Sharers,
		MaxWait: p.MaxWait, Rng: rng}))
}

// limiter returns l as a Limiter. With an error, that is nil: a nil *Fair is no nil Limiter.
func limiter[L limit.Limiter](l L, err error) (limit.Limiter, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}
