package ability_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// pupil is a limiter that learns.
type pupil struct {
	limit.Limiter
	stated  []limit.Rule
	resumed bool
}

func (p *pupil) State(_ mono.Time, all []limit.Rule) { p.stated = append(p.stated, all...) }
func (p *pupil) Resume(mono.Time, []limit.Past)      { p.resumed = true }
func (p *pupil) Refills(o *limit.Outcome) uint8      { return o.Known & (1<<limit.Tokens | 1<<limit.Orders) }

// A limiter learns wherever it stands in another one. One that does not learn is left alone.
func TestLearns(t *testing.T) {
	rolling := func() limit.Limiter { return limit.MustRolling(9, time.Hour) }
	for name, in := range map[string]func(limit.Limiter) limit.Limiter{
		"itself":  func(l limit.Limiter) limit.Limiter { return l },
		"All":     func(l limit.Limiter) limit.Limiter { return limit.NewAll(rolling(), l) },
		"Varying": func(l limit.Limiter) limit.Limiter { return limit.NewVarying(rolling(), l) },
		"Named":   func(l limit.Limiter) limit.Limiter { return limit.Named("its name", l) },
		"Fitted":  func(l limit.Limiter) limit.Limiter { return limit.NewFitted(l) },
		"several": func(l limit.Limiter) limit.Limiter {
			return limit.NewFitted(limit.NewAll(rolling(), limit.Named("it", l)))
		},
	} {
		p := &pupil{Limiter: rolling()}
		l := in(p)
		limit.Replay(l, 5, mono.Min, nil)
		if !ability.Learns(l) || !p.resumed {
			t.Errorf("%s: it learns nothing", name)
		}
		known := limit.Outcome{Known: 1<<limit.Requests | 1<<limit.Tokens}
		if units := ability.Refills(l, &known); units != 1<<limit.Tokens {
			t.Errorf("%s: these refill: %b", name, units)
		}
		stated := []limit.Rule{{Burst: 5}, {Burst: 7}}
		if ability.State(l, 5, stated); !slices.Equal(p.stated, stated) {
			t.Errorf("%s: it learns %v of %v", name, p.stated, stated)
		}
		l = in(rolling())
		if ability.State(l, 5, stated); ability.Learns(l) || ability.Refills(l, &known) != 0 {
			t.Errorf("%s: a Rolling learns", name)
		}
	}
}
