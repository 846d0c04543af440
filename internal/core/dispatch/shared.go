package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// Shared is the limits of several keys together, as of one organization, project or account: a
// request of one counts for all. Give the same *Shared to each, as Key.Shared or by
// Dispatcher.Share. An answer's statements about limits count for all of them, and a refusal keeps
// all of them away. Bans, denials, nonces and attempts in flight stay each key's own.
//
// The zero value has no limit and learns from answers. It belongs to the first Dispatcher that gets
// it, and must not be changed afterwards. Like that, it is not safe for concurrent use.
type Shared struct {
	// Name distinguishes it in reports.
	Name string
	// Limiter is the server's rule for all of the keys together. If nil, none. It belongs to this
	// Shared alone, as a Key's Limiter belongs to the key.
	Limiter limit.Limiter
	// Pause is as Key.Pause, for all of the keys.
	Pause time.Duration
	// Use and Ramp are as those of a Key, for all of the keys.
	Use  float64
	Ramp time.Duration
	// Resource is as Key.Resource, for all of the keys together. A key then counts in at most MaxShared/2.
	Resource func(name string) limit.Limiter

	of    *Dispatcher
	whole *Shared // of which these are the limits of one resource; nil: of none
	stack *stack.Stack
	limit *scheduler.Limit
}

// MaxShared is the most Shared in which a key may count at once.
const MaxShared = scheduler.MaxLimits - 2 // besides that of the key itself, and of a resource

// limits returns the stacks with the configured limits: the shared ones, or the key's own.
func (k *key) limits() []*stack.Stack { return k.stacks[min(len(k.shared), 1):] }

// Refills returns the units whose resets in an answer only say when a bucket is full again, as the
// key's limits know: see ability.Refills.
func (d *Dispatcher) Refills(key int, ans *Answer) (units uint8) {
	d.outcome = ans.Outcome // a pointer to ans would make the compiler allocate it
	for _, g := range d.keys[key].limits() {
		units |= g.Refills(&d.outcome)
	}
	return units
}

// paused returns the longest pause of a key and of its shared limits.
func (k *key) paused(now mono.Time) (p stack.Pause, away bool) {
	p.Next = mono.Min
	for _, g := range k.stacks {
		if its, is := g.Paused(now); is {
			next := max(its.Next, p.Next)
			if !away || its.Until > p.Until {
				p, away = its, true
			}
			p.Next = next
		}
	}
	return p, away
}

// AppendUsage appends the usage of the limits: see limit.AppendUsage.
func (s *Shared) AppendUsage(to []limit.Usage, now mono.Time) []limit.Usage {
	if s.stack == nil {
		return to
	}
	return limit.AppendUsage(to, s.stack, now)
}

// Share makes a key count in these limits from now on, in place of those that it shared before.
// There must be at least one and at most MaxShared. The key's requests in flight count in the new
// limits too, and leave the old ones with their answers. Requests answered before do not count in
// the new ones: first add them to a new Limiter by limit.Replay. After an error nothing has
// changed.
func (d *Dispatcher) Share(now mono.Time, key int, with ...*Shared) error {
	k := &d.keys[key]
	if len(with) == 0 {
		return fmt.Errorf("dispatch: key %s: Share without limits", k.name)
	}
	if slices.Equal(k.shared, with) {
		return nil
	}
	if err := d.shares(k, with); err != nil {
		return fmt.Errorf("dispatch: key %s: %w", k.name, err)
	}
	for sent := range k.stack.InFlight() {
		p := d.partOf(sent, key)
		for _, s := range with {
			if p.limits == nil || !k.apart {
				d.line.Join(now, sent, s.limit)
			}
			if its := d.together(p, s); its != nil {
				d.line.Join(now, sent, its.limit)
			}
		}
	}
	for _, p := range d.parts {
		d.withdraw(now, p)
		d.line.Retire(p.lane)
		d.lay(p)
	}
	return nil
}

