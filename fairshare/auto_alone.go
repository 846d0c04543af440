package fairshare

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// alone is the law of an Auto that shares the quota with nobody. It uses the stated limits at once,
// all of them, in each unit. Earlier use of the quota is a matter for Hints, as with a configured
// limit.
//
// A refusal shows that a limit is not what the server says, or that there are strangers after all.
// Then the law for strangers holds, too: for 10 minutes, and twice as long after each further
// refusal.
type alone struct {
	rules   []rule
	made    []limit.Limiter // one for each rule
	limits  *limit.Varying  // these
	before  limit.Cost      // settled before the first limit was stated
	latest  mono.Time       // of these
	open    limit.Cost      // in flight
	refused mono.Time       // the latest refusal that counts; mono.Min: none
	until   mono.Time       // the law for strangers holds until then
	times   int             // how often a refusal counted
	resumed bool            // another process was before, and no answer has come since
}

// rule is a stated limit and its recent use.
type rule struct {
	stated  limit.Rule
	guessed bool        // concluded from remainders
	used    [slots]slot // the latest last
}

// slot is the cost of requests that were settled near each other.
type slot struct {
	since, at mono.Time // the first and the latest of them
	n         int64     // 0: there are none
}

const (
	// slots is how finely the use of a window is remembered, for a limit that changes and for the
	// next process. Each slot counts as of its latest answer.
	slots = 8
	// mostRules bounds the limits at once. Servers state two or three.
	mostRules = 6

	// suspected is how long the law for strangers holds after the first refusal, and mostTimes how
	// often that doubles.
	suspected = 10 * time.Minute
	mostTimes = 8
)

func newAlone() *alone {
	return &alone{limits: limit.NewVarying(), latest: mono.Min, refused: mono.Min, until: mono.Min}
}

// decides reports whether no other law is needed: a limit of u is known, and nothing speaks against
// it.
func (a *alone) decides(now mono.Time, u limit.Unit) bool {
	return now >= a.until && slices.ContainsFunc(a.rules, func(r rule) bool { return r.stated.Unit == u })
}

// ready returns when a cost may go. After a restart, requests of other processes may not be known. So
// the first request goes alone, and its answer may say what is left.
func (a *alone) ready(now mono.Time, cost limit.Cost) mono.Time {
	at := a.limits.Ready(now, cost)
	if a.resumed && a.open != (limit.Cost{}) {
		at = max(at, limit.AfterSettle)
	}
	return at
}

// ReadyLeaving answers limit.ReadyLeaving for limits that nobody else uses, once they are stated. Of a
// limit that is not known, and of a fair share, nothing is left free.
func (a *Auto) ReadyLeaving(now mono.Time, first *limit.Cost, cost limit.Cost, free float64) mono.Time {
	switch at := a.Ready(now, cost); {
	case first != nil:
		return limit.ReadyAfter(a, now, *first, cost)
	case a.alone == nil || !a.alone.decides(now, a.config.Unit):
		return at
	default:
		return max(at, limit.ReadyLeaving(a.alone.limits, now, nil, cost, free))
	}
}

func (a *alone) admit(s *limit.Sent) {
	for u := range s.Cost {
		a.open[u] += unit(s.Cost[u])
	}
	a.limits.Admit(s)
}

func (a *alone) settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	for u := range s.Cost {
		a.open[u] -= unit(s.Cost[u])
	}
	a.limits.Settle(now, s, o)
	a.resumed = a.resumed && o.Result == limit.Unsent
	switch {
	case o.Result == limit.Unsent:
		return
	case o.Result == limit.Limited && !o.Elsewhere && !o.Overloaded &&
		len(a.rules) > 0 && s.At > a.refused && s.At >= a.until:
		a.refused, a.until = now, now.Add(suspected<<a.times)
		a.times = min(a.times+1, mostTimes)
	}
	cost := &s.Cost
	if o.Metered {
		cost = &o.Actual
	}
	for i := range a.rules {
		a.rules[i].note(now, cost)
	}
	if len(a.rules) == 0 {
		a.latest = now
		for u := range cost {
			a.before[u] = min(a.before[u]+unit(cost[u]), limit.MaxCost)
		}
	}
}

// note remembers what was used. The slot that goes is older than the window.
func (r *rule) note(now mono.Time, cost *limit.Cost) {
	n := unit(cost[r.stated.Unit])
	if n == 0 {
		return
	}
	last := &r.used[slots-1]
	if last.n > 0 && now.Sub(last.since) >= r.stated.Per/(slots-1) {
		copy(r.used[:], r.used[1:])
		*last = slot{}
	}
	if last.n == 0 {
		last.since = now
	}
	last.at, last.n = now, min(last.n+n, limit.MaxCost)
}

