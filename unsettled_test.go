package paceline_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/frontend"
	"github.com/paceline-go/paceline/limit"
)

// unsettledLines returns what is said of permits.
func unsettledLines(l *lines) (said []string) {
	for _, s := range l.take() {
		if before, _, ok := strings.Cut(s, " limit="); ok && strings.Contains(s, "unsettled") {
			said = append(said, before)
		}
	}
	return said
}

func TestUnsettledPermitsAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		gate, err := paceline.NewGateWith(paceline.GateConfig{Limiter: concurrency(t, 20), Logger: slog.New(log)})
		if err != nil {
			t.Fatal(err)
		}
		var forgotten []paceline.Permit
		for range 20 {
			p, err := gate.Wait(bg, limit.One)
			if err != nil {
				t.Fatal(err)
			}
			forgotten = append(forgotten, p)
			time.Sleep(6 * time.Second)
		}
		go gate.Wait(bg, limit.One) // 2:00: the oldest has been open for 2 min
		ctx, cancel := context.WithTimeout(bg, 3*time.Minute)
		defer cancel()
		_, err = gate.Wait(ctx, limit.One) // gives up at 5:00
		var e *paceline.WaitError
		if !errors.As(err, &e) || e.Unsettled != 20 || e.Oldest.Round(10*time.Second) != 5*time.Minute {
			t.Errorf("error %+v", err)
		} else if !strings.Contains(err.Error(), "20 permits unsettled, the oldest for 5m0s") {
			t.Errorf("error says %q", err)
		}
		time.Sleep(5*time.Minute + time.Second)
		forgotten[0].Settle(accepted)
		forgotten[1].Settle(accepted) // 10:01: nobody waits any more
		time.Sleep(time.Hour)
		want := []string{ // after one minute in which nobody went, two, four and so on
			"concurrency: 2 waiting, 20 permits unsettled, the oldest for 3m0s",
			"concurrency: 2 waiting, 20 permits unsettled, the oldest for 4m0s",
			"concurrency: 1 waiting, 20 permits unsettled, the oldest for 6m0s",
			"concurrency: 1 waiting, 20 permits unsettled, the oldest for 10m0s",
		}
		got := unsettledLines(log)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// The permits of a limit are counted by their number, also where the limiter does not know it. Where
// room comes from elsewhere, a Settle is not the only help, and nothing is said.
func TestUnsettledOfLimitersThatDoNotCount(t *testing.T) {
	for want, l := range []limit.Limiter{&frontend.Fed{Room: 1}, struct{ limit.Limiter }{&frontend.Fed{Room: 1}}} {
		synctest.Test(t, func(t *testing.T) {
			gate := paceline.NewGate(l)
			if _, err := gate.Wait(bg, limit.One); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(bg, 3*time.Minute)
			defer cancel()
			_, err := gate.Wait(ctx, limit.One)
			var e *paceline.WaitError
			if !errors.As(err, &e) || e.Unsettled != want || e.Oldest != time.Duration(want)*3*time.Minute {
				t.Errorf("%T: %v, want %d unsettled", l, err, want)
			}
		})
	}
}

// Nothing is said where the line moves, or where time alone will help.
func TestNobodySaysUnsettledWhereSomebodyGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		logger := slog.New(log)
		for name, l := range map[string]limit.Limiter{"in flight": concurrency(t, 2), "a window": limit.MustRolling(1, time.Hour)} {
			gate, err := paceline.NewGateWith(paceline.GateConfig{Limiter: l, Logger: logger})
			if err != nil {
				t.Fatal(err)
			}
			slow, _ := gate.Wait(bg, limit.One)
			if name == "a window" {
				slow.Settle(accepted)
			}
			ctx, cancel := context.WithTimeout(bg, 2*time.Hour)
			for n := 0; ctx.Err() == nil && n < 240; n++ { // 50 s each, one after the other
				gate.Do(ctx, limit.One, func() error { time.Sleep(50 * time.Second); return nil })
			}
			cancel()
			if name != "a window" {
				slow.Settle(accepted)
			}
		}
		if got := unsettledLines(log); len(got) > 0 {
			t.Errorf("logged %q", got)
		}
	})
}

