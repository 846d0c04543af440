package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// An answer is plain if no later request has a reason to wait for it.
func TestPlain(t *testing.T) {
	reset := [8]time.Duration{limit.Input: time.Nanosecond, limit.Money: time.Second}
	for _, c := range []struct {
		o      limit.Outcome
		plain  bool
		resets uint8
	}{
		{o: limit.Outcome{}, plain: true},
		{o: limit.Outcome{Result: limit.Accepted}, plain: true},
		{o: limit.Outcome{Result: limit.Failed, Metered: true, Actual: limit.One}, plain: true},
		{o: limit.Outcome{Result: limit.Unsent}, plain: true},
		{o: limit.Outcome{Result: limit.Limited}},
		{o: limit.Outcome{Result: limit.Limited, Elsewhere: true}},
		{o: limit.Outcome{Result: limit.Failed, RetryAfter: 1}},
		{o: limit.Outcome{Result: limit.Accepted, RetryAfter: -1}, plain: true},
		{o: limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests}, plain: true},
		{o: limit.Outcome{Result: limit.Accepted, Reset: reset}, plain: true},
		{o: limit.Outcome{Result: limit.Accepted, Reset: reset, Known: 1 << limit.Requests}, plain: true},
		{o: limit.Outcome{Result: limit.Accepted, Reset: reset, Known: 1 << limit.Input}, resets: 1 << limit.Input},
		{o: limit.Outcome{Reset: reset, Known: 255}, resets: 1<<limit.Input | 1<<limit.Money},
	} {
		if got := c.o.Plain(); got != c.plain {
			t.Errorf("%+v: plain %t, want %t", c.o, got, c.plain)
		}
		if got := c.o.Resets(); got != c.resets {
			t.Errorf("%+v: resets %b, want %b", c.o, got, c.resets)
		}
	}
}
