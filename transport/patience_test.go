package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// refusesUntil refuses for a time, and then serves.
func refusesUntil(until time.Duration, refusal func() *http.Response) func(int, *http.Request) *http.Response {
	began := time.Now()
	return func(int, *http.Request) *http.Response {
		if time.Since(began) < until {
			return refusal()
		}
		return reply(200, "served")
	}
}

func bare429() *http.Response { return reply(429, "slow down") }

// A request under MaxWait is sent again until that is over: three tries are no patience. What does
// not pass ends it at once, and what may do harm is not repeated.
func TestPatience(t *testing.T) {
	const ever = time.Hour
	for _, c := range []struct {
		name             string
		until            time.Duration
		refusal          func() *http.Response
		config           func(*transport.Config)
		deadline         time.Duration // of the context; 0: none
		once             bool          // the body cannot be read again
		status           int
		earliest, latest time.Duration // of the end
		least, most      int           // attempts
	}{
		{name: "no time is said", until: 20 * time.Second, refusal: bare429, status: 200, earliest: 20 * time.Second, latest: 50 * time.Second, least: 6, most: 12},
		{name: "for long", until: 25 * time.Second, refusal: bare429, status: 200, earliest: 25 * time.Second, latest: 55 * time.Second, least: 6, most: 14},
		{name: "for ever", until: ever, refusal: bare429, status: 429, earliest: 30 * time.Second, latest: 61 * time.Second, least: 6, most: 14},
		{name: "a limit's words with status 403", until: 20 * time.Second, status: 200, earliest: 20 * time.Second, latest: 50 * time.Second, least: 6, most: 12,
			refusal: func() *http.Response {
				return reply(403, `{"message":"API rate limit exceeded for user ID 1"}`, "X-GitHub-Request-Id", "1")
			}},
		{name: "a short time is said again and again", until: 17 * time.Second, status: 200, earliest: 17 * time.Second, latest: 21 * time.Second, least: 4, most: 8,
			refusal: func() *http.Response { return reply(429, "", "Retry-After", "4") }},
		{name: "its own deadline comes first", until: ever, refusal: bare429, deadline: 10 * time.Second, status: 429, earliest: 3 * time.Second, latest: 10 * time.Second, least: 4, most: 10},

		{name: "more is asked than anybody waits", until: ever, status: 429, least: 1, most: 1,
			refusal: func() *http.Response { return reply(429, "", "Retry-After", "3600") }},
		{name: "more is asked than is left", until: ever, status: 429, least: 1, most: 1,
			refusal: func() *http.Response { return reply(429, "", "Retry-After", "61") }},
		{name: "no credit", until: ever, status: 429, least: 1, most: 1,
			refusal: func() *http.Response { return reply(429, `{"error":{"code":"insufficient_quota"}}`) }},
		{name: "the server forbids it", until: ever, status: 429, least: 1, most: 1,
			refusal: func() *http.Response { return reply(429, "", "X-Should-Retry", "false") }},
		{name: "a failure, not a limit", until: ever, status: 500, latest: 2 * time.Second, least: 3, most: 3,
			refusal: func() *http.Response { return reply(500, "") }},
		{name: "Attempts is 1", until: ever, refusal: bare429, status: 429, least: 1, most: 1, config: func(c *transport.Config) { c.Attempts = 1 }},
		{name: "nobody waits", until: ever, refusal: bare429, status: 429, least: 1, most: 1, config: func(c *transport.Config) { c.MaxWait = atMost(1) }},
		{name: "without MaxWait", until: ever, refusal: bare429, status: 429, latest: 2 * time.Second, least: 3, most: 3, config: func(c *transport.Config) { c.MaxWait = nil }},
		{name: "its body is gone", until: ever, refusal: bare429, once: true, status: 429, least: 1, most: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(0, refusesUntil(c.until, c.refusal))
				config := transport.Config{Base: b, MaxWait: atMost(time.Minute)}
				if c.config != nil {
					c.config(&config)
				}
				r := request(t, http.MethodGet, "http://a.test/x", "")
				if c.once {
					r = request(t, http.MethodPost, "http://a.test/x", "b")
					r.Body, r.GetBody = io.NopCloser(strings.NewReader("b")), nil
				}
				if c.deadline > 0 {
					ctx, cancel := context.WithTimeout(r.Context(), c.deadline)
					defer cancel()
					r = r.WithContext(ctx)
				}
				began := time.Now()
				status, _, err := do(t, mustNew(t, config), r)
				took := time.Since(began)
				if err != nil || status != c.status || took < c.earliest || took > c.latest {
					t.Errorf("%d after %v, %v; want %d after %v to %v", status, took, err, c.status, c.earliest, c.latest)
				}
				if n := len(b.at()); n < c.least || n > c.most {
					t.Errorf("%d attempts, want %d to %d: %v", n, c.least, c.most, b.at())
				}
			})
		})
	}
}

// Two hundred that wait together do not all ask each time: the first one goes alone, and each
// answer makes room for one more.
func TestPatienceOfManyIsNoStorm(t *testing.T) {
	for name, l := range map[string]func() limit.Limiter{"no limit is known": nil, "a limit that is wrong": func() limit.Limiter { return rolling(t, 200, time.Second, limit.Requests) }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(10*time.Millisecond, refusesUntil(30*time.Second, bare429))
				config := transport.Config{Base: b, MaxWait: atMost(3 * time.Minute)}
				if l != nil {
					config.Limiter = l()
				}
				tr := mustNew(t, config)
				var all sync.WaitGroup
				for range 200 {
					all.Go(func() {
						if status, _, err := do(t, tr, request(t, http.MethodGet, "http://a.test/x", "")); status != 200 {
							t.Errorf("%d, %v", status, err)
						}
					})
				}
				all.Wait()
				refused := 0
				for _, at := range b.at() {
					if at < 30*time.Second {
						refused++
					}
				}
				// All at the beginning, when nothing is known, and after the first pause of 100 ms. Then
				// one by one.
				if refused > 2*200+20 {
					t.Errorf("%d were refused", refused)
				}
				if last := b.at()[len(b.at())-1]; last > 80*time.Second {
					t.Errorf("the last one went after %v", last)
				}
			})
		})
	}
}
