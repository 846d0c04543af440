package limittest

import (
	"fmt"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// leaving checks law 17 for a cost and a part.
func (r *run) leaving(cost limit.Cost, free float64) error {
	plain := r.subject.Ready(r.now, cost)
	at := limit.ReadyLeaving(r.subject, r.now, nil, cost, free)
	half := limit.ReadyLeaving(r.subject, r.now, nil, cost, free/2)
	none := limit.ReadyLeaving(r.subject, r.now, nil, cost, 0)
	switch {
	case none != plain:
		return fmt.Errorf("law 17: Ready says %v, ReadyLeaving nothing %v", plain, none)
	case half < plain || at < half:
		return fmt.Errorf("law 17: Ready says %v, ReadyLeaving %v of it %v, and %v of it %v", plain, free/2, half, free, at)
	case at == limit.Never && plain != limit.Never:
		return fmt.Errorf("law 17: Ready says %v, and no instant leaves %v", plain, free)
	case at == limit.AfterSettle && len(r.open) == 0 && r.News == nil:
		return fmt.Errorf("law 17: nothing is open, and an answer is to make room for %v and %v of it", cost, free)
	case at >= limit.AfterSettle:
		return nil
	}
	if _, is := r.subject.(interface{ Unwrap() []limit.Limiter }); is { // it may add bounds
		return nil
	}
	rules, ok := limit.Rules(r.subject)
	if !ok || len(rules) != 1 || rules[0].Per <= 0 || rules[0].Counts == limit.CountsSomehow {
		return nil
	}
	u, most := rules[0].Unit, rules[0].Most()
	beside := cost
	if beside[u] > 0 {
		beside[u] = max(cost[u], min(cost[u]+limit.Leaves(most, free), most))
	}
	if then := r.subject.Ready(at, beside); then > at && !r.Lapses && r.News == nil {
		return fmt.Errorf("law 17: at %v there is no room for %v, with %v of it left: %v", at, cost, free, then)
	}
	return nil
}

// part is the part that law 17 leaves free after another Admit.
const part = 0.3

// foreseeLeaving is foresee for costs that leave a part free.
func (r *run) foreseeLeaving(first *limit.Cost) (ts []mono.Time) {
	if !limit.Foresees(r.subject) {
		return nil
	}
	for _, c := range r.Costs {
		ts = append(ts, limit.ReadyLeaving(r.subject, r.now, first, c, part))
	}
	return ts
}

// sawLeaving checks law 17 after an Admit. foreseen is the result of foreseeLeaving before it.
func (r *run) sawLeaving(foreseen []mono.Time) error {
	for i, t := range foreseen {
		if at := limit.ReadyLeaving(r.subject, r.now, nil, r.Costs[i], part); at > t {
			return fmt.Errorf("law 17: cost %v leaves a part free at %v; %v was foreseen", r.Costs[i], at, t)
		}
	}
	return nil
}
