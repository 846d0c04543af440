package classify_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

var update = flag.Bool("update", false, "write the golden file; read it before it is committed")

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// header makes one of names and values in turn.
func header(fields ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return h
}

func dialect(name string) provider.Dialect {
	if name == "" {
		return nil
	}
	d, ok := provider.Lookup(name)
	if !ok {
		panic("no dialect " + name)
	}
	return d
}

// The verdict on each attempt. why is a part of the reason against sending it again; "again": none.
func TestVerdicts(t *testing.T) {
	const again = "again"
	broken := errors.New("connection reset")
	refusedDial := fmt.Errorf("Get: %w", &net.OpError{Op: "dial", Err: errors.New("refused")})
	unpaid := []byte(`{"error":{"code":"insufficient_quota"}}`)
	keyOut := []byte(`{"error_msg":"api_key is banned"}`)
	lock := []byte(`{"error":{"code":"lock_timeout"}}`)
	for _, c := range []struct {
		name    string
		policy  classify.Policy
		attempt classify.Evidence
		result  limit.Result
		why     string
		also    func(classify.Verdict) bool
	}{
		{"nothing is known", classify.Policy{}, classify.Evidence{}, limit.Unknown, "may have been processed", func(v classify.Verdict) bool { return v.Invalid && v.Theirs }},
		{"no answer, idempotent", classify.Policy{}, classify.Evidence{Err: broken, Idempotent: true}, limit.Unknown, again, nil},
		{"no answer, not idempotent, by setting", classify.Policy{Repeat: true}, classify.Evidence{Err: broken}, limit.Unknown, again, nil},
		{"no connection", classify.Policy{}, classify.Evidence{Err: refusedDial}, limit.Unsent, again, nil},
		{"no connection, and yet something was written", classify.Policy{}, classify.Evidence{Err: refusedDial, Wrote: classify.Something}, limit.Unknown, "may have been processed", nil},
		{"not a byte was written", classify.Policy{}, classify.Evidence{Err: broken, Wrote: classify.Nothing}, limit.Unsent, again, nil},
		{"not a byte was written, the last attempt", classify.Policy{}, classify.Evidence{Err: broken, Wrote: classify.Nothing, Last: true}, limit.Unsent, "last attempt", func(v classify.Verdict) bool { return !v.Invalid }},
		{"nobody waits for it", classify.Policy{}, classify.Evidence{Err: broken, Idempotent: true, Ended: true}, limit.Unknown, "context ended", func(v classify.Verdict) bool { return !v.Invalid }},
		{"cancelled", classify.Policy{}, classify.Evidence{Err: fmt.Errorf("x: %w", context.Canceled), Idempotent: true}, limit.Unknown, "context ended", nil},
		{"cancelled, not idempotent: nobody may try again", classify.Policy{}, classify.Evidence{Err: context.Canceled}, limit.Unknown, "context ended", func(v classify.Verdict) bool { return v.Invalid }},
		{"its client tries again", classify.Policy{}, classify.Evidence{Err: broken, Idempotent: true, Resends: true}, limit.Unknown, "its client", nil},

		{"served", classify.Policy{}, classify.Evidence{Status: 200}, limit.Accepted, "", nil},
		{"a key that is banned", classify.Policy{}, classify.Evidence{Status: 403, Body: keyOut}, limit.Failed, "waiting does not help", func(v classify.Verdict) bool { return v.Banned && !v.Invalid }},
		{"a key that is not known any more", classify.Policy{}, classify.Evidence{Status: 401, Body: keyOut}, limit.Failed, "waiting does not help", func(v classify.Verdict) bool { return v.Banned }},
		{"such words beside another status", classify.Policy{}, classify.Evidence{Status: 404, Body: keyOut}, limit.Failed, "", func(v classify.Verdict) bool { return !v.Banned && v.Invalid }},
		{"denied", classify.Policy{}, classify.Evidence{Status: 403, Body: []byte(`{"message":"forbidden"}`)}, limit.Failed, "", func(v classify.Verdict) bool { return !v.Banned && v.Invalid }},
		{"denied after a refusal: a ban", classify.Policy{}, classify.Evidence{Status: 403, Refused: true},
			limit.Limited, again, func(v classify.Verdict) bool {
				return v.Overloaded && v.Scope == provider.Key && v.Said.Refusal == provider.Banned && !v.Answer().Denied
			}},
		{"a ban, the last attempt", classify.Policy{},
			classify.Evidence{Status: 401, Refused: true, Last: true, Patient: true}, limit.Limited, "last attempt", nil},
		{"a ban with a time", classify.Policy{MaxRetryAfter: time.Minute},
			classify.Evidence{Status: 403, Refused: true, Header: header("Retry-After", "90")}, limit.Limited, "longer than", nil},
		{"a key that is banned for good, after a refusal", classify.Policy{},
			classify.Evidence{Status: 403, Refused: true, Body: keyOut}, limit.Failed, "waiting does not help", nil},
		{"served, and asks to wait", classify.Policy{}, classify.Evidence{Status: 204, Header: header("Retry-After", "3")}, limit.Accepted, "", func(v classify.Verdict) bool { return v.RetryAfter == 0 }},
		{"served by half", classify.Policy{}, classify.Evidence{Status: 200, Err: io.ErrUnexpectedEOF, Idempotent: true}, limit.Failed, again, nil},
		{"served by half, not idempotent", classify.Policy{}, classify.Evidence{Status: 200, Err: io.ErrUnexpectedEOF}, limit.Failed, "may have been processed", func(v classify.Verdict) bool { return v.Invalid }},
		{"redirected", classify.Policy{}, classify.Evidence{Status: 302}, limit.Accepted, "", nil},
		{"400", classify.Policy{}, classify.Evidence{Status: 400, Idempotent: true}, limit.Failed, "", func(v classify.Verdict) bool { return v.Invalid && v.Scope == "" }},
		{"402", classify.Policy{}, classify.Evidence{Status: 402, Idempotent: true}, limit.Failed, "no credit", func(v classify.Verdict) bool { return v.Banned && !v.Invalid && v.Scope == provider.Key }},
		{"402 of an endpoint", classify.Policy{}, classify.Evidence{Status: 402, Body: []byte(`{"message":"This endpoint is not in your plan"}`)}, limit.Failed, "", func(v classify.Verdict) bool { return !v.Banned && v.Answer().Denied }},
		{"402 of a card", classify.Policy{}, classify.Evidence{Status: 402, Body: []byte(`{"error":{"type":"card_error"}}`), Provider: dialect("stripe")}, limit.Failed, "", func(v classify.Verdict) bool { return !v.Banned && v.Invalid && !v.Answer().Denied }},
		{"407", classify.Policy{}, classify.Evidence{Status: 407}, limit.Failed, "", func(v classify.Verdict) bool { return !v.Banned && v.Answer().Denied }},
		{"403 is no limit", classify.Policy{}, classify.Evidence{Status: 403, Idempotent: true}, limit.Failed, "", func(v classify.Verdict) bool { return v.Invalid }},
		{"403 with Retry-After is one", classify.Policy{}, classify.Evidence{Status: 403, Header: header("Retry-After", "1")}, limit.Limited, again, nil},
		{"404 with a limit", classify.Policy{}, classify.Evidence{Status: 404, Header: header("X-RateLimit-Remaining", "3")}, limit.Failed, "", func(v classify.Verdict) bool { return v.Remaining == limit.Cost{limit.Requests: 3} }},
		{"408, idempotent", classify.Policy{}, classify.Evidence{Status: 408, Idempotent: true}, limit.Failed, again, nil},
		{"408", classify.Policy{}, classify.Evidence{Status: 408}, limit.Failed, "may have been processed", nil},
		{"409, a lock", classify.Policy{}, classify.Evidence{Status: 409, Provider: dialect("stripe")}, limit.Failed, again, nil},
		{"409, of somebody", classify.Policy{}, classify.Evidence{Status: 409, Idempotent: true}, limit.Failed, "", func(v classify.Verdict) bool { return v.Invalid }},
		{"413", classify.Policy{}, classify.Evidence{Status: 413, Idempotent: true}, limit.Failed, "", func(v classify.Verdict) bool { return v.Invalid }},
		{"425 was not processed", classify.Policy{}, classify.Evidence{Status: 425}, limit.Failed, again, nil},
		{"429, not idempotent", classify.Policy{}, classify.Evidence{Status: 429}, limit.Limited, again, func(v classify.Verdict) bool { return v.Scope == provider.Key && v.RetryAfter == 0 }},
		{"429, broken off", classify.Policy{}, classify.Evidence{Status: 429, Err: io.ErrUnexpectedEOF, Header: header("Retry-After", "3")}, limit.Limited, again, func(v classify.Verdict) bool { return v.RetryAfter == 3*time.Second }},
		{"429, a lock", classify.Policy{}, classify.Evidence{Status: 429, Provider: dialect("stripe"), Body: lock, Header: header("Retry-After", "3")}, limit.Failed, again, func(v classify.Verdict) bool { return v.RetryAfter == 3*time.Second && v.Scope == "" }},
		{"429, the last", classify.Policy{}, classify.Evidence{Status: 429, Last: true}, limit.Limited, "last attempt", func(v classify.Verdict) bool { return !v.Theirs && !v.Invalid }},
		{"429, a body that is read once", classify.Policy{}, classify.Evidence{Status: 429, Once: true}, limit.Limited, "GetBody", func(v classify.Verdict) bool { return v.Theirs }},
		{"429, the server says no", classify.Policy{}, classify.Evidence{Status: 429, Header: header("X-Should-Retry", "false", "Retry-After", "4")}, limit.Limited, "asks not to", func(v classify.Verdict) bool { return v.Invalid && v.RetryAfter == 4*time.Second }},
		{"500", classify.Policy{}, classify.Evidence{Status: 500, Idempotent: true}, limit.Failed, again, nil},
		{"500 with Retry-After: this request alone", classify.Policy{}, classify.Evidence{Status: 500, Idempotent: true, Header: header("Retry-After", "3")}, limit.Failed, again, func(v classify.Verdict) bool { return v.RetryAfter == 3*time.Second && v.Scope == "" }},
		{"500, negative", classify.Policy{}, classify.Evidence{Status: 500, Idempotent: true, Header: header("Retry-After", "-7")}, limit.Failed, again, func(v classify.Verdict) bool { return v.RetryAfter == 0 }},
		{"500, the server says no", classify.Policy{Repeat: true}, classify.Evidence{Status: 500, Header: header("X-Should-Retry", "false")}, limit.Failed, "asks not to", func(v classify.Verdict) bool { return v.Invalid }},
		{"500, Stripe says no", classify.Policy{Repeat: true}, classify.Evidence{Status: 500, Header: header("Stripe-Should-Retry", "false")}, limit.Failed, "asks not to", nil},
		{"500, the server says yes: what may have been processed is not its to say", classify.Policy{}, classify.Evidence{Status: 500, Header: header("X-Should-Retry", "true")}, limit.Failed, "may have been", nil},
		{"501", classify.Policy{}, classify.Evidence{Status: 501, Idempotent: true}, limit.Failed, "", func(v classify.Verdict) bool { return v.Invalid }},
		{"502, not idempotent", classify.Policy{}, classify.Evidence{Status: 502}, limit.Failed, "may have been processed", func(v classify.Verdict) bool { return v.Theirs && v.Invalid }},
		{"503: whether it began to work nobody knows", classify.Policy{}, classify.Evidence{Status: 503}, limit.Failed, "may have been processed", func(v classify.Verdict) bool { return v.Scope == provider.All }},
		{"503 with Retry-After is a limit", classify.Policy{}, classify.Evidence{Status: 503, Header: header("Retry-After", "3")}, limit.Limited, again, func(v classify.Verdict) bool { return v.Scope == provider.All && v.RetryAfter == 3*time.Second }},
		{"529, of a model", classify.Policy{}, classify.Evidence{Status: 529, Model: true, Idempotent: true}, limit.Failed, again, func(v classify.Verdict) bool { return v.Scope == provider.Model }},
		{"524, a proxy's", classify.Policy{}, classify.Evidence{Status: 524, Idempotent: true}, limit.Failed, again, nil},

		{"no credit", classify.Policy{}, classify.Evidence{Status: 429, Provider: dialect("openai"), Body: unpaid, Header: header("Retry-After", "3")}, limit.Failed, "no credit", func(v classify.Verdict) bool { return v.Banned && !v.Invalid && v.RetryAfter == 0 }},
		{"too large", classify.Policy{}, classify.Evidence{Status: 429, Provider: dialect("openai"), Body: []byte(`{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 5, Requested 9."}}`)}, limit.Failed, "never fits", func(v classify.Verdict) bool { return v.Invalid && !v.Banned }},
		{"a ban that ends", classify.Policy{}, classify.Evidence{Status: 418, Provider: dialect("binance"), Header: header("Retry-After", "120")}, limit.Limited, "banned", func(v classify.Verdict) bool {
			return !v.Banned && v.RetryAfter == 2*time.Minute && v.Scope == provider.IP
		}},
		{"a ban", classify.Policy{}, classify.Evidence{Status: 430, Provider: dialect("shopify")}, limit.Limited, "banned", func(v classify.Verdict) bool { return v.Banned && !v.Invalid && v.Scope == provider.Key }},
		{"a nonce, with 200", classify.Policy{}, classify.Evidence{Status: 200, Provider: dialect("kraken"), Header: header("Content-Type", "application/json"), Body: []byte(`{"error":["EAPI:Invalid nonce"]}`)}, limit.Failed, "nonce", func(v classify.Verdict) bool { return v.Misordered && !v.Invalid }},
		{"a nonce, in words", classify.Policy{}, classify.Evidence{Status: 400, Nonce: true, Body: []byte(`{"error_msg":"bad nonce: 7 is not above the last one"}`)}, limit.Failed, "nonce", func(v classify.Verdict) bool { return v.Misordered && !v.Invalid && v.Scope == provider.Key }},
		{"the same words, without one", classify.Policy{}, classify.Evidence{Status: 400, Body: []byte(`{"error_msg":"bad nonce: 7 is not above the last one"}`)}, limit.Failed, "", func(v classify.Verdict) bool { return !v.Misordered && v.Invalid }},
		{"the same words, of a server that fails", classify.Policy{}, classify.Evidence{Status: 500, Provider: dialect("openai"), Nonce: true, Idempotent: true, Body: []byte(`{"error_msg":"bad nonce: 7 is not above the last one"}`)}, limit.Failed, again, func(v classify.Verdict) bool { return !v.Misordered && v.Said.Refusal == provider.None }},
		{"one policy, in front of a provider that states none", classify.Policy{}, classify.Evidence{Status: 200, Shown: dialect("openai"), Header: header("RateLimit-Policy", `"a";q=10;w=60`)}, limit.Accepted, "", func(v classify.Verdict) bool { return len(v.Said.Policies) == 1 && v.Said.Policies[0].Limit == 10 }},
		{"other words, with one", classify.Policy{}, classify.Evidence{Status: 400, Nonce: true, Body: []byte(`parameter nonce is missing`)}, limit.Failed, "", func(v classify.Verdict) bool { return !v.Misordered && v.Invalid }},

		{"too long for its caller", classify.Policy{MaxRetryAfter: time.Minute}, classify.Evidence{Status: 429, Header: header("Retry-After", "61")}, limit.Limited, "longer than 1m0s", func(v classify.Verdict) bool { return v.Invalid && v.RetryAfter == 61*time.Second }},
		{"not too long", classify.Policy{MaxRetryAfter: time.Minute}, classify.Evidence{Status: 429, Header: header("Retry-After", "60")}, limit.Limited, again, nil},
		{"too long, after a failure", classify.Policy{MaxRetryAfter: time.Minute}, classify.Evidence{Status: 500, Idempotent: true, Header: header("Retry-After", "61")}, limit.Failed, "longer than 1m0s", nil},
		{"nobody waits", classify.Policy{MaxRetryAfter: -1}, classify.Evidence{Status: 429}, limit.Limited, "nobody is to wait", nil},
		{"nobody waits, after a failure that asks for nothing", classify.Policy{MaxRetryAfter: -1}, classify.Evidence{Status: 500, Idempotent: true}, limit.Failed, again, nil},
		{"for two days", classify.Policy{}, classify.Evidence{Status: 429, Header: header("Retry-After", "172800")}, limit.Limited, again, func(v classify.Verdict) bool { return v.RetryAfter == 48*time.Hour && v.Asked == 48*time.Hour }},
		{"for longer than a minute", classify.Policy{MaxPause: time.Minute}, classify.Evidence{Status: 429, Header: header("Retry-After", "61")}, limit.Limited, again, func(v classify.Verdict) bool { return v.RetryAfter == time.Minute && v.Asked == 61*time.Second }},
		{"of the day much is left", classify.Policy{}, classify.Evidence{Status: 429, Header: header("RateLimit-Policy", `"burst";q=5;w=6, "day";q=1000;w=86400`, "RateLimit", `"burst";r=3;t=6, "day";r=700;t=40000`)}, limit.Limited, again, func(v classify.Verdict) bool { return v.RetryAfter == 0 }},
		{"of the burst nothing is left", classify.Policy{}, classify.Evidence{Status: 429, Header: header("RateLimit-Policy", `"burst";q=5;w=6, "day";q=1000;w=86400`, "RateLimit", `"burst";r=0;t=6, "day";r=700;t=40000`)}, limit.Limited, again, func(v classify.Verdict) bool { return v.RetryAfter == 6*time.Second }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.attempt.Now.IsZero() {
				c.attempt.Now = noon
			}
			v := c.policy.Of(&c.attempt)
			why := v.Why
			if v.Again {
				why = again + why
			}
			if v.Result != c.result || (why == "") != (c.why == "") || !strings.Contains(why, c.why) || c.also != nil && !c.also(v) {
				t.Errorf("%v, %q, %+v", v.Result, why, v)
			}
		})
	}
}

