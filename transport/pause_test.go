package transport_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// The server decides how long a request waits before it goes again, after a failure too. An answer
// with a longer time than any wait is returned.
func TestRetryAfterOfAFailure(t *testing.T) {
	lock := `{"error":{"code":"lock_timeout","type":"invalid_request_error"}}`
	for _, tc := range []struct {
		name, provider string
		status         int
		body           string
		fields         []string
		want           []time.Duration
		why            string
	}{
		{name: "500", status: 500, fields: []string{"Retry-After", "7"}, want: seconds(0, 7, 14)},
		{name: "502, a date", status: 502, fields: []string{"Retry-After", "Sat, 01 Jan 2000 00:00:09 GMT"}, want: seconds(0, 9, 9.2)},
		{name: "504, milliseconds", status: 504, fields: []string{"Retry-After-Ms", "700", "Retry-After", "1"}, want: seconds(0, 0.7, 1.4)},
		{name: "500, less than the backoff", status: 500, fields: []string{"Retry-After", "0.15"}, want: seconds(0, 0.15, 0.35)},
		{name: "500, nothing", status: 500, want: seconds(0, 0.1, 0.3)},
		{name: "500, negative", status: 500, fields: []string{"Retry-After", "-7"}, want: seconds(0, 0.1, 0.3)},
		{name: "500, in the past", status: 500, fields: []string{"Retry-After", "Fri, 31 Dec 1999 23:00:00 GMT"}, want: seconds(0, 0.1, 0.3)},
		{name: "500, a year", status: 500, fields: []string{"Retry-After", "31536000"}, want: seconds(0), why: "longer than 5m0s"},
		{name: "a lock", provider: "stripe", status: 429, body: lock, fields: []string{"Retry-After", "3"}, want: seconds(0, 3, 6)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(0, func(int, *http.Request) *http.Response { return reply(tc.status, tc.body, tc.fields...) })
				var last transport.Attempt
				c := transport.Config{Base: b, Backoff: backoff.Policy{Jitter: -1}, Ended: func(a transport.Attempt) { last = a }}
				c.Provider, _ = provider.Lookup(tc.provider)
				tr := mustNew(t, c)
				if status, body, err := do(t, tr, get(t, "http://a.test/")); status != tc.status || body != tc.body || err != nil {
					t.Error(status, body, err)
				}
				if got := b.at(); !slices.Equal(got, tc.want) {
					t.Errorf("sent at %v, want %v", got, tc.want)
				}
				if !strings.Contains(last.Why, tc.why) {
					t.Errorf("why: %q, want %q", last.Why, tc.why)
				}
			})
		})
	}
}

// A server that forbids to try again is obeyed, after a refusal too; its pause holds for the others.
func TestRefusalThatForbidsToTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 1 {
				return reply(429, "", "X-Should-Retry", "false", "Retry-After", "4")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b})
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 429 || err != nil {
			t.Error(status, err)
		}
		do(t, tr, get(t, "http://a.test/"))
		if got, want := b.at(), seconds(0, 4); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// A row of refusals is ended by an answer, not by a connection that breaks, nor by a refusal of something else.
func TestOnlyAnswersEndARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		tr := mustNew(t, transport.Config{Attempts: 1, Backoff: backoff.Policy{Jitter: -1}, Base: roundTripper(func(*http.Request) (*http.Response, error) {
			at = append(at, time.Since(start))
			if len(at)%2 == 0 {
				return nil, errBroken
			}
			return reply(429, ""), nil
		})})
		for range 7 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if want := seconds(0, 0.1, 0.1, 0.3, 0.3, 0.7, 0.7); !slices.Equal(at, want) {
			t.Errorf("sent at %v, want %v", at, want)
		}
	})
}