// A line that moves now and then is stuck only since the latest admission, and an empty one not at
// all.
func TestStuckSinceTheLatestThatWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		gate, err := paceline.NewGateWith(paceline.GateConfig{Limiter: concurrency(t, 2), Logger: slog.New(log)})
		if err != nil {
			t.Fatal(err)
		}
		forgotten, _ := gate.Wait(bg, limit.One)
		slow, _ := gate.Wait(bg, limit.One)
		wait := func(d time.Duration) error {
			ctx, cancel := context.WithTimeout(bg, d)
			defer cancel()
			_, err := gate.Wait(ctx, limit.One)
			return err
		}
		go wait(time.Hour) // goes at 0:50, and is forgotten, too
		time.Sleep(ms)
		go wait(4 * time.Minute) // stuck since 0:50
		time.Sleep(50 * time.Second)
		slow.Settle(accepted)
		time.Sleep(50 * time.Second) // 1:40: a minute after the first began to wait, but nobody has for long
		if got := unsettledLines(log); len(got) > 0 {
			t.Errorf("at 1:40 %q", got)
		}
		time.Sleep(20 * time.Second) // 2:00
		if got := unsettledLines(log); len(got) != 1 || !strings.Contains(got[0], "2 permits unsettled, the oldest for 1m5") {
			t.Errorf("at 2:00 %q", got)
		}
		time.Sleep(3 * time.Minute) // 5:00: nobody waits any more since 4:00; it was said again after two minutes
		if got := unsettledLines(log); len(got) != 1 {
			t.Errorf("at 5:00 %q", got)
		}
		wait(90 * time.Second) // 6:30: a new one, after a minute, though the last look would have been later
		if got := unsettledLines(log); len(got) != 1 || !strings.Contains(got[0], "1 waiting, 2 permits unsettled, the oldest for 6m0s") {
			t.Errorf("at 6:30 %q", got)
		}
		wait(45 * time.Minute) // the last look was at the 32nd minute of it, the next would be at the 64th
		log.take()
		forgotten.Settle(accepted)
		wait(0)
		gate.TryWait(limit.One) // forgotten as well
		wait(90 * time.Second)
		if got := unsettledLines(log); len(got) != 1 {
			t.Errorf("after another went: %q", got)
		}
	})
}

// The oldest of the open permits is the oldest, in whatever order they are settled.
func TestAgesAgainstAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			gate := paceline.NewGate(concurrency(t, 8))
			type open struct {
				paceline.Permit
				at time.Time
			}
			var all []open
			for range 200 {
				time.Sleep(time.Duration(rnd.IntN(90)) * time.Second)
				if p, _, ok := gate.TryWait(limit.One); ok {
					all = append(all, open{p, time.Now()})
					continue
				}
				ctx, cancel := context.WithTimeout(bg, time.Millisecond)
				_, err := gate.Wait(ctx, limit.One)
				cancel()
				var e *paceline.WaitError
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				oldest := time.Since(all[0].at)
				if d := e.Oldest - oldest; e.Unsettled > 0 && (e.Unsettled != len(all) || d != 0) || e.Unsettled == 0 && oldest > time.Minute {
					t.Fatalf("seed %d: %d unsettled, the oldest for %v, want %d and %v", seed, e.Unsettled, e.Oldest, len(all), oldest)
				}
				for range 1 + rnd.IntN(len(all)) {
					i := rnd.IntN(len(all))
					all[i].Settle(accepted)
					all = append(all[:i], all[i+1:]...)
				}
			}
		}
	})
}

// That others come, and give up, makes it no more frequent.
func TestStuckIsSaidEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		adaptive, err := limit.NewAdaptive(limit.AdaptiveConfig{Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		for name, l := range map[string]limit.Limiter{"in flight": concurrency(t, 1), "adaptive": adaptive} {
			log := &lines{}
			gate, err := paceline.NewGateWith(paceline.GateConfig{Limiter: l, Logger: slog.New(log)})
			if err != nil {
				t.Fatal(err)
			}
			forgotten, _ := gate.Wait(bg, limit.One)
			for range 6 * 70 { // somebody waits all the time, each for 15 s
				ctx, cancel := context.WithTimeout(bg, 15*time.Second)
				go func() {
					defer cancel()
					gate.Wait(ctx, limit.One)
				}()
				time.Sleep(10 * time.Second)
			}
			time.Sleep(time.Minute)
			forgotten.Settle(accepted)
			if said := unsettledLines(log); len(said) != 7 { // after 1, 2, 4, … 64 min
				t.Errorf("%s: said %d times: %q", name, len(said), said)
			}
		}
	})
}
