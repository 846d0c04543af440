package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// The reset of a bucket that is full again then does not hold. Nor does a wait that was made of it.
// Other waits do.
func TestRefilled(t *testing.T) {
	for _, c := range []struct {
		name                        string
		units                       uint8
		requests, tokens, retry     time.Duration
		toRequests, toTokens, stays time.Duration
	}{
		{"of nothing", 0, time.Hour, time.Minute, time.Hour, time.Hour, time.Minute, time.Hour},
		{"of requests, and so is the wait", 1 << limit.Requests, time.Hour, time.Minute, time.Hour, 0, time.Minute, 0},
		{"of tokens, and the wait is of requests", 1 << limit.Tokens, time.Hour, time.Minute, time.Hour, time.Hour, 0, time.Hour},
		{"of both", 1<<limit.Requests | 1<<limit.Tokens, time.Hour, time.Minute, time.Minute, 0, 0, 0},
		{"the server asks for another wait", 1 << limit.Requests, time.Hour, time.Minute, time.Second, 0, time.Minute, time.Second},
	} {
		o := limit.Outcome{Result: limit.Limited, RetryAfter: c.retry, Known: 1<<limit.Requests | 1<<limit.Tokens}
		o.Reset[limit.Requests], o.Reset[limit.Tokens] = c.requests, c.tokens
		o.Refilled(c.units)
		if o.Reset[limit.Requests] != c.toRequests || o.Reset[limit.Tokens] != c.toTokens || o.RetryAfter != c.stays || o.Known != 1<<limit.Requests|1<<limit.Tokens {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
}
