package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/paceline-go/paceline/internal/batch"
	"github.com/paceline-go/paceline/internal/shown"
)

// notified returns the signals that end a run, until stop is called.
func notified() (signals chan os.Signal, stop func()) {
	// A reader of the results that goes away is a write that fails, not a death with requests in flight.
	signal.Ignore(syscall.SIGPIPE)
	end := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		end = append(end, syscall.SIGHUP)
	}
	signals = make(chan os.Signal, 2)
	signal.Notify(signals, end...)
	return signals, func() { signal.Stop(signals) }
}

// insists waits for a signal that breaks off. A terminal that goes away may say so more than once, and nobody means anything by
// that. False: it is done.
func insists(signals <-chan os.Signal, done <-chan struct{}) bool {
	for {
		select {
		case <-done:
			return false
		case s := <-signals:
			if s != syscall.SIGHUP {
				return true
			}
		}
	}
}

var errInterrupted = errors.New("interrupted; nothing was sent")

// interruptible gives up waiting for f at a signal. f is harmless.
func interruptible(signals <-chan os.Signal, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-signals:
		return errInterrupted
	}
}

// listen drains at the first signal and aborts at the second. It returns whether there was one.
func listen(signals <-chan os.Signal, done <-chan struct{}, r *batch.Run, abort func(), screen *screen) bool {
	select {
	case <-done:
		return false
	case <-signals:
	}
	// Draining may have to deliver a result to somebody slow, who must not keep the second signal from us.
	inFlight := make(chan int, 1)
	go func() { r.Drain(); inFlight <- r.Progress().InFlight }()
	what := "answers"
	select {
	case n := <-inFlight:
		what = shown.Count(n, "answer", "answers")
	case <-time.After(200 * time.Millisecond):
	}
	screen.line(fmt.Sprintf("interrupted: waiting for %s; once more breaks them off", what))
	if insists(signals, done) {
		screen.line("interrupted again: breaking off what is in flight")
		abort()
		// Whoever reads the results may be what holds us up.
		if insists(signals, done) {
			os.Exit(exitInterrupted)
		}
	}
	return true
}
