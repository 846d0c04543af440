package xrate_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/contrib/xrate"
)

// delays reserves once for each that is wanted.
func delays(t *testing.T, l *xrate.Limiter, want ...time.Duration) (all []*xrate.Reservation) {
	t.Helper()
	for i, d := range want {
		r := l.Reserve()
		if !r.OK() || r.Delay() != d {
			t.Errorf("reservation %d: OK %v, in %v, want in %v", i, r.OK(), r.Delay(), d)
		}
		all = append(all, r)
	}
	return all
}

// Where one may go at a time, the only one that is reserved is counted on for the next.
func TestReserveOneByOne(t *testing.T) {
	in(t, 1, 10*time.Second, time.Second, func(t *testing.T, l *xrate.Limiter) {
		delays(t, l, 0, 11*time.Second, 22*time.Second, 33*time.Second)
	})
}

// So long as nobody counts on it, a reservation can be given back whatever was reserved behind it; afterwards no longer.
func TestCancelUnlessCountedOn(t *testing.T) {
	in(t, 2, 10*time.Second, time.Second, func(t *testing.T, l *xrate.Limiter) {
		first := delays(t, l, 0, 0, 11*time.Second, 11*time.Second)[2]
		first.Cancel()
		first = delays(t, l, 11*time.Second)[0] // in its place
		behind := delays(t, l, 22*time.Second)[0]
		first.Cancel()
		delays(t, l, 22*time.Second, 33*time.Second)
		behind.Cancel()
		time.Sleep(11 * time.Second)
		if l.Allow() {
			t.Error("somebody goes before those who reserved earlier")
		}
	})
}
