package limit

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Verdicts later than every instant. The order is now < at t < AfterSettle < Never. So the verdict
// of several limiters is the maximum of theirs, and a cost may go if Ready <= now. Never arm a
// timer at one of these.
const (
	// AfterSettle: only news makes room. The news is the Settle of an open request, or an update of
	// the limiter. A share of a limit that many processes have says AfterSettle with no request open,
	// too. Its owner then calls the driver after each update.
	AfterSettle = mono.Time(math.MaxInt64 - 1)
	Never       = mono.Time(math.MaxInt64) // the cost is larger than the limit; only a change of limit helps
)

// Limiter decides when a cost may go. It belongs to one driver: one Gate, one Dispatcher, one
// simulated client. It is not safe for concurrent use.
//
// If now is before an earlier change, it counts as the instant of that change. So limiters keep
// their promise when a clock is set back, but for two. Calendar must know when intervals begin.
// Produced must know how old requests are.
//
// Costs below 0 count as 0, and costs above MaxCost as MaxCost. Package limittest has the laws that
// every Limiter obeys.
type Limiter interface {
	// Ready returns the earliest instant, not before now, at which cost may be admitted. Otherwise
	// it returns AfterSettle or Never. It changes nothing and draws no random numbers.
	Ready(now mono.Time, cost Cost) mono.Time

	// Admit records that a request goes out at s.At. Its cost counts in full until Settle. Admit
	// never refuses: it records a fact, so that the sends of a dead process can be replayed. The
	// caller decides by a call of Ready right before, at the same instant. An earlier verdict may
	// have lapsed.
	Admit(s *Sent)

	// Settle ends a request, exactly once, with the Sent of its Admit. The limiter forgets the
	// estimate. It is then as if the request had arrived at its upper bound with its actual cost.
	// The driver has to see that no request is settled twice: paceline.Permit panics then.
	Settle(now mono.Time, s *Sent, o *Outcome)
}

// Unit names a component of Cost. Every limiter reads one unit, which its configuration names.
type Unit uint8

const (
	Requests Unit = iota
	Weight        // an exchange's request weight
	Orders
	Input  // tokens in
	Output // tokens out
	Tokens // input + output, added up by the caller
	Money  // in millionths of the limit's currency
	Other
	units
)

var unitNames = [units]string{"requests", "weight", "orders", "input tokens", "output tokens", "tokens", "money", "other"}

func (u Unit) String() string {
	if u >= units {
		return fmt.Sprintf("unit %d", uint8(u))
	}
	return unitNames[u]
}

// Cost is the use that one request makes of each limit, in that limit's unit. A limit does not
// apply to a cost of 0. A negative cost is a mistake: gates, pools and transports refuse it.
type Cost [units]int64

// Negative reports whether some amount of the cost is negative.
func (c *Cost) Negative() bool {
	return c[Requests]|c[Weight]|c[Orders]|c[Input]|c[Output]|c[Tokens]|c[Money]|c[Other] < 0
}

// One is the cost of a request that counts once.
var One = Cost{Requests: 1}

// MaxCost is the largest cost and the largest limit. A sum of half a million of them fits an int64.
const MaxCost = 1 << 44

// String lists the units that are not 0: "1 request + 25 weight". A cost without any is "0".
func (c Cost) String() string {
	var b []byte
	for u, n := range c {
		if n == 0 {
			continue
		}
		if b != nil {
			b = append(b, " + "...)
		}
		name := Unit(u).String()
		if last := len(name) - 1; n == 1 && name[last] == 's' {
			name = name[:last]
		}
		b = fmt.Appendf(b, "%d %s", n, name)
	}
	if b == nil {
		return "0"
	}
	return string(b)
}

// of reads one unit of a cost, within 0 and MaxCost.
func (c *Cost) of(u Unit) int64 { return min(max(c[u], 0), MaxCost) }

// Result is how an attempt ended.
type Result uint8

