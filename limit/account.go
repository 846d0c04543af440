package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// account is what the limiters of this package have in common: a limit on a sum of costs, what is open, and what is
// known of arrivals.
type account struct {
	limit    int64
	open     int64
	last     mono.Time // of the changes
	pair     *pair     // with a OneWayMax: then that is asked and told, and nothing else here but the limit is used
	unit     Unit
	plain    bool // an answer proves the arrival, and no more
	ages     ages
	book     Book[admitted]
	lead     *lead // nil unless asked for
	window   time.Duration
	arrivals Arrivals
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
	l, kept := a.book.Take() // which is inlined, as Open is not
	kept.at, kept.cost = a.last, w
	return l
}

// close takes a lease out of what is open. It returns the instant of the settlement, and what the request is worth from
// now on: w at u, its upper bound of arrival; 0 if it does not count.
func (a *account) close(t mono.Time, l Lease, o *Outcome) (now, u mono.Time, w int64) {
	now = max(t, a.last)
	lease := a.book.Return(l)
	a.last = now
	a.open -= lease.cost
	a.ages.close(now, lease.at, a.book.Len())
	if a.plain && o.Result == Accepted && o.ArrivedAgo == 0 && !o.Metered {
		return now, now, lease.cost // what follows would say the same at twice the price
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
	return now, u, w
}

// ahead returns how long before the server is ready a request may be sent: ρ.
func (a *account) ahead() time.Duration {
	if a.lead == nil {
		return 0
	}
	return a.lead.rho
}

// soonest returns from when on, at the earliest, what counts until t no longer does, now that ρ is taken off and may grow
// until then; shortest how long, at the least, a request counts after its Admit if it counts for span after its bound.
// Both use that u ≥ sent + ρ at the settlement, and that ρ grows by no more than time·leadGrowth from there.
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

// setWindow notes a window that was checked, and has both of a pair, if there is one, change theirs.
func (a *account) setWindow(now mono.Time, d time.Duration) error {
	a.last, a.window = max(now, a.last), d
	if a.pair != nil {
		return a.pair.change(func(l changing) error { return l.SetWindow(now, d) })
	}
	return nil
}

// sure makes it one without a OneWayMax.
func (a *account) sure() {
	a.arrivals.OneWayMax = 0
	a.plain = !a.arrivals.LearnLead
}

// margin returns what a window must be longer by: as given, or if that is zero one tick of a server that counts in
// milliseconds, what its clock may drift against ours, and 0.1 ms; none if it is negative.
func margin(given, window time.Duration) time.Duration {
	switch {
	case given == 0:
		return 1100*time.Microsecond + window/10000
	case given < 0:
		return 0
	}
	return given
}
