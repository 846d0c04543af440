package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/text"
)

// notified returns the signals that end a run, until stop is called.
func notified() (signals chan os.Signal, stop func()) {
	// If the reader of the results goes away, the write must fail. Without this, the process would
	// die with requests in flight.
	signal.Ignore(syscall.SIGPIPE)
	end := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it; so does this program then
		end = append(end, syscall.SIGHUP)
	}
	signals = make(chan os.Signal, 2)
	signal.Notify(signals, end...)
	return signals, func() { signal.Stop(signals) }
}

// readerMayGo undoes what notified says of SIGPIPE: nothing is in flight, so the process dies with its reader, such as
// head, as other programs do.
func readerMayGo() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // Reset alone leaves an ignored signal ignored
	signal.Reset(syscall.SIGPIPE)
}

// atOnce is how long a further SIGTERM counts as the same one: timeout(1) sends it to a program,
// and then to its group.
const atOnce = 100 * time.Millisecond

// isAnother reports whether a signal is a second one, with which the user insists. SIGHUP is not,
// since a closing terminal may send it more than once. A SIGTERM that comes at once is not either.
func isAnother(s os.Signal, before time.Time) bool {
	return s != syscall.SIGHUP && (s != syscall.SIGTERM || time.Since(before) >= atOnce)
}

// insists waits for a second signal. It returns false if done is closed first.
func insists(signals <-chan os.Signal, done <-chan struct{}) bool {
	for before := time.Now(); ; {
		select {
		case <-done:
			return false
		case s := <-signals:
			if isAnother(s, before) {
				return true
			}
		}
	}
}

var errInterrupted = errors.New("interrupted; nothing was sent")

// interruptible waits for f until a signal comes. After that f still runs, so it must be harmless.
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

// interruptedWords describes the wait after a first signal: for the answers to n requests in flight
// or, if n is negative, to an unknown number.
func interruptedWords(n int) string {
	switch {
	case n == 0:
		return "interrupted: nothing is in flight any more"
	case n < 0:
		return "interrupted: waiting for answers; once more breaks them off"
	}
	return fmt.Sprintf("interrupted: waiting for %s; once more breaks %s off", text.Count(n, "answer", "answers"),
		map[bool]string{true: "it", false: "them"}[n == 1])
}

// listen drains at the first signal and aborts at the second. It reports whether a signal came.
func listen(signals <-chan os.Signal, done <-chan struct{}, r *run.Run, drain, abort func(), tell func(string)) bool {
	select {
	case <-done:
		return false
	case <-signals:
	}
	// Draining may wait for a slow reader of the results. A second signal must work meanwhile.
	inFlight := make(chan int, 1)
	go func() { drain(); inFlight <- r.Progress().InFlight }()
	n := -1 // not known
	select {
	case n = <-inFlight:
	case <-time.After(200 * time.Millisecond):
	}
	tell(interruptedWords(n))
	if insists(signals, done) {
		tell("interrupted again: breaking off what is in flight")
		abort()
		// A slow reader of the results may delay this.
		if insists(signals, done) {
			os.Exit(cli.ExitInterrupted)
		}
	}
	return true
}
