package stack_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
)

// sharer is a law for strangers that share 4,500 an hour.
func sharer(kind fairshare.Kind) limit.Limiter {
	return must(fairshare.NewFair(fairshare.FairConfig{Kind: kind, Limit: 4500, Window: time.Hour, Rng: rand.New(rand.NewPCG(1, 2))}))
}

// emptyUntil is a refusal, or an answer that was served, after which nothing is left until then. A
// limiter that reads refusals takes that for a wait.
func emptyUntil(r limit.Result, reset time.Duration) limit.Outcome {
	o := told(0, reset)
	if o.Result = r; r == limit.Limited {
		o.RetryAfter = reset
	}
	return o
}

// A reset that is the refill of a stranger's bucket delays no request, neither as a wait nor as a
// hint. Any other reset does, and so does a Retry-After beside it.
func TestRefills(t *testing.T) {
	for _, c := range []struct {
		name   string
		config func() stack.Config
		says   func(reset time.Duration) limit.Outcome
		away   bool
	}{
		{"a bucket", func() stack.Config { return stack.Config{Limiter: sharer(fairshare.TokenBucket)} }, nil, false},
		{"it may be one", func() stack.Config { return stack.Config{Limiter: sharer(fairshare.UnknownKind)} }, nil, false},
		{"another is", func() stack.Config { return stack.Config{Beside: sharer(fairshare.UnknownKind)} }, nil, false},
		{"among others", func() stack.Config {
			return stack.Config{Limiter: limit.NewAll(limit.MustRolling(9, time.Second), limit.Named("it", sharer(fairshare.UnknownKind))), InFlight: 5}
		}, nil, false},
		{"a window", func() stack.Config { return stack.Config{Limiter: sharer(fairshare.FixedWindow)} }, nil, true},
		{"no strangers", func() stack.Config { return stack.Config{Limiter: limit.MustRolling(4500, time.Hour)} }, nil, true},
		{"no limit", func() stack.Config { return stack.Config{} }, nil, true},
		{"it asks for as long and a second", func() stack.Config { return stack.Config{Limiter: sharer(fairshare.TokenBucket)} }, func(reset time.Duration) limit.Outcome {
			o := emptyUntil(limit.Limited, reset)
			o.RetryAfter += time.Second
			return o
		}, true},
		{"of something else", func() stack.Config { return stack.Config{Limiter: sharer(fairshare.TokenBucket)} }, func(reset time.Duration) limit.Outcome {
			o := emptyUntil(limit.Limited, 0)
			o.Known, o.RetryAfter = 1<<limit.Tokens, reset
			o.Reset[limit.Tokens] = reset
			return o
		}, true},
	} {
		for _, result := range []limit.Result{limit.Limited, limit.Accepted} {
			if c.says != nil && result == limit.Accepted {
				continue
			}
			l := newLine(t, c.config())
			now := time.Duration(l.g.Ready(0, limit.One))
			l.sends(now, "a")
			o := emptyUntil(result, time.Hour)
			if c.says != nil {
				o = c.says(time.Hour)
			}
			now += 60 * ms
			l.ends(now, "a", o)
			wait := time.Duration(l.g.Ready(at(now), limit.One)) - now
			if p, on := l.g.Paused(at(now)); wait > 20*time.Minute != c.away || on && p.Until > at(now+time.Minute) != c.away {
				t.Errorf("%s, %v: it waits for %v; paused %v until %v", c.name, result, wait, on, p.Until)
			}
		}
	}
}

// A stated capacity beside it does not make the stack keep a bucket of its own.
func TestContainRefills(t *testing.T) {
	for kind, want := range map[fairshare.Kind]time.Duration{fairshare.TokenBucket: 0, fairshare.FixedWindow: 800 * ms} {
		l := newLine(t, stack.Config{Limiter: sharer(kind)})
		o := emptyUntil(limit.Accepted, time.Hour)
		l.g.Contain(0, limit.Cost{4500}, &o)
		l.ready(0, want)
	}
}
