package run

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
)

// The budget is never exceeded, whatever is in flight. Reservations that answers did not use are
// used.
func TestBudgetIsNeverExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		over := make(chan struct{})
		ended := make(chan int, 16)
		for i := range 16 {
			go func() {
				n := 0
				for {
					ok, err := b.reserve(t.Context(), 10)
					if err != nil || !ok {
						break
					}
					b.mu.Lock()
					if b.spent+b.reserved > 100 {
						close(over)
					}
					b.mu.Unlock()
					time.Sleep(time.Duration(i+1) * time.Millisecond)
					b.settle(10, money(n%4)) // less than was reserved, or nothing
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
		if b.reserved != 0 || b.spent <= 90 || b.spent > 100 {
			t.Errorf("%d are spent, %d reserved, expected more than 90 and no more than 100", b.spent, b.reserved)
		}
		// A wait ends with its context.
		ctx, cancel := context.WithCancel(t.Context())
		b = newBudget(10)
		_, _ = b.reserve(ctx, 10)
		got := make(chan error, 1)
		go func() { _, err := b.reserve(ctx, 1); got <- err }()
		synctest.Wait()
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// Expenses count over restarts. The rest is for another run, or a larger budget.
func TestBudgetOfARun(t *testing.T) {
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.RawQuery == "" {
			time.Sleep(10 * time.Millisecond)
		}
	})
	b := newBench(t)
	b.config.Price, b.config.Concurrency = 1, 3
	for _, c := range []struct {
		budget     float64
		done, left int
		usd        float64
	}{{3.5, 3, 2, 3}, {3.5, 0, 2, 3}, {4, 1, 1, 4}, {0, 1, 0, 5}} {
		b.config.Budget = c.budget
		got := b.run(requests(5, srv.URL)...)
		if got.Done != c.done || got.Left != c.left || got.USD != c.usd || errors.Is(got.err, ErrEnough) != (c.left > 0) {
			t.Errorf("%v: %+v, %v", c, got.Totals, got.err)
		}
	}
}

// The cost of an attempt depends on its outcome.
func TestCostOfAnAttempt(t *testing.T) {
	llm, err := format.NewLLM(format.LLMConfig{Provider: format.OpenAI})
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := New(Config{Price: 0.25})
	batch, _ := New(Config{Format: llm, Prices: Prices{Input: 2, Output: 10, Cached: 0.5}})
	q := &format.Request{Body: make([]byte, 1000), Cost: limit.Cost{limit.Requests: 2}}
	q.Estimate.MaxOutput = 500
	if got := batch.price(q); got != 7_000_000 { // 1000 tokens in at most, and 500 out
		t.Errorf("the price is %d", got)
	}
	if got := plain.price(q); got != dollar/2 {
		t.Errorf("the price is %d", got)
	}
	for _, c := range []struct {
		res          response
		result       limit.Result
		plain, batch money
	}{
		{response{status: 200, body: []byte(`{"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`)}, limit.Accepted, 9, 700_000},
		{response{status: 200, body: []byte(`{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":80},"completion_tokens":50}}`)}, limit.Accepted, 9, 580_000},
		{response{status: 200, body: []byte(`{}`)}, limit.Accepted, 9, 9}, {response{status: 500}, limit.Failed, 9, 0},
		{response{status: 429}, limit.Limited, 0, 0}, {response{err: errors.New("x")}, limit.Unknown, 9, 9},
		{response{status: 200, err: errors.New("half")}, limit.Unknown, 9, 9}, {response{err: errors.New("refused")}, limit.Unsent, 0, 0},
	} {
		j := &job{r: q, res: c.res}
		if a, b := plain.cost(j, c.result, 9), batch.cost(j, c.result, 9); a != c.plain || b != c.batch {
			t.Errorf("%d %v: %d and %d, expected %d and %d", c.res.status, c.result, a, b, c.plain, c.batch)
		}
	}
}

// A budget is spent to its end. A request waits if reservations of others, once freed, would be
// enough for it. No other request waits.
func TestBudgetTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		reserve := func(n money) chan bool {
			got := make(chan bool, 1)
			go func() {
				ok, err := b.reserve(t.Context(), n)
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
		b.settle(10, 6)
		synctest.Wait()
		want("what is left", some, true)
		want("with what is spent too much", reserve(5), false)
		b.settle(4, 4)
		want("one more", reserve(1), false)
		want("nothing", reserve(0), true)
		if b.isSpent() != 10 {
			t.Errorf("%d are spent", b.isSpent())
		}
		b = newBudget(10)
		want("all of it but one", reserve(9), true)
		all := reserve(10)
		b.settle(9, 0) // it was never sent
		synctest.Wait()
		want("all of it, after one that cost nothing", all, true)
		b = newBudget(0) // no bound
		want("without a bound", reserve(1<<40), true)
	})
}

// Money is rounded up to a billionth of a dollar, and too much of it is no less than that.
func TestMoney(t *testing.T) {
	for usd, want := range map[float64]money{0: 0, 1: dollar, 0.25: dollar / 4, 1e-10: 1, 2.0000000001: 2*dollar + 1, 1e300: 1<<61 - 1} {
		if got := toMoney(usd); got < want || got > want+1 {
			t.Errorf("%v: %d, want %d", usd, got, want)
		}
	}
	if got := (12*dollar + dollar/2).String(); got != "$12.50" {
		t.Errorf("%s", got)
	}
}
