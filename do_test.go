package paceline_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
)

// Whatever way f goes, its permit is settled: 1 in flight at a time, and the next one goes.
func TestDoSettles(t *testing.T) {
	boom := errors.New("boom")
	unknown := observe.Stats{Admitted: 1, Unknown: 1}
	for name, c := range map[string]struct {
		f    func() error
		err  error
		want observe.Stats
	}{
		"served":  {func() error { return nil }, nil, observe.Stats{Admitted: 1, Accepted: 1}},
		"failed":  {func() error { return boom }, boom, unknown},
		"panics":  {func() error { panic(boom) }, boom, unknown},
		"goes":    {func() error { runtime.Goexit(); return nil }, nil, unknown},
		"nothing": {nil, nil, unknown}, // a nil func panics
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := paceline.NewGate(concurrency(t, 1))
				var got error
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() {
						if v := recover(); v != nil && c.err != nil {
							got = v.(error)
						}
					}()
					got = gate.Do(bg, limit.One, c.f)
				})
				wg.Wait()
				if got != c.err {
					t.Errorf("error %v, want %v", got, c.err)
				}
				s := gate.Stats()
				s.At = time.Time{}
				if s != c.want {
					t.Errorf("stats %+v, want %+v", s, c.want)
				}
				if err := gate.Do(bg, limit.One, func() error { return nil }); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestDoWaitsAndSaysWhyNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := paceline.NewGate(limit.MustRolling(1, time.Second))
		start := time.Now()
		for range 3 {
			if err := gate.Do(bg, limit.One, func() error { time.Sleep(10 * ms); return nil }); err != nil {
				t.Error(err)
			}
		}
		// each second begins when the answer is there
		if took := time.Since(start); took < 2030*ms || took > 2035*ms {
			t.Errorf("three took %v, want 2.03 s and the limiter's margin", took)
		}
		ctx, cancel := context.WithTimeout(bg, 500*ms)
		defer cancel()
		err := gate.Do(ctx, limit.One, func() error { t.Error("ran"); return nil })
		var e *paceline.WaitError
		if !errors.As(err, &e) || e.Reason != paceline.ErrDeadline {
			t.Errorf("error %v", err)
		}
	})
}

func TestDoWithSaysWhatWasUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, err := limit.NewRolling(limit.RollingConfig{Limit: 100, Window: time.Minute, Unit: limit.Tokens})
		if err != nil {
			t.Fatal(err)
		}
		gate := paceline.NewGate(tokens)
		for _, used := range []int64{30, 30} { // 30 of 60 come back at once
			err := gate.DoWith(bg, limit.Cost{limit.Tokens: 60}, func() (limit.Outcome, error) {
				return limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Tokens: used}}, nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		if s := gate.Stats(); s.Accepted != 2 || s.Used[limit.Tokens] != 60 {
			t.Errorf("%+v", s)
		}
		boom := errors.New("boom")
		if err := gate.DoWith(bg, limit.Cost{limit.Tokens: 40}, func() (limit.Outcome, error) {
			return limit.Outcome{Result: limit.Unsent}, boom
		}); err != boom {
			t.Error(err)
		}
		if s := gate.Stats(); s.Unsent != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A Wait with an ended context, and one that gives up in line, report it by every method. Nothing
// is called, nothing is in flight, and a request that could go is not sent. The cause of the end is
// in the error.
func TestWhoeverHasEndedIsTold(t *testing.T) {
	over := errors.New("over")
	for _, inLine := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			j := group(t, paceline.GroupConfig{})
			a := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(1, time.Hour)})})
			if inLine {
				must(a.Wait(bg, limit.One)).Settle(accepted)
			}
			called := false
			asks := map[string]func(context.Context) error{
				"Wait":          func(ctx context.Context) error { _, err := a.Wait(ctx, limit.One); return err },
				"WaitWithStats": func(ctx context.Context) error { _, _, err := a.WaitWithStats(ctx, limit.One); return err },
				"WaitFrom":      func(ctx context.Context) error { _, _, err := a.WaitFrom(ctx, limit.One, time.Now()); return err },
				"WaitTurn": func(ctx context.Context) error {
					_, _, err := a.WaitTurn(ctx, limit.One, paceline.Turn{MaxWait: 2 * time.Hour})
					return err
				},
				"Do": func(ctx context.Context) error {
					return a.Do(ctx, limit.One, func() error { called = true; return nil })
				},
				"DoWith": func(ctx context.Context) error {
					return a.DoWith(ctx, limit.One, func() (limit.Outcome, error) { called = true; return accepted, nil })
				},
			}
			for name, ask := range asks {
				ctx, cancel := context.WithCancelCause(bg)
				if inLine {
					time.AfterFunc(time.Second, func() { cancel(over) })
				} else {
					cancel(over)
				}
				if err := ask(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, over) {
					t.Errorf("%s, in line %v: %v", name, inLine, err)
				}
			}
			if s := a.Stats(); called || s.Cancelled != int64(len(asks)) || s.InFlight != 0 || s.Waiting != 0 || (s.Admitted != 0) != inLine {
				t.Errorf("in line %v: called %v, %+v", inLine, called, s)
			}
		})
	}
}

// TestExampleSynctest runs the test that is an example: an example's file may have no test.
func TestExampleSynctest(t *testing.T) { testImporter(t) }