const (
	Unknown  Result = iota // timeout, reset, aborted, forgotten by the caller: it may still arrive
	Accepted               // answered and served
	Limited                // refused by a limit: 429, 418, 503 with Retry-After
	Failed                 // answered otherwise (400, 500): it arrived and counts
	Unsent                 // never left this machine: counts nowhere
)

func (r Result) String() string {
	if names := [...]string{"unknown", "accepted", "limited", "failed", "unsent"}; int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("result %d", uint8(r))
}

// Outcome is how a request ended. The zero Outcome is the safest: unknown, at the admitted cost. It
// holds durations and no instants, so a reader of answers needs no epoch.
type Outcome struct {
	Result  Result
	Metered bool // Actual holds; otherwise the admitted cost stands
	Known   uint8
	// Elsewhere says that another limit refused the request (Limited). The limiter that reads this
	// Outcome may send on.
	Elsewhere bool
	// Sure says that RetryAfter certainly holds, and any Reset longer than an hour, too. Nothing
	// may go before it, not even as a test.
	Sure bool
	// Link is what the attempt showed of the way to the server. It is for limits on the way, not
	// on the quota.
	Link Link
	// Misordered says that the server refused the request because a later one had arrived before
	// it: a bad nonce.
	Misordered bool
	// Overloaded says that the server refused the request for its own load: too much to do, or too
	// many requests at once, from whatever client.
	Overloaded bool
	Actual     Cost
	// RTT runs from just before the request was written to just after the answer was read. 0: not
	// measured.
	RTT time.Duration
	// ArrivedAgo > 0: the request arrived at least this long ago, by a server's timestamp. < 0: it
	// may still arrive for that long. 0: as Result implies.
	ArrivedAgo time.Duration
	// Remaining is what is left according to the server, and Reset when there will be more. Bit u
	// of Known says that both hold for Unit u.
	Remaining Cost
	Reset     [units]time.Duration
	// RetryAfter is how long the server asked the client to stay away. 0: it did not ask.
	RetryAfter time.Duration
}

// Arrivals is how much a settled request proves about its arrival. The zero value assumes least:
// the latency is not known, and refused requests count.
type Arrivals struct {
	// Late is how long after an unknown outcome (a timeout, a reset) the request may still arrive.
	// If zero, 5 s; negative: not at all.
	Late time.Duration
	// OneWayMax, if positive, promises that no request takes longer than this from being written to
	// being counted. It gains a little throughput: 95.9 instead of 95.2 requests/s on a path of
	// 0–50 ms each way. It is as safe as the promise. It needs an Outcome.RTT measured from just
	// before the write: Admit may precede the write by a stall of the machine.
	//
	// A loaded server took 300 instead of 20 ms for one request in twenty. It refused 2,083 of
	// 72,000 requests of one key in an hour, and a ban comes after ten. So the first refusal ends
	// the use of OneWayMax for a while, and only 3 requests were refused: see Retreat. It costs
	// twice the time and memory.
	OneWayMax time.Duration
	// RejectsFree says that the server does not count refused requests. If false, they count like
	// others.
	RejectsFree bool
	// LearnLead makes the limiter learn from Outcome.RTT how long two ways surely take together: of
	// a request to the server, and of an answer back. It sends that much before the server is
	// ready. On a steady path (20 ms and an exponential of 2 ms) 99.3 instead of 95.2 requests/s
	// go.
	//
	// The risk: the way to the server becomes quicker. Then all that was sent at that instant may
	// be refused, up to the whole limit: 20 of 20, where the lead had been 30 ms. After that the
	// limiter retreats (see Retreat) and forgets the lead. If the two ways changed places every
	// 10 s, 60 requests would be refused in an hour, and not 3,600.
	//
	// Outcome.ArrivedAgo has no effect beside it. It is for Rolling, Bucket and Weighted, and not
	// together with OneWayMax.
	LearnLead bool
}

const defaultLate = 5 * time.Second

