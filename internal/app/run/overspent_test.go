package run

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// An answer may cost more than was reserved for it, where the model wrote more than was asked for.
// All of that is spent of the budget: the next request is sent only if it still fits.
func TestOverspendingIsSpent(t *testing.T) {
	var n atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		fmt.Fprint(w, `{"usage":{"prompt_tokens":100,"completion_tokens":300000,"total_tokens":300100}}`) // 30 cents
	}))
	defer srv.Close()
	llm, err := format.NewLLM(format.LLMConfig{Provider: format.OpenAI, BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.config.Format, b.config.Prices = llm, Prices{Input: 1, Output: 1}
	b.config.Concurrency, b.config.Budget = 1, 0.5
	var lines []string
	for i := range 5 {
		lines = append(lines, fmt.Sprintf(`{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":10,"messages":[]}}`, i))
	}
	for restart, sent := range []int32{2, 2} { // 60 cents are more than 50
		got := b.run(lines...)
		if n.Load() != sent || got.Left != 3 || !errors.Is(got.err, ErrEnough) {
			t.Errorf("run %d: sent %d, %+v, %v", restart, n.Load(), got.Totals, got.err)
		}
	}
}
