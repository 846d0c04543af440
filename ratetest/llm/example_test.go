package llm_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/paceline-go/paceline/ratetest/llm"
)

// A server with OpenAI's endpoint and custom limits. The client sends more than they allow.
func ExampleNew() {
	server, err := llm.New(llm.Config{Provider: llm.OpenAI, Limits: llm.Limits{Requests: 2, Tokens: 10_000, Window: 24 * time.Hour}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		ask := httptest.NewRequest(http.MethodPost, "/v1/chat/completions",
			strings.NewReader(`{"model": "gpt-4o", "max_tokens": 50, "messages": [{"role": "user", "content": "Good morning."}]}`))
		ask.Header.Set("Authorization", "Bearer mine")
		ask.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, ask)
		fmt.Println(answer.Code, answer.Header().Get("X-Ratelimit-Remaining-Requests"), "requests left")
	}
	fmt.Println(server.Report().Verdicts)
	// Output:
	// 200 1 requests left
	// 200 0 requests left
	// 429 0 requests left
	// map[accepted:2 limited:1]
}
