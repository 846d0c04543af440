package stack

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// trial makes the first request go alone until it is answered, or until its time is over. So a key
// that is refused for good costs one request at a time, and not all that would have been in flight.
// A server may ban a key after ten refusals. By Try the driver notes that an answer proved nothing.
// The zero trial is over.
type trial struct {
	long  time.Duration // 0: it is over
	first uint64        // the request in flight; 0: none
	until mono.Time     // how long its answer is awaited
}

func (t *trial) on() bool { return t.long != 0 }

// ready returns when the next request may go: now, or, if another goes now, after that.
func (t *trial) ready(now mono.Time, another bool) mono.Time {
	switch {
	case !t.on():
	case t.first != 0:
		return max(now, t.until)
	case another:
		return now.Add(t.long)
	}
	return now
}

func (t *trial) admit(now mono.Time, number uint64) {
	switch {
	case !t.on():
	case t.first == 0:
		t.first, t.until = number, now.Add(t.long)
	case now >= t.until:
		*t = trial{}
	}
}

// settle notes how a request ended. Any answer but a refusal ends the trial. Without an answer or
// after a refusal, another request goes alone.
func (t *trial) settle(number uint64, r limit.Result) {
	switch {
	case number != t.first || t.first == 0:
	case r == limit.Unsent || r == limit.Unknown || r == limit.Limited:
		t.first = 0
	default:
		*t = trial{}
	}
}

// Try begins the trial anew with the next request, if it is on. It is for an answer that proved
// nothing, before its Settle.
func (g *Stack) Try() { g.trial.first = 0 }
