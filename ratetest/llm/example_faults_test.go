package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/paceline-go/paceline/ratetest/llm"
)

// A server that fails once, by its script, and then answers with the usage that a test wants. Judge reads
// its log.
func ExampleJudge() {
	var log bytes.Buffer
	config := llm.Config{
		Provider: llm.Anthropic,
		Limits:   llm.Limits{Requests: 50, Input: 30_000, Output: 8_000},
		Count:    "produced",
		Script:   []string{"overloaded", "ok"},
		Law:      llm.Law{OutputMedian: 100, OutputP99: 400},
		Truth:    func(a llm.Ask) llm.Usage { return llm.Usage{Input: 12, Output: min(40, a.MaxOutput)} },
		LogTo:    &log,
	}
	server, err := llm.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		body := `{"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello."}]}`
		ask := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body))
		ask.Header.Set("X-Api-Key", "mine")
		ask.Header.Set("Anthropic-Version", "2023-06-01")
		ask.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, ask)
		fmt.Println(answer.Code)
	}
	var line llm.Line
	if err := json.NewDecoder(bytes.NewReader(log.Bytes())).Decode(&line); err != nil {
		fmt.Println(err)
	}
	fmt.Println(line.Fault, line.Status)
	report, err := llm.Judge(config, &log)
	fmt.Println(report.Wrong, report.Verdicts, err)
	var account llm.Account = report.Accounts[0]
	fmt.Println(account.Model, account.Output, "tokens out,", len(account.Limits), "limits")
	// Output:
	// 529
	// 200
	// overloaded 529
	// 0 map[accepted:1 faulty:1] <nil>
	// claude-sonnet-4-5 40 tokens out, 3 limits
}
