package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// closes is the body of a request that counts how often it is closed.
type closes struct {
	io.Reader
	n *atomic.Int64
}

func (c closes) Close() error { c.n.Add(1); return nil }

// Each body is closed once, by its owner: that of each attempt by the Base, and one that is not
// sent by the transport.
func TestBodiesAreClosedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, config := range map[string]transport.Config{
			"sent": {}, "three times": {Attempts: 3}, "never": {Limiter: never{}}, "hedged": {Hedge: transport.Hedge{After: time.Second, Share: 1}},
			"hedged too late": {Hedge: transport.Hedge{After: time.Second, Share: 1}},
		} {
			var opened, closed atomic.Int64
			body := func() io.ReadCloser {
				opened.Add(1)
				return closes{strings.NewReader("x"), &closed}
			}
			var n atomic.Int64
			config.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
				time.Sleep(2 * time.Second)
				if n.Add(1) < 3 {
					return reply(503, ""), nil
				}
				return reply(200, ""), nil
			})
			r := request(t, http.MethodPut, "http://a.test/", "x")
			r.Body, r.GetBody = body(), func() (io.ReadCloser, error) {
				if name == "hedged too late" { // the first is answered meanwhile
					time.Sleep(5 * time.Second)
				}
				return body(), nil
			}
			do(t, mustNew(t, config), r)
			time.Sleep(time.Minute) // until a copy that nobody needs is over
			if opened.Load() != closed.Load() {
				t.Errorf("%s: %d bodies were closed %d times", name, opened.Load(), closed.Load())
			}
		}
	})
}

// never is a limit for which every cost is too large.
type never struct{ limit.Limiter }

func (never) Ready(mono.Time, limit.Cost) mono.Time { return limit.Never }

// A request that the server did not process, as it says, goes again, whatever the method.
func TestUnprocessedGoesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			err  error
			want int
		}{{send.ErrUnprocessed, 2}, {errors.New("reset"), 1}} {
			n := 0
			tr := mustNew(t, transport.Config{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				io.Copy(io.Discard, r.Body)
				if n++; n == 1 {
					return nil, c.err
				}
				return reply(200, ""), nil
			})})
			if do(t, tr, request(t, http.MethodPost, "http://a.test/", "x")); n != c.want {
				t.Errorf("after %v: sent %d times, want %d", c.err, n, c.want)
			}
		}
	})
}

// Where the next attempt would come after the deadline the answer that is there is returned, and at once.
func TestNoAttemptAfterTheDeadline(t *testing.T) {
	for _, left := range []time.Duration{59 * time.Second, 61 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			tr := mustNew(t, transport.Config{Backoff: backoff.Policy{Base: time.Minute, Max: time.Minute, Jitter: -1}, Base: roundTripper(func(*http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return reply(503, "away"), nil
				}
				return reply(200, ""), nil
			})})
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			status, _, err := do(t, tr, get(t, "http://a.test/").WithContext(ctx))
			took := time.Since(begin)
			if left < time.Minute && (status != 503 || took != 0) || left > time.Minute && (status != 200 || took != time.Minute) {
				t.Errorf("with %v left: %d %v after %v", left, status, err, took)
			}
		})
	}
}

// A request without an AttemptTimeout waits for its answer as long as that takes, and others do not.
func TestNoTimeoutForSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := roundTripper(func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(time.Hour):
				return reply(200, ""), nil
			case <-r.Context().Done():
				return nil, context.Cause(r.Context())
			}
		})
		tr := mustNew(t, transport.Config{Attempts: 1, AttemptTimeout: time.Minute, Base: slow,
			NoTimeout: func(r *http.Request) bool { return r.URL.Path == "/slow" }})
		for _, row := range []struct {
			path string
			err  error
			took time.Duration
		}{{"/slow", nil, time.Hour}, {"/", transport.ErrAttemptTimeout, time.Minute}} {
			begin := time.Now()
			_, _, err := do(t, tr, get(t, "http://a.test"+row.path))
			if took := time.Since(begin); !errors.Is(err, row.err) || took != row.took {
				t.Errorf("%s: %v after %v, expected %v after %v", row.path, err, took, row.err, row.took)
			}
		}
	})
}

