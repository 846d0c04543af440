package classify_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// How one attempt ended: what limiters learn, whom a refusal concerns, and whether to send it again.
func ExamplePolicy() {
	var policy classify.Policy
	v := policy.Of(&classify.Evidence{
		Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3"}}, Wrote: classify.Something,
		Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Idempotent: true,
	})
	fmt.Println(v.Outcome.Result, v.Asked, v.Again)

	v = policy.Of(&classify.Evidence{Err: context.DeadlineExceeded, Wrote: classify.Something})
	fmt.Println(v.Outcome.Result, v.Again, v.Why) // it may have been processed
	// Output:
	// limited 3s true
	// unknown false it may have been processed, and is neither idempotent nor has an Idempotency-Key
}

// A refusal, its limits and when to come back, in words for people.
func ExampleDescribeRefusal() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	requests := provider.Policy{
		Name: "minute", Unit: provider.Requests, Rule: provider.Rolling, Limit: 500, Window: time.Minute,
		Source: provider.Stated, WindowSource: provider.Stated,
	}
	left := provider.ServiceLimit{
		Policy: "minute", Unit: provider.Requests, Remaining: provider.Count{OK: true}, Reset: now.Add(12 * time.Second), Whole: true,
	}
	o := provider.Observation{
		Refusal: provider.RateLimited, RefusedBy: []string{"requests"}, RetryAfter: 12 * time.Second,
		Policies: []provider.Policy{requests}, Limits: []provider.ServiceLimit{left},
	}
	fmt.Println(classify.PolicyName(requests.Name, requests.Unit) + classify.DescribePolicy(requests))
	fmt.Println(classify.DescribeLeft(now, left, requests.Limit))
	fmt.Println(classify.Advice(now, http.StatusTooManyRequests, o))
	fmt.Println(classify.DescribeRefusal(now, http.StatusTooManyRequests, o))
	// Output:
	// minute: 500 requests per minute (rolling)
	// 0 left, full again in 12 s
	// Come back in 12 s (2026-03-01 12:00:12 UTC).
	// 429: rate limited, by requests; minute: 500 requests per minute (rolling), 0 left, full again in 12 s. Come back in 12 s (2026-03-01 12:00:12 UTC).
}

// The limits that an answer states, in the words of package limit.
func ExampleStated() {
	policies := []provider.Policy{
		{Name: "minute", Unit: provider.Tokens, Rule: provider.Rolling, Limit: 30_000, Window: time.Minute},
	}
	for _, s := range classify.Stated(policies) {
		u, _ := classify.UnitOf(policies[0].Unit)
		fmt.Println(s, s.Counts == classify.Counts(provider.Rolling), s.Unit == u)
	}
	// Output: 30000 tokens per 1m0s true true
}

// What may be sent again? A GET may. A POST may if not a byte of it was written, or if it has a key
// by which the server knows it again.
func ExampleIdempotent() {
	get, _ := http.NewRequest(http.MethodGet, "http://api/", nil)
	order, _ := http.NewRequest(http.MethodPost, "http://api/orders", nil)
	fmt.Println(classify.Idempotent(get), classify.Idempotent(order))
	order.Header.Set("Idempotency-Key", "17")
	fmt.Println(classify.Idempotent(order))

	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	fmt.Println(classify.NeverSent(refused))
	fmt.Println(classify.Upgrades(http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}})) // it has no end
	// Output:
	// true false
	// true
	// true
	// true
}