// Clocks that are wrong by an hour, and fractions: a wait is rounded up, and a date is read by the server's own clock.
func TestRetryAfter(t *testing.T) {
	date := func(d time.Duration) string { return noon.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		value, date string
		want        time.Duration
	}{
		{"", "", 0}, {"0", "", 0}, {"-1", "", 0}, {"soon", "", 0}, {"NaN", "", 0},
		{"2", "", 2 * time.Second}, {"0.25", "", 250 * time.Millisecond}, {"0.0000000001", "", 1}, {"1e99", "", provider.MaxWait},
		{date(10 * time.Second), "", 10 * time.Second},
		{date(-10 * time.Second), "", 0},
		{date(time.Hour + 10*time.Second), date(time.Hour), 10 * time.Second},
		{date(-time.Hour + 10*time.Second), date(-time.Hour), 10 * time.Second},
		{date(10 * time.Second), date(-time.Second), 11 * time.Second},
	} {
		h := header("Retry-After", c.value)
		if c.date != "" {
			h.Set("Date", c.date)
		}
		p := classify.Policy{}
		for _, status := range []int{429, 503, 500} {
			v := p.Of(&classify.Evidence{Status: status, Header: h, Now: noon, Idempotent: true})
			if v.RetryAfter != c.want {
				t.Errorf("%d, Retry-After %q, Date %q: %v, want %v", status, c.value, c.date, v.RetryAfter, c.want)
			}
		}
	}
}

