package loadgen

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
)

// What anybody's answer says, in the words that servers use.
func TestRead(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		status int
		fields map[string]string
		want   answer
	}{
		"nothing":                       {200, nil, answer{status: 200, remaining: -1}},
		"Heroku's":                      {200, map[string]string{"RateLimit-Remaining": "17", "RateLimit-Multiplier": "1"}, answer{status: 200, remaining: 17}},
		"what is left until an instant": {201, map[string]string{"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "4999", "X-RateLimit-Reset": "1700000060"}, answer{status: 201, remaining: 4999, reset: time.Minute}},
		"the IETF's third": {200, map[string]string{"RateLimit-Policy": `"a";q=100;w=60, "b";q=1000;w=3600`, "RateLimit": `"a";r=50;t=30, "b";r=7;t=900`},
			answer{status: 200, remaining: 7, reset: 15 * time.Minute}},
		"a refusal": {429, map[string]string{"Retry-After": "30"}, answer{status: 429, remaining: -1, retryAfter: 30 * time.Second}},
	} {
		h := http.Header{}
		for k, v := range c.fields {
			h.Set(k, v)
		}
		got := read(now, provider.Response{Status: c.status, Header: h})
		if got.policies = nil; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A clock that runs ten times as fast: what a server says by it takes a tenth here.
func TestOutcome(t *testing.T) {
	p := process{Config: Config{Scale: 10}}
	a := answer{status: 429, remaining: 3, reset: time.Minute, retryAfter: 20 * time.Second}
	o := a.outcome(time.Millisecond, p.real)
	if o.Result != limit.Limited || o.Remaining[limit.Requests] != 3 || o.Reset[limit.Requests] != 6*time.Second || o.RetryAfter != 2*time.Second || o.RTT != time.Millisecond || o.Known != 1<<limit.Requests {
		t.Errorf("%+v", o)
	}
	if h := a.heard(5); h != (strategy.Answer{Limited: true, Known: true, Remaining: 3, Sent: 5, Reset: time.Minute, RetryAfter: 20 * time.Second}) {
		t.Errorf("%+v", h)
	}
	for status, want := range map[int]limit.Result{0: limit.Unknown, 200: limit.Accepted, 204: limit.Accepted, 429: limit.Limited, 302: limit.Failed, 500: limit.Failed} {
		a := answer{status: status, remaining: -1}
		if o := a.outcome(0, p.real); o.Result != want || o.Known != 0 || a.heard(0).Known {
			t.Errorf("%d is %v, and something is known of it: %v", status, o.Result, o.Known)
		}
	}
}

// What is per second is Scale times as much here, what is in seconds a Scale-th, and what is per second squared Scale² times.
func TestRealParams(t *testing.T) {
	c := Config{Scale: 10, Params: strategy.Params{Rate: 1.25, Burst: 4500, MinRate: 0.1, Window: time.Hour, Start: 20 * time.Second, MinSleep: time.Second, MaxWait: time.Minute, Weight: 2}}
	want := strategy.Params{Rate: 12.5, Burst: 4500, MinRate: 1, Window: 6 * time.Minute, Start: 2 * time.Second, MinSleep: 100 * time.Millisecond, MaxWait: 6 * time.Second, Weight: 2, Increase: 0.125}
	if got := c.realParams(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if c.Params.Increase = 1; c.realParams().Increase != 100 {
		t.Errorf("an increase of 1 is %v", c.realParams().Increase)
	}
}

// pupil is a limiter that hears what servers state.
type pupil struct {
	limit.Limiter
	heard []limit.Rule
}

func (p *pupil) State(_ mono.Time, all []limit.Rule) { p.heard = append(p.heard, all...) }
func (p *pupil) Refills(*limit.Outcome) uint8        { return 0 }
func (p *pupil) Resume(mono.Time, []limit.Past)      {}

// What a server states, or its provider documents, of how it counts reaches the law, as it does in production: by the clients' clock, which is
// ten times as fast.
func TestStated(t *testing.T) {
	l := &pupil{Limiter: limit.MustRolling(1, time.Second)}
	p := process{Config: Config{Scale: 10}, gate: paceline.NewGate(l), limiter: l}
	h := http.Header{"Ratelimit-Policy": {`"a";q=100;w=60`}, "Ratelimit": {`"a";r=50;t=30`}}
	a := read(time.Unix(1_700_000_000, 0), provider.Response{Status: 200, Header: h})
	permit, err := p.gate.Wait(t.Context(), limit.One)
	if err != nil {
		t.Fatal(err)
	}
	p.permitted(permit)(0, 0, a)
	want := limit.Rule{Name: "a", N: 100, Per: 6 * time.Second}
	if len(l.heard) != 1 || l.heard[0] != want {
		t.Errorf("it heard %+v", l.heard)
	}
}
