package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Bound says which limit a verdict comes from, and how much of it was asked for.
type Bound struct {
	// Name is what the limit is called: as given to Named, or "requests", "tokens" (its Unit), "concurrency", "cool-down",
	// "spacing", "sequence", or "limit" for one that does not say.
	Name string
	// Unit is what it counts, Size what the cost has of that, and Most what it allows. Most is 0 if it is no number.
	Unit Unit
	Size int64
	Most int64
}

// Explainer is a Limiter that can say which limit its verdict comes from. All limiters of this package are.
type Explainer interface {
	Limiter
	// Explain returns what Ready returns, and the limit that this comes from: the one that is ready last, and if there are several of
	// those the first. If the cost may go now the Bound means nothing. Like Ready it changes nothing.
	Explain(now mono.Time, cost Cost) (mono.Time, Bound)
}

// Explain asks l, whether it is an Explainer or not.
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

// Named returns l under a name, for its verdicts to be told from those of others: two limits of requests, the limit of a
// model and that of an organisation. The limits in an All all get that one name. Change l itself (SetLimit, SetWindow); admit and
// settle through what is returned. It panics if l is nil.
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

func (n *named) Fresh(lease Lease) bool { return Fresh(n.Limiter, lease) }

// ReadyAfter implements Foreseer.
func (n *named) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return ReadyAfter(n.Limiter, now, first, cost)
}

// NotBefore implements Forecaster.
func (n *named) NotBefore(now mono.Time, ahead int, costs, cost Cost) mono.Time {
	return NotBefore(n.Limiter, now, ahead, costs, cost)
}
