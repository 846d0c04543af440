package sending

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The budget is never exceeded, whatever is in flight. Reservations that answers did not use are
// used.
func TestBudgetIsNeverExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(100)
		over := make(chan struct{})
		ended := make(chan int, 16)
		for i := range 16 {
			go func() {
				n := 0
				for {
					ok, err := b.Reserve(t.Context(), 10)
					if err != nil || !ok {
						break
					}
					b.mu.Lock()
					if b.Spent+b.reserved > 100 {
						close(over)
					}
					b.mu.Unlock()
					time.Sleep(time.Duration(i+1) * time.Millisecond)
					b.Settle(10, Money(n%4)) // less than was reserved, or nothing
					n++
				}
				ended <- n
			}()
		}
		for range 16 {
			<-ended
		}
		select {
		case <-over:
			t.Error("more is spent and reserved than there is")
		default:
		}
		if b.reserved != 0 || b.Spent <= 90 || b.Spent > 100 {
			t.Errorf("%d are spent, %d reserved, expected more than 90 and no more than 100", b.Spent, b.reserved)
		}
		// A wait ends with its context.
		ctx, cancel := context.WithCancel(t.Context())
		b = NewBudget(10)
		_, _ = b.Reserve(ctx, 10)
		got := make(chan error, 1)
		go func() { _, err := b.Reserve(ctx, 1); got <- err }()
		synctest.Wait()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// A budget is spent to its end. A request waits if reservations of others, once freed, would be
// enough for it. No other request waits.
func TestBudgetTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(10)
		reserve := func(n Money) chan bool {
			got := make(chan bool, 1)
			go func() {
				ok, err := b.Reserve(t.Context(), n)
				if err != nil {
					t.Error(err)
				}
				got <- ok
			}()
			synctest.Wait()
			return got
		}
		want := func(name string, got chan bool, expected bool) {
			t.Helper()
			select {
			case ok := <-got:
				if ok != expected {
					t.Errorf("%s: %v", name, ok)
				}
			default:
				t.Errorf("%s: it waits", name)
			}
		}
		want("all of it", reserve(10), true)
		want("more than there ever is", reserve(11), false)
		some := reserve(4)
		if len(some) > 0 {
			t.Fatal("what others may leave is not waited for")
		}
		b.Settle(10, 6)
		synctest.Wait()
		want("what is left", some, true)
		want("with what is spent too much", reserve(5), false)
		b.Settle(4, 4)
		want("one more", reserve(1), false)
		want("nothing", reserve(0), true)
		if b.IsSpent() != 10 {
			t.Errorf("%d are spent", b.IsSpent())
		}
		b = NewBudget(10)
		want("all of it but one", reserve(9), true)
		all := reserve(10)
		b.Settle(9, 0) // it was never sent
		synctest.Wait()
		want("all of it, after one that cost nothing", all, true)
		b = NewBudget(10)
		want("a little", reserve(1), true)
		b.Settle(1, 4) // it cost more than was reserved
		want("more than is left after one that cost more", reserve(7), false)
		want("what is left after one that cost more", reserve(6), true)
		b = NewBudget(0) // no bound
		want("without a bound", reserve(1<<40), true)
	})
}

// Money is rounded up to a billionth of a dollar, and too much of it is no less than that.
func TestMoney(t *testing.T) {
	for usd, want := range map[float64]Money{0: 0, 1: Dollar, 0.25: Dollar / 4, 1e-10: 1, 2.0000000001: 2*Dollar + 1, 1e300: 1<<61 - 1} {
		if got := ToMoney(usd); got < want || got > want+1 {
			t.Errorf("%v: %d, want %d", usd, got, want)
		}
	}
	if got := (12*Dollar + Dollar/2).String(); got != "$12.50" {
		t.Errorf("%s", got)
	}
}

// Of shared money, a budget asks for what it lacks: it counts what is spent, and what is reserved.
func TestBudgetAsksForWhatItLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a wait that nothing ends fails at once
		var asked []Money
		b := NewBudget(0)
		b.More = func(_ context.Context, least Money) (Money, error) {
			if asked = append(asked, least); least <= 0 {
				return 0, nil // or a budget that asks for less than nothing goes on for ever
			}
			return least, nil
		}
		reserve := func(n Money) {
			if ok, err := b.Reserve(t.Context(), n); !ok || err != nil {
				t.Fatalf("%d: %v, %v", n, ok, err)
			}
		}
		reserve(10)
		reserve(5)
		b.Settle(10, 3)
		reserve(9)
		if want := []Money{10, 5, 2}; !slices.Equal(asked, want) {
			t.Errorf("asked for %v, want %v", asked, want)
		}
	})
}

// Budgets that share money never spend more than there is, and spend all of it. Each gives back what it did not spend.
func TestBudgetsShare(t *testing.T) {
	for range 50 {
		var mu sync.Mutex
		left := Money(1000)
		more := func(_ context.Context, least Money) (Money, error) {
			mu.Lock()
			defer mu.Unlock()
			if least > left {
				return 0, nil
			}
			part := max(least, left/8)
			left -= part
			return part, nil
		}
		var spent atomic.Int64
		var all sync.WaitGroup
		budgets := []*Budget{NewBudget(0), NewBudget(0), NewBudget(0)}
		for _, b := range budgets {
			b.More = more
			for range 4 {
				all.Go(func() {
					for {
						if ok, err := b.Reserve(t.Context(), 10); !ok || err != nil {
							return
						}
						cost := Money(rand.IntN(11))
						spent.Add(int64(cost))
						b.Settle(10, cost)
					}
				})
			}
		}
		all.Wait()
		rest := left
		for _, b := range budgets {
			rest += b.Unspent()
			if !b.mu.TryLock() {
				t.Fatal("who returns the rest keeps the lock")
			}
			b.mu.Unlock()
			if again := b.Unspent(); again != 0 {
				t.Fatalf("%d are given back a second time", again)
			}
		}
		if n := Money(spent.Load()); n+rest != 1000 || rest > 40 {
			t.Fatalf("%d are spent and %d are left of 1000", n, rest)
		}
	}
}
