package main

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// One signal sent twice is no insistence: timeout(1) sends SIGTERM to a program and to its group, a
// closing terminal SIGHUP.
func TestInsists(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal os.Signal
		after  time.Duration
		want   bool
	}{
		{"SIGTERM twice at once", syscall.SIGTERM, 0, false},
		{"SIGTERM, and once more", syscall.SIGTERM, atOnce, true},
		{"Ctrl-C twice", os.Interrupt, 0, true},
		{"SIGHUP at any time", syscall.SIGHUP, time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			signals, done := make(chan os.Signal), make(chan struct{})
			go func() {
				time.Sleep(c.after)
				signals <- c.signal
				if !c.want {
					close(done)
				}
			}()
			if got := insists(signals, done); got != c.want {
				t.Errorf("%s: insists %v, expected %v", c.name, got, c.want)
			}
		})
	}
}