// A 429 that no exhausted limit explains is no word about the reset of a limit of which there is enough.
func TestUnexplainedRefusal(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fields []string
		want   []time.Duration
	}{
		{"of the day much is left", []string{"RateLimit-Policy", `"burst";q=5;w=6, "day";q=1000;w=86400`, "RateLimit", `"burst";r=3;t=6, "day";r=700;t=40000`}, seconds(0, 0.1, 0.3)},
		{"of the burst nothing is left", []string{"RateLimit-Policy", `"burst";q=5;w=6, "day";q=1000;w=86400`, "RateLimit", `"burst";r=0;t=6, "day";r=700;t=40000`}, seconds(0, 6, 12)},
		{"a reset alone", []string{"X-RateLimit-Reset", "6s"}, seconds(0, 6, 12)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(0, func(int, *http.Request) *http.Response { return reply(429, "", tc.fields...) })
				tr := mustNew(t, transport.Config{Base: b, Backoff: backoff.Policy{Jitter: -1}})
				do(t, tr, get(t, "http://a.test/"))
				if got := b.at(); !slices.Equal(got, tc.want) {
					t.Errorf("sent at %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// A reset that only says when a bucket is full again, which strangers share too, is no wait. The
// refused request goes on after the shortest wait. The limiter learns the bucket's content first.
func TestRefills(t *testing.T) {
	for holds, reset := range map[string]string{"4500": "3600", "900": "720"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(0, func(n int, _ *http.Request) *http.Response {
				if n > 1 {
					return reply(200, "")
				}
				return reply(429, "", "X-RateLimit-Limit", holds, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset)
			})
			fair, err := fairshare.NewFair(fairshare.FairConfig{Limit: 4500, Window: time.Hour, Rng: rand.New(rand.NewPCG(1, 2))})
			if err != nil {
				t.Fatal(err)
			}
			tr := mustNew(t, transport.Config{Base: b, Limiter: fair})
			if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || err != nil {
				t.Errorf("a bucket of %s: %d, %v", holds, status, err)
			}
			if got := b.at(); len(got) != 2 || got[1] > 5*time.Minute {
				t.Errorf("a bucket of %s: sent at %v", holds, got)
			}
		})
	}
}

// A pause that no server asked for is no longer than the longest wait.
func TestOwnPauseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(429, "") })
		tr := mustNew(t, transport.Config{Base: b, Attempts: 5, MaxRetryAfter: 150 * time.Millisecond, Backoff: backoff.Policy{Jitter: -1}})
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 429 || err != nil {
			t.Error(status, err)
		}
		if got, want := b.at(), seconds(0, 0.1, 0.25, 0.4, 0.55); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// MaxRetryAfter below 0: no request waits, neither the refused ones nor those that come during the
// pause.
func TestNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(429, "", "Retry-After", "2") })
		var last transport.Attempt
		tr := mustNew(t, transport.Config{Base: b, MaxRetryAfter: -1, Ended: func(a transport.Attempt) { last = a }})
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 429 || err != nil || !strings.Contains(last.Why, "2s, which is longer than 0s") {
			t.Error(status, err, last.Why)
		}
		if _, _, err := do(t, tr, get(t, "http://a.test/")); !errors.Is(err, transport.ErrPaused) {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 429 || err != nil {
			t.Error(status, err)
		}
	})
}

// A long pause is not cut short by a refusal that asks for less, and not forgotten while it is on.
func TestLongPauseLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			switch n {
			case 1:
				time.Sleep(2 * time.Second)
				return reply(429, "", "Retry-After", "1")
			case 2:
				time.Sleep(time.Second)
				return reply(429, "", "Retry-After", "7200")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b, Attempts: 1, Idle: time.Hour, MaxPause: -1})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { do(t, tr, get(t, "http://a.test/")) })
			synctest.Wait()
		}
		wg.Wait()
		for _, later := range seconds(0, 3, 90*60) {
			time.Sleep(later)
			do(t, tr, get(t, "http://b"+later.String()+".test/")) // a new one: who is idle is forgotten now
			if _, _, err := do(t, tr, get(t, "http://a.test/")); !errors.Is(err, transport.ErrPaused) {
				t.Errorf("at %v: %v", time.Since(b.begin), err)
			}
		}
	})
}

// Refusals of earlier requests come after the end of a pause, one by one, without a stated time.
// They begin no pause, but each request waits before it goes again.
func TestLateRefusalWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			switch n {
			case 1:
				time.Sleep(5 * time.Second)
				return reply(429, "")
			case 2:
				time.Sleep(time.Second)
				return reply(429, "")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b, Limiter: limit.MustRolling(1e6, time.Millisecond), Backoff: backoff.Policy{Base: time.Second, Jitter: -1}})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { do(t, tr, get(t, "http://a.test/")) })
			synctest.Wait()
		}
		wg.Wait()
		if got, want := b.at(), seconds(0, 0, 2, 6); !slices.Equal(got, want) || tr.Stats().Pauses != 1 {
			t.Errorf("sent at %v, want %v; %d pauses", got, want, tr.Stats().Pauses)
		}
	})
}

