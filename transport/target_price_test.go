package transport_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// ofKeys makes a Target whose keys have a limit.
func ofKeys(name string, l limit.Limiter) transport.Target {
	return transport.Target{Name: name, Host: name + ".test", Limit: func(p transport.Partition) limit.Limiter {
		if p.Scope == provider.Key {
			return l
		}
		return nil
	}}
}

// A request of unknown price goes to the Targets whose limits do not count money, and to no other.
func TestUnknownPriceGoesWhereNoMoneyCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
			d := deploy("a.test", "b.test")
			of := map[string]transport.Target{
				"a": ofKeys("a", rolling(t, 1_000_000, time.Hour, limit.Money)),
				"b": ofKeys("b", limit.MustRolling(9, time.Second)),
			}
			tr := mustNew(t, transport.Config{Base: d, Tokens: estimator(t), Counting: tokens.Used,
				Price:   func(transport.Partition, string) (provider.ModelInfo, bool) { return provider.ModelInfo{}, false },
				Targets: []transport.Target{of[names[0]], of[names[1]]}})
			if status, _, err := do(t, tr, request(t, "POST", "https://llm.test/v1/chat/completions", chatOf("other"))); err != nil || status != 200 {
				t.Errorf("%v: %d, %v", names, status, err)
			}
			if a, b := len(d.of["a.test"].had), len(d.of["b.test"].had); a != 0 || b != 1 {
				t.Errorf("%v: %d went where money counts, %d elsewhere", names, a, b)
			}
		}
	})
}

// A request that costs differently at each Target, and too much at all of them, is refused with what it costs at
// the limit that the error names.
func TestTooDearAtEachTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy("a.test", "b.test")
		tr := mustNew(t, transport.Config{Base: d, Tokens: estimator(t), Counting: tokens.Used,
			Price: func(p transport.Partition, _ string) (provider.ModelInfo, bool) {
				dear := map[string]float64{"a": 30, "b": 50}[p.Target]
				return provider.ModelInfo{Input: dear, Output: dear}, true
			},
			Targets: []transport.Target{
				ofKeys("a", rolling(t, 2, time.Hour, limit.Money)), ofKeys("b", rolling(t, 2, time.Hour, limit.Money))}})
		_, _, err := do(t, tr, request(t, "POST", "https://llm.test/v1/chat/completions", chatOf("other")))
		var e *transport.Error
		if !errors.Is(err, paceline.ErrNever) || !errors.As(err, &e) || e.Unit != limit.Money || e.Limit != 2 || e.Size < 30 {
			t.Errorf("%v: %+v", err, e)
		}
	})
}
