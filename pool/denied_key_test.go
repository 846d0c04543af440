package pool_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool"
)

// A key that is out of use has the state that the answer gives, and is banned if it gives none.
func TestWhyAKeyIsOut(t *testing.T) {
	for out, want := range map[string]struct{ state, event string }{
		"":                  {observe.KeyBanned, observe.EventBanned},
		observe.KeyDenied:   {observe.KeyDenied, observe.EventDenied},
		observe.KeyNoCredit: {observe.KeyNoCredit, observe.EventBanned},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := must(pool.New(pool.Config{Keys: []pool.Key{{Name: "a"}}, Send: func(context.Context, pool.Attempt) pool.Answer {
				return pool.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Banned: true, Out: out, Reason: "why"}
			}}))
			if err := p.Submit(t.Context(), pool.Request{ID: "1", Cost: limit.One}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- p.Run(ctx) }()
			synctest.Wait()
			s := p.Snapshot()
			cancel()
			<-done
			if k := s.Keys[0]; k.State != want.state || k.Why != "why" || len(s.Events) != 1 || s.Events[0].Kind != want.event {
				t.Errorf("%q: %+v, %+v", out, k, s.Events)
			}
		})
	}
}