// No request has to wait for a reset that only says when a bucket is full again. Another time that
// the server asks for counts. The limiters learn the reset all the same.
func TestRefills(t *testing.T) {
	p := classify.Policy{MaxRetryAfter: 5 * time.Minute, MaxPause: 2 * time.Minute}
	for _, c := range []struct {
		refills uint8
		asks    string
		want    time.Duration
		again   bool
	}{
		{0, "", time.Hour, false}, {1 << limit.Requests, "", 0, true}, {1 << limit.Tokens, "", time.Hour, false},
		{1 << limit.Requests, "7", 7 * time.Second, true}, {1 << limit.Requests, "600", 10 * time.Minute, false},
	} {
		h := header("RateLimit-Limit", "4500", "RateLimit-Remaining", "0", "RateLimit-Reset", "3600", "Retry-After", c.asks)
		v := p.Of(&classify.Evidence{Status: 429, Header: h, Now: noon, Refills: c.refills})
		if v.Asked != c.want || v.RetryAfter != min(c.want, p.MaxPause) || v.Again != c.again || v.Reset[limit.Requests] != time.Hour {
			t.Errorf("%b, Retry-After %q: %+v", c.refills, c.asks, v)
		}
		if o := v.For(func(provider.Scope) bool { return true }); o.RetryAfter != v.RetryAfter || o.Reset[limit.Requests] != time.Hour {
			t.Errorf("%b, Retry-After %q: a limiter hears %+v", c.refills, c.asks, o)
		}
	}
}

