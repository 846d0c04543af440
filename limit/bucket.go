package limit

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Bucket keeps to a token bucket, which is also GCRA and a leaky bucket that is used as a meter: Burst at once, and Limit
// per Window in the long run. Θ is when the bucket would be full again, folded over the settled requests by their upper
// bounds of arrival u:
//
//	Θ ← max(Θ, u_i) + w_i·p,   p = Window·1.0002 / Limit, in whole ns, rounded up
//
// A cost w may go at s when, with I = Σ open,
//
//	I + w ≤ Burst   and   s ≥ Θ + (I + w − Burst)·p
//
// Why no request is refused: among those that arrive from a_i to a_j let m be the last sent. At its admission each other was
// either open or folded at its u ≥ a_i, so Θ ≥ a_i + Σ folded·p, and the admission says that all of them together are at most
// Burst more than what was refilled from a_i to s ≤ a_m ≤ a_j. The whole recursion is kept, in two numbers: a history cut to
// some length lets the rate drift upward until it is refused.
//
// A server that counts in milliseconds sees an interval up to a tick shorter than it was: Margin. That matters only where more
// than Burst has gone since the bucket was full, once and not per request, unless Burst is 1 and it is full before each of
// them. So beside Θ it is kept how much has gone since; and the same for each earlier time when the bucket was full, as
// long as that Θ is less than Margin behind, since the server may see no refill between the two.
//
// What is open is taken out of the bucket, so to use the whole rate it takes Burst − 1 > Limit/Window · the mean round trip.
// With less, it is about Burst per round trip and Window/Limit.
//
// Not safe for concurrent use. Ready, Admit and Settle do not allocate, but for requests whose outcome is unknown: 16 bytes
// each until they can no longer arrive.
type Bucket struct {
	account // limit is Burst
	per     time.Duration
	margin  time.Duration
	levels  []level // oldest first, Θ rises and what has gone since falls
	scratch []level // for Ready, which changes nothing
	late    log     // unknown outcomes, at their u
	rate    rate
}

// level is the folded part of a bucket, from an instant on at which it was full.
type level struct {
	full  mono.Time // Θ
	since int64     // the cost folded since, at most 2·MaxCost
}

// maxLevels is how many levels are kept apart after an Admit.
const maxLevels = 4

type rate struct {
	limit  int64
	window time.Duration
}

// per returns what the refill of one unit takes, by a clock that drifts against ours.
func (r rate) per() time.Duration {
	w := uint64(r.window)
	w += w/5000 + 1
	return time.Duration((w-1)/uint64(r.limit) + 1)
}

// BucketConfig describes a token bucket.
type BucketConfig struct {
	// Limit is what is refilled per Window. A server that rounds each refill down gives less: nginx up to a thousandth per
	// request where its rate, in thousandths of a request per second, is not a whole number (10r/m is 166 per 1001 s).
	Limit  int64
	Window time.Duration
	// Burst is what the full bucket holds: the most that may arrive at once. If zero, Limit. nginx's burst=b and GCRA's
	// "b extra" are Burst b + 1.
	Burst int64
	// Unit is the component of Cost that counts. If zero, Requests.
	Unit Unit
	// Margin is one tick of the server's clock and a little. If zero, 1.1 ms. Negative: none.
	Margin time.Duration
	Arrivals
}

// NewBucket checks the configuration and returns a Bucket that is full.
func NewBucket(c BucketConfig) (*Bucket, error) {
	if c.Burst == 0 {
		c.Burst = c.Limit
	}
	a, err := newAccount("Bucket", c.Limit, c.Window, c.Unit, c.Arrivals)
	if err != nil {
		return nil, err
	}
	if c.Burst < 1 || c.Burst > MaxCost {
		return nil, fmt.Errorf("limit: Bucket: Burst %d is not between 1 and %d", c.Burst, int64(MaxCost))
	}
	a.limit = c.Burst
	m := c.Margin
	if m == 0 {
		m = 1100 * time.Microsecond
	}
	r := rate{c.Limit, c.Window}
	return &Bucket{account: a, rate: r, per: r.per(), margin: max(m, 0)}, nil
}

