package limit_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// special is a limiter with every optional method.
type special struct {
	limit.Limiter
	resumed bool
	retreat mono.Time
	trusted mono.Time
}

func (s *special) Resume(mono.Time, []limit.Past) { s.resumed = true }
func (s *special) Rules() []limit.Rule {
	return []limit.Rule{{Name: "own", N: 3, Per: time.Second, Counts: limit.CountsRolling}}
}
func (s *special) Trust(now mono.Time) { s.trusted = now }
func (s *special) AppendUsage(to []limit.Usage, now mono.Time) []limit.Usage {
	return append(to, limit.Usage{Limit: "own", Used: 2, Allowed: 3, Retreat: limit.Retreat{Option: "own", Until: s.retreat}})
}

// within has the ways in which a limiter stands in another, beside one without optional methods.
var within = map[string]func(limit.Limiter) limit.Limiter{
	"All": func(l limit.Limiter) limit.Limiter { return limit.NewAll(opaque{limit.MustRolling(9, time.Hour)}, l) },
	"Varying": func(l limit.Limiter) limit.Limiter {
		return limit.NewVarying(opaque{limit.MustRolling(9, time.Hour)}, l)
	},
	"Named":  func(l limit.Limiter) limit.Limiter { return limit.Named("its name", l) },
	"Fitted": func(l limit.Limiter) limit.Limiter { return limit.NewFitted(l) },
	"all of these": func(l limit.Limiter) limit.Limiter {
		return limit.NewAll(opaque{limit.MustRolling(9, time.Hour)}, limit.Named("its name", limit.NewVarying(limit.NewFitted(l))))
	},
}

// A limiter keeps its abilities inside another.
func TestWithinOthers(t *testing.T) {
	for name, in := range within {
		s := &special{Limiter: limit.MustRolling(3, time.Second), retreat: 77}
		l := in(s)
		leases := []*limit.Sent{limittest.Admit(l, 0, limit.One), limittest.Admit(l, 0, limit.One)}
		asked := 0
		if limit.Ask(l, func(part *special) { asked++ }); asked != 1 {
			t.Errorf("%s: it is asked %d times", name, asked)
		}
		if limit.Replay(l, 5, mono.Min, nil); !s.resumed {
			t.Errorf("%s: it does not resume", name)
		}
		if all := limit.Retreats(l, 5); len(all) != 1 || all[0].Until != 77 {
			t.Errorf("%s: it retreats from %v", name, all)
		}
		if limit.Trust(l, 9); s.trusted != 9 {
			t.Errorf("%s: trusted from %v on", name, s.trusted)
		}
		if parts := limit.Parts(l); parts[len(parts)-1] != s {
			t.Errorf("%s: its parts are %v", name, parts)
		}
		if all := limit.AppendUsage(nil, l, 5); len(all) != 1 || all[0].Used != 2 || all[0].Limit == "its name" != (name == "Named" || name == "all of these") {
			t.Errorf("%s: used are %+v", name, all)
		}
		if v := limit.VaryingIn(l); (v != nil) != (name == "Varying" || name == "all of these") {
			t.Errorf("%s: there varies %v", name, v)
		}
		l.Settle(9, leases[1], &limit.Outcome{})
		l.Settle(9, leases[0], &limit.Outcome{})
	}
	if limit.Parts(nil) != nil {
		t.Error("nothing has parts")
	}
	plain := limit.MustRolling(3, time.Second)
	if limit.Ask(plain, func(*special) { t.Error("a Rolling is special") }); limit.VaryingIn(plain) != nil {
		t.Error("a Rolling varies")
	}
	for _, v := range []*limit.Varying{limit.NewVarying(plain)} {
		for _, l := range []limit.Limiter{v, limit.Named("x", v), limit.NewAll(limit.MustRolling(1, time.Second), v)} {
			if limit.VaryingIn(l) != v {
				t.Errorf("in %T there varies %v", l, limit.VaryingIn(l))
			}
		}
	}
}

