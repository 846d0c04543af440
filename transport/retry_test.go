package transport_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// How often a request is sent: three times at most. It must not have been processed, or may be
// processed twice, and its body can be read again. The last column is a part of the text of an
// early end.
func TestSendsAgain(t *testing.T) {
	const get, post, put = http.MethodGet, http.MethodPost, http.MethodPut
	const once = "x" // a body that can be read once; without it, a body has GetBody
	broken := errors.New("connection reset")
	for _, tc := range []struct {
		name, method, body string
		header             []string // of the request
		status             int
		err                error
		answer             string
		fields             []string
		sent               int
		why                string
	}{
		{name: "served", method: get, status: 200, sent: 1},
		{name: "not found", method: get, status: 404, sent: 1},
		{name: "500, idempotent", method: get, status: 500, sent: 3, why: "last"},
		{name: "502, idempotent, with a body", method: put, body: "b", status: 502, sent: 3, why: "last"},
		{name: "502, a body that is read once", method: put, body: once, status: 502, sent: 1, why: "GetBody"},
		{name: "502, not idempotent", method: post, body: "b", status: 502, sent: 1, why: "neither idempotent"},
		{name: "502, idempotency key", method: post, body: "b", header: []string{"Idempotency-Key", "7"}, status: 502, sent: 3, why: "last"},
		{name: "501", method: get, status: 501, sent: 1},
		{name: "503, not idempotent", method: post, body: "b", status: 503, sent: 1, why: "neither idempotent"},
		{name: "503 with Retry-After was not processed", method: post, body: "b", status: 503, fields: []string{"Retry-After", "1"}, sent: 3, why: "last"},
		{name: "429 was not processed", method: post, body: "b", status: 429, sent: 3, why: "last"},
		{name: "429, no body", method: post, status: 429, sent: 3, why: "last"},
		{name: "429, a body that is read once", method: post, body: once, status: 429, sent: 1, why: "GetBody"},
		{name: "429, negative Retry-After", method: post, body: "b", status: 429, fields: []string{"Retry-After", "-5"}, sent: 3, why: "last"},
		{name: "403 is no limit", method: get, status: 403, sent: 1},
		{name: "403 with Retry-After is one", method: get, status: 403, fields: []string{"Retry-After", "1"}, sent: 3, why: "last"},
		{name: "no credit", method: post, body: "b", status: 429, answer: `{"error":{"code":"insufficient_quota"}}`, fields: []string{"X-Ratelimit-Limit-Requests", "5"}, sent: 1, why: "no credit"},
		{name: "too large", method: post, body: "b", status: 429, answer: `{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 5, Requested 9."}}`, fields: []string{"X-Ratelimit-Limit-Requests", "5"}, sent: 1, why: "never fits"},
		{name: "a ban", method: get, status: 418, fields: []string{"X-Mbx-Used-Weight-1m", "9000", "Retry-After", "2"}, sent: 1, why: "banned"},
		{name: "the server says no", method: get, status: 500, fields: []string{"X-Should-Retry", "false"}, sent: 1, why: "the server asks"},
		{name: "an error, idempotent", method: get, err: broken, sent: 3, why: "last"},
		{name: "an error, not idempotent", method: post, body: "b", err: broken, sent: 1, why: "neither idempotent"},
		{name: "an error, idempotency key", method: post, body: "b", header: []string{"X-Idempotency-Key", "7"}, err: broken, sent: 3, why: "last"},
		{name: "an error, read once", method: put, body: once, err: broken, sent: 1, why: "GetBody"},
		{name: "the client has tried again once", method: get, header: []string{"X-Stainless-Retry-Count", "1"}, status: 500, sent: 2, why: "last"},
		{name: "the client has tried again often", method: get, header: []string{"X-Stainless-Retry-Count", "7"}, status: 500, sent: 1, why: "last"},
		{name: "the client counts backwards", method: get, header: []string{"X-Stainless-Retry-Count", "-7"}, status: 500, sent: 3, why: "last"},
		{name: "the client tries again where no answer came", method: get, header: []string{"X-Stainless-Retry-Count", "1"}, err: broken, sent: 1, why: "its client"},
		{name: "the client has not tried again yet", method: get, header: []string{"X-Stainless-Retry-Count", "0"}, err: broken, sent: 3, why: "last"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bodies []string
				var attempts []transport.Attempt
				tr := mustNew(t, transport.Config{
					Limiter: limit.MustRolling(1e6, time.Millisecond),
					Ended:   func(a transport.Attempt) { attempts = append(attempts, a) },
					Base: roundTripper(func(r *http.Request) (*http.Response, error) {
						if r.Body != nil {
							b, _ := io.ReadAll(r.Body)
							r.Body.Close()
							bodies = append(bodies, string(b))
						} else {
							bodies = append(bodies, "")
						}
						if tc.err != nil {
							return nil, tc.err
						}
						return reply(tc.status, tc.answer, tc.fields...), nil
					}),
				})
				r := request(t, tc.method, "http://a.test/", tc.body, tc.header...)
				if tc.body == once {
					r.GetBody = nil
				}
				status, body, err := do(t, tr, r)
				if status != tc.status || body != tc.answer || !errors.Is(err, tc.err) {
					t.Errorf("got %d %q %v", status, body, err)
				}
				if want := slices.Repeat([]string{tc.body}, tc.sent); !slices.Equal(bodies, want) {
					t.Errorf("sent %q, want %q", bodies, want)
				}
				if len(attempts) != tc.sent {
					t.Fatalf("told of %d attempts, want %d", len(attempts), tc.sent)
				}
				for i, a := range attempts {
					if a.Number != i+1 || a.Again != (i < tc.sent-1) {
						t.Errorf("attempt %d: %+v", i+1, a)
					}
				}
				if last := attempts[tc.sent-1]; !strings.Contains(last.Why, tc.why) || (last.Why == "") != (tc.why == "") {
					t.Errorf("why: %q, want %q", last.Why, tc.why)
				}
			})
		})
	}
}

