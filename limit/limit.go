// Package limit answers one question: when may the next request go, given the server's rule?
//
// Every policy is the same three methods, arithmetic on a now that the caller supplies:
//
//	Ready   when may this cost go?            asks, changes nothing
//	Admit   it goes now: opens a lease        records a fact; never refuses
//	Settle  the answer came: closes the lease says when it was answered, what it cost, what the server said
//
// Servers count arrivals; a client knows only when it sent and when the answer came. Two requests sent 1000 ms apart may
// arrive 996 ms apart, so a window kept by send times is wrong by the jitter of the path. Here a request counts in full
// from Admit to Settle, and its window starts only at the upper bound of its arrival: the instant its answer was read.
// No latency, reordering or stall can then put more than the limit into any window of the server's.
//
// # Which one
//
//	so many in any window, or windows of unknown phase        [Rolling]
//	so many per minute or day of a clock that is known        [Calendar]
//	so many per interval that begins with a message           [Anchored]
//	token bucket, GCRA, leaky bucket                          [Bucket]
//	the window before in proportion (Cloudflare, HAProxy)     [Weighted]
//	output tokens as they are produced (Anthropic)            [Produced]
//	several of these at once                                  [All]
//	in flight; apart; in order; told to stay away             [Concurrency], [Spacing], [Sequence], [Cooldown]
//	in flight, and nobody states how many                     [Adaptive]
//	limits that may be wrong; limits that come and go         [Fitted], [Varying]
//
// A quota that strangers use too wants package fairshare; events that one can date oneself want package window.
//
// A Limiter owns no clock, lock, timer or goroutine and is not safe for concurrent use: it belongs to one driver.
// Goroutines that want to wait use paceline.Gate; work with several keys uses pool.Pool.
package limit