// Many requests get a long pause at once, while others come and stand in line. None gets the error
// that its cost never fits.
func TestLongPauseUnderLoad(t *testing.T) {
	for round := range 20 {
		var served atomic.Int64
		tr := mustNew(t, transport.Config{
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope == provider.Key {
					return limit.MustRolling(40, time.Millisecond)
				}
				return nil
			},
			Limiter: limit.MustRolling(1e6, time.Millisecond),
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				if served.Add(1) > 60 {
					return reply(429, "", "Retry-After", "3600"), nil
				}
				return reply(200, ""), nil
			}),
		})
		var wg sync.WaitGroup
		var never atomic.Int64
		for range 64 {
			wg.Go(func() {
				for range 20 {
					_, _, err := do(t, tr, get(t, "http://a.test/"))
					if errors.Is(err, paceline.ErrNever) {
						never.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := never.Load(); n > 0 {
			t.Fatalf("round %d: %d requests were told that they never fit", round, n)
		}
	}
}

// Requests of the SDKs of OpenAI and Anthropic, and the header of their answers. It says not to try
// again after the last attempt, or in vain. Their own decisions stay theirs.
func TestWhatClientsAreToldThatTryAgain(t *testing.T) {
	for _, tc := range []struct {
		name, method, count string
		attempts            int
		status              int
		body                string
		fields              []string
		sent                int
		told                string
	}{
		{name: "all attempts made", method: http.MethodGet, count: "0", status: 500, sent: 3, told: "false"},
		{name: "a refusal, all attempts made", method: http.MethodPost, count: "0", status: 429, sent: 3, told: "false"},
		{name: "not idempotent: we did not, they may", method: http.MethodPost, count: "0", status: 500, sent: 1},
		{name: "their second attempt", method: http.MethodPost, count: "1", status: 500, sent: 1},
		{name: "their second attempt, refused: two are left", method: http.MethodPost, count: "1", status: 429, sent: 2, told: "false"},
		{name: "their fifth, refused", method: http.MethodPost, count: "4", status: 429, sent: 1, told: "false"},
		{name: "trying again is theirs", attempts: 1, method: http.MethodPost, count: "0", status: 429, sent: 1},
		{name: "trying again is theirs, their second", attempts: 1, method: http.MethodPost, count: "1", status: 429, sent: 1},
		{name: "no credit", method: http.MethodPost, count: "1", status: 429, body: `{"error":{"code":"insufficient_quota"}}`, fields: []string{"X-Ratelimit-Limit-Requests", "5"}, sent: 1, told: "false"},
		{name: "for hours", method: http.MethodPost, count: "0", status: 429, fields: []string{"Retry-After", "7200"}, sent: 1, told: "false"},
		{name: "another status is as it came", method: http.MethodGet, count: "0", status: 404, sent: 1},
		{name: "what the server says stays", method: http.MethodGet, count: "0", status: 404, fields: []string{"X-Should-Retry", "true"}, sent: 1, told: "true"},
		{name: "another client", method: http.MethodGet, count: "", status: 500, sent: 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(0, func(int, *http.Request) *http.Response { return reply(tc.status, tc.body, tc.fields...) })
				tr := mustNew(t, transport.Config{Base: b, Attempts: tc.attempts})
				r := request(t, tc.method, "http://a.test/", "x")
				if tc.count != "" {
					r.Header.Set("X-Stainless-Retry-Count", tc.count)
				}
				resp, err := tr.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				if got := resp.Header.Get("X-Should-Retry"); got != tc.told || len(b.at()) != tc.sent {
					t.Errorf("sent %d times, told %q; want %d, %q", len(b.at()), got, tc.sent, tc.told)
				}
			})
		})
	}
}

// A host that is known is read in its own words, whatever its answers look like.
func TestKnownHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		tr := mustNew(t, transport.Config{Base: newBase(0, func(int, *http.Request) *http.Response {
			return reply(200, "", "Anthropic-Ratelimit-Requests-Limit", "50", "Anthropic-Ratelimit-Requests-Remaining", "49", "Anthropic-Ratelimit-Requests-Reset", "2000-01-01T00:00:01Z")
		}), Ended: func(a transport.Attempt) { said = append(said, a.Said.Dialect) }})
		for _, host := range []string{"api.binance.com", "API.openai.com", "somewhere.test"} {
			do(t, tr, get(t, "http://"+host+"/"))
		}
		if want := []string{"binance-spot", "openai", "anthropic"}; !slices.Equal(said, want) {
			t.Errorf("read as %v, want %v", said, want)
		}
	})
}

