package format

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/golden"
)

// TestLinesOfLLM: each end of a request in either provider's files, and the entry that a rerun
// reads from it, among results and among errors. After a change: -update, and read the difference.
func TestLinesOfLLM(t *testing.T) {
	bodies := []string{"", `{"usage":{"output_tokens":7}}`, "<html>\xff", `{"error":{"message":"The model ` + "`x`" + ` does not exist","code":"model_not_found"}}`}
	for _, kind := range []string{"not_found_error", "invalid_request_error", "request_too_large", "authentication_error", "permission_error", "billing_error", "rate_limit_error", "api_error"} {
		bodies = append(bodies, `{"type":"error","error":{"type":"`+kind+`","message":"no"}}`)
	}
	ends := []Result{{ID: "a", State: "expired", Error: "its deadline passed"}, {ID: "a", State: "dead", Class: "outage", Error: "no answer"}, {ID: "a", State: "dead", Class: "model", Error: "x"}, {ID: "a", State: "dead", Class: "held", Error: "x", Hidden: 2}}
	for _, body := range bodies {
		for _, status := range []int{200, 302, 400, 404, 500} {
			if status == http.StatusBadRequest || strings.Contains(body, "found") || !strings.Contains(body, "type") {
				state := "dead"
				if status < 300 {
					state = "done"
				}
				ends = append(ends, Result{ID: "a", State: state, Status: status, Body: &body, Error: "answered", Headers: map[string]string{"x-request-id": "req_1"}})
			}
		}
	}
	no := `{"error":{"message":"slow down"}}`
	for _, state := range []string{"expired", "cancelled"} { // after a refusal
		ends = append(ends, Result{ID: "a", State: state, Status: 429, Body: &no, Error: "its deadline passed"})
	}
	var b strings.Builder
	for _, provider := range []Provider{OpenAI, Anthropic} {
		l, err := NewLLM(LLMConfig{Provider: provider})
		if err != nil {
			t.Fatal(err)
		}
		read := func(line []byte) {
			for _, dead := range []bool{false, true} {
				e, ok := l.Entry(line, dead)
				fmt.Fprintf(&b, "  read, among the errors %v: %v, %q %s %d %q %q\n", dead, ok, e.ID, e.State, e.Status, e.Class, e.Body)
			}
		}
		for _, r := range ends {
			line := l.Line(nil, &r)
			fmt.Fprintf(&b, "%s of %v %d\n  %s\n", provider, r.State, r.Status, strings.TrimSpace(string(line)))
			read(line)
		}
		for _, raw := range []string{`{"custom_id":"mine"}`, `{"custom_id":"` + strings.Repeat("x", maxIDLen) + `"}`, `{"custom_id":"` + strings.Repeat("x", maxIDLen+1) + `"}`, "no line"} {
			line := l.SkippedLine("batch_req_1", []byte(raw), "it is no request")
			fmt.Fprintf(&b, "%s of what is passed over\n  %s\n", provider, strings.TrimSpace(string(line)))
			read(line)
		}
		for _, line := range []string{
			"", "{", "{}", `{"id":"1"}`, `{"id":"1","error":{"code":"x"}}`, `{"id":"1","custom_id":"a"}`, `{"custom_id":"a","response":{"status_code":200}}`, `{"id":"1","response":{"status_code":200}}`,
			`{"custom_id":"a"}`, `{"custom_id":"a","result":{}}`, `{"result":{"type":"errored"}}`, `{"custom_id":"a","result":{"type":"errored","error":7}}`, `{"skipped":"s","result":{"type":"errored"}}`,
		} {
			fmt.Fprintf(&b, "%s of %q\n", provider, line)
			read([]byte(line))
		}
	}
	golden.Compare(t, "llm-lines.golden", b.String())
}
