package run

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

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

// Nobody has counted an input that is read once. All of it is read and the budget is spent, and yet a request is left: the run says why.
func TestBudgetOfAnInputThatIsReadOnce(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	for budget, left := range map[float64]int{2.5: 1, 3: 0} {
		b := newBench(t)
		b.config.Price, b.config.Concurrency, b.config.Budget = 1, 1, budget
		r := b.made(b.config)
		if err := r.Open(); err != nil {
			t.Fatal(err)
		}
		err := r.Send(t.Context(), "in", strings.NewReader(strings.Join(requests(3, srv.URL), "\n")))
		totals, _ := r.Close()
		if totals.Done != 3-left || totals.Left != left || errors.Is(err, ErrEnough) != (left > 0) {
			t.Errorf("for %v USD: %v, %+v", budget, err, totals)
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
	if got := batch.c.price(q); got != 7_000_000 { // 1000 tokens in at most, and 500 out
		t.Errorf("the price is %d", got)
	}
	if got := plain.c.price(q); got != sending.Dollar/2 {
		t.Errorf("the price is %d", got)
	}
	for _, c := range []struct {
		res          sending.Response
		result       limit.Result
		plain, batch sending.Money
	}{
		{sending.Response{Status: 200, Body: []byte(`{"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`)}, limit.Accepted, 9, 700_000},
		{sending.Response{Status: 200, Body: []byte(`{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":80},"completion_tokens":50}}`)}, limit.Accepted, 9, 580_000},
		{sending.Response{Status: 200, Body: []byte(`{}`)}, limit.Accepted, 9, 9}, {sending.Response{Status: 500}, limit.Failed, 9, 0},
		{sending.Response{Status: 429}, limit.Limited, 0, 0}, {sending.Response{Err: errors.New("x")}, limit.Unknown, 9, 9},
		{sending.Response{Status: 200, Err: errors.New("half")}, limit.Unknown, 9, 9}, {sending.Response{Err: errors.New("refused")}, limit.Unsent, 0, 0},
	} {
		j := &job{r: q, res: c.res}
		if c.res.Err == nil && c.res.Status == http.StatusOK {
			batch.judge.served(j, &pool.Answer{})
		}
		if a, b := plain.c.cost(j, c.result, 9), batch.c.cost(j, c.result, 9); a != c.plain || b != c.batch {
			t.Errorf("%d %v: %d and %d, expected %d and %d", c.res.Status, c.result, a, b, c.plain, c.batch)
		}
	}
}