// shares makes a key count in these limits, if it can.
func (d *Dispatcher) shares(k *key, with []*Shared) error {
	if len(with) > 0 && k.stack.Own() != nil {
		return errors.New("both Limiter and Shared: the limits of a key are its own, or shared")
	}
	most := MaxShared
	if slices.ContainsFunc(with, func(s *Shared) bool { return s != nil && s.Resource != nil }) {
		most /= 2
	}
	if len(with) > most {
		return fmt.Errorf("%d Shared, expected at most %d", len(with), most)
	}
	for i, s := range with {
		switch {
		case s == nil:
			return fmt.Errorf("limits Shared[%d] is nil", i)
		case slices.Contains(with[:i], s):
			return fmt.Errorf("limits Shared[%d] %q is there twice", i, s.Name)
		case s.of != nil && s.of != d:
			return fmt.Errorf("limits Shared[%d] %q belongs to another Dispatcher", i, s.Name)
		case s.of == nil:
			if whose := d.has(s.Limiter, with[:i]); whose != "" {
				return fmt.Errorf("limits Shared[%d] %q: Limiter is that of %s", i, s.Name, whose)
			}
		}
	}
	for i, s := range with { // a new one becomes a limit of the line
		if s.of != nil {
			continue
		}
		if err := d.enroll(s, ""); err != nil {
			return fmt.Errorf("limits Shared[%d] %q: %w", i, s.Name, err)
		}
	}
	k.shared, k.stacks, k.way = slices.Clone(with), []*stack.Stack{k.stack}, []*scheduler.Limit{k.limit}
	for _, s := range with {
		k.stacks, k.way = append(k.stacks, s.stack), append(k.way, s.limit)
	}
	return nil
}

// enroll makes a Shared a limit of the line. It is that of a resource, unless this is empty.
func (d *Dispatcher) enroll(s *Shared, resource string) error {
	g, err := stack.New(tries(resource, stack.Config{Limiter: s.Limiter, SlowAgain: true, Pause: pauses(s.Pause), Use: s.Use, Ramp: s.Ramp}))
	if err != nil {
		return err
	}
	s.of, s.stack, s.limit = d, g, d.line.Limit(g, scheduler.Sharing{})
	s.limit.Of = s
	d.made(s.Name, resource, s.Limiter, s.ofAll())
	return nil
}

// has returns who has a Limiter already: one of these Shared, a key, or a Shared of a key.
func (d *Dispatcher) has(l limit.Limiter, with []*Shared) (whose string) {
	same := func(s *Shared) bool { return s.Limiter == l }
	if at := slices.IndexFunc(with, same); l != nil && at >= 0 {
		return fmt.Sprintf("Shared[%d] %q", at, with[at].Name)
	}
	for i := range d.keys {
		if k := &d.keys[i]; l != nil && (k.stack.Own() == l || slices.ContainsFunc(k.shared, same)) {
			return fmt.Sprintf("Keys[%d] %q", i, k.name)
		}
	}
	return ""
}

// pauses returns how long a key, or a Shared, stays away after refusals without a stated time.
func pauses(pause time.Duration) backoff.Policy {
	if pause == 0 {
		pause = time.Second
	}
	return backoff.Policy{Base: pause, Max: max(pause, longestPause), Jitter: -1}
}

// touch reviews a key that was changed from outside, and the keys that share limits with it.
// Requests that wait for a shared limit would miss a change of the key itself.
func (d *Dispatcher) touch(key int) {
	for _, m := range d.keys[key].way {
		d.line.Touch(m)
	}
	for _, p := range d.parts[1:] {
		d.line.Touch(p.limits[key])
		for _, s := range p.of {
			d.line.Touch(s.limit)
		}
	}
}

// settle settles an attempt in all limits. For limits that its key has left, the attempt was never
// sent. The result holds until the next request goes.
func (d *Dispatcher) settle(now mono.Time, k *key, a *Attempt, ans *Answer) *limit.Sent {
	if len(k.shared) == 0 && a.part.limits == nil {
		d.outcome = ans.Outcome
		return d.line.Settle(now, a.pass, &d.outcome)
	}
	units := d.Refills(a.Key, ans)
	return d.line.SettleEach(now, a.pass, func(m *scheduler.Limit) *limit.Outcome {
		d.outcome = ans.Outcome
		switch {
		case a.part.limits != nil && m == a.part.limits[a.Key]:
			d.outcome = ans.ofResource()
			if units, is := a.part.refills(k, &d.outcome); is {
				d.outcome.Refilled(units)
				d.outcome.Known = 0
			}
		case m == k.limit && len(k.shared) == 0:
		case m == k.limit:
			d.outcome.Refilled(units)
			d.outcome.Known = 0 // the remainder belongs to all that share it
		case !slices.Contains(k.shared, m.Of.(*Shared).ofAll()):
			d.outcome = limit.Outcome{Result: limit.Unsent}
		case m.Of.(*Shared).whole != nil:
			d.outcome = ans.ofResource()
		case a.part.limits == nil:
			d.outcome = *ans.ofLimits()
		}
		return &d.outcome
	})
}
