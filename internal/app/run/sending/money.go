package sending

import (
	"context"
	"math"
	"sync"

	"github.com/paceline-go/paceline/internal/text"
)

// Money is an amount in billionths of a dollar, so that sums are exact.
type Money int64

const Dollar Money = 1e9

func (m Money) String() string { return text.Dollars(m.USD()) }

// USD returns the amount in dollars.
func (m Money) USD() float64 { return float64(m) / float64(Dollar) }

// Millionths returns the amount in millionths of a dollar, as limits of money count it, rounded down.
func (m Money) Millionths() int64 { return int64(m / (Dollar / 1e6)) }

// ToMoney rounds up.
func ToMoney(usd float64) Money {
	return Money(min(math.Ceil(usd*float64(Dollar)), math.MaxInt64/4))
}

// Budget bounds the money that a run may spend. Before a request is sent, the most that it may cost
// is reserved. Its answer replaces the reservation by the real cost. Without an answer, the whole
// reservation is spent. So the budget is never exceeded. Safe for concurrent use.
type Budget struct {
	Most Money // 0: there is no bound, unless More is set
	// More, if not nil, gets more money from a budget that several processes share: least or more, or 0 if that is
	// not left. Most grows by it. The error is that of ctx. One call is made at a time.
	More func(ctx context.Context, least Money) (Money, error)

	mu              sync.Mutex
	changed         *sync.Cond
	asking          bool // More is called
	Spent, reserved Money
}

func NewBudget(most Money) *Budget {
	b := &Budget{Most: most}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// Reserve reserves n. If less is left it waits, since other requests may cost less than was
// reserved for them. It returns false and nil when n can certainly never be left.
func (b *Budget) Reserve(ctx context.Context, n Money) (ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (b.Most > 0 || b.More != nil) && b.Spent+b.reserved+n > b.Most {
		stop := context.AfterFunc(ctx, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.changed.Broadcast()
		})
		defer stop()
		if err := b.fetchLocked(ctx, n); err != nil {
			return false, err
		}
		for b.reserved > 0 && b.Spent+b.reserved+n > b.Most && b.Spent+n <= b.Most && ctx.Err() == nil {
			b.changed.Wait()
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if b.Spent+b.reserved+n > b.Most {
			return false, nil
		}
	}
	b.reserved += n
	return true, nil
}

// fetchLocked gets more money until n can be reserved, or no more is left.
func (b *Budget) fetchLocked(ctx context.Context, n Money) error {
	for b.More != nil && b.Spent+b.reserved+n > b.Most && ctx.Err() == nil {
		if b.asking {
			b.changed.Wait()
			continue
		}
		b.asking = true
		least := b.Spent + b.reserved + n - b.Most
		b.mu.Unlock()
		more, err := b.More(ctx, least)
		b.mu.Lock()
		b.asking = false
		b.changed.Broadcast()
		if b.Most += more; err != nil || more == 0 {
			return err
		}
	}
	return ctx.Err()
}

// Unspent returns what More got and was not spent, and forgets it. Call it when nothing is reserved any more.
func (b *Budget) Unspent() Money {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.More == nil {
		return 0
	}
	rest := b.Most - b.Spent
	b.Most = b.Spent
	return rest
}

// Settle ends a reservation, and spends the real cost of the request.
func (b *Budget) Settle(reserved, cost Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved -= reserved
	b.Spent += cost
	b.changed.Broadcast()
}

func (b *Budget) IsSpent() Money {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Spent
}
