package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// Of several limits the one that is ready last is the reason. Each limit says what it counts, and
// what it allows.
func TestExplain(t *testing.T) {
	rpm, tpm, flights := llm(2, 100, 3)
	cool := must(limit.NewCooldown(0))
	l := limit.NewAll(rpm, limit.Named("model", tpm), flights, cool, opaque{must(limit.NewSpacing(time.Hour))})
	explain := func(now time.Duration, cost limit.Cost) (mono.Time, limit.Rule) {
		at, b := limit.Explain(l, mono.Time(now), cost)
		if ready := l.Ready(mono.Time(now), cost); ready != at {
			t.Errorf("explained: %v, and Ready is %v", at, ready)
		}
		return at, b
	}
	want := func(what string, at mono.Time, b limit.Rule, wantAt mono.Time, wantRule limit.Rule) {
		t.Helper()
		if at != wantAt || b != wantRule {
			t.Errorf("%s: %v %+v, want %v %+v", what, at, b, wantAt, wantRule)
		}
	}
	model := limit.Rule{Name: "model", Unit: limit.Tokens, N: 100, Per: time.Minute, Counts: limit.CountsRolling}
	at, b := explain(0, tokens(101))
	want("too large", at, b, limit.Never, model)
	l = limit.NewAll(rpm, limit.Named("model", tpm), flights, cool)
	first := limittest.Admit(l, 0, tokens(60))
	at, b = explain(0, tokens(70))
	want("tokens are open", at, b, limit.AfterSettle, model)
	l.Settle(0, first, &limit.Outcome{Result: limit.Accepted})
	at, b = explain(0, tokens(70))
	want("tokens are used", at, b, mono.Time(time.Minute), model)
	second := limittest.Admit(l, mono.Time(time.Second), tokens(1))
	at, b = explain(time.Second, tokens(1))
	want("requests", at, b, mono.Time(time.Minute), limit.Rule{Name: "requests", N: 2, Per: time.Minute, Counts: limit.CountsRolling})
	cool.Extend(mono.Time(2 * time.Minute))
	at, b = explain(time.Second, tokens(1))
	want("it was asked to stay away", at, b, mono.Time(2*time.Minute), limit.Rule{Name: "cool-down", Counts: limit.CountsNothing})
	l.Settle(mono.Time(time.Second), second, &limit.Outcome{})
	if err := flights.SetLimit(mono.Time(time.Second), 1); err != nil {
		t.Fatal(err)
	}
	limittest.Admit(l, mono.Time(3*time.Minute), tokens(1))
	at, b = explain(3*time.Minute, tokens(1))
	want("one is in flight", at, b, limit.AfterSettle, limit.Rule{Name: "concurrency", N: 1, Counts: limit.CountsInFlight})

	at, b = limit.Explain(opaque{rpm}, mono.Time(3*time.Minute), limit.Cost{limit.Requests: 3})
	want("who does not say", at, b, limit.Never, limit.Rule{Name: "limit"})
	at, b = limit.Explain(limit.NewAll(), 5, limit.One)
	want("all of none", at, b, 5, limit.Rule{Name: "limit"})

	names := map[string]limit.Limiter{
		"weight":   must(limit.NewWeighted(limit.WeightedConfig{Limit: 2, Window: time.Second, Unit: limit.Weight})),
		"orders":   must(limit.NewAnchored(limit.AnchoredConfig{Limit: 2, Window: time.Second, Unit: limit.Orders})),
		"money":    must(limit.NewCalendar(limit.CalendarConfig{Limit: 2, Window: time.Second, Unit: limit.Money})),
		"other":    must(limit.NewBucket(limit.BucketConfig{Limit: 2, Window: time.Second, Unit: limit.Other})),
		"sequence": must(limit.NewSequence(limit.SequenceConfig{})),
		"spacing":  must(limit.NewSpacing(time.Second)),
	}
	for name, l := range names {
		cost := limit.Cost{limit.Weight: 2, limit.Orders: 2, limit.Money: 2, limit.Other: 2}
		limittest.Admit(l, 0, cost)
		if at, b := limit.Explain(l, 0, cost); b.Name != name || at != l.Ready(0, cost) || at == 0 || b.Most() > 0 && (cost[b.Unit] != 2 || b.Most() != 2) {
			t.Errorf("%s: %v %+v", name, at, b)
		}
	}
}

// Of several rules in one Describer, a cost waits for the first that it exceeds, or else for the
// first that counts it.
func TestExplainOfSeveralRules(t *testing.T) {
	l := described{limit.MustRolling(1, time.Hour), []limit.Rule{
		{Name: "requests", N: 5, Per: time.Minute}, {Name: "tokens", Unit: limit.Tokens, N: 100, Burst: 30, Per: time.Minute}, {Name: "gap", Counts: limit.CountsNothing}}}
	for want, cost := range map[string]limit.Cost{
		"requests": {limit.Requests: 1, limit.Tokens: 9},
		"tokens":   {limit.Requests: 1, limit.Tokens: 31},
	} {
		if _, r := limit.Explain(l, 0, cost); r.Name != want {
			t.Errorf("%v waits for %+v", cost, r)
		}
	}
	if _, r := limit.Explain(described{l.Rolling, nil}, 0, limit.One); r.Name != "limit" {
		t.Errorf("without rules it is %+v", r)
	}
}

type described struct {
	*limit.Rolling
	rules []limit.Rule
}

func (d described) Rules() []limit.Rule { return d.rules }
