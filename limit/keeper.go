package limit

import (
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Keeper is a Limiter whose memory can be written down and read back, in another process too: package share keeps limits that many
// machines have in common so. Rolling, Calendar, Anchored, Bucket, Weighted, Produced and Cooldown are; All, Named and Fitted are if what
// they contain is: ask Keeps.
type Keeper interface {
	Limiter

	// AppendState appends to b what is remembered of settled requests, and what SetLimit, SetWindow, SetBurst and Extend have changed. Open
	// leases are not in it; nor is what a Fitted learned, which Lessons tell. Instants are on the driver's scale. It changes nothing. It
	// panics if Keeps has an error.
	AppendState(b []byte) []byte

	// Restore reads that into a Limiter that was just made with the same configuration. What is still open is admitted before, at the
	// instants at which it was, in their order: afterwards no Admit counts as earlier than the last change. Then every method says, to
	// the nanosecond, what that of the first limiter does. The error says where the state is damaged, or of something else; after it
	// this limiter is not to be used.
	Restore(state []byte) error

	// Configuration says in a line how it is configured now: "Rolling: 20 requests per 1s, margin 1.2ms". Limiters that are configured
	// alike say the same, and others something else.
	Configuration() string

	// Span is how long a settled request counts at most after the upper bound of its arrival, as it is configured now. A pause that a
	// server asked for may be longer.
	Span() time.Duration
}

// Keeps says whether the state of l, with everything in it, can be written down: nil, or an error that names what cannot. A OneWayMax and a
// LearnLead rest on round trips that one process has measured, and are not kept.
func Keeps(l Limiter) error {
	switch l := l.(type) {
	case *All:
		for _, each := range l.each {
			if err := Keeps(each); err != nil {
				return err
			}
		}
		return nil
	case *Varying:
		return Keeps(&l.All)
	case *named:
		return Keeps(l.Limiter)
	case *Fitted:
		return Keeps(l.own)
	case interface{ keeps() error }:
		return l.keeps()
	}
	if _, ok := l.(Keeper); !ok {
		return fmt.Errorf("limit: the state of a %T cannot be kept", l)
	}
	return nil
}

func (a *account) keeps() error {
	switch {
	case a.pair != nil:
		return fmt.Errorf("limit: a limit of %v with a OneWayMax cannot be kept", a.unit)
	case a.lead != nil:
		return fmt.Errorf("limit: a limit of %v with LearnLead cannot be kept", a.unit)
	}
	return nil
}

// mustKeep panics where Keeps has an error, which is to be asked before.
func mustKeep(l Limiter) {
	if err := Keeps(l); err != nil {
		panic(err.Error())
	}
}

// AppendState implements Keeper.
func (a *All) AppendState(b []byte) []byte {
	mustKeep(a)
	w := begun(b, 'a')
	w.instant(a.last)
	w.number(int64(len(a.each)))
	for _, l := range a.each {
		part := l.(Keeper).AppendState(nil)
		w.number(int64(len(part)))
		w = append(w, part...)
	}
	return w
}

// Restore implements Keeper.
func (a *All) Restore(b []byte) error {
	if err := Keeps(a); err != nil {
		return err
	}
	r := reading("All", 'a', b)
	last := r.instant("the last change")
	if n := r.number("the number of limits", 0, int64(len(b))); r.err == nil && n != int64(len(a.each)) {
		return r.fail("it is of %d limits, not %d", n, len(a.each))
	}
	for i, l := range a.each {
		part := r.bytes("a limit")
		if r.err != nil {
			break
		}
		if err := l.(Keeper).Restore(part); err != nil {
			return fmt.Errorf("limit: All: limit %d of %d: %w", i+1, len(a.each), err)
		}
	}
	a.last = max(a.last, last)
	return r.end()
}

// Configuration implements Keeper.
func (a *All) Configuration() string {
	var parts []string
	for _, l := range a.each {
		parts = append(parts, configuration(l))
	}
	return "All [" + strings.Join(parts, "; ") + "]"
}

func configuration(l Limiter) string {
	if k, ok := l.(Keeper); ok {
		return k.Configuration()
	}
	return fmt.Sprintf("%T", l)
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

// AppendState implements Keeper: what the Limiter in it remembers.
func (f *Fitted) AppendState(b []byte) []byte {
	mustKeep(f)
	return f.own.(Keeper).AppendState(b)
}

// Restore implements Keeper.
func (f *Fitted) Restore(b []byte) error {
	if err := Keeps(f); err != nil {
		return err
	}
	return f.own.(Keeper).Restore(b)
}

// Configuration implements Keeper: that of the Limiter in it.
func (f *Fitted) Configuration() string { return configuration(f.own) }

// AppendState implements Keeper.
func (c *Cooldown) AppendState(b []byte) []byte {
	w := begun(b, 'd')
	w.instant(c.last)
	w.instant(c.until)
	return w
}

// Restore implements Keeper.
func (c *Cooldown) Restore(b []byte) error {
	r := reading("Cooldown", 'd', b)
	last, until := r.instant("the last change"), r.instant("the end of the pause")
	if err := r.end(); err != nil {
		return err
	}
	c.last, c.until = max(c.last, last), until
	return nil
}

// Configuration implements Keeper.
func (c *Cooldown) Configuration() string { return fmt.Sprintf("Cooldown: pause %v", c.pause) }

// keep writes the state that all limiters with an account have in common.
func (a *account) keep(b []byte, kind byte) state {
	if err := a.keeps(); err != nil {
		panic(err.Error())
	}
	w := begun(b, kind)
	w.instant(a.last)
	w.number(a.limit)
	w.number(int64(a.window))
	return w
}

// restored is the state that keep wrote, read and not yet put to use.
type restored struct {
	last   mono.Time
	limit  int64
	window int64
}

func (r *reader) account() (s restored) {
	s.last = r.instant("the last change")
	s.limit = r.number("the limit", 1, MaxCost)
	s.window = r.number("the window", 1, int64(mono.Max))
	return s
}

// Span implements Keeper: the longest of all.
func (a *All) Span() (most time.Duration) {
	for _, l := range a.each {
		most = max(most, span(l))
	}
	return most
}

func span(l Limiter) time.Duration {
	if k, ok := l.(Keeper); ok {
		return k.Span()
	}
	return 0
}

// Span implements Keeper.
func (n *named) Span() time.Duration { return span(n.Limiter) }

// Span implements Keeper.
func (f *Fitted) Span() time.Duration { return span(f.own) }

// Span implements Keeper. It is the pause after a refusal that names none.
func (c *Cooldown) Span() time.Duration { return c.pause }
