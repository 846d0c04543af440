package limit

import (
	"slices"

	"github.com/paceline-go/paceline/mono"
)

// Foreseer is a Limiter that can tell what an Admit would do to the next request. Rolling, Calendar, Bucket, Produced, Weighted,
// Concurrency, Cooldown and Spacing are; All, Named and Fitted are if what they contain is: ask Foresees.
type Foreseer interface {
	Limiter
	// ReadyAfter returns what Ready(now, cost) would return after Admit(now, first), or something later, up to Never, where
	// that is more than it can tell. It changes nothing.
	ReadyAfter(now mono.Time, first, cost Cost) mono.Time
}

// Foresees reports whether l, with everything in it, is a Foreseer.
func Foresees(l Limiter) bool {
	switch l := l.(type) {
	case *All:
		for _, each := range l.each {
			if !Foresees(each) {
				return false
			}
		}
		return true
	case *Varying:
		return Foresees(&l.All)
	case *named:
		return Foresees(l.Limiter)
	case *Fitted:
		return Foresees(l.own)
	}
	_, ok := l.(Foreseer)
	return ok
}

// MayPass reports whether cost may go now ahead of a cost that waits and may go at ready: there is room for it, and the other may still
// go at ready afterwards. What is settled until then can make both of them earlier. Only what the limiter cannot know, an answer that
// used more than was admitted or a Retry-After, can make the other later. With a Limiter that does not foresee, nothing may pass.
func MayPass(l Limiter, now mono.Time, cost, waits Cost, ready mono.Time) bool {
	return ready < AfterSettle && l.Ready(now, cost) <= now && readyAfter(l, now, cost, waits) <= ready
}

func readyAfter(l Limiter, now mono.Time, first, cost Cost) mono.Time {
	if f, ok := l.(Foreseer); ok {
		return f.ReadyAfter(now, first, cost)
	}
	return Never
}

// ReadyAfter implements Foreseer.
func (a *All) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	t := max(now, a.last)
	for _, l := range a.each {
		t = max(t, readyAfter(l, now, first, cost))
	}
	return t
}

// ReadyAfter implements Foreseer.
func (n *named) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return readyAfter(n.Limiter, now, first, cost)
}

// both is a cost to ask for instead of cost, when first is open: what is open counts in full, as what is asked for does.
func (a *account) both(first, cost Cost) Cost {
	if w := cost.of(a.unit); w > 0 {
		cost[a.unit] = w + first.of(a.unit)
	}
	return cost
}

// ReadyAfter implements Foreseer.
func (r *Rolling) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return r.Ready(now, r.both(first, cost))
}

// ReadyAfter implements Foreseer.
func (c *Calendar) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return c.Ready(now, c.both(first, cost))
}

// ReadyAfter implements Foreseer.
func (l *Weighted) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return l.Ready(now, l.both(first, cost))
}

// ReadyAfter implements Foreseer.
func (b *Bucket) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	if b.pair != nil {
		return b.pair.ReadyAfter(now, first, cost)
	}
	if b.levels.len() > maxLevels { // Admit would simplify
		after := *b
		after.levels.list = slices.Clone(b.levels.list)
		after.levels.simplify()
		b = &after
	}
	both := b.both(first, cost)
	if b.alone && both.of(b.unit) > b.limit && first.of(b.unit) > 0 && cost.of(b.unit) > 0 {
		return AfterSettle // neither is alone
	}
	return b.Ready(now, both)
}

// ReadyAfter implements Foreseer.
func (c *Concurrency) ReadyAfter(now mono.Time, _, _ Cost) mono.Time {
	now = max(now, c.last)
	open := int64(c.book.Len()) + 1
	over := open + c.lingers.total + 1 - c.limit
	switch {
	case over <= 0:
		return now
	case open >= c.limit:
		return AfterSettle
	}
	return max(now, c.lingers.freed(over))
}

// ReadyAfter implements Foreseer.
func (c *Cooldown) ReadyAfter(now mono.Time, _, cost Cost) mono.Time { return c.Ready(now, cost) }

// ReadyAfter implements Foreseer.
func (s *Spacing) ReadyAfter(now mono.Time, _, _ Cost) mono.Time {
	return max(now, s.last).Add(s.gap)
}
