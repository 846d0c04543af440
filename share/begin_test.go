package share_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sharetest"
)

// A limit that Begin makes grants at once, to all of its Members and no more than it allows. Begin
// changes nothing of a limit that is there.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := share.Config{Store: new(sharetest.Memory), Name: "it", Own: func() limit.Limiter { return limit.MustRolling(10, time.Hour) }}
		for i, want := range []bool{true, false} {
			if began, err := share.Begin(t.Context(), c); began != want || err != nil {
				t.Errorf("call %d: %v, %v, want %v", i+1, began, err, want)
			}
		}
		sent := 0
		began := time.Now()
		for range 2 {
			m, gate := member(t, c)
			for range 5 {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				if p, err := gate.Wait(ctx, limit.One); err == nil {
					p.Settle(limit.Outcome{Result: limit.Accepted})
					sent++
				}
				cancel()
			}
			m.Close(t.Context())
		}
		if took := time.Since(began); sent != 10 || took > 5*time.Second {
			t.Errorf("%d of 10 sent within %v", sent, took)
		}
		if began, err := share.Begin(t.Context(), c); began || err != nil {
			t.Errorf("of a limit that is used: %v, %v", began, err)
		}
		m, gate := member(t, c)
		defer m.Close(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := gate.Wait(ctx, limit.One); err == nil {
			t.Error("an eleventh was sent within the hour")
		}
		if _, err := share.Begin(t.Context(), share.Config{}); err == nil {
			t.Error("an empty Config has no error")
		}
	})
}

// away is a store that cannot be reached.
type away struct{ error }

func (s away) Turn(context.Context, string, func(share.Reading) ([]byte, error)) error {
	return s.error
}

// After an error of the store it is unknown whether the limit is there, so Begin returns that error.
func TestBeginWithoutTheStore(t *testing.T) {
	why := errors.New("no route to host")
	began, err := share.Begin(t.Context(), share.Config{Store: away{why}, Name: "it", Own: twenty})
	if began || !errors.Is(err, why) {
		t.Errorf("%v, %v, want %v", began, err, why)
	}
}
