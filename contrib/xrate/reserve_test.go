package xrate_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/contrib/xrate"
)

// delays makes one reservation for each wanted delay.
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

// Where one may go at a time, the next reservation settles the only one before it.
func TestReserveOneByOne(t *testing.T) {
	in(t, 1, 10*time.Second, time.Second, func(t *testing.T, l *xrate.Limiter) {
		delays(t, l, 0, 11*time.Second, 22*time.Second, 33*time.Second)
	})
}

// A reservation can be cancelled, whatever was reserved behind it, until a later one has settled
// it.
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
