package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Bound says which limit a verdict comes from, and how much of it the cost asks for.
type Bound struct {
	// Name is the limit's name: as given to Named, or "requests", "tokens" (its Unit),
	// "concurrency", "cool-down", "spacing" or "sequence". It is "limit" for a limiter that gives
	// none.
	Name string
	// Unit is what the limit counts, Size the cost in that unit, and Most what the limit allows.
	// Most is 0 if the limit is no number.
	Unit Unit
	Size int64
	Most int64
}

// Explainer is a Limiter that knows which limit its verdict comes from. All limiters of this
// package are.
type Explainer interface {
	Limiter
	// Explain returns the instant of Ready, and the limit behind it: the one that is ready last,
	// and the first of several such. If the cost may go now, the Bound means nothing. Explain
	// changes nothing.
	Explain(now mono.Time, cost Cost) (mono.Time, Bound)
}

// Explain works for every l, whether it is an Explainer or not.
func Explain(l Limiter, now mono.Time, cost Cost) (mono.Time, Bound) {
	b := Bound{Name: "limit"}
	if e, ok := l.(Explainer); ok {
		return e.Explain(now, cost)
	}
	w, ok := l.(wrapper)
	if !ok {
		return l.Ready(now, cost), b
	}
	t, last := now, Limiter(nil)
	for _, part := range w.Unwrap() {
		if at := part.Ready(now, cost); last == nil || at > t {
			t, last = max(t, at), part
		}
	}
	if last != nil {
		_, b = Explain(last, now, cost)
	}
	if n, ok := l.(*named); ok {
		b.Name = n.name
	}
	return l.Ready(now, cost), b
}

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
