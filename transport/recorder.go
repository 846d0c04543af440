package transport

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
)

// Recorder records sent requests for a later Transport, so that a restart keeps every window. It
// must be safe for concurrent use.
type Recorder interface {
	// Send records an attempt right before it may be written: its partition, with all fields of a
	// request, and its cost. The returned number is not 0. After an error the attempt is not sent,
	// and fails with that error.
	Send(p Partition, cost limit.Cost) (entry int64, err error)
	// Settle records the end of the attempt. An attempt that is never settled may have arrived at
	// any time until the process ended, and some time later.
	Settle(entry int64, cost limit.Cost, o limit.Outcome)
	// Earlier returns the requests of earlier processes that count in p, whose Scope is set. They
	// are in the order of their instants, for limit.Replay: instant 0 is zero. The list is complete
	// from since on.
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

// recall makes a limiter count the requests of earlier processes.
func (t *Transport) recall(p Partition, own limit.Limiter) {
	if t.config.Recorder == nil || own == nil {
		return
	}
	zero := t.group.Time(0)
	limit.SetEpoch(own, zero)
	all, since := t.config.Recorder.Earlier(p, zero)
	limit.Replay(own, mono.Of(zero, time.Now()), since, all)
}

// record writes an attempt to the Recorder, right before the attempt is written.
func (s *sent) record() (err error) {
	if s.t.config.Recorder == nil {
		return nil
	}
	if s.entry, err = s.t.config.Recorder.Send(s.partition(), s.cost); err != nil {
		return fmt.Errorf("transport: not sent, since it cannot be recorded: %w", err)
	}
	return nil
}
