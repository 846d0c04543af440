package share_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
)

// contested is a store at which another node is quicker once: the first reading of that turn takes a
// second, and is in vain. After that turn the store does not answer any more.
type contested struct {
	*memory
	lose, away atomic.Bool
}

func (s *contested) Turn(ctx context.Context, key string, f func(share.Reading) ([]byte, error)) error {
	if s.away.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.lose.Load() {
		s.away.Store(true)
		time.Sleep(time.Second)
		r, _, err := s.read(key)
		if err != nil {
			return err
		}
		if _, err := f(r); err != nil {
			return err
		}
	}
	return s.memory.Turn(ctx, key, f)
}

// A grant holds for 2 s from the beginning of the reading that was put. A reading before that, which
// lost a race, takes nothing off it.
func TestAGrantIsDatedByTheReadingThatWasPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &contested{memory: newMemory()}
		m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
		defer m.Close(t.Context())
		wait := func() func() bool {
			p, err := gate.Wait(t.Context(), limit.One)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Settle(limit.Outcome{Result: limit.Unsent}) })
			return p.Fresh
		}
		wait() // a new store grants nothing for a while
		time.Sleep(time.Minute)
		store.lose.Store(true)
		fresh := wait()
		granted := time.Now()
		for _, c := range []struct {
			after time.Duration
			fresh bool
		}{{0, true}, {1900 * ms, true}, {2001 * ms, false}} {
			time.Sleep(c.after - time.Since(granted))
			if got := fresh(); got != c.fresh {
				t.Errorf("%v after its turn: fresh is %v", c.after, got)
			}
		}
	})
}
