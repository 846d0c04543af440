package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

const (
	ofOpenAI    = `{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`
	ofAnthropic = `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed a limit"}}`
)

// A body alone, without status and fields: what it is, whose, and what it means.
func TestExplainBody(t *testing.T) {
	for _, c := range []struct {
		name, in, args string
		want           []string // in the output
	}{
		{"an address in it", ofOpenAI, "", []string{"429 Too Many Requests (assumed), read as openai", "Refused: rate limited, by TPM", "Come back in 2 s", "told by platform.openai.com"}},
		{"a code of one alone", ofAnthropic, "", []string{"429 Too Many Requests (assumed), read as anthropic", "Refused: rate limited", "told by what the body is like"}},
		{"it says something worse", `{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`, "--provider openai", []string{"Refused: insufficient quota", "waiting does not help"}},
		{"busy", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "", []string{"503 Service Unavailable (assumed), read as anthropic", "Refused: overloaded"}},
		{"a number", `{"code":"50011","msg":"Too Many Requests","data":[]}`, "", []string{"read as okx", "Refused: rate limited, by endpoint"}},
		{"it is served with 200", `{"ok":false,"error":"ratelimited"}`, "", []string{"read as slack", "Refused: rate limited"}},
		{"a list", `[{"errorCode":"REQUEST_LIMIT_EXCEEDED","message":"TotalRequests Limit exceeded."}]`, "", []string{"read as salesforce", "Refused: quota exhausted"}},
		{"XML", "<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>", "", []string{"read as aws", "Refused: rate limited"}},
		{"words alone are anybody's", `{"message":"Too many requests"}`, "", []string{"429 Too Many Requests (assumed), read as generic", "Refused: rate limited"}},
		{"a ban of a stranger", `{"error":"api_key is banned"}`, "", []string{"It is a ban, by its words", "The flag --ban-status of paceline run, such as 401,403"}},
		{"no limit's", `{"error":"Not found"}`, "", []string{"400 Bad Request (assumed), read as generic", "for no limit that is known"}},
	} {
		code, stdout, stderr := paceline(c.in, append([]string{"explain"}, strings.Fields(c.args)...)...)
		if code != cli.ExitOK || !strings.Contains(stderr, "no status found") {
			t.Errorf("%s: exit %d, stderr %q", c.name, code, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, stdout)
			}
		}
	}
	code, stdout, _ := paceline(ofOpenAI, "explain", "-o", "json")
	var v struct {
		Status  int    `json:"status"`
		Assumed bool   `json:"status_assumed"`
		ToldBy  string `json:"told_by"`
	}
	if err := json.Unmarshal([]byte(stdout), &v); code != cli.ExitOK || err != nil || v.Status != 429 || !v.Assumed || v.ToldBy != "platform.openai.com" {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
}

// An address in the body says whose the answer is; one in a header field does not, as that may be of a proxy before the server.
func TestExplainAddress(t *testing.T) {
	for in, want := range map[string]string{
		`WARN refused, status 429: {"error":{"message":"Rate limit reached, see https://console.groq.com/settings/billing"}}`:                  "groq",
		"HTTP/1.1 429 Too Many Requests\nRetry-After: 5\nReport-To: {\"endpoints\":[{\"url\":\"https://a.nel.cloudflare.com/report\"}]}\n\n{}": "generic",
	} {
		if _, stdout, _ := paceline(in, "explain"); !strings.Contains(stdout, "read as "+want+" at") {
			t.Errorf("%s: want %s\n%s", in, want, stdout)
		}
	}
}
