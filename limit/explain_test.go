package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// Of several limits the one that is ready last is the reason. Each limit says what it counts, the
// cost, and the allowed cost.
func TestExplain(t *testing.T) {
	rpm, tpm, flights := llm(2, 100, 3)
	cool := must(limit.NewCooldown(0))
	l := limit.NewAll(rpm, limit.Named("model", tpm), flights, cool, opaque{must(limit.NewSpacing(time.Hour))})
	explain := func(now time.Duration, cost limit.Cost) (mono.Time, limit.Bound) {
		at, b := limit.Explain(l, mono.Time(now), cost)
		if ready := l.Ready(mono.Time(now), cost); ready != at {
			t.Errorf("explained: %v, and Ready is %v", at, ready)
		}
		return at, b
	}
	want := func(what string, at mono.Time, b limit.Bound, wantAt mono.Time, wantBound limit.Bound) {
		t.Helper()
		if at != wantAt || b != wantBound {
			t.Errorf("%s: %v %+v, want %v %+v", what, at, b, wantAt, wantBound)
		}
	}
	at, b := explain(0, tokens(101))
	want("too large", at, b, limit.Never, limit.Bound{Name: "model", Unit: limit.Tokens, Size: 101, Most: 100})
	l = limit.NewAll(rpm, limit.Named("model", tpm), flights, cool)
	first := limittest.Admit(l, 0, tokens(60))
	at, b = explain(0, tokens(70))
	want("tokens are open", at, b, limit.AfterSettle, limit.Bound{Name: "model", Unit: limit.Tokens, Size: 70, Most: 100})
	l.Settle(0, first, &limit.Outcome{Result: limit.Accepted})
	at, b = explain(0, tokens(70))
	want("tokens are used", at, b, mono.Time(time.Minute), limit.Bound{Name: "model", Unit: limit.Tokens, Size: 70, Most: 100})
	second := limittest.Admit(l, mono.Time(time.Second), tokens(1))
	at, b = explain(time.Second, tokens(1))
	want("requests", at, b, mono.Time(time.Minute), limit.Bound{Name: "requests", Unit: limit.Requests, Size: 1, Most: 2})
	cool.Extend(mono.Time(2 * time.Minute))
	at, b = explain(time.Second, tokens(1))
	want("it was asked to stay away", at, b, mono.Time(2*time.Minute), limit.Bound{Name: "cool-down", Size: 1})
	l.Settle(mono.Time(time.Second), second, &limit.Outcome{})
	if err := flights.SetLimit(mono.Time(time.Second), 1); err != nil {
		t.Fatal(err)
	}
	limittest.Admit(l, mono.Time(3*time.Minute), tokens(1))
	at, b = explain(3*time.Minute, tokens(1))
	want("one is in flight", at, b, limit.AfterSettle, limit.Bound{Name: "concurrency", Size: 1, Most: 1})

	at, b = limit.Explain(opaque{rpm}, mono.Time(3*time.Minute), limit.Cost{limit.Requests: 3})
	want("who does not say", at, b, limit.Never, limit.Bound{Name: "limit"})
	at, b = limit.Explain(limit.NewAll(), 5, limit.One)
	want("all of none", at, b, 5, limit.Bound{Name: "limit"})

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
		if at, b := limit.Explain(l, 0, cost); b.Name != name || at != l.Ready(0, cost) || at == 0 || b.Most > 0 && (b.Size != 2 || b.Most != 2) {
			t.Errorf("%s: %v %+v", name, at, b)
		}
	}
}