// The remainder reaches the limits that it concerns, with or without a reset.
func TestHints(t *testing.T) {
	const r = limit.Requests
	for _, c := range []struct {
		name      string
		provider  string
		fields    []string
		known     uint8
		remaining int64
		reset     time.Duration
	}{
		{"Heroku: no reset", "heroku", []string{"RateLimit-Remaining", "1234"}, 1 << r, 1234, 0},
		{"a stranger: no reset", "", []string{"RateLimit-Remaining", "7"}, 1 << r, 7, 0},
		{"with a reset", "", []string{"RateLimit-Limit", "9", "RateLimit-Remaining", "7", "RateLimit-Reset", "5"}, 1 << r, 7, 5 * time.Second},
		{"the least", "", []string{"RateLimit", `"a";r=5;t=9, "b";r=3;t=60, "c";r=8;t=1`}, 1 << r, 3, time.Minute},
		{"of equals the later", "", []string{"RateLimit", `"a";r=3;t=9, "b";r=3;t=60, "c";r=3;t=1`}, 1 << r, 3, time.Minute},
		{"less, but until when is not said", "", []string{"RateLimit", `"a";r=5;t=9, "b";r=3`}, 1 << r, 5, 9 * time.Second},
		{"the same in the other order", "", []string{"RateLimit", `"b";r=3, "a";r=5;t=9`}, 1 << r, 5, 9 * time.Second},
		{"a reset alone", "", []string{"RateLimit-Reset", "9"}, 0, 0, 0},
		{"nothing", "", []string{"Content-Type", "text/plain"}, 0, 0, 0},
	} {
		for _, status := range []int{200, 404, 429} {
			var p classify.Policy
			v := p.Of(&classify.Evidence{Status: status, Header: header(c.fields...), Now: noon, Provider: dialect(c.provider)})
			if v.Known != c.known || v.Remaining != (limit.Cost{r: c.remaining}) || v.Reset[r] != c.reset {
				t.Errorf("%s, %d: known %b, remaining %v, reset %v", c.name, status, v.Known, v.Remaining, v.Reset[r])
			}
		}
	}
}

