package transport

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
)

// Recorder remembers what was sent for a Transport that comes after this one, so that a restart forgets no window. It must be safe for
// concurrent use.
type Recorder interface {
	// Send is told of an attempt right before it may be written: what it counts in, with all fields of a request, and what it costs.
	// The number that it returns is not 0. If there is an error the attempt is not sent, and fails with it.
	Send(p Partition, cost limit.Cost) (entry int64, err error)
	// Settle is told how the attempt ended. One that is never settled may have arrived until the process ended, and some time later.
	Settle(entry int64, cost limit.Cost, o limit.Outcome)
	// Earlier returns what earlier processes sent that counts in p, whose Scope is set, in the order of its instants, for limit.Replay:
	// instant 0 is zero, and since is from when on it is all.
	Earlier(p Partition, zero time.Time) (all []limit.Past, since mono.Time)
}

// In reports whether requests of p count in the limits of scope, whose Scope is set.
func (p Partition) In(scope Partition) bool {
	switch scope.Scope {
	case provider.All:
		return true
	case ScopeClient:
		return p.Client == scope.Client
	}
	q, ok := p.at(scope.Scope)
	return (ok || scope.Scope == provider.Model) && q == scope // requests without a model count together
}

// recall makes a limiter count what earlier processes sent.
func (t *Transport) recall(p Partition, own limit.Limiter) {
	if t.config.Recorder == nil || own == nil {
		return
	}
	zero := t.group.Time(0)
	all, since := t.config.Recorder.Earlier(p, zero)
	limit.Replay(own, mono.Of(zero, time.Now()), since, all)
}

// record tells the Recorder of an attempt that is about to be written.
func (s *sent) record() (err error) {
	if s.t.config.Recorder == nil {
		return nil
	}
	if s.entry, err = s.t.config.Recorder.Send(s.partition(), s.cost); err != nil {
		return fmt.Errorf("transport: not sent, since it cannot be recorded: %w", err)
	}
	return nil
}
