package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// account is the common part of the limiters in this package: a limit on a sum of costs, the open
// cost, and the knowledge about arrivals.
type account struct {
	limit    int64
	open     int64
	last     mono.Time // time of the last change
	pair     *pair     // set with a OneWayMax: then the pair decides, and of the other fields only the limit is used
	unit     Unit
	counts   Counting
	plain    bool // an answer proves that its request has arrived, and nothing else
	ages     ages
	lead     *lead // nil without Arrivals.LearnLead
	window   time.Duration
	arrivals Arrivals
	total    int64 // the settled cost since the beginning
	driven
}

func newAccount(kind string, counts Counting, limit int64, window time.Duration, unit Unit, a Arrivals) (account, error) {
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
	acc := account{limit: limit, window: window, unit: unit, counts: counts, arrivals: a, last: mono.Min, plain: a.OneWayMax == 0 && !a.LearnLead}
	if a.LearnLead {
		acc.lead = newLead()
	}
	return acc, nil
}

func (a *account) admit(s *Sent) {
	a.last = max(s.At, a.last)
	a.open += s.Cost.of(a.unit)
	a.ages.admit(a.last, s.Number)
}

// close takes a request out of the open cost. It returns the instant of the settlement, and the
// request's count from now on: w at u, its upper bound of arrival. w is 0 if the request does not
// count.
func (a *account) close(t mono.Time, s *Sent, o *Outcome) (now, u mono.Time, w int64) {
	now = max(t, a.last)
	a.last = now
	w = s.Cost.of(a.unit)
	a.open -= w
	oldest := a.ages.oldest
	a.ages.close(now, s.Number)
	if a.plain && o.Result == Accepted && o.ArrivedAgo == 0 && !o.Metered {
		a.total += w
		return now, now, w // the code below gives the same at twice the price
	}
	sent := max(s.At, oldest) // s.At may be of a clock that was set back since
	if a.lead != nil {
		a.lead.settle(now, sent, o)
	}
	if o.Metered {
		w = o.Actual.of(a.unit)
	}
	u, counts := a.arrivals.bound(now, sent, o)
	if a.lead != nil && counts {
		u = a.lead.bound(now, u, sent, o)
	}
	if !counts {
		w = 0
	}
	a.total += w
	return now, u, w
}

// ahead returns ρ: how long before the server is ready a request may be sent.
func (a *account) ahead() time.Duration {
	if a.lead == nil {
		return 0
	}
	return a.lead.rho
}

// soonest returns the earliest instant at which a cost that counts until t may be free. ρ is taken
// off t and may grow until then.
//
// shortest returns how long a request counts at least after its Admit, if it counts for span after
// its bound. Both use two facts. At the settlement u ≥ sent + ρ. From there ρ grows by no more than
// time/leadGrowth.
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

// setLimit changes the limit from now on; the history stays.
func (a *account) setLimit(kind string, now mono.Time, n int64) error {
	if err := checkLimit(kind, n); err != nil {
		return err
	}
	a.last = max(now, a.last)
	a.limit = n
	if a.pair != nil {
		return change(a.pair, func(l interface{ SetLimit(mono.Time, int64) error }) error { return l.SetLimit(now, n) })
	}
	return nil
}

// setWindow sets a window that was checked. If there is a pair, both of its limiters change theirs.
func (a *account) setWindow(now mono.Time, d time.Duration) error {
	a.last, a.window = max(now, a.last), d
	if a.pair != nil {
		return change(a.pair, func(l interface {
			SetWindow(mono.Time, time.Duration) error
		}) error {
			return l.SetWindow(now, d)
		})
	}
	return nil
}

// sure makes this the account of a limiter without a OneWayMax.
func (a *account) sure() {
	a.arrivals.OneWayMax = 0
	a.plain = !a.arrivals.LearnLead
}

// margin returns the length that is added to a window. If given is zero, that is one tick of a
// server that counts in milliseconds, the drift of its clock against ours, and 0.1 ms. If given is
// negative, it is nothing.
func margin(given, window time.Duration) time.Duration {
	switch {
	case given == 0:
		return 1100*time.Microsecond + window/10000
	case given < 0:
		return 0
	}
	return given
}

