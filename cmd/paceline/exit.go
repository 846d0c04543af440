package main

import "errors"

// Exit codes, the same for every verb.
const (
	exitOK          = 0
	exitFailure     = 1   // something went wrong that is not the requests' fault
	exitUsage       = 2   // a flag or an argument is wrong
	exitSomeFailed  = 3   // finished, some requests failed
	exitConfig      = 4   // bad configuration or input; nothing was sent
	exitBudget      = 5   // a deadline or a budget was reached; the run can be resumed
	exitExhausted   = 6   // every key is exhausted or banned
	exitInterrupted = 130 // Ctrl-C
)

// exitError carries an exit code with an error. If its message is empty, nothing is printed, because the verb has said it already.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}
func (e exitError) Unwrap() error { return e.err }

type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var e exitError
	var u usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &u):
		return exitUsage
	}
	return exitFailure
}