// A limiter without rates says so, and everything about it is known. Nothing is known of a
// stranger.
func TestRatesOfAll(t *testing.T) {
	none := limit.NewAll(
		must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})), must(limit.NewSequence(limit.SequenceConfig{})),
		must(limit.NewSpacing(time.Second)), must(limit.NewCooldown(0)))
	if all, ok := limit.Rates(none); !ok || len(all) > 0 {
		t.Errorf("%v, %v", all, ok)
	}
	for _, each := range limit.Parts(none) {
		if all, ok := limit.Rates(each); !ok || len(all) > 0 {
			t.Errorf("%T: %v, %v", each, all, ok)
		}
	}
	rate := limit.Rule{Name: "r", Unit: limit.Requests, N: 3, Per: time.Second, Counts: limit.CountsRolling}
	l := limit.NewAll(none, limit.Named("r", limit.MustRolling(3, time.Second)), must(limit.NewBucket(limit.BucketConfig{Limit: 4, Window: time.Minute, Burst: 9, Unit: limit.Tokens})))
	if all, ok := limit.Rates(l); !ok || !reflect.DeepEqual(all, []limit.Rule{rate, {Name: "tokens", Unit: limit.Tokens, N: 4, Per: time.Minute, Burst: 9, Counts: limit.CountsBucket}}) {
		t.Errorf("%v, %v", all, ok)
	}
	if all, ok := limit.Rates(limit.NewAll(l, opaque{limit.MustRolling(3, time.Second)})); ok || all != nil {
		t.Errorf("with a stranger: %v, %v", all, ok)
	}
}

// A request of a Produced counts as one token on arrival, at any place of the limit.
func TestArriving(t *testing.T) {
	made := func() limit.Limiter {
		return must(limit.NewProduced(limit.ProducedConfig{Limit: 1000, Window: time.Minute}))
	}
	cost := limit.Cost{limit.Requests: 1, limit.Input: 50, limit.Output: 40}
	want := cost
	want[limit.Output] = 1
	for name, in := range within {
		if got := limit.Arriving(in(made()), cost); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if got := limit.Arriving(in(limit.MustRolling(3, time.Second)), cost); got != cost {
			t.Errorf("%s, of a Rolling: %v, want %v", name, got, cost)
		}
	}
	if got := limit.Arriving(made(), limit.Cost{limit.Requests: 1}); got != limit.One {
		t.Errorf("without output: %v", got)
	}
}

// An impossible limit is refused, and the extreme possible one is not.
func TestLeastAndMost(t *testing.T) {
	const most = limit.MaxCost
	try := func(what string, wrong bool, err error) {
		t.Helper()
		if (err != nil) != wrong {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n, wrong := range map[int64]bool{-1: true, 0: true, 1: false, most: false, most + 1: true} {
		_, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: n})
		try("Concurrency", wrong, err)
		try("Concurrency.SetLimit", wrong, must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})).SetLimit(0, n))
		_, err = limit.NewBucket(limit.BucketConfig{Limit: 5, Window: 5 * time.Second, Burst: n})
		try("Bucket, Burst", wrong && n != 0 || n == most, err) // so many take 317 years and more to come
		_, err = limit.NewProduced(limit.ProducedConfig{Limit: n, Window: 24 * time.Hour, Burst: 5000, Margin: -1})
		try("Produced", wrong, err)
		p := must(limit.NewProduced(limit.ProducedConfig{Limit: 5, Window: time.Minute, Margin: -1}))
		try("Produced.SetBurst", wrong || n == most, p.SetBurst(0, n))
		try("Produced.SetLimit", wrong, p.SetLimit(0, n))
	}
	for d, wrong := range map[time.Duration]bool{-1: true, 0: false, 1: false} {
		_, err := limit.NewCooldown(d)
		try("Cooldown", wrong, err)
		_, err = limit.NewSequence(limit.SequenceConfig{Gap: d})
		try("Sequence", wrong, err)
		_, err = limit.NewSpacing(d)
		try("Spacing", d < 1, err)
	}
	for d, wrong := range map[time.Duration]bool{-1: true, 0: true, time.Microsecond - 1: true, time.Microsecond: false} {
		_, err := limit.NewProduced(limit.ProducedConfig{Limit: 50, Window: d, Margin: -1})
		try("Produced, Window", wrong, err)
	}
	for within, wrong := range map[time.Duration]bool{1 << 39: false, 1<<39 + 1: true} {
		_, err := limit.NewProduced(limit.ProducedConfig{Limit: 50, Window: time.Second, Within: within})
		try("Produced, Within", wrong, err)
	}
	for unit, wrong := range map[limit.Unit]bool{limit.Other: false, limit.Other + 1: true} {
		_, err := limit.NewProduced(limit.ProducedConfig{Limit: 50, Window: time.Second, Unit: unit})
		try("Produced, Unit", wrong, err)
	}
	b := must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: 5 * time.Second, Alone: true}))
	if !b.Alone() || must(limit.NewBucket(limit.BucketConfig{Limit: 5, Window: 5 * time.Second})).Alone() {
		t.Error("Alone is not what was configured")
	}
	cool := must(limit.NewCooldown(0))
	cool.Extend(7)
	cool.Extend(5)
	if cool.Until() != 7 {
		t.Errorf("it is asked to stay away until %v", cool.Until())
	}
	cool.Extend(limit.Never)
	if cool.Until() != mono.Max {
		t.Errorf("for ever is until %v", cool.Until())
	}
}
