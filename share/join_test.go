package share_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
)

// Join before the first request reports what is wrong with the store or the limit. Otherwise the
// limit is this process' from then on, with or without requests.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		join := func(n int64) (*share.Member, error) {
			m, err := share.Limiter(store, "it", func() limit.Limiter { return limit.MustRolling(n, time.Second) })
			if err != nil {
				t.Fatal(err)
			}
			return m, m.Join(t.Context())
		}
		store.away = errors.New("the store is away")
		if _, err := join(20); !errors.Is(err, store.away) {
			t.Errorf("at a store that is away: %v", err)
		}
		store.away = nil
		if _, err := join(20); err != nil || store.turns != 1 {
			t.Errorf("at a new store: %v, %d turns", err, store.turns)
		}
		if _, err := join(30); err == nil || !strings.Contains(err.Error(), "20 requests") || !strings.Contains(err.Error(), "30 requests") {
			t.Errorf("with another limit: %v", err)
		}
		time.Sleep(9 * time.Second) // the limit is no longer quiet, although no process had anything to send
		m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
		if err := m.Join(t.Context()); err != nil {
			t.Error(err)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		p, err := gate.Wait(ctx, limit.One)
		if err != nil || time.Since(began) > time.Second {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		p.Settle(limit.Outcome{Result: limit.Accepted})
		if err := m.Join(t.Context()); err != nil { // too late, and no harm
			t.Error(err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := m.Join(t.Context()); err != nil {
			t.Errorf("closed: %v", err)
		}
	})
}

// Members that join at once, some with requests already, are as those that do not.
func TestJoinWhileRequestsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, took := newMemory(), make(chan time.Duration, 4)
		began := time.Now()
		var wg sync.WaitGroup
		for range cap(took) {
			m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
			wg.Go(func() {
				p, err := gate.Wait(t.Context(), limit.One)
				if err != nil {
					t.Error(err)
				}
				took <- time.Since(began)
				p.Settle(limit.Outcome{Result: limit.Accepted})
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
			if err := m.Join(t.Context()); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		for range cap(took) {
			if d := <-took; d > 9*time.Second {
				t.Errorf("one of them went after %v", d)
			}
		}
	})
}

// Close does not wait for a store that hangs during a Join.
func TestCloseWhileJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := share.Limiter(hung{}, "it", twenty)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := m.Join(t.Context()); !errors.Is(err, context.Canceled) {
				t.Errorf("Join: %v", err)
			}
		})
		synctest.Wait()
		began := time.Now()
		if err := m.Close(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
		wg.Wait()
	})
}

// hung is a store that never answers.
type hung struct{}

func (hung) Turn(ctx context.Context, _ string, _ func(share.Reading) ([]byte, error)) error {
	<-ctx.Done()
	return ctx.Err()
}