// bound returns u, the upper bound of the arrival of a request. The request was admitted at sent
// and settled at now. counts reports whether it counts at all.
func (a *Arrivals) bound(now, sent mono.Time, o *Outcome) (u mono.Time, counts bool) {
	u = now
	switch {
	case o.Result == Unsent || o.Result == Limited && a.RejectsFree:
		return 0, false
	case o.ArrivedAgo != 0:
		u = now.Add(-max(o.ArrivedAgo, -math.MaxInt64))
	case o.Result == Unknown:
		late := a.Late
		if late == 0 {
			late = defaultLate
		}
		u = now.Add(max(late, 0))
	}
	if a.OneWayMax > 0 && o.RTT > 0 {
		u = min(u, now.Add(-o.RTT).Add(a.OneWayMax))
	}
	return max(u, sent), true
}

func (a *Arrivals) check(kind string) error {
	if a.OneWayMax < 0 {
		return fmt.Errorf("limit: %s: OneWayMax %v is negative", kind, a.OneWayMax)
	}
	if a.OneWayMax > 0 && a.LearnLead {
		return fmt.Errorf("limit: %s: OneWayMax %v and LearnLead: each takes the way back off, so only one may", kind, a.OneWayMax)
	}
	return nil
}

// shortest is the shortest window. A bare number is a count of nanoseconds, where seconds were meant. No server
// counts in windows that short.
const shortest = time.Microsecond

// checkWindow refuses a duration that is no window.
func checkWindow(kind string, d time.Duration) error {
	switch {
	case d <= 0:
		return fmt.Errorf("limit: %s: Window %v is not positive", kind, d)
	case d < shortest:
		return fmt.Errorf("limit: %s: Window %v is shorter than %v; want a unit, as in %d*time.Second", kind, d, shortest, int64(d))
	}
	return nil
}

// checkLimit refuses a number that is no limit.
func checkLimit(kind string, n int64) error {
	if n < 1 || n > MaxCost {
		return fmt.Errorf("limit: %s: Limit %d is not between 1 and %d", kind, n, int64(MaxCost))
	}
	return nil
}

// refuted reports whether a request came too early, or out of its turn, by the server's answer.
func (o *Outcome) refuted() bool { return o.Result == Limited || o.Misordered }

// Resets returns the units, as bits, for which the answer states when there will be more.
func (o *Outcome) Resets() (units uint8) {
	for known := o.Known; known != 0; known &= known - 1 { // most answers state a unit or two
		if u := bits.TrailingZeros8(known); o.Reset[u] > 0 {
			units |= 1 << u
		}
	}
	return units
}

// Plain reports whether an answer asks nothing of later requests: it is no refusal, and has neither a
// RetryAfter nor Resets.
func (o *Outcome) Plain() bool {
	return o.Result != Limited && o.RetryAfter <= 0 && (o.Known == 0 || o.Resets() == 0)
}

// Refilled removes the Resets of these units from an outcome. It removes RetryAfter, too, if that
// equals one of them to the nanosecond. Then RetryAfter was made of that Reset, by the server or by
// the reader of the answer.
func (o *Outcome) Refilled(units uint8) {
	for u, reset := range o.Reset {
		if units>>u&1 == 0 {
			continue
		}
		if o.RetryAfter == reset {
			o.RetryAfter = 0
		}
		o.Reset[u] = 0
	}
}

// Least returns the part of a cost that a request surely uses. A forecast may count that part
// alone. It is what is known at the send, and of the tokens only the input. Output, money and other
// metered units may turn out to be nothing.
//
// Example: 1,000 prompts reserve 1,000 tokens each and use 300, at 30,000 a minute. Then 970 go
// within 10 min. Only 330 would go if reserved tokens led to refusals of the others.
func (c Cost) Least() Cost {
	return Cost{Requests: c[Requests], Weight: c[Weight], Orders: c[Orders], Input: c[Input], Tokens: min(c[Tokens], c[Input])}
}

// leaves reports whether an answer says that this unit has something left, or that another is used
// up.
func (o *Outcome) leaves(u Unit) bool {
	if o.Known>>u&1 == 1 {
		return o.Remaining[u] > 0
	}
	for other := range o.Remaining {
		if o.Known>>other&1 == 1 && o.Remaining[other] == 0 {
			return true
		}
	}
	return false
}