// Behind one host there may be several providers: each answer is read in its own words. And what an error quotes is not
// who speaks.
func TestGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			switch n {
			case 1:
				return reply(200, "", "Anthropic-Ratelimit-Requests-Limit", "50", "Anthropic-Ratelimit-Requests-Remaining", "49", "Anthropic-Ratelimit-Requests-Reset", "2000-01-01T00:00:01Z")
			case 2:
				return reply(200, "", "X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1m0s")
			}
			return reply(200, "")
		})
		var said []string
		tr := mustNew(t, transport.Config{Base: b, Ended: func(a transport.Attempt) { said = append(said, a.Said.Dialect) }})
		for range 3 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if want := []string{"anthropic", "openai", ""}; !slices.Equal(said, want) {
			t.Errorf("read as %v, want %v", said, want)
		}
		if got, want := b.at(), seconds(0, 0, 1); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
	// A server that has shown its provider need not do so again.
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 1 {
				return reply(200, "", "X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "50", "X-Ratelimit-Reset-Requests", "1s")
			}
			return reply(429, `{"error":{"code":"insufficient_quota"}}`, "Retry-After", "1")
		})
		tr := mustNew(t, transport.Config{Base: b})
		for range 2 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if got := b.at(); len(got) != 2 {
			t.Errorf("no credit, and sent at %v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 1 {
				return reply(400, `{"error":"your prompt says \"EAPI:Rate limit exceeded\""}`, "Content-Type", "application/json")
			}
			return reply(200, `{"result":["EAPI:Rate limit exceeded"]}`, "Content-Type", "application/json")
		})
		tr := mustNew(t, transport.Config{Base: b})
		for range 2 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if s := tr.Stats(); s.Refused != 0 || s.Attempts != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// A stream of JSON documents is not waited for, from any server, nor is a switched connection.
func TestStreamsOfJSONAreNotRead(t *testing.T) {
	slack, _ := provider.Lookup("slack")
	for _, tc := range []struct {
		status int
		kind   string
	}{{200, "application/x-ndjson"}, {200, "application/stream+json"}, {200, "application/json-seq"}, {101, "application/json"}} {
		synctest.Test(t, func(t *testing.T) {
			e := &endless{stop: make(chan struct{})}
			tr := mustNew(t, transport.Config{Provider: slack, UntilBody: true, Base: roundTripper(func(*http.Request) (*http.Response, error) {
				r := reply(tc.status, "", "Content-Type", tc.kind)
				r.Body = struct {
					io.Reader
					io.Writer
					io.Closer
				}{e, io.Discard, e}
				return r, nil
			})})
			time.AfterFunc(time.Second, func() { e.Close() })
			start := time.Now()
			resp, err := tr.RoundTrip(get(t, "http://a.test/"))
			if err != nil || time.Since(start) != 0 {
				t.Errorf("%d %s: after %v: %v", tc.status, tc.kind, time.Since(start), err)
				return
			}
			if _, writes := resp.Body.(io.Writer); writes != (tc.status == 101) {
				t.Errorf("%d %s: the body is a %s", tc.status, tc.kind, fmt.Sprintf("%T", resp.Body))
			}
			resp.Body.Close()
			time.Sleep(2 * time.Second)
		})
	}
}

// Azure refuses a stream with status 200: it is sent again at the stated time, and the caller gets
// the served one.
func TestStreamRefusedWith200(t *testing.T) {
	azure, _ := provider.Lookup("azure-openai")
	synctest.Test(t, func(t *testing.T) {
		stream := []string{"Content-Type", "text/event-stream", "Apim-Request-Id", "1"}
		refused := []string{"Retry-After", "4", "X-Ratelimit-Remaining-Tokens", "-27689", "X-Ratelimit-Reset-Tokens", "64"}
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 1 {
				return reply(200, "event: response.failed\n\n", append(refused, stream...)...)
			}
			return reply(200, "event: response.completed\n\n", stream...)
		})
		tr := mustNew(t, transport.Config{Provider: azure, Base: b})
		_, body, err := do(t, tr, get(t, "http://a.test/"))
		if want := seconds(0, 4); err != nil || !strings.Contains(body, "completed") || !slices.Equal(b.at(), want) {
			t.Errorf("sent at %v, want %v; %q, %v", b.at(), want, body, err)
		}
	})
}

// A server that once asks to stay away for a day is asked again after an hour, and then ever more rarely.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n < 4 {
				return reply(429, "", "Retry-After", "86400")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b, Attempts: 1})
		for range 6 * 24 {
			do(t, tr, get(t, "http://a.test/"))
			time.Sleep(10 * time.Minute)
		}
		if got, want := b.at()[:4], seconds(0, 3600, 3*3600, 7*3600); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}
