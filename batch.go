package paceline

import (
	"time"

	"github.com/paceline-go/paceline/limit"
)

// TryWaitMany is TryWait for as many requests of this cost as all has room for, under one lock. It
// writes the Permits of those that may go now to the beginning of all, and returns their number. If
// that is less than len(all), retry is the one of the next request.
func (a *Lane) TryWaitMany(cost limit.Cost, all []Permit) (n int, retry time.Duration) {
	if len(all) == 0 {
		return 0, 0
	}
	return a.try(&cost, all)
}

// try is TryWaitMany for one or more.
func (a *Lane) try(cost *limit.Cost, all []Permit) (n int, retry time.Duration) {
	if cost.Negative() {
		return 0, RetryNever
	}
	j := a.group
	if j.hint.until.Load() != noHint {
		if retry, ok := a.refuse(cost); ok {
			return 0, retry
		}
	}
	j.mu.Lock()
	defer j.unlock()
	now := j.now()
	for n < len(all) {
		pass, at := j.line.Try(now, a.lane, cost, nil)
		if at > now {
			j.deliverLocked(now)
			j.hint.set(min(at, j.line.Wake()), at, cost, a) // from its instant on, a TryWait serves the line
			return n, retryAfter(now, at)
		}
		all[n] = Permit{pass}
		n++
	}
	j.deliverLocked(now)
	return n, 0
}

// SettleAll settles Permits of one Group, whose requests ended alike, under one lock. It panics if one
// of them is of another Group, was settled before or is the zero Permit.
func SettleAll(all []Permit, o limit.Outcome) {
	if len(all) == 0 {
		return
	}
	j := all[0].lane().group
	j.mu.Lock()
	defer j.unlock()
	now := j.now()
	j.outcome = o
	for _, p := range all {
		a := p.lane()
		if a.group != j {
			panic("paceline: SettleAll of Permits of several Groups")
		}
		j.line.Settle(now, p.pass, &j.outcome)
		a.countLocked(&j.outcome)
	}
	j.deliverLocked(now)
}
