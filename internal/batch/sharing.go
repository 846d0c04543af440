package batch

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/throttle"
)

// Sharing says that strangers use the same limits: of each, a key takes a fair share by what answers say, as throttle.Fair has it.
type Sharing struct {
	// Kind is how the server counts, where a Rate does not say that it has a bucket.
	Kind throttle.Kind
	// Weight and Sharers are those of throttle.FairConfig.
	Weight, Sharers float64
	// Seed is of what is drawn. If zero, it is drawn, too.
	Seed uint64
}

func (s *Sharing) limiter(l Rate) (limit.Limiter, error) {
	if l.Produced {
		return nil, fmt.Errorf("limit %s: output counts as it is produced, and no share of that is known to be fair (--strangers)", l.Text)
	}
	c := throttle.FairConfig{
		Kind: s.Kind, Limit: l.N, Window: l.Per, Capacity: l.Burst, Unit: l.Unit, Weight: s.Weight, Sharers: s.Sharers,
		Rng: rand.New(rand.NewPCG(cmp.Or(s.Seed, rand.Uint64()), uint64(l.Unit))),
	}
	if l.Bucket {
		c.Kind = throttle.TokenBucket
	}
	f, err := throttle.NewFair(c)
	if err != nil {
		return nil, fmt.Errorf("limit %s: %w", l.Text, err)
	}
	return f, nil
}

// made returns the limiter of a limit, for one key.
func (c *Config) made(l Rate) (limit.Limiter, error) {
	if c.Strangers != nil {
		return c.Strangers.limiter(l)
	}
	return l.limiter(c.Arrivals)
}
