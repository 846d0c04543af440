package share_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
)

// A new store grants nothing of a limit by the hour for an hour. The Member reports that once, at a
// level that people see. A waiting request learns until when, and one that cannot wait so long is
// refused at once. The Member takes a turn once a second meanwhile, so that others know the time by
// it.
func TestANewStoreIsQuietAloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quiet = time.Hour + 7*time.Second
		j, store := new(journal), newMemory()
		m, gate := member(t, share.Config{
			Store: store, Name: "it", Logger: j.logger(),
			Own: func() limit.Limiter { return limit.MustRolling(5000, time.Hour) },
		})
		began := time.Now()
		served := make(chan time.Duration)
		go func() {
			p, err := gate.Wait(context.Background(), limit.One)
			if err != nil {
				t.Error(err)
			}
			p.Settle(limit.Outcome{Result: limit.Accepted})
			served <- time.Since(began)
		}()
		time.Sleep(time.Minute)
		j.expect(t, "in a new store", "WARN nothing is sent for 1 h 1 min, until nothing counts that may have been granted before")
		if n := store.taken(); n < 50 || n > 65 {
			t.Errorf("%d turns in a minute in which nothing is granted", n)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := gate.Wait(ctx, limit.One)
		var wait *paceline.WaitError
		if !errors.As(err, &wait) || wait.Reason != paceline.ErrDeadline || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if at, _ := limit.Explain(m, 0, limit.One); time.Duration(at)+time.Minute-quiet > time.Second || quiet-time.Duration(at)-time.Minute > time.Second {
			t.Errorf("a minute later it is ready in %v", time.Duration(at))
		}
		if took := <-served; took < quiet || took > quiet+2*time.Second {
			t.Errorf("the first is sent after %v", took)
		}
		m.Close(context.Background())
	})
}
