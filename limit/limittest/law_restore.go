package limittest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// restore checks law 14. The program goes on with limiters made of the states of those before.
func (r *run) restore(b byte) error {
	if limit.Keeps(r.subject) != nil || r.News != nil || r.ClosedLoop {
		return nil
	}
	state := limit.AppendState([]byte("before"), r.subject)
	if !strings.HasPrefix(string(state), "before") {
		return fmt.Errorf("law 14: AppendState does not append")
	}
	state = state[len("before"):]
	if err := r.damaged(state, b); err != nil {
		return fmt.Errorf("law 14: %w", err)
	}
	next := r.New()
	for _, s := range r.open {
		next.Admit(s.sent)
	}
	if err := limit.Restore(next, state); err != nil {
		return fmt.Errorf("law 14: its own state is refused: %w", err)
	}
	if again := limit.AppendState(nil, next); !slices.Equal(again, state) {
		return fmt.Errorf("law 14: of the state %x comes the state %x", state, again)
	}
	if was, is := limit.Configuration(r.subject), limit.Configuration(next); was != is {
		return fmt.Errorf("law 14: %q has become %q", was, is)
	}
	for _, d := range []time.Duration{0, 1, r.Scale / 3, 3 * r.Scale, -r.Scale} {
		for _, c := range r.Costs {
			if was, is := said(r.subject, r.now.Add(d), c), said(next, r.now.Add(d), c); was != is {
				return fmt.Errorf("law 14: at %v Ready, Explain and ReadyAfter of cost %v said %v; restored, they say %v", r.now.Add(d), c, was, is)
			}
		}
	}
	r.subject = next
	r.gauge.counted = limit.Cost{} // the totals are of one process
	return r.restoreTwin()
}

func (r *run) restoreTwin() error {
	state := limit.AppendState(nil, r.twin)
	next := r.New()
	for _, s := range r.open {
		next.Admit(s.twin)
	}
	r.twin = next
	return limit.Restore(next, state)
}

// said returns the answers of a limiter to compare.
func said(l limit.Limiter, now mono.Time, cost limit.Cost) (all [3]mono.Time) {
	all[0] = l.Ready(now, cost)
	all[1], _ = limit.Explain(l, now, cost)
	if limit.Foresees(l) {
		all[2] = limit.ReadyAfter(l, now, cost, cost)
	}
	return all
}

// damaged checks two states. A truncated state must be refused. A state with a changed byte must be
// refused, or be used without a panic.
func (r *run) damaged(state []byte, b byte) error {
	at := int(b) % len(state)
	if limit.Restore(r.New(), state[:at]) == nil {
		return fmt.Errorf("the first %d bytes of the state %x are taken for all", at, state)
	}
	if limit.Restore(r.New(), append(slices.Clone(state), b)) == nil {
		return fmt.Errorf("a byte after the state %x is not noticed", state)
	}
	other := slices.Clone(state)
	other[at] ^= b | 1
	l := r.New()
	if limit.Restore(l, other) != nil {
		return nil
	}
	for _, c := range r.Costs {
		l.Settle(r.now, Admit(l, r.now, c), &limit.Outcome{})
		l.Ready(r.now, c)
	}
	return nil
}
