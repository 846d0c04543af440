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
