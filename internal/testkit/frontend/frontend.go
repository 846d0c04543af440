// Package frontend helps to test the types that own limiters and show their state: Gates, Groups
// and Pools.
package frontend

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// Fed is a limiter whose room comes from elsewhere, and whose leave may lapse.
type Fed struct {
	Room    int
	Stale   bool
	Again   func()     // of its driver
	Waiting func() int // of its driver
	Note    func(kind, text string)
	Ended   []limit.Outcome
}

// Supply answers ability.Supply.
func (f *Fed) Supply(again func(), waiting func() (n int, free float64), note func(kind, text string)) {
	f.Again, f.Note = again, note
	f.Waiting = func() int {
		n, _ := waiting()
		return n
	}
}

// Fresh answers ability.Fresh.
func (f *Fed) Fresh(*limit.Sent) bool { return !f.Stale }

// Ready implements limit.Limiter.
func (f *Fed) Ready(now mono.Time, _ limit.Cost) mono.Time {
	if f.Room == 0 {
		return limit.AfterSettle
	}
	return now
}

// Admit implements limit.Limiter.
func (f *Fed) Admit(*limit.Sent) { f.Room-- }

// Settle implements limit.Limiter.
func (f *Fed) Settle(_ mono.Time, _ *limit.Sent, o *limit.Outcome) { f.Ended = append(f.Ended, *o) }

// Several is a limiter of four with names: "day", "few" requests, 5 "words", and as many "open".
func Several(requests int64, window time.Duration, open int64) limit.Limiter {
	rolling := func(c limit.RollingConfig) limit.Limiter {
		c.Window, c.Margin = window, -1
		l, err := limit.NewRolling(c)
		if err != nil {
			panic(err)
		}
		return l
	}
	concurrency, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: open})
	if err != nil {
		panic(err)
	}
	return limit.NewAll(
		limit.Named("day", limit.MustRolling(100, 24*time.Hour)),
		limit.Named("few", rolling(limit.RollingConfig{Limit: requests})),
		limit.Named("words", rolling(limit.RollingConfig{Limit: 5, Unit: limit.Tokens})),
		limit.Named("open", concurrency),
	)
}

// Shows checks what a Snapshot has of the limit of a name, of a key.
func Shows(t testing.TB, s *observe.Snapshot, key, name string, waiting int, share float64, next time.Time,
	unknown bool) {
	t.Helper()
	for _, l := range s.Limits {
		if l.Key != key || l.Name != name {
			continue
		}
		if l.Waiting != waiting || l.Share < share-1e-9 || l.Share > share+1e-9 || !l.Next.Equal(next) ||
			l.NextUnknown != unknown {
			t.Errorf("%s %s: %d wait, a share of %v is used, next at %v, unknown %v; want %d, %v, %v, %v",
				key, name, l.Waiting, l.Share, l.Next, l.NextUnknown, waiting, share, next, unknown)
		}
		return
	}
	t.Errorf("no %s %s in %+v", key, name, s.Limits)
}