// A request that found no connection was never sent: it costs nothing, and goes again whatever its method.
func TestUnsent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	listener.Close() // nobody answers there
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	var results []limit.Result
	tr := mustNew(t, transport.Config{
		Base: base, Limiter: limit.MustRolling(1, time.Hour), Backoff: backoff.Policy{Base: -1}, MaxOutage: -1,
		Ended: func(a transport.Attempt) { results = append(results, a.Result) },
	})
	if _, err := tr.RoundTrip(request(t, http.MethodPost, url, "body")); err == nil {
		t.Fatal("it was answered")
	}
	if want := []limit.Result{limit.Unsent, limit.Unsent, limit.Unsent}; !slices.Equal(results, want) {
		t.Errorf("got %v, want %v", results, want)
	}
}

// Each attempt waits for its backoff, and the answer before it is closed.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []*closed
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			r := reply(500, "")
			c := &closed{Reader: strings.NewReader("broken")}
			bodies = append(bodies, c)
			r.Body = c
			return r
		})
		tr := mustNew(t, transport.Config{Base: b, Attempts: 4, Backoff: backoff.Policy{Jitter: -1}})
		resp, err := tr.RoundTrip(get(t, "http://a.test/"))
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range bodies {
			if want := min(1, 3-i); c.n != want {
				t.Errorf("answer %d was closed %d times, want %d", i+1, c.n, want)
			}
		}
		resp.Body.Close()
		if got, want := b.at(), seconds(0, 0.1, 0.3, 0.7); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// The context ends while a request waits for its next attempt.
func TestCancelledBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(500, "") })
		tr := mustNew(t, transport.Config{Base: b, Backoff: backoff.Policy{Base: time.Second, Jitter: -1}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		if _, _, err := do(t, tr, get(t, "http://a.test/").WithContext(ctx)); !errors.Is(err, context.Canceled) || time.Since(b.begin) != 500*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(b.begin), err)
		}
	})
}

// A wait for the next attempt that the deadline cuts off leaves the answer of the last.
func TestLastAnswerIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(500, "broken") })
		tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 1, time.Minute, limit.Requests), Backoff: backoff.Policy{Jitter: -1}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		status, body, err := do(t, tr, get(t, "http://a.test/").WithContext(ctx))
		if status != 500 || body != "broken" || err != nil || len(b.at()) != 1 {
			t.Errorf("%d %q %v, sent at %v", status, body, err, b.at())
		}
	})
}

// The log says when a pause begins, once, and never names the credential.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n <= 2 {
				return reply(429, "", "Retry-After", "3")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		do(t, tr, get(t, "http://a.test/?api_key=hunter2", "Authorization", "Bearer hunter2"))
		if got := log.String(); strings.Count(got, "msg=paused") != 2 || !strings.Contains(got, "for=3s") || strings.Contains(got, "hunter2") {
			t.Error(got)
		}
	})
}

// A quota of a day that asks for seconds is believed; one that asks for hours is not waited for.
func TestDailyQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response {
			return reply(429, "", "RateLimit-Policy", `"day";q=1000;w=86400`, "RateLimit", `"day";r=0;t=40000`)
		})
		var last transport.Attempt
		tr := mustNew(t, transport.Config{Base: b, Ended: func(a transport.Attempt) { last = a }})
		status, _, err := do(t, tr, get(t, "http://a.test/"))
		if status != 429 || err != nil || last.Said.Refusal != provider.QuotaExhausted || !strings.Contains(last.Why, "11h6m40s") {
			t.Errorf("%d %v %q %v", status, err, last.Why, last.Said.Refusal)
		}
		_, _, err = do(t, tr, get(t, "http://a.test/"))
		var e *transport.Error
		if !errors.As(err, &e) || !errors.Is(err, transport.ErrPaused) || e.Ready.Sub(b.begin) != 40000*time.Second || e.Refusal != provider.QuotaExhausted {
			t.Error(err)
		}
	})
}