// SetLimit changes the refill to n per Window from now on. What is missing from the bucket stays missing.
func (b *Bucket) SetLimit(now mono.Time, n int64) error {
	if err := checkLimit("Bucket", n); err != nil {
		return err
	}
	now = max(now, b.last)
	b.last = now
	b.fold(now)
	before := b.per
	b.rate.limit = n
	b.per = b.rate.per()
	for i := range b.levels {
		if l := &b.levels[i]; l.full > now {
			l.full = now.Add(scale(l.full.Sub(now), b.per, before))
		}
	}
	return nil
}

// SetBurst changes the size of the bucket from now on.
func (b *Bucket) SetBurst(now mono.Time, n int64) error {
	if n < 1 || n > MaxCost {
		return fmt.Errorf("limit: Bucket: Burst %d is not between 1 and %d", n, int64(MaxCost))
	}
	return b.setLimit("Bucket", now, n)
}

// scale returns d·num/den, rounded up.
func scale(d, num, den time.Duration) time.Duration {
	hi, lo := bits.Mul64(uint64(d), uint64(num))
	if hi >= uint64(den) {
		return math.MaxInt64
	}
	q, r := bits.Div64(hi, lo, uint64(den))
	if r > 0 {
		q++
	}
	return time.Duration(min(q, math.MaxInt64))
}

// times returns n·per, within ±math.MaxInt64.
func (b *Bucket) times(n int64) time.Duration {
	if n < 0 {
		return -b.times(-n)
	}
	return scale(time.Duration(n), b.per, 1)
}

// take folds a request into levels.
func (b *Bucket) take(levels []level, u mono.Time, w int64) []level {
	if n := len(levels); n == 0 || u > levels[n-1].full {
		levels = append(levels, level{full: u})
	}
	last := levels[len(levels)-1].full
	kept := levels[:0]
	for _, l := range levels {
		if l.full == last || l.full.Add(b.margin) > last {
			kept = append(kept, level{l.full.Add(b.times(w)), min(l.since+w, 2*MaxCost)})
		}
	}
	return kept
}

// fold takes what can no longer arrive.
func (b *Bucket) fold(now mono.Time) {
	for b.late.n > 0 && b.late.at(0).at <= now {
		e := *b.late.at(0)
		b.levels = b.take(b.levels, e.at, e.cost)
		b.late.forget(e.at)
	}
}

// Ready implements Limiter.
func (b *Bucket) Ready(now mono.Time, cost Cost) mono.Time {
	t := max(now, b.last)
	w := cost.of(b.unit)
	if w == 0 {
		return t
	}
	if w > b.limit {
		return Never
	}
	levels := b.levels
	open := b.open + b.late.total + w
	for i := 0; ; i++ { // with the first i of the late ones folded, not before the i-th's u
		next := Never
		if i < b.late.n {
			next = b.late.at(i).at
		}
		if next > t {
			ready := t
			if open > b.limit {
				ready = AfterSettle
			} else {
				for _, l := range levels {
					if l.since+open > b.limit {
						ready = max(ready, l.full.Add(b.times(open-b.limit)).Add(b.margin-b.ahead()))
					}
				}
			}
			if ready < next {
				return ready
			}
			t = next
		}
		if i == 0 {
			b.scratch = append(b.scratch[:0], levels...)
			levels = b.scratch
		}
		e := b.late.at(i)
		levels = b.take(levels, e.at, e.cost)
		open -= e.cost
	}
}

// Admit implements Limiter.
func (b *Bucket) Admit(now mono.Time, cost Cost) Lease {
	for len(b.levels) > maxLevels { // here and not in Settle, which must not make Ready later
		b.levels[1].since = b.levels[0].since
		b.levels = append(b.levels[:0], b.levels[1:]...)
	}
	return b.admit(now, cost.of(b.unit))
}

// Settle implements Limiter.
func (b *Bucket) Settle(now mono.Time, l Lease, o Outcome) {
	now, u, w := b.close(now, l, &o)
	b.fold(now)
	switch {
	case w == 0:
	case u > now:
		b.late.add(u, w)
	default:
		b.levels = b.take(b.levels, u, w)
	}
}
