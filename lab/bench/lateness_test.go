package bench

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A machine is slow if one sleep in a hundred ends later than clients allow for, and its report says so.
func TestLateness(t *testing.T) {
	sleeps := func(n, late int, by time.Duration) (all []time.Duration) {
		for i := range n {
			d := 100 * time.Microsecond
			if i < late {
				d = by
			}
			all = append(all, d)
		}
		return all
	}
	for _, c := range []struct {
		late []time.Duration
		want Lateness
	}{
		{nil, Lateness{}},
		{sleeps(1000, 0, 0), Lateness{P99: 0.1}},
		{sleeps(1000, 9, time.Second), Lateness{P99: 0.1}}, // a pause of the machine is no lack of speed
		{sleeps(1000, 11, 3*time.Millisecond), Lateness{P99: 3}},
		{sleeps(1000, 11, 12*time.Millisecond), Lateness{P99: 12, Slow: true}},
	} {
		got := lateBy(c.late)
		if got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
		var b strings.Builder
		if err := (&Report{Lateness: got}).WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if says := strings.Contains(b.String(), "This machine was too slow: one sleep in a hundred ended 12 ms late"); says != c.want.Slow {
			t.Errorf("slow %v: %s", c.want.Slow, b.String())
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if got := lateBy(asleep(ctx)); got.Slow || got.P99 != 0 {
			t.Errorf("where nothing is late: %+v", got)
		}
	})
}
