package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

func TestWrappers(t *testing.T) {
	for name, wrap := range map[string]func(limit.Limiter) limit.Limiter{
		"All": func(l limit.Limiter) limit.Limiter {
			return limit.NewAll(l, limit.MustRolling(1000, time.Second))
		},
		"Varying": func(l limit.Limiter) limit.Limiter { return limit.NewVarying(l) },
		"Named":   func(l limit.Limiter) limit.Limiter { return limit.Named("name", l) },
		"Fitted":  func(l limit.Limiter) limit.Limiter { return limit.NewFitted(l) },
		"Headroom": func(l limit.Limiter) limit.Limiter {
			return must(limit.NewHeadroom(limit.HeadroomConfig{Limiter: l, Use: 0.999}))
		},
		"five deep": func(l limit.Limiter) limit.Limiter {
			return limit.NewFitted(limit.Named("a", limit.NewAll(limit.NewVarying(limit.Named("b", l)))))
		},
	} {
		t.Run(name, func(t *testing.T) { limittest.Wraps(t, wrap) })
	}
}
