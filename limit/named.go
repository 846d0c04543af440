package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Named returns l under a name. The name distinguishes its verdicts from those of others: two
// limits of requests, or the limits of a model and of an organisation. All limits in an All get
// that one name. Change l itself (SetLimit, SetWindow); admit and settle through the returned
// Limiter. It panics if l is nil.
func Named(name string, l Limiter) Limiter {
	if l == nil {
		panic("limit: Named: the Limiter is nil")
	}
	return &named{l, [1]Limiter{l}, name}
}

type named struct {
	Limiter
	made [1]Limiter
	name string
}

// AppendState implements Keeper.
func (n *named) AppendState(b []byte) []byte {
	mustKeep(n)
	return n.Limiter.(Keeper).AppendState(b)
}

// Restore implements Keeper.
func (n *named) Restore(b []byte) error {
	if err := Keeps(n); err != nil {
		return err
	}
	if err := n.Limiter.(Keeper).Restore(b); err != nil {
		return fmt.Errorf("%s: %w", n.name, err)
	}
	return nil
}

// Configuration implements Keeper.
func (n *named) Configuration() string { return fmt.Sprintf("%q %s", n.name, configuration(n.Limiter)) }

// Span implements Keeper.
func (n *named) Span() time.Duration { return span(n.Limiter) }

// ReadyAfter implements Forecaster.
func (n *named) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return ReadyAfter(n.Limiter, now, first, cost)
}

// NotBefore implements Forecaster.
func (n *named) NotBefore(now mono.Time, ahead int, costs, cost Cost) mono.Time {
	return NotBefore(n.Limiter, now, ahead, costs, cost)
}
