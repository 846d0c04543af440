package cli

import "errors"

// Exit codes, the same for every verb.
const (
	ExitOK          = 0
	ExitFailure     = 1   // a failure apart from the requests
	ExitUsage       = 2   // a flag or an argument is wrong
	ExitSomeFailed  = 3   // finished, some requests failed
	ExitConfig      = 4   // bad configuration or input; nothing was sent
	ExitBudget      = 5   // a deadline or a budget was reached; the run can be resumed
	ExitExhausted   = 6   // every key is exhausted or banned
	ExitInterrupted = 130 // Ctrl-C
)

// Error is an error with an exit code. Without Err nothing is printed: the verb has printed it
// already.
type Error struct {
	Code int
	Err  error
}

func (e Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e Error) Unwrap() error { return e.Err }

// Exit is err with an exit code. err may be nil, see Error.
func Exit(code int, err error) error { return Error{code, err} }

// Usage is err as the error of a wrong command line. It does not hide the code of an Error in err.
func Usage(err error) error { return usageError{err} }

type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Code returns the exit code of an error.
func Code(err error) int {
	if err == nil {
		return ExitOK
	}
	if e, ok := errors.AsType[Error](err); ok {
		return e.Code
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return ExitUsage
	}
	return ExitFailure
}
