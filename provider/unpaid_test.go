package provider_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// TestOutOfCredit: an answer about the account's credit is told from one about the request, whoever
// gives it, and with whatever status.
func TestOutOfCredit(t *testing.T) {
	const denied provider.Refusal = "denied"
	for _, c := range []struct {
		status int
		body   string
		want   provider.Refusal
	}{
		{402, ``, provider.Unpaid},
		{402, `{"detail":"Payment required"}`, provider.Unpaid},
		{402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, provider.Unpaid},
		{402, `<html>Payment Required</html>`, provider.Unpaid},
		{402, `{"error":"Budget full, ask an administrator to increase the limit"}`, provider.Unpaid},
		{402, `{"error":"You have run out of credits. Upgrade your plan to continue."}`, provider.Unpaid},
		{400, `{"error":{"message":"insufficient_quota: balance is not enough","type":"insufficient_quota","code":"insufficient_quota"}}`, provider.Unpaid},
		{400, `{"error":{"message":"Budget has been exceeded! Current cost: 10.01, Max budget: 10.0","type":"budget_exceeded","param":null,"code":"400"}}`, provider.Unpaid},
		{400, `{"error":{"message":"ExceededBudget: User=default over budget. Spend: 10.1, Budget: 10","type":"auth_error","code":400}}`, provider.Unpaid},
		{400, `{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}`, provider.Unpaid},
		{401, `{"detail":{"status":"insufficient_credits","message":"no"}}`, provider.Unpaid},
		{403, `{"error":{"message":"the token quota is not enough","type":"new_api_error","code":"insufficient_user_quota"}}`, provider.Unpaid},
		{403, `{"error":{"message":"用户额度不足","type":"new_api_error","code":""}}`, provider.Unpaid},
		{403, `{"error":{"message":"Error pre-consuming","code":"pre_consume_token_quota_failed"}}`, provider.Unpaid},
		{429, `{"error":{"message":"Your account is suspended, please check your plan and billing details","type":"exceeded_current_quota_error"}}`, provider.Unpaid},
		{500, `{"error":{"message":"no","code":"insufficient_user_quota"}}`, provider.Unpaid},
		// About what was asked for: other requests may be served.
		{402, `{"error":"Exclusive Endpoint: this endpoint is not available under your current subscription"}`, denied},
		{402, `{"x402Version":1,"accepts":[{"scheme":"exact"}]}`, denied},
		{402, `{"error":{"type":"card_error","code":"card_declined","message":"Your card has insufficient funds."}}`, provider.None},
		{402, `{"errors":[{"category":"PAYMENT_METHOD_ERROR","code":"INSUFFICIENT_FUNDS","detail":"Insufficient funds"}]}`, provider.None},
		// About limits.
		{429, `{"status":429,"error":"INSUFFICIENT QUOTA","message":"You exceeded your current limit of concurrent requests."}`, provider.TooMany},
		{429, `{"status":429,"error":"INSUFFICIENT QUOTA","message":"You exceeded your current quota of tokens per minute."}`, provider.RateLimited},
		// About the request: what it says of money is its own text.
		{400, `{"error":{"message":"messages.0: empty","type":"invalid_request_error"},"input":"insufficient balance"}`, provider.None},
		{404, `{"error":{"message":"insufficient balance"}}`, provider.None},
		{400, `{"code":-2010,"msg":"Account has insufficient balance for requested action."}`, provider.None}, // an order
		{403, `{"code":40310000,"message":"insufficient balance for USD (requested: 10, available: 5)"}`, provider.None},
		{400, `{"code":"insufficient_funds","message":"insufficient funds"}`, provider.None},
		{400, `{"message":"the card has not enough balance"}`, provider.None},
		{422, `{"error":{"message":"the account to pay from has an insufficient balance"}}`, provider.None},
		{200, `{"error":{"code":"insufficient_quota"}}`, provider.Unpaid}, // it is nothing but that
	} {
		d, _ := provider.Lookup("generic")
		o := d.Read(now28, provider.Response{Status: c.status, Body: []byte(c.body)})
		got := o.Refusal
		if o.Denied {
			got += denied
		}
		if got != c.want {
			t.Errorf("%d %s\n\t%q, want %q", c.status, c.body, got, c.want)
		}
		if len(o.Problems) > 0 {
			t.Errorf("%d %s\n\t%q", c.status, c.body, o.Problems)
		}
	}
}

// TestLimitOfZero: a limit of 0 means never, and no wait is read then, whatever the answer asks for.
func TestLimitOfZero(t *testing.T) {
	const gemini = `{"error":{"code":429,"message":"You exceeded your current quota.\n* Quota exceeded for metric: x/free_tier_requests, limit: %d\nPlease retry in 20.1s.",` +
		`"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"x/free_tier_requests",` +
		`"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"20s"}]}}`
	const old = `[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo",` +
		`"metadata":{"quota_metric":"x/gemini_requests","quota_limit":"Gemini25ProRequestsPerDay","quota_limit_value":"%d"}}]}}]`
	for _, c := range []struct {
		dialect, body string
		want          provider.Refusal
		back          time.Duration // with 0, never is said, or not when
	}{
		{"gemini", fmt.Sprintf(gemini, 0), provider.NoQuota, 0},
		{"openai", fmt.Sprintf(gemini, 0), provider.NoQuota, 0}, // through a gateway
		{"generic", fmt.Sprintf("[%s]", fmt.Sprintf(gemini, 0)), provider.NoQuota, 0},
		{"gemini", fmt.Sprintf(gemini, 20), provider.QuotaExhausted, 7 * time.Hour},
		{"gemini", fmt.Sprintf(old, 0), provider.NoQuota, 0},
		{"gemini", fmt.Sprintf(old, 100), provider.QuotaExhausted, 7 * time.Hour},
		{"openai", `{"error":{"message":"Rate limit reached for m in organization o on requests per min (RPM): Limit 0, Used 0, Requested 1. Please try again in 6s."}}`, provider.NoQuota, 0},
		{"openai", `{"error":{"message":"Rate limit reached for m in organization o on requests per min (RPM): Limit 10, Used 10, Requested 1. Please try again in 6s."}}`, provider.RateLimited, 6 * time.Second},
		{"generic", `{"message":"limit: 0 of 100 left, try again in 6s"}`, provider.RateLimited, 6 * time.Second},
		{"generic", `{"message":"limit: 0/100, try again in 6s"}`, provider.RateLimited, 6 * time.Second},
		{"generic", `{"message":"limit: 0.5/s, try again in 6s"}`, provider.RateLimited, 6 * time.Second},
		{"generic", `{"message":"limit 100, remaining 0, try again in 6s"}`, provider.RateLimited, 6 * time.Second},
	} {
		d, _ := provider.Lookup(c.dialect)
		o := d.Read(now28, provider.Response{Status: 429, Body: []byte(c.body)})
		at, ok := o.ComeBack(now28)
		if o.Refusal != c.want || ok != (c.back > 0) || ok && at.Sub(now28) != c.back {
			t.Errorf("%s: %s\n\t%q, back in %v; want %q, %v", c.dialect, c.body, o.Refusal, at.Sub(now28), c.want, c.back)
		}
	}
}
