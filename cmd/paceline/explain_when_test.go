package main

import (
	"strings"
	"testing"
)

// TestExplainSaysWhen: explain says of what kind a refusal in words is, and when to come back if the
// words say it. It shows them, and never says both that the server does and that it does not.
func TestExplainSaysWhen(t *testing.T) {
	const quota = `{"error":{"code":429,"message":"Quota exceeded for metric: x/requests, limit: %LIMIT\nPlease retry in 41.2s.","status":"RESOURCE_EXHAUSTED","details":[` +
		`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"x/requests","quotaId":"RequestsPerDayPerProjectPerModel"}]},` +
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"41s"}]}}`
	const older = `[{"error":{"code":429,"message":"Quota exceeded for 'Gemini 2.5 Pro Requests per day'","status":"RESOURCE_EXHAUSTED","details":[` +
		`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_metric":"x/requests","quota_limit":"Gemini25ProRequestsPerDay","quota_limit_value":"%LIMIT"}}]}}]`
	const zero = "Refused: quota of 0"
	for _, c := range []struct {
		name, answer string
		says         []string
	}{
		{"seconds", "429\n\n" + `{"error":{"code":"429","message":"Rate limit exceeded. Try again in 35 seconds."}}`, []string{"Come back in 35 s (", "It says: Rate limit exceeded. Try again in 35 seconds."}},
		{"hours", "429\n\n" + `{"error":{"message":"The limit of 5 hours is reached. Resets in 4hr 59min."}}`, []string{"Come back in 4 h 59 min"}},
		{"days", "429\n\n" + `{"error":{"message":"The limit of the week is reached. Resets in 2 days."}}`, []string{"The quota is used up; come back in 2 days"}},
		{"a date", "429\n\n" + `{"error":{"message":"The quota is exhausted. It will reset at 12-02 09:18:00 UTC."}}`, []string{"come back in 4 days 9 h (2026-12-02 09:18:00 UTC)"}},
		{"a time", "429\n\n" + `{"error":{"message":"You've hit your limit · resets 8pm (UTC)"}}`, []string{"Come back in 19 h (2026-11-28 20:00:00 UTC)"}},
		{"in flight", "429\n\n" + `{"status":429,"error":"INSUFFICIENT QUOTA","message":"You exceeded your current limit of concurrent requests."}`, []string{"Refused: concurrency", "Have fewer requests under way"}},
		{"tokens", "429\n\n" + `{"status":429,"error":"INSUFFICIENT QUOTA","message":"You exceeded your current quota of tokens per minute."}`, []string{"Refused: rate limited", "It says: You exceeded your current quota of tokens per minute."}},
		{"no credit", "400\n\n" + `{"error":{"message":"insufficient_quota: no balance","code":"insufficient_quota"}}`, []string{"Do not come back before the account has credit"}},
		{"payment", "402\n\n" + `{"detail":"Payment required"}`, []string{"Do not come back before the account has credit"}},
		{"Azure", "429\nretry-after: 86400\nx-ratelimit-reset-requests: 86400\n\n" + `{"error":{"code":"429","message":"Requests under Azure OpenAI API version 2024-02-01 have exceeded token rate limit. Please retry after 86400 seconds."}}`,
			[]string{"read as azure-openai", "Come back in 1 day"}},
		{"Gemini", "429\n\n" + strings.Replace(quota, "%LIMIT", "20", 1), []string{"come back in 7 h (2026-11-28 08:00:00 UTC)"}},
		{"Gemini, never", "429\n\n" + strings.Replace(quota, "%LIMIT", "0", 1), []string{zero, "waiting does not help"}},
		{"Gemini, older", "429\n\n" + strings.Replace(older, "%LIMIT", "100", 1), []string{"100 requests per day", "come back in 7 h (2026-11-28 08:00:00 UTC)"}},
		{"Gemini, older, never", "429\n\n" + strings.Replace(older, "%LIMIT", "0", 1), []string{zero, "waiting does not help"}},
		// The body alone: its members are no header fields. The present is another one then.
		{"Gemini's body", strings.Replace(quota, "%LIMIT", "20", 1), []string{"read as gemini", "Refused: quota exhausted, by RequestsPerDayPerProjectPerModel", "08:00:00 UTC)"}},
		{"Gemini's older body", strings.Replace(older, "%LIMIT", "100", 1), []string{"read as gemini", "Refused: quota exhausted, by Gemini25ProRequestsPerDay", ":00:00 UTC)"}},
		{"Gemini's body, never", strings.Replace(quota, "%LIMIT", "0", 1), []string{"read as gemini", zero}},
		{"a log with Gemini's body", `2026-11-28 WARN failed: 429 ` + strings.Replace(quota, "%LIMIT", "0", 1), []string{"read as gemini", zero}},
	} {
		status, rest, ok := strings.Cut(c.answer, "\n")
		text := c.answer
		if ok && len(status) == 3 {
			text = "HTTP/1.1 " + status + " No\ndate: Sat, 28 Nov 2026 01:00:00 GMT\ncontent-type: application/json\n" + rest
		}
		code, out, errs := paceline(text, "explain")
		flat := strings.Join(strings.Fields(out), " ")
		for _, want := range c.says {
			if !strings.Contains(flat, want) {
				t.Errorf("%s: no %q in\n%s%s", c.name, want, out, errs)
			}
		}
		if code != 0 || strings.Contains(flat, "ome back in") && strings.Contains(flat, "does not say when") || strings.Contains(out, "Not read: ") {
			t.Errorf("%s: exit %d\n%s", c.name, code, out)
		}
	}
}
