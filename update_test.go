package paceline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

func TestUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := rolling(t, 10, time.Second)
		g := paceline.NewGate(r)
		set := func(n int64) {
			g.Update(func(now mono.Time) {
				if now != mono.Time(time.Since(start)) {
					t.Errorf("now is %v, want %v", now, time.Since(start))
				}
				if err := r.SetLimit(now, n); err != nil {
					t.Error(err)
				}
			})
		}
		open := <-waiting(bg, g, weight(0, 10)) // never settled: only Update makes room
		soon, cancel := context.WithTimeout(bg, 700*ms)
		defer cancel()
		a, b, c, d := waiting(bg, g, weight(1, 5)), waiting(bg, g, weight(2, 9)), waiting(bg, g, weight(3, 2)), waiting(bg, g, weight(4, 3))
		time.Sleep(500 * ms)
		if s := state(start, a, b, c, d); s != "-, -, -, -" {
			t.Fatal(s)
		}
		set(8) // not the head: it fails all the same, and those behind go on waiting
		if s := state(start, b, a, c, d); s != "never, -, -, -" {
			t.Fatal(s)
		}
		set(15)
		if s := state(start, a, c, d); s != "ok, -, -" {
			t.Fatal(s)
		}
		set(20)
		if s := state(start, c, d); s != "ok, ok" {
			t.Fatal(s)
		}
		e, f, h := waiting(bg, g, weight(5, 9)), waiting(soon, g, weight(6, 1)), waiting(bg, g, weight(7, 2))
		set(4)                                                                // the head
		if s := state(start, e, f, h); s != "never, deadline (ready 1s), -" { // all that is open counts until then at least
			t.Fatal(s)
		}
		time.Sleep(time.Second)
		if s := state(start, h); s != "-" {
			t.Fatal(s)
		}
		// 10 weight of a settled request leave at 2.5 s, the 10 open of a, c and d stay.
		open.p.Settle(accepted)
		set(12)
		time.Sleep(999 * ms)
		if s := state(start, h); s != "-" {
			t.Fatal(s)
		}
		time.Sleep(ms)
		if s := state(start, h); s != "ok" {
			t.Fatal(s)
		}
		if g.Waiting() != 0 {
			t.Errorf("%d wait", g.Waiting())
		}
	})
}

func TestUpdateThatMakesADeadlineHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		cool, err := limit.NewCooldown(0)
		if err != nil {
			t.Fatal(err)
		}
		g := paceline.NewGate(cool)
		g.Update(func(now mono.Time) { cool.Extend(now.Add(time.Hour)) })
		ctx, cancel := context.WithTimeout(bg, 2*time.Hour)
		defer cancel()
		head, behind := waiting(bg, g, limit.One), waiting(ctx, g, limit.One)
		time.Sleep(time.Minute)
		g.Update(func(now mono.Time) { cool.Extend(now.Add(3 * time.Hour)) })
		if s := state(start, head, behind); s != "-, deadline (ready 3h1m0s)" {
			t.Fatal(s)
		}
		(<-head).p.Settle(accepted)
		if d := time.Since(start); d != 3*time.Hour+time.Minute {
			t.Errorf("the head went at %v, want 3h1m", d)
		}
	})
}

func TestUpdateThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := concurrency(t, 1)
		g := paceline.NewGate(c)
		<-waiting(bg, g, limit.One)
		next := waiting(bg, g, limit.One)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is lost")
				}
			}()
			g.Update(func(now mono.Time) {
				if err := c.SetLimit(now, 2); err != nil {
					t.Error(err)
				}
				panic("half way")
			})
		}()
		if s := state(time.Now(), next); s != "ok" {
			t.Errorf("the head after the panic: %s, want ok", s)
		}
	})
}
