package tally

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// The average is of all durations while they are few, and then follows the latest.
func TestLately(t *testing.T) {
	var l lately
	if l.Seconds() != 0 {
		t.Errorf("nothing takes %v s", l.Seconds())
	}
	for i, d := range []time.Duration{2 * time.Second, 4 * time.Second, 9 * time.Second} {
		l.add(d)
		if got, want := l.Seconds(), []float64{2, 3, 5}[i]; got != want {
			t.Errorf("after %d: %v s, want %v s", i+1, got, want)
		}
	}
	for range 1000 {
		l.add(time.Second)
	}
	if l.add(257 * time.Second); l.Seconds() < 1.9 || l.Seconds() > 2.1 { // one in 256
		t.Errorf("after a thousand of 1 s and one of 257 s: %v s, want about 2 s", l.Seconds())
	}
}

// The pace counts the ends in the latest complete thirty seconds, however long the run goes on. It
// is not known if nothing ended.
func TestPace(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	var p pace
	p.Begin(began, nil)
	after := func(d time.Duration, want float64, known bool) {
		t.Helper()
		if got, is := p.PerSecond(began.Add(d)); got != want || is != known {
			t.Errorf("after %v: %v %v, want %v %v", d, got, is, want, known)
		}
	}
	at := time.Duration(0)
	goesOn := func(until time.Duration, perSecond int) {
		for ; at < until; at += time.Second {
			for range perSecond {
				p.ended(began.Add(at))
			}
		}
	}
	goesOn(30*time.Second, 2)
	after(30*time.Second-1, 2*29./30, false)
	after(30*time.Second, 2, true)
	goesOn(200*time.Second, 2)
	after(200*time.Second, 2, true)
	goesOn(215*time.Second, 4)
	after(215*time.Second, 3, true)
	goesOn(300*time.Second, 4)
	after(300*time.Second, 4, true)
	after(310*time.Second, 4*20./30, true)
	after(330*time.Second, 0, true)
	after(time.Hour, 0, true)

	for _, c := range []struct {
		rate format.Rate
		span time.Duration // how far back the pace counts
	}{
		{format.Rate{N: 5, Per: time.Second}, 30 * time.Second}, {format.Rate{N: 5, Per: time.Minute}, 2 * time.Minute}, {format.Rate{N: 600, Per: time.Hour, Bucket: true}, 30 * time.Second}, {format.Rate{N: 20, Per: time.Hour, Bucket: true}, 6 * time.Minute},
	} {
		p.Begin(began, []format.Rate{{N: 1000, Per: time.Second}, c.rate})
		if got := p.slot * paceSlots; got != c.span {
			t.Errorf("%+v: what is looked at is %v, want %v", c.rate, got, c.span)
		}
	}
}
