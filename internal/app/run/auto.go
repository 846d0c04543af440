package run

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// Auto is for limits that the user does not know. A fairshare.Auto finds out how many requests each
// key may send.
type Auto struct {
	// Weight and Sharers are as in fairshare.AutoConfig.
	Weight, Sharers float64
	// Seed is the seed of the random numbers. If zero, it is drawn.
	Seed uint64
}

func (a *Auto) limiter() (*fairshare.Auto, error) {
	return fairshare.NewAuto(fairshare.AutoConfig{Weight: a.Weight, Sharers: a.Sharers,
		Rng: rand.New(rand.NewPCG(cmp.Or(a.Seed, rand.Uint64()), 0))})
}

// seeks makes the limiter that finds out the limit of a key. The journal keeps its findings for the
// next run.
func (g *group) seeks(key int, each []limit.Limiter) ([]limit.Limiter, error) {
	if g.r.c.Auto == nil {
		return each, nil
	}
	a, err := g.r.c.Auto.limiter()
	if err != nil {
		return nil, fmt.Errorf("%w: --limit auto: %w", ErrConfig, err)
	}
	g.autos = append(g.autos, a)
	each = each[:len(each):len(each)]
	if g.r.store.Book == nil {
		return append(each, a), nil
	}
	return append(each, g.r.store.Book.Limiter(g.name(key), a, func(text string, _ bool) {
		who := "key " + g.called(key) + ": "
		if g.r.c.keyless {
			who = ""
		}
		g.r.Say("%s--limit auto %s", who, text)
	})), nil
}

// found returns the limits that the keys have found.
func (p pools) found() (all []tally.Found) {
	for _, g := range p {
		if g.pool == nil {
			continue
		}
		g.pool.Update(func(mono.Time, *pool.Queue, *pool.Dispatcher) {
			for i, a := range g.autos {
				f := a.Found()
				all = append(all, tally.Found{
					Key: g.called(i), N: f.Rate.N, Seconds: f.Rate.Per.Seconds(), By: f.By.String(), Soon: f.Soon, Later: f.Later,
					Text: f.String(),
				})
			}
		})
	}
	return all
}
