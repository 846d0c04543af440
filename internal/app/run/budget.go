package run

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/paceline-go/paceline/internal/text/humanize"
)

// money is an amount in billionths of a dollar, so that sums are exact.
type money int64

const dollar money = 1e9

func (m money) String() string { return humanize.Dollars(float64(m) / float64(dollar)) }

// toMoney rounds up.
func toMoney(usd float64) money {
	return money(min(math.Ceil(usd*float64(dollar)), math.MaxInt64/4))
}

// budget bounds the money that a run may spend. Before a request is sent, the most that it may cost
// is reserved. Its answer replaces the reservation by the real cost. Without an answer, the whole
// reservation is spent. So the budget is never exceeded. Safe for concurrent use.
type budget struct {
	most money // 0: there is no bound

	mu              sync.Mutex
	changed         *sync.Cond
	spent, reserved money
}

func newBudget(most money) *budget {
	b := &budget{most: most}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// reserve reserves n. If less is left it waits, since other requests may cost less than was
// reserved for them. It returns false and nil when n can certainly never be left.
func (b *budget) reserve(ctx context.Context, n money) (ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.most > 0 && b.spent+b.reserved+n > b.most {
		stop := context.AfterFunc(ctx, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.changed.Broadcast()
		})
		defer stop()
		for b.reserved > 0 && b.spent+b.reserved+n > b.most && b.spent+n <= b.most && ctx.Err() == nil {
			b.changed.Wait()
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if b.spent+b.reserved+n > b.most {
			return false, nil
		}
	}
	b.reserved += n
	return true, nil
}

// settle ends a reservation, and spends the real cost of the request.
func (b *budget) settle(reserved, cost money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved -= reserved
	b.spent += cost
	b.changed.Broadcast()
}

func (b *budget) isSpent() money {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

// overBudget stops sending, since the budget is spent.
func (r *Run) overBudget() error {
	return fmt.Errorf("%w: %v of the budget of %v are spent, and the next request may cost more than the rest (--budget)", ErrEnough, r.budget.isSpent(), r.budget.most)
}