import (
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Verdicts later than every instant. The order is now < at t < AfterSettle < Never, so the verdict of several limiters
// is the maximum, and "may it go?" is Ready <= now. Never arm a timer at one of these.
const (
	// AfterSettle: only news can make room, the Settle of an open lease or an update of the limiter. One whose truth is
	// elsewhere, a share of what many processes have, says so with no lease open, too: whoever updates it tells its driver.
	AfterSettle = mono.Time(math.MaxInt64 - 1)
	Never       = mono.Time(math.MaxInt64) // the cost is larger than the limit; only a change of limit helps
)

// Limiter decides when a cost may go. It belongs to one driver (one Gate, one Dispatcher, one simulated client) and is
// not safe for concurrent use. A now before that of an earlier change counts as that one: where a clock is set back, all but
// Calendar, which needs to know when intervals begin, and Produced, which needs to know how old requests are, keep their promise.
//
// Costs below 0 count as 0 and costs above MaxCost as MaxCost. The laws that every Limiter obeys are in limittest.
type Limiter interface {
	// Ready returns the earliest instant, not before now, at which cost may be admitted, or AfterSettle, or Never.
	// It changes nothing and draws no random numbers.
	Ready(now mono.Time, cost Cost) mono.Time

	// Admit records that cost goes out at now and opens its lease, which counts in full until it is settled. It never
	// refuses: it records a fact, so that the sends of a dead process can be replayed. Deciding is the caller's, with
	// Ready right before at the same now: what was said earlier may have lapsed.
	Admit(now mono.Time, cost Cost) Lease

	// Settle closes a lease, exactly once. The estimate is forgotten: afterwards the limiter is as if the request had
	// arrived at its upper bound with its actual cost. To settle twice, or another limiter's lease, panics.
	Settle(now mono.Time, l Lease, o Outcome)
}

// Unit names a component of Cost. Every limiter reads the one it was made with.
type Unit uint8

const (
	Requests Unit = iota
	Weight        // an exchange's request weight
	Orders
	Input  // tokens in
	Output // tokens out
	Tokens // input + output, added up by the caller
	Money  // in millionths of whatever the limit is in
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

// Cost is what one request uses of each limit, in that limit's unit. Where it is 0 the limit does not apply.
type Cost [units]int64

// One is the cost of a request that counts once.
var One = Cost{Requests: 1}

// MaxCost is the largest cost and the largest limit: sums of half a million of them still fit an int64.
const MaxCost = 1 << 44

// String lists what is not 0: "1 request + 25 weight"; "0" if nothing is.
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
	Unknown  Result = iota // timeout, reset, aborted, the caller forgot: it may still arrive
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

// Outcome is how a lease ended. The zero Outcome is the safest: unknown, at the admitted cost. It has durations only,
// so whoever fills it needs no epoch.
type Outcome struct {
	Result  Result
	Metered bool // Actual holds; otherwise the admitted cost stands
	Known   uint8
	// Elsewhere says that what refused the request (Limited) is another limit than the one that hears this: nothing keeps
	// this one from sending more.
	Elsewhere bool
	// Sure says that RetryAfter, and whatever Reset is longer than an hour, is known to hold: nothing is to go before it, not
	// even to see.
	Sure bool
	// Sight is what became of the request on its way, for a limit that is about the way and not the quota.
	Sight Sight
	// Misordered says that the server refused the request because one sent later had come before it: a bad nonce.
	Misordered bool
	// Overloaded says that the server refused the request because it has too much to do, or too many requests at once, whoever sends
	// them.
	Overloaded bool
	Actual     Cost
	// RTT runs from just before the request was written to just after the answer was read. 0: not measured.
	RTT time.Duration
	// ArrivedAgo > 0: it arrived at least this long ago (a server's timestamp says so). < 0: it may still arrive for
	// that long. 0: what Result implies.
	ArrivedAgo time.Duration
	// Remaining and Reset are what the server said is left and when there will be more; bit u of Known says that they
	// hold for Unit u.
	Remaining Cost
	Reset     [units]time.Duration
	// RetryAfter is how long the server asked to stay away; 0: it did not.
	RetryAfter time.Duration
}

// Arrivals says what a settled request proves about its arrival. The zero value assumes least: nothing is known of the
// latency, and refused requests count.
type Arrivals struct {
	// Late is how long after an unknown outcome (a timeout, a reset) the request may still arrive. If zero, 5 s;
	// negative: not at all.
	Late time.Duration
	// OneWayMax, if positive, promises that no request takes longer than this from being written to being counted. It
	// buys a little throughput (95.9 instead of 95.2 requests/s on a path of 0–50 ms each way) and is as safe as the
	// promise. It is used only with an Outcome.RTT that was measured from just before the write: Admit precedes the
	// write by however long the machine stalled. Of a loaded server, where one in twenty took 300 instead of 20 ms, 2,083 of
	// 72,000 requests in an hour of one key were refused, and a ban comes after ten: so the first refusal ends it for a
	// while, and 3 were (see Cautious). It costs twice the time and memory.
	OneWayMax time.Duration
	// RejectsFree says that the server does not count what it refuses. If false, a refused request counts like another.
	RejectsFree bool
	// LearnLead has the limiter learn from Outcome.RTT how long a request surely takes to the server and an answer from
	// it, and send that much before the server is ready: on a steady path (20 ms and an exponential of 2 ms) 99.3 instead
	// of 95.2 requests/s. Its risk: when the way there becomes quicker, all that was sent at that instant may be refused, up to
	// the whole limit: 20 of 20, where the lead had been 30 ms. Then it retreats (see Cautious), and what it had learned is
	// forgotten: were the two ways to change places every 10 s, 60 would be refused in an hour, and not 3,600. An
	// Outcome.ArrivedAgo has no effect beside it. For Rolling, Bucket and Weighted, and not together with OneWayMax.
	LearnLead bool
}

const defaultLate = 5 * time.Second

// bound returns u, the upper bound of the arrival of a request admitted at sent and settled at now, and whether it
// counts at all.
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

// checkWindow refuses what no window can be.
func checkWindow(kind string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("limit: %s: Window %v is not positive", kind, d)
	}
	return nil
}

// checkLimit refuses what no limit can be.
func checkLimit(kind string, n int64) error {
	if n < 1 || n > MaxCost {
		return fmt.Errorf("limit: %s: Limit %d is not between 1 and %d", kind, n, int64(MaxCost))
	}
	return nil
}

// refuted tells whether an outcome says that a request came when it should not have, or out of its turn.
func (o *Outcome) refuted() bool { return o.Result == Limited || o.Misordered }

// Refilled takes out of an outcome that these units are to be waited for until their Resets: those, and RetryAfter if it is one of them to the
// nanosecond. Then the reader of the answer has made it of that, as nothing else was said, or the server has.
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

// Least returns what a request of that cost surely uses, which is what a forecast may count of it: all that is known
// when it is sent, and of the tokens only the input. Output, money and what else is metered may turn out to be nothing: of
// 1,000 prompts that reserve 1,000 tokens and use 300, at 30,000 a minute, 970 go within 10 min, and 330 would if the
// others were refused because of what is reserved.
func (c Cost) Least() Cost {
	return Cost{Requests: c[Requests], Weight: c[Weight], Orders: c[Orders], Input: c[Input], Tokens: min(c[Tokens], c[Input])}
}

// leaves tells whether an answer says that something is left of a unit, or that another is used up.
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