// A limiter of some limits learns of those alone, and pauses for its own refusals alone.
func TestFor(t *testing.T) {
	is := func(s provider.Scope) func(provider.Scope) bool { return func(v provider.Scope) bool { return v == s } }
	var p classify.Policy
	v := p.Of(&classify.Evidence{Status: 429, Now: noon, Provider: dialect("x"), Header: header("X-Rate-Limit-Limit", "15", "X-Rate-Limit-Remaining", "4", "X-Rate-Limit-Reset", "1768478460",
		"X-App-Limit-24hour-Limit", "900", "X-App-Limit-24hour-Remaining", "0", "X-App-Limit-24hour-Reset", "1768479000")})
	if v.Scope != provider.Key || v.RetryAfter != 10*time.Minute {
		t.Fatalf("%+v", v)
	}
	if o := v.For(is(provider.Key)); o.Remaining[limit.Requests] != 0 || o.Known != 1 || o.RetryAfter != 10*time.Minute {
		t.Errorf("the key: %+v", o)
	}
	if o := v.For(is(provider.Route)); o.Remaining[limit.Requests] != 4 || o.Reset[limit.Requests] != time.Minute || o.RetryAfter != 0 {
		t.Errorf("the route: %+v", o)
	}
	if o := v.For(is(provider.IP)); o.Known != 0 || o.RetryAfter != 0 || o.Result != limit.Limited {
		t.Errorf("the address: %+v", o)
	}
	if stated, capacity := v.Policies(is(provider.Route)); len(stated) != 1 || stated[0].Limit != 15 || capacity != (limit.Cost{}) {
		t.Errorf("the route's: %+v, %v", stated, capacity)
	}
	v = p.Of(&classify.Evidence{Status: 200, Now: noon, Provider: dialect("alpaca"), Header: header("X-RateLimit-Remaining", "7")})
	if stated, _ := v.Policies(func(provider.Scope) bool { return true }); len(v.Said.Policies) != 1 || len(stated) != 0 {
		t.Errorf("a limit of which only the rest is said states none: %+v", stated)
	}
	v = p.Of(&classify.Evidence{Status: 500, Now: noon, Idempotent: true, Header: header("Retry-After", "7")})
	if o := v.For(is("")); v.RetryAfter != 7*time.Second || o.RetryAfter != 0 {
		t.Errorf("a failure pauses others: %+v", o)
	}
	v = p.Of(&classify.Evidence{Status: 200, Now: noon, Provider: dialect("openai"), Header: header("X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "50", "X-Ratelimit-Reset-Requests", "10s")})
	if stated, capacity := v.Policies(is(provider.Model)); len(stated) != 1 || stated[0].Window != 0 || capacity != (limit.Cost{limit.Requests: 60}) {
		t.Errorf("a bucket: %+v, %v", stated, capacity)
	}
}

// A server that states how long it worked had the request before that. An impossible value is
// ignored.
func TestArrivedAgo(t *testing.T) {
	for _, c := range []struct {
		said string
		took time.Duration
		want time.Duration
	}{
		{"", 4 * time.Second, 0},
		{"3000", 4 * time.Second, 3*time.Second - time.Millisecond - 300*time.Microsecond},
		{"1", 4 * time.Second, 0},
		{"4001", 4 * time.Second, 4*time.Second - 400100*time.Nanosecond},
		{"4002", 4 * time.Second, 0},
		{"3000", 0, 0},
		{"3000", 3*time.Second - time.Millisecond - 300*time.Microsecond, 0},
		{"-3000", 4 * time.Second, 0},
	} {
		var p classify.Policy
		v := p.Of(&classify.Evidence{Status: 200, Now: noon, Took: c.took, Provider: dialect("openai"), Header: header("OpenAI-Processing-Ms", c.said)})
		if v.ArrivedAgo != c.want {
			t.Errorf("worked for %q of %v: arrived %v ago, want %v", c.said, c.took, v.ArrivedAgo, c.want)
		}
	}
}

// own is a dialect of another package. It counts its calls.
type own struct {
	asked *int
	body  bool
}

func (own) Name() string { return "own" }

func (d own) InBody() bool { return d.body }

func (d own) Read(_ time.Time, r provider.Response) (o provider.Observation) {
	*d.asked++
	if r.Header.Get("X-Left") == "0" || string(r.Body) == "no more" {
		o.Refusal = provider.RateLimited
	}
	return o
}

// A configured dialect is asked about every answer, also where no header looks like a limit's; with the body, if it
// wants it.
func TestConfiguredDialectIsAsked(t *testing.T) {
	asked := 0
	p := classify.Policy{Dialect: own{asked: &asked}}
	for i, fields := range [][]string{{"X-Left", "3"}, {"X-Left", "0"}, nil} {
		v := p.Of(&classify.Evidence{Status: 200, Header: header(fields...), Now: noon, Body: []byte("no more")})
		if asked != i+1 || v.Result == limit.Limited != (i == 1) {
			t.Errorf("answer %d: asked %d times, %v", i, asked, v.Result)
		}
	}
	json := classify.Evidence{Status: 200, Header: header("Content-Type", "application/json"), Body: []byte("no more"), Now: noon}
	if p.NeedsBody(&json) || p.Of(&json).Result != limit.Accepted {
		t.Error("the body was read")
	}
	p.Dialect = own{&asked, true}
	if !p.NeedsBody(&json) || p.Of(&json).Result != limit.Limited {
		t.Error("the body was not read")
	}
}

func TestNeedsBody(t *testing.T) {
	for _, c := range []struct {
		status   int
		provider string
		kind     string
		want     bool
	}{
		{200, "", "application/json", false},
		{200, "openai", "application/json", false},
		{200, "slack", "application/json", true},
		{200, "slack", "application/vnd.api+JSON; charset=utf-8", true},
		{200, "slack", "application/x-ndjson", false},
		{200, "slack", "application/stream+json", false},
		{200, "slack", "application/json-seq", false},
		{200, "slack", "text/event-stream", false},
		{101, "slack", "application/json", false},
		{404, "slack", "application/json", true}, {401, "elevenlabs", "application/json", true}, {500, "salesforce", "text/xml", true},
		{429, "", "text/html", true},
		{429, "", "text/event-stream", false},
		{400, "", "", true}, {402, "", "", true}, {403, "", "", true}, {409, "", "", true}, {413, "", "", true}, {418, "", "", true},
		{423, "", "", true}, {430, "", "", true}, {498, "", "", true}, {503, "", "", true}, {529, "", "", true},
		{401, "", "", true}, {401, "", "text/event-stream", false}, {404, "", "", false}, {500, "", "", false},
	} {
		var p classify.Policy
		a := classify.Evidence{Status: c.status, Header: header("Content-Type", c.kind), Provider: dialect(c.provider)}
		if got := p.NeedsBody(&a); got != c.want {
			t.Errorf("%d %s %q: %v", c.status, c.provider, c.kind, got)
		}
	}
}

// Of an unknown server's answers those are read that say something: looking whether to is not to miss any.
func TestSpeaks(t *testing.T) {
	n := 0
	for _, name := range provider.Names() {
		for _, s := range corpus.Load(t, "../testdata", name) {
			r := provider.Response{Status: 200, Header: s.Response.Header}
			want := provider.Detect(r).Read(s.Now, r)
			if len(want.Limits) == 0 && len(want.Policies) == 0 && want.RetryAfter == 0 && len(want.RefusedBy) == 0 {
				continue
			}
			n++
			var p classify.Policy
			if v := p.Of(&classify.Evidence{Status: 200, Header: s.Response.Header, Now: s.Now}); v.Said.Dialect != want.Dialect || len(v.Said.Limits) != len(want.Limits) {
				t.Errorf("%s says %+v, and is read as %+v", s.Name, want, v.Said)
			}
		}
	}
	if n < 80 {
		t.Errorf("%d answers of the corpus say something: some were lost", n)
	}
}

// Behind one host there may be several providers: each answer is read in its own dialect. The
// quotation of another in a body does not change the dialect.
func TestGateway(t *testing.T) {
	var p classify.Policy
	var shown provider.Dialect
	for i, c := range []struct {
		status  int
		fields  []string
		body    string
		said    string
		shown   string
		refusal provider.Refusal
	}{
		{200, []string{"Anthropic-Ratelimit-Requests-Limit", "50", "Anthropic-Ratelimit-Requests-Remaining", "49"}, "", "anthropic", "anthropic", ""},
		{200, []string{"X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "0"}, "", "openai", "openai", ""},
		{200, nil, "", "", "", ""},
		{429, []string{"Retry-After", "1"}, `{"error":{"code":"insufficient_quota"}}`, "openai", "", provider.Unpaid}, // who has shown itself need not do so again
		{400, []string{"Content-Type", "application/json"}, `{"error":["EAPI:Rate limit exceeded"]}`, "kraken", "", provider.RateLimited},
		{200, []string{"Content-Type", "application/json"}, `{"result":["EAPI:Rate limit exceeded"]}`, "", "", ""},                        // there is nothing to read
		{200, []string{"Content-Type", "application/json"}, `{"error":["EAPI:Rate limit exceeded"]}`, "openai", "", provider.RateLimited}, // whoever says it
		{500, []string{"X-Hubspot-Correlation-Id", "1"}, "", "hubspot", "hubspot", ""},
		{500, []string{"X-Hubspot-Correlation-Id", "2"}, "", "hubspot", "", ""},
		{429, []string{"Retry-After", "1"}, "", "hubspot", "", provider.RateLimited},                    // anybody may have said that
		{200, []string{"X-Ratelimit-Limit", "60", "X-Ratelimit-Remaining", "5"}, "", "generic", "", ""}, // somebody else's limits count
		{200, []string{"Ratelimit-Policy", `"a";q=5;w=60`}, "", "ietf", "", ""},
	} {
		v := p.Of(&classify.Evidence{Status: c.status, Header: header(c.fields...), Body: []byte(c.body), Now: noon, Shown: shown})
		name := ""
		if v.Shown != nil {
			name, shown = v.Shown.Name(), v.Shown
		}
		if v.Said.Dialect != c.said || name != c.shown || v.Said.Refusal != c.refusal {
			t.Errorf("answer %d: read as %q, shown %q, %q", i, v.Said.Dialect, name, v.Said.Refusal)
		}
	}
}

// TestGolden writes down what becomes of every answer of quota's corpus: scope, result, pause, and whether it goes
// again.
func TestGolden(t *testing.T) {
	var b strings.Builder
	for _, name := range provider.Names() {
		for _, s := range corpus.Load(t, "../testdata", name) {
			if len(s.Response.Body) > 0 && s.Response.Body[0] == '{' && s.Response.Header.Get("Content-Type") == "" {
				s.Response.Header.Set("Content-Type", "application/json") // it was left out where it was written down
			}
			p := classify.Policy{Dialect: dialect(name)}
			a := classify.Evidence{Status: s.Response.Status, Header: s.Response.Header, Body: s.Response.Body, Now: s.Now, Idempotent: true, Model: true}
			v := p.Of(&a)
			rel := strings.TrimPrefix(filepath.ToSlash(s.Name), "../testdata/")
			fmt.Fprintf(&b, "%-50s %d %-9s", strings.TrimSuffix(rel, ".http"), v.Status, v.Result)
			if v.Result == limit.Limited || v.Scope != "" {
				fmt.Fprintf(&b, " %s", v.Scope)
			}
			if v.RetryAfter > 0 {
				fmt.Fprintf(&b, " for %v", v.RetryAfter)
			}
			for u, n := range v.Remaining {
				if v.Known>>u&1 == 1 {
					fmt.Fprintf(&b, " [%d %v", n, limit.Unit(u))
					if v.Reset[u] > 0 {
						fmt.Fprintf(&b, " until %v", v.Reset[u].Round(time.Millisecond))
					}
					b.WriteString("]")
				}
			}
			switch ans := v.Answer(); {
			case ans.Banned:
				b.WriteString(" ban")
			case ans.Invalid:
				b.WriteString(" dead")
			case v.Again:
				b.WriteString(" again")
			}
			if v.Why != "" {
				b.WriteString(": " + v.Why)
			}
			b.WriteString("\n")
		}
	}
	const path = "testdata/corpus.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("line %d differs (-update writes it):\n%s", i+1, strings.Join(got[i:min(i+1, len(got))], ""))
		}
	}
}

// plain is an answer that says nothing of limits, as most.
var plain = header("Content-Type", "application/json", "Content-Length", "512", "Date", "Thu, 15 Jan 2026 12:00:00 GMT", "Server", "nginx",
	"Cache-Control", "no-store", "Vary", "Accept-Encoding", "X-Request-Id", "9f1c", "Strict-Transport-Security", "max-age=1")

func TestPlainAnswersCostNothing(t *testing.T) {
	race.Without(t) // which allocates
	var p classify.Policy
	a := classify.Evidence{Status: 200, Header: plain, Now: noon}
	if n := testing.AllocsPerRun(100, func() {
		if p.NeedsBody(&a) || p.Of(&a).Result != limit.Accepted {
			t.Fatal("not accepted")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOf(b *testing.B) {
	json := []byte(`{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`)
	for _, c := range []struct {
		name    string
		attempt classify.Evidence
	}{
		{"plain 200", classify.Evidence{Status: 200, Header: plain, Now: noon}},
		{"200 with limits", classify.Evidence{Status: 200, Now: noon, Header: header("RateLimit-Limit", "100", "RateLimit-Remaining", "50", "RateLimit-Reset", "30")}},
		{"429", classify.Evidence{Status: 429, Now: noon, Provider: dialect("openai"), Body: json, Header: header("Retry-After", "3")}},
		{"no answer", classify.Evidence{Err: io.EOF}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var p classify.Policy
			b.ReportAllocs()
			for b.Loop() {
				p.Of(&c.attempt)
			}
		})
	}
}

// The evidence of an attempt about the way to its server is in the Outcome, for the breaker.
func TestSight(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	req := httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
	answered := func(status int) classify.Evidence {
		return classify.From(req, &http.Response{StatusCode: status, Header: http.Header{}}, nil)
	}
	var p classify.Policy
	for name, c := range map[string]struct {
		a    classify.Evidence
		want limit.Link
		end  limit.Result
	}{
		"served":    {answered(200), limit.Working, limit.Accepted},
		"not found": {answered(404), limit.Working, limit.Failed},
		"broken":    {answered(500), limit.Broken, limit.Failed},
		"refused":   {classify.From(req, nil, refused), limit.Unreachable, limit.Unsent},
		"given up":  {classify.From(req, nil, context.Canceled), limit.Implied, limit.Unknown},
	} {
		v := p.Of(&c.a)
		if v.Link != c.want || v.Answer().Link != c.want || v.Result != c.end {
			t.Errorf("%s: %v and %v, want %v and %v", name, v.Link, v.Result, c.want, c.end)
		}
	}
}

// A 401 or 403 that is about no limit is a matter for another key.
func TestDenied(t *testing.T) {
	var p classify.Policy
	for status, want := range map[int]bool{401: true, 403: true, 400: false, 404: false, 429: false, 500: false, 200: false} {
		v := p.Of(&classify.Evidence{Status: status, Header: http.Header{}})
		if ans := v.Answer(); ans.Denied != want || want && !ans.Invalid {
			t.Errorf("%d: %+v", status, ans)
		}
	}
}

// A field that any server may send does not identify the server: the next answer may.
func TestAnybodyShowsNothing(t *testing.T) {
	var p classify.Policy
	for _, fields := range [][]string{{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0"}, {"RateLimit", `"a";r=0;t=30`}} {
		if v := p.Of(&classify.Evidence{Status: 429, Header: header(fields...), Now: noon}); v.Shown != nil || len(v.Said.Limits) == 0 {
			t.Errorf("%v: shown %v, %+v", fields, v.Shown, v.Said)
		}
	}
}

// A dead letter has the answer's status, and the kind of refusal.
func TestReasons(t *testing.T) {
	var p classify.Policy
	for want, a := range map[string]classify.Evidence{
		"429 Too Many Requests: rate limited": {Status: 429},
		"503 Service Unavailable: overloaded": {Status: 503, Idempotent: true},
		"500 Internal Server Error":           {Status: 500, Idempotent: true},
		"no answer: broken":                   {Err: errors.New("broken"), Idempotent: true},
		"":                                    {Status: 200},
	} {
		a.Header, a.Now = http.Header{}, noon
		if got := p.Of(&a).Answer().Reason; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The statements of an answer become limit.Rule. Units that limiters do not have are left out,
// and so are unknown values.
func TestStated(t *testing.T) {
	got := classify.Stated([]provider.Policy{
		{Name: "a", Unit: provider.Requests, Rule: provider.Bucket, Limit: 10, Window: time.Second, Burst: 30},
		{Name: "b", Unit: provider.Input, Rule: provider.Rolling, Limit: 20, Window: time.Minute, Source: provider.Documented},
		{Name: "c", Unit: provider.Requests, Rule: provider.Anchored, Limit: 30, Window: time.Hour},
		{Name: "d", Unit: provider.Requests, Rule: provider.Calendar, Limit: 40, Window: time.Hour},
		{Name: "e", Unit: provider.Requests, Limit: 50, Window: time.Hour},
		{Name: "concurrent", Unit: provider.Concurrent, Limit: 10, Window: time.Hour},
		{Name: "no window", Unit: provider.Requests, Limit: 10},
		{Name: "one", Unit: provider.Requests, Limit: 1},
		{Name: "nothing", Unit: provider.Requests},
		{Name: "inferred", Unit: provider.Requests, Limit: 10, Window: time.Hour, WindowSource: provider.Inferred},
	})
	want := []limit.Rule{
		{Name: "a", N: 10, Per: time.Second, Counts: limit.CountsBucket, Burst: 30},
		{Name: "b", Unit: limit.Input, N: 20, Per: time.Minute, Counts: limit.CountsRolling, Documented: true},
		{Name: "c", N: 30, Per: time.Hour, Counts: limit.CountsWindow},
		{Name: "d", N: 40, Per: time.Hour, Counts: limit.CountsWindow},
		{Name: "e", N: 50, Per: time.Hour},
		{Name: "no window", N: 10},
		{Name: "one", N: 1},
		{Name: "inferred", N: 10},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// What is left of another resource is no news of this one. A refusal by it concerns the route alone.
func TestOfResource(t *testing.T) {
	left := func(scope provider.Scope, resource string, n int64) provider.ServiceLimit {
		return provider.ServiceLimit{Unit: provider.Requests, Scope: scope, Resource: resource, Remaining: provider.Count{N: n, OK: true}}
	}
	for name, c := range map[string]struct {
		limits []provider.ServiceLimit
		other  string
		kept   int
		left   int64 // of the key
		scope  provider.Scope
	}{
		"another":             {[]provider.ServiceLimit{left(provider.Resource, "search", 3)}, "search", 0, 0, provider.Route},
		"its own":             {[]provider.ServiceLimit{left(provider.Resource, "core", 3)}, "", 1, 7, provider.Resource},
		"without a name":      {[]provider.ServiceLimit{left(provider.Resource, "", 3)}, "", 1, 7, provider.Resource},
		"of the key":          {[]provider.ServiceLimit{left(provider.Key, "search", 3)}, "", 1, 7, provider.Resource},
		"another and the key": {[]provider.ServiceLimit{left(provider.Resource, "search", 3), left(provider.Key, "", 9)}, "", 1, 9, provider.Route},
	} {
		v := classify.Verdict{Scope: provider.Resource}
		v.Said.Limits, v.Remaining = c.limits, limit.Cost{7}
		other := v.OfResource("core")
		if other != c.other || len(v.Said.Limits) != c.kept || v.Remaining != (limit.Cost{c.left}) || v.Scope != c.scope {
			t.Errorf("%s: %q, limits %v, left %v, concerns %q; want %+v", name, other, v.Said.Limits, v.Remaining, v.Scope, c)
		}
	}
}

// An answer that was served in part counts, and pauses for as long as the server asks, or a second. The rest is sent
// again if that does no harm and somebody may wait that long.
func TestPartly(t *testing.T) {
	said := provider.Observation{Partly: true, Refusal: provider.RateLimited, RetryAfter: time.Minute}
	with := func(change func(o *provider.Observation)) provider.Observation { o := said; change(&o); return o }
	whole := classify.Evidence{Status: 200, Idempotent: true}
	for _, c := range []struct {
		name    string
		policy  classify.Policy
		attempt classify.Evidence
		said    provider.Observation
		why     string // "": it is sent again
		pause   time.Duration
	}{
		{"sent again", classify.Policy{}, whole, said, "", time.Minute},
		{"not idempotent", classify.Policy{}, classify.Evidence{Status: 200}, said, "a part of it was served", time.Minute},
		{"not idempotent, and allowed", classify.Policy{RepeatPartly: true}, classify.Evidence{Status: 200}, said, "", time.Minute},
		{"banned", classify.Policy{}, whole, with(func(o *provider.Observation) { o.Refusal = provider.Banned }), "a part of it was served", time.Minute},
		{"not for a limit", classify.Policy{}, whole, with(func(o *provider.Observation) { o.Refusal = provider.Unpaid }), "a part of it was served", time.Second},
		{"overloaded", classify.Policy{}, whole, with(func(o *provider.Observation) { o.Refusal = provider.Overloaded }), "", time.Minute},
		{"no time", classify.Policy{}, whole, with(func(o *provider.Observation) { o.RetryAfter = 0 }), "", time.Second},
		{"just short enough", classify.Policy{MaxRetryAfter: time.Minute}, whole, said, "", time.Minute},
		{"too long", classify.Policy{MaxRetryAfter: time.Minute - 1}, whole, said, "longer than", time.Minute},
		{"nobody waits", classify.Policy{MaxRetryAfter: -1}, whole, with(func(o *provider.Observation) { o.RetryAfter = 0 }), "nobody is to wait", time.Second},
		{"a bound", classify.Policy{MaxPause: time.Second}, whole, said, "", time.Second},
		{"forbidden", classify.Policy{}, classify.Evidence{Status: 200, Idempotent: true, Header: header("X-Should-Retry", "false")}, said, "asks not to", time.Minute},
		{"the last", classify.Policy{}, classify.Evidence{Status: 200, Idempotent: true, Last: true}, said, "last attempt", time.Minute},
	} {
		c.policy.Dialect, c.attempt.Now = stranger{c.said}, noon
		v := c.policy.Of(&c.attempt)
		if v.Result != limit.Accepted || v.Again != (c.why == "") || !strings.Contains(v.Why, c.why) || v.RetryAfter != c.pause || v.Invalid || !v.Doubt {
			t.Errorf("%s: %v, again %t, %q, a pause of %v", c.name, v.Result, v.Again, v.Why, v.RetryAfter)
		}
	}
}

// A wait of more than an hour is sure if a window as long is stated or documented. One of an hour needs no proof, and
// is not sure by that. The dialect may vouch for any.
func TestSure(t *testing.T) {
	window := func(d time.Duration, of provider.Source) []provider.Policy {
		return []provider.Policy{{Unit: provider.Requests, Window: d, WindowSource: of}}
	}
	const hour, day = time.Hour, 24 * time.Hour
	for _, c := range []struct {
		name string
		said provider.Observation
		want bool
	}{
		{"an hour", provider.Observation{RetryAfter: hour, Policies: window(day, provider.Stated)}, false},
		{"more", provider.Observation{RetryAfter: hour + 1, Policies: window(day, provider.Stated)}, true},
		{"by a reset", provider.Observation{Limits: []provider.ServiceLimit{{Unit: provider.Requests, Reset: noon.Add(hour + 1)}}, Policies: window(day, provider.Documented)}, true},
		{"as long as the window", provider.Observation{RetryAfter: day, Policies: window(day, provider.Stated)}, true},
		{"longer than the window", provider.Observation{RetryAfter: day + 1, Policies: window(day, provider.Stated)}, false},
		{"a window that is guessed", provider.Observation{RetryAfter: 2 * hour, Policies: window(day, provider.Inferred)}, false},
		{"no window", provider.Observation{RetryAfter: 2 * hour}, false},
		{"the dialect vouches", provider.Observation{RetryAfter: 1, Sure: true}, true},
		{"for nothing", provider.Observation{Sure: true}, false},
		{"no quota at all", provider.Observation{Refusal: provider.NoQuota}, true},
	} {
		p := classify.Policy{Dialect: stranger{c.said}}
		if v := p.Of(&classify.Evidence{Status: 429, Now: noon}); v.Sure != c.want {
			t.Errorf("%s: sure %t", c.name, v.Sure)
		}
	}
}