// The reason of a refusal is not looked for in an event stream: the caller gets all of it, as it
// comes.
func TestEventStreamsAreNotLookedInto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			kind   string
			reads  int
			status int
		}{{"text/event-stream", 0, 429}, {"text/event-stream; charset=utf-8", 0, 403}, {"application/json", 1, 403}} {
			body := &closed{Reader: strings.NewReader("data: x\n\n")}
			reads := 0
			tr := mustNew(t, transport.Config{Attempts: 1, Base: roundTripper(func(*http.Request) (*http.Response, error) {
				resp := reply(c.status, "", "Content-Type", c.kind)
				resp.Body = struct {
					io.Reader
					io.Closer
				}{readerFunc(func(p []byte) (int, error) { reads++; return body.Read(p) }), body}
				return resp, nil
			})})
			resp, err := tr.RoundTrip(get(t, "https://api.openai.com/"))
			if err != nil {
				t.Fatal(err)
			}
			if min(reads, 1) != c.reads {
				t.Errorf("%s of %d: read %d times before anybody asked", c.kind, c.status, reads)
			}
			if all, err := io.ReadAll(resp.Body); err != nil || string(all) != "data: x\n\n" {
				t.Errorf("%s: %q, %v", c.kind, all, err)
			}
			resp.Body.Close()
		}
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// An outage is logged once, with its reason, and so is its end; a Snapshot meanwhile has the
// reason.
func TestOutageByStatusIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		away := true
		tr := mustNew(t, transport.Config{Attempts: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)), Base: roundTripper(func(*http.Request) (*http.Response, error) {
			if away {
				return reply(502, ""), nil
			}
			return reply(200, ""), nil
		})})
		for range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			do(t, tr, get(t, "http://a.test/").WithContext(ctx))
			cancel()
			time.Sleep(100 * time.Millisecond)
		}
		told := false
		for _, p := range tr.Partitions() {
			for _, pause := range p.Pauses {
				told = told || pause.Down && pause.Err != nil && strings.Contains(pause.Err.Error(), "it answers 502")
			}
		}
		if !told {
			t.Errorf("nobody is told why it is down: %+v", tr.Partitions())
		}
		away = false
		for range 5 {
			time.Sleep(10 * time.Minute)
			do(t, tr, get(t, "http://a.test/"))
		}
		text := log.String()
		if strings.Count(text, "host is down") != 1 || strings.Count(text, "host is back") != 1 || !strings.Contains(text, "502") {
			t.Errorf("logged:\n%s", text)
		}
	})
}

// Ask takes nothing: it releases the partition, which is forgotten in its time.
func TestAskLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Idle: time.Hour, Base: newBase(0, ok), Limit: perKey(t), Partition: byK})
		for range 3 {
			if _, _, err := tr.Ask(get(t, "http://a.test/", "K", "asks")); err != nil {
				t.Fatal(err)
			}
		}
		if n := transport.Active(tr); n != 0 {
			t.Errorf("%d are under way", n)
		}
	})
}

// A partition is idle from when it was last asked for, and not from when it was first.
func TestIdleIsSinceTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Idle: time.Hour, Base: newBase(0, ok), Limit: perKey(t), Partition: byK})
		for range 5 {
			do(t, tr, get(t, "http://a.test/", "K", "used"))
			time.Sleep(30 * time.Minute)
		}
		do(t, tr, get(t, "http://a.test/", "K", "new"))
		if n := tr.Stats().Partitions; n != 2 {
			t.Errorf("%d partitions are known, want the one used half an hour ago and the new one", n)
		}
		time.Sleep(time.Hour)
		do(t, tr, get(t, "http://a.test/", "K", "newer"))
		if n := tr.Stats().Partitions; n != 1 {
			t.Errorf("%d partitions are known, and two of them for an hour without use", n)
		}
	})
}

func perKey(t *testing.T) func(transport.Partition) limit.Limiter {
	return func(p transport.Partition) limit.Limiter {
		if p.Scope == provider.Key {
			return rolling(t, 100, time.Minute, limit.Requests)
		}
		return nil
	}
}

func byK(r *http.Request) transport.Partition {
	return transport.Partition{Host: r.URL.Host, Key: r.Header.Get("K")}
}

// Those who were refused together do not come back together: each Transport has chances of its own.
func TestRetriesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := map[time.Duration]bool{}
		for range 20 {
			n := 0
			tr := mustNew(t, transport.Config{Base: roundTripper(func(*http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return reply(503, ""), nil
				}
				return reply(200, ""), nil
			})})
			begin := time.Now()
			if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || err != nil {
				t.Fatal(status, err)
			}
			took[time.Since(begin)] = true
		}
		if len(took) < 10 {
			t.Errorf("20 were sent again after %v", took)
		}
	})
}

// Settled gets each attempt once, when its cost is final: a refused one with its answer, and a served one at the
// end of its body, with the usage that the body states.
func TestSettledHasTheFinalCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type told struct {
			number, status int
			hedged         bool
			sent           time.Duration
			tokens         int64
		}
		began, n := time.Now(), 0
		var all []told
		tr := mustNew(t, transport.Config{
			Tokens: estimator(t), Counting: tokens.Used, Limiter: rolling(t, 1000, time.Minute, limit.Tokens),
			Base: roundTripper(func(*http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return reply(429, "", "Retry-After", "2"), nil
				}
				time.Sleep(time.Second)
				return reply(200, `{"object":"chat.completion","usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`,
					"Content-Type", "application/json"), nil
			}),
			Settled: func(a transport.Attempt, o limit.Outcome) {
				all = append(all, told{a.Number, a.Status, a.Hedged, a.Sent.Sub(began), o.Actual[limit.Tokens]})
			},
		})
		q := request(t, http.MethodPost, "https://api.openai.com/v1/chat/completions",
			`{"model":"gpt-4o","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`)
		resp, err := tr.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 1 || all[0] != (told{number: 1, status: 429}) {
			t.Errorf("before the end of the body: %+v, want the refused attempt", all)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if len(all) != 2 || all[1] != (told{number: 2, status: 200, sent: 2 * time.Second, tokens: 12}) {
			t.Errorf("at the end of the body: %+v, want the second attempt with its 12 tokens", all)
		}
	})
}