// usage returns the fields that all accounts fill alike.
func (a *account) usage(now mono.Time, used int64) Usage {
	u := Usage{
		Limit: a.unit.String(), Unit: a.unit, Used: used, Open: min(a.open, used), Allowed: a.limit, Window: a.window, PerWindow: a.limit, Total: a.total,
		Requests: a.ages.open,
	}
	if a.lead != nil {
		u.Retreat = a.lead.retreat(now, "LearnLead")
	}
	return u
}

// Trust is called by the function Trust.
func (a *account) Trust(now mono.Time) {
	switch {
	case a.pair != nil:
		a.pair.last = max(now, a.pair.last)
		a.pair.trust(a.pair.last)
	case a.lead != nil:
		a.last = max(now, a.last)
		a.lead.trust(a.last)
	}
}

// Rules implements Describer.
func (a *account) Rules() []Rule {
	return []Rule{{Name: a.unit.String(), Unit: a.unit, N: a.limit, Per: a.window, Counts: a.counts}}
}

// resume puts a state that was read to use.
func (a *account) resume(s restored) {
	a.last, a.limit, a.window = max(a.last, s.last), s.limit, time.Duration(s.window)
}

// configured returns the configuration that all kinds with an account have.
func (a *account) configured(kind string) string {
	s := fmt.Sprintf("%s: %v", kind, Rule{Unit: a.unit, N: a.limit, Per: a.window})
	if a.arrivals.Late != 0 && a.arrivals.Late != defaultLate {
		s += fmt.Sprintf(", late %v", max(a.arrivals.Late, 0))
	}
	if a.arrivals.RejectsFree {
		s += ", rejects free"
	}
	return s
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

// keep writes the part of the state that all limiters with an account have.
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

// both returns the cost to ask for instead of cost when first is open. An open cost counts in full,
// as the cost that is asked for does.
func (a *account) both(first, cost Cost) Cost {
	if w := cost.of(a.unit); w > 0 {
		cost[a.unit] = w + first.of(a.unit)
	}
	return cost
}

// ask reduces the question to the account's unit. If done, verdict is the answer already.
func (a *account) ask(now mono.Time, ahead, cost *Cost) (q asked, verdict mono.Time, done bool) {
	q = asked{max(now, a.last), ahead[a.unit], cost.of(a.unit)}
	switch {
	case q.cost > a.limit:
		return q, Never, true
	case q.cost == 0 && q.ahead <= 0:
		return q, q.now, true
	}
	return q, q.now, false
}

// first returns an instant no later than any at which room is enough for the cost that is settled
// and open now. The open cost counts until ends or longer.
func (a *account) first(now mono.Time, room int64, h history, ends mono.Time) mono.Time {
	if h.total+a.open <= room {
		return now
	}
	t := Never
	if a.open <= room {
		t = h.freed(h.total + a.open - room)
	}
	if a.open > 0 { // or the open cost goes, too
		if h.total > room {
			ends = max(ends, h.freed(h.total-room))
		}
		t = min(t, ends)
	}
	return max(now, t)
}

// cycles returns an instant no later than any at which q can go, if at most the limit goes within
// every span. Requests between now and now + span use the room that is there then. Requests in each
// later span use the room that came back from the span before.
//
// For s in the k-th span from now, s = r + k·span. B(r) is the part of the settled and open cost of
// now that counts at r. Then
//
//	ahead + cost ≤ k·Limit + max(0, Limit − B(r))
func (a *account) cycles(q asked, span time.Duration, h history, ends mono.Time) mono.Time {
	want := plus(q.ahead, q.cost)
	k, room := int64(0), less(a.limit, want)
	if want > a.limit {
		k = (want - 1) / a.limit
		room = a.limit - 1 - (want-1)%a.limit
	}
	t := a.first(q.now, room, h, ends)
	if q.ahead <= 0 {
		return t
	}
	t = min(t, q.now.Add(span)).Add(scale(span, time.Duration(k), 1))
	// the last arrival counts for longer than a span: q itself has no room, however much goes
	// before
	if h.last > q.now {
		t = max(t, a.first(q.now, a.limit-q.cost, h, ends))
	}
	return t
}
