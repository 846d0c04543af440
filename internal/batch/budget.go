package batch

import (
	"context"
	"fmt"
	"math"
	"sync"
)

// money is in billionths of a dollar, so that sums are exact.
type money int64

const dollar money = 1e9

func (m money) String() string { return fmt.Sprintf("$%.2f", float64(m)/float64(dollar)) }

// toMoney rounds up.
func toMoney(usd float64) money {
	return money(min(math.Ceil(usd*float64(dollar)), math.MaxInt64/4))
}

// budget is what may be spent. What a request may cost at most is reserved before it is sent, and what it did cost is spent when it is
// answered; of an answer that never came that is all that was reserved. So it is never exceeded. Safe for concurrent use.
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

// reserve waits until n may be spent, or it is known that it may not: false, with nil. What others have reserved may be left.
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

// settle spends what a reservation has come to.
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

// overBudget is why no more is sent.
func (r *Run) overBudget() error {
	return fmt.Errorf("%w: %v of the budget of %v are spent, and the next request may cost more than the rest (--budget)", ErrEnough, r.budget.isSpent(), r.budget.most)
}
