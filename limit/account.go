package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// account is what the limiters of this package have in common: a limit on a sum of costs, what is open, and what is known about arrivals.
type account struct {
	limit    int64
	open     int64
	last     mono.Time // time of the last change
	pair     *pair     // set with a OneWayMax: then the pair is asked and told, and of the rest only the limit is used
	unit     Unit
	plain    bool // an answer proves that the request has arrived, and no more
	ages     ages
	book     Book[admitted]
	lead     *lead // nil without Arrivals.LearnLead
	window   time.Duration
	arrivals Arrivals
	total    int64 // what was ever counted of what is settled
}

type admitted struct {
	at   mono.Time
	cost int64
}

func newAccount(kind string, limit int64, window time.Duration, unit Unit, a Arrivals) (account, error) {
	if err := checkLimit(kind, limit); err != nil {
		return account{}, err
	}
	if err := checkWindow(kind, window); err != nil {
		return account{}, err
	}
	if unit >= units {
		return account{}, fmt.Errorf("limit: %s: no such Unit: %d", kind, unit)
	}
	if err := a.check(kind); err != nil {
		return account{}, err
	}
	acc := account{limit: limit, window: window, unit: unit, arrivals: a, last: mono.Min, plain: a.OneWayMax == 0 && !a.LearnLead}
	if a.LearnLead {
		acc.lead = newLead()
	}
	return acc, nil
}

func (a *account) admit(now mono.Time, w int64) Lease {
	a.last = max(now, a.last)
	a.open += w
	a.ages.admit(a.last, a.book.Len())
	l, kept := a.book.Take() // it is inlined, as Open is not
	kept.at, kept.cost = a.last, w
	return l
}

// close takes a lease out of what is open. It returns the instant of the settlement, and what the request counts for from now on: w at u,
// its upper bound of arrival. w is 0 if the request does not count.
func (a *account) close(t mono.Time, l Lease, o *Outcome) (now, u mono.Time, w int64) {
	now = max(t, a.last)
	lease := a.book.Return(l)
	a.last = now
	a.open -= lease.cost
	a.ages.close(now, lease.at, a.book.Len())
	if a.plain && o.Result == Accepted && o.ArrivedAgo == 0 && !o.Metered {
		a.total += lease.cost
		return now, now, lease.cost // the code below would give the same at twice the price
	}
	if a.lead != nil {
		a.lead.settle(now, lease.at, o)
	}
	w = lease.cost
	if o.Metered {
		w = o.Actual.of(a.unit)
	}
	u, counts := a.arrivals.bound(now, lease.at, o)
	if a.lead != nil && counts {
		u = a.lead.bound(now, u, lease.at, o)
	}
	if !counts {
		w = 0
	}
	a.total += w
	return now, u, w
}

// ahead returns ρ, which is how long before the server is ready a request may be sent.
func (a *account) ahead() time.Duration {
	if a.lead == nil {
		return 0
	}
	return a.lead.rho
}

// soonest returns the earliest instant at which what counts until t may no longer count, since ρ is taken off and may grow until then.
// shortest returns how long a request counts at least after its Admit, if it counts for span after its bound. Both use that u ≥ sent + ρ
// at the settlement, and that ρ grows by no more than time·leadGrowth from there.
func (a *account) soonest(now, t mono.Time) mono.Time {
	if a.lead == nil {
		return t
	}
	left := t.Add(-a.lead.by(now)).Sub(now)
	if left <= 0 {
		return now
	}
	return now.Add(a.shortest(left))
}

func (a *account) shortest(span time.Duration) time.Duration {
	if a.lead == nil {
		return span
	}
	return span - span/leadGrowth - 1 // a little less than span·64/65
}

// SetLimit changes the limit from now on; the history stays.
func (a *account) setLimit(kind string, now mono.Time, n int64) error {
	if err := checkLimit(kind, n); err != nil {
		return err
	}
	a.last = max(now, a.last)
	a.limit = n
	if a.pair != nil {
		return a.pair.change(func(l changing) error { return l.SetLimit(now, n) })
	}
	return nil
}

// setWindow notes a window that was checked. If there is a pair, both of its limiters change theirs.
func (a *account) setWindow(now mono.Time, d time.Duration) error {
	a.last, a.window = max(now, a.last), d
	if a.pair != nil {
		return a.pair.change(func(l changing) error { return l.SetWindow(now, d) })
	}
	return nil
}

// sure makes this the account of a limiter without a OneWayMax.
func (a *account) sure() {
	a.arrivals.OneWayMax = 0
	a.plain = !a.arrivals.LearnLead
}

// margin returns by how much a window is lengthened. If given is zero, that is one tick of a server that counts in milliseconds, the drift
// of its clock against ours, and 0.1 ms; if given is negative, nothing.
func margin(given, window time.Duration) time.Duration {
	switch {
	case given == 0:
		return 1100*time.Microsecond + window/10000
	case given < 0:
		return 0
	}
	return given
}
