package limit

import "github.com/paceline-go/paceline/mono"

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
	if e, ok := l.(Explainer); ok {
		return e.Explain(now, cost)
	}
	return l.Ready(now, cost), Bound{Name: "limit"}
}

// Named returns l under a name, for its verdicts to be told from those of others: two limits of requests, the limit of a
// model and that of an organisation. The limits in an All all get that one name. Change l itself (SetLimit, SetWindow); admit and
// settle through what is returned. It panics if l is nil.
func Named(name string, l Limiter) Limiter {
	if l == nil {
		panic("limit: Named: the Limiter is nil")
	}
	return &named{l, name}
}

type named struct {
	Limiter
	name string
}

func (n *named) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	at, b := Explain(n.Limiter, now, cost)
	b.Name = n.name
	return at, b
}

// Explain implements Explainer.
func (a *All) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	t, last := max(now, a.last), -1
	for i, l := range a.each {
		if at := l.Ready(now, cost); last < 0 || at > t {
			t, last = max(t, at), i
		}
	}
	if last < 0 {
		return t, Bound{Name: "limit"}
	}
	_, b := Explain(a.each[last], now, cost)
	return t, b
}

func (a *account) bound(cost *Cost) Bound {
	return Bound{Name: a.unit.String(), Unit: a.unit, Size: cost.of(a.unit), Most: a.limit}
}

// Explain implements Explainer.
func (r *Rolling) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return r.Ready(now, cost), r.bound(&cost)
}

// Explain implements Explainer.
func (c *Calendar) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return c.Ready(now, cost), c.bound(&cost)
}

// Explain implements Explainer.
func (a *Anchored) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return a.Ready(now, cost), a.bound(&cost)
}

// Explain implements Explainer. The limit is what the full bucket holds.
func (b *Bucket) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return b.Ready(now, cost), b.bound(&cost)
}

// Explain implements Explainer.
func (l *Weighted) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return l.Ready(now, cost), l.bound(&cost)
}

// Explain implements Explainer.
func (c *Concurrency) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return c.Ready(now, cost), Bound{Name: "concurrency", Size: 1, Most: c.limit}
}

// Explain implements Explainer.
func (c *Cooldown) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return c.Ready(now, cost), Bound{Name: "cool-down", Size: 1}
}

// Explain implements Explainer.
func (s *Spacing) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return s.Ready(now, cost), Bound{Name: "spacing", Size: 1}
}

// Explain implements Explainer.
func (s *Sequence) Explain(now mono.Time, cost Cost) (mono.Time, Bound) {
	return s.Ready(now, cost), Bound{Name: "sequence", Size: 1}
}
