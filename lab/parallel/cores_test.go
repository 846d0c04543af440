package parallel

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// Every job is kept once, and those that have nothing to keep are not missed.
func TestOnAll(t *testing.T) {
	var kept []int // with the race detector: one at a time
	err := OnAll(t.Context(), 1000, func() func(int) (func(), error) {
		own := 0 // of this core alone
		return func(i int) (func(), error) {
			if own++; i%3 == 0 {
				return nil, nil
			}
			return func() { kept = append(kept, i) }, nil
		}
	})
	slices.Sort(kept)
	if err != nil || len(kept) != 666 || kept[0] != 1 || kept[665] != 998 || len(slices.Compact(kept)) != 666 {
		t.Errorf("%v, %d kept", err, len(kept))
	}
}

// What fails is not kept, and no more is begun; nor when the context has ended.
func TestOnAllStops(t *testing.T) {
	failed := errors.New("failed")
	kept := 0
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		stop func()
		err  error
	}{{func() {}, failed}, {cancel, nil}} {
		kept = 0
		done := make(chan struct{}) // until the eleventh has ended, nobody gets past it
		err := OnAll(ctx, 1_000_000, Each(func(i int) (func(), error) {
			if i > 10 {
				<-done
			}
			if i == 10 {
				defer close(done)
				c.stop()
				return func() { kept = -1_000_000 }, c.err
			}
			return func() { kept++ }, nil
		}))
		if c.err == nil {
			kept += 1_000_000 // the eleventh did not fail, and is kept
		}
		if !errors.Is(err, c.err) || kept < 0 || kept > 100_000 {
			t.Errorf("%v: %v, %d kept", c.err, err, kept)
		}
	}
	if err := OnAll(ctx, 10, Each(func(int) (func(), error) { t.Error("begun"); return nil, nil })); err != nil {
		t.Error(err)
	}
}