// past returns what was used.
func (r *rule) past() (all []limit.Past) {
	for _, s := range r.used {
		if s.n > 0 {
			all = append(all, limit.Past{At: s.at, Sent: s.since, Cost: r.cost(s.n), Result: limit.Accepted})
		}
	}
	return all
}

func (r *rule) cost(n int64) (c limit.Cost) {
	c[r.stated.Unit] = n
	return c
}

// state takes in stated limits. A limit that the server states replaces a documented or a guessed
// one of that unit.
func (a *alone) state(now mono.Time, all []limit.Rule, guessed bool) {
	changed := false
	for _, q := range all {
		q.Burst = min(max(q.Burst, 0), limit.MaxCost)
		if q.N < 1 || q.N > limit.MaxCost || q.Per <= 0 || int(q.Unit) >= len(limit.Cost{}) {
			continue
		}
		changed = a.take(now, q, guessed) || changed
	}
	if changed {
		a.limits.Change(now, a.made...)
	}
}

// take takes in one limit, and reports whether anything changed.
func (a *alone) take(now mono.Time, q limit.Rule, guessed bool) bool {
	weak := guessed || q.Documented
	known := -1
	for i, r := range a.rules {
		switch {
		case r.stated == q && r.guessed == guessed:
			return false
		case r.stated.Unit == q.Unit && weak && !r.guessed && !r.stated.Documented:
			return false // the server has said it
		case r.stated.Unit == q.Unit && r.guessed && guessed,
			r.guessed == guessed && r.stated.Unit == q.Unit && r.stated.Name == q.Name && r.stated.Per == q.Per:
			known = i
		}
	}
	next := rule{stated: q, guessed: guessed}
	switch {
	case known >= 0:
		next.used = a.rules[known].used
	case len(a.rules) == mostRules:
		return false
	case len(a.rules) == 0:
		next.note(a.latest, &a.before)
	}
	made := next.limiter(now)
	switch {
	case made == nil:
		return false
	case known >= 0:
		a.rules[known], a.made[known] = next, made
		return true
	}
	for i := len(a.rules) - 1; i >= 0; i-- {
		if r := &a.rules[i]; r.stated.Unit == q.Unit && (r.guessed || r.stated.Documented && !weak) {
			a.rules, a.made = slices.Delete(a.rules, i, i+1), slices.Delete(a.made, i, i+1)
		}
	}
	a.rules, a.made = append(a.rules, next), append(a.made, made)
	return true
}

// limiter makes the limiter of a rule, with what was used. It is nil if a window is too long. A
// rolling window suits every server that counts in windows, whatever their phase.
func (r *rule) limiter(now mono.Time) limit.Limiter {
	var made limit.Limiter
	var err error
	if q := &r.stated; q.Counts == limit.CountsBucket {
		made, err = limit.NewBucket(limit.BucketConfig{Limit: q.N, Window: q.Per, Burst: q.Burst, Unit: q.Unit})
	} else {
		made, err = limit.NewRolling(limit.RollingConfig{
			Limit: q.N, Window: q.Per, Unit: q.Unit, Grain: q.Per / (1 << 12),
		})
	}
	if err != nil {
		return nil
	}
	if r.stated.Name != "" {
		made = limit.Named(r.stated.Name, made)
	}
	limit.Replay(made, now, mono.Min, r.past())
	return made
}

// restore makes the limiters of rules that were read. It counts what was in flight then, and what
// was sent since.
func (a *alone) restore(now mono.Time, sent []limit.Past) {
	for i := range a.rules {
		r := &a.rules[i]
		r.note(now, &a.open)
		for _, p := range sent {
			r.note(min(p.At, now), &p.Cost)
		}
		a.made = append(a.made, r.limiter(now))
	}
	if slices.Contains(a.made, nil) {
		a.rules, a.made = nil, nil
	}
	a.open, a.resumed = limit.Cost{}, true
	a.limits.Change(now, a.made...)
}

// refills returns the units whose resets are instants at which a bucket is full.
func (a *alone) refills(o *limit.Outcome) (units uint8) {
	for _, r := range a.rules {
		if u := r.stated.Unit; r.stated.Counts == limit.CountsBucket && o.Known>>u&1 == 1 && o.Reset[u] > 0 {
			units |= 1 << u
		}
	}
	return units
}
