package guard

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// trial has the first request go alone until it is answered, or for so long: whoever is refused for good then costs one request, and
// not all that would have been in flight. The driver says with Try that an answer proved nothing. The zero trial is over.
type trial struct {
	long  time.Duration // 0: it is over
	first uint64        // the request that went; 0: none
	until mono.Time     // its patience
}

func (t *trial) on() bool { return t.long > 0 }

// ready is when the next request may go: now, or after another that goes now.
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

// settle takes in how a request ended: any answer ends it, and of what had none another finds out.
func (t *trial) settle(number uint64, r limit.Result) {
	switch {
	case number != t.first || t.first == 0:
	case r == limit.Unsent || r == limit.Unknown:
		t.first = 0
	default:
		*t = trial{}
	}
}

// Try has the next request be the first again, if the trial is on: what is about to be settled is no proof.
func (g *Guard) Try() { g.trial.first = 0 }
