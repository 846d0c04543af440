package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// moody answers each request as its number and its attempt say, whenever it comes, and after a time that no other answer takes.
type moody struct {
	began time.Time
	mu    sync.Mutex
	tries map[string]int
	said  []string // of what came since the last look
	look  func() string
}

func (m *moody) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent int
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		r.Body.Close()
		sent = len(b)
	}
	id := r.Header.Get("X-Id")
	m.mu.Lock()
	m.tries[id]++
	try := m.tries[id]
	m.mu.Unlock()
	now := ""
	if len(id)%2 == try%2 { // while it is on its way
		now = m.look()
	}
	m.mu.Lock()
	m.said = append(m.said, now)
	m.said = append(m.said, fmt.Sprintf("%s, %d: %v, %s %s, %d bytes, %s", id, try, time.Since(m.began), r.Method, r.URL, sent, r.Header.Get("Authorization")))
	m.mu.Unlock()
	var n int
	fmt.Sscan(id, &n)
	rng := rand.New(rand.NewPCG(uint64(n), uint64(try)))
	pass := time.Duration(20+rng.IntN(1<<rng.IntN(12)))*time.Millisecond + time.Duration(n*337+try*11)
	select {
	case <-time.After(pass):
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	body := "fine"
	switch {
	case strings.Contains(r.URL.Path, "chat"):
		body = fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, 5+rng.IntN(20), rng.IntN(60))
	case strings.Contains(r.URL.Path, "messages"):
		body = fmt.Sprintf(`{"usage":{"input_tokens":%d,"output_tokens":%d}}`, 5+rng.IntN(20), rng.IntN(60))
	}
	resp := reply(200, body)
	switch k := rng.IntN(24); {
	case k < 3:
		resp = reply(429, "{}")
		if k > 0 {
			resp = reply(429, `{"error":{"type":"rate_limit_error","code":"rate_limit_exceeded"}}`, "Retry-After", fmt.Sprint(rng.IntN(4)))
		}
	case k == 3:
		resp = reply(503, "")
	case k == 4:
		resp = reply(500, "oh")
	case k == 5:
		resp = reply(529, "")
	case k == 6:
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	case k == 7:
		return nil, io.ErrUnexpectedEOF
	case k == 8:
		resp = reply(401, "{}")
	case k == 9:
		resp = reply(400, "{}")
	case k < 15:
		resp.Header.Set("X-Ratelimit-Limit-Requests", "60")
		resp.Header.Set("X-Ratelimit-Remaining-Requests", fmt.Sprint(rng.IntN(30)))
		resp.Header.Set("X-Ratelimit-Reset-Requests", fmt.Sprintf("%ds", 1+rng.IntN(5)))
		resp.Header.Set("Openai-Organization", []string{"org-a", "org-b"}[n%2])
	}
	resp.Request = r
	return resp, nil
}

// street is requests through a Transport, one after the other, so that the output is the same each
// time. The golden files of a Group have those that wait for others.
type street struct {
	rng   *rand.Rand
	tr    *transport.Transport
	base  *moody
	log   bytes.Buffer
	came  int
	sum   map[string]int
	said  strings.Builder
	ended []string // guarded by base.mu
}

func newStreet(t *testing.T, seed uint64, c transport.Config) *street {
	s := &street{rng: rand.New(rand.NewPCG(seed, 15)), base: &moody{began: time.Now(), tries: map[string]int{}}, sum: map[string]int{}}
	c.Base, c.Backoff = s.base, backoff.Policy{Jitter: -1}
	c.Partition = func(r *http.Request) transport.Partition { // names of keys are by chance otherwise
		p := transport.PartitionOf(r)
		p.Key = "of " + r.Header.Get("Authorization")
		return p
	}
	c.Logger = slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.Ended = func(a transport.Attempt) {
		s.base.mu.Lock()
		defer s.base.mu.Unlock()
		s.ended = append(s.ended, fmt.Sprintf("%s, %d ended: %v %q %t %v, waited %+v, sent %v, %v, %v %v", a.Request.Header.Get("X-Id"), a.Number, a.Partition, a.Key, a.Hedged, a.Cost, a.Waits,
			a.Sent.Sub(s.base.began), a.RTT, a.Result, a.Err != nil))
	}
	s.tr = mustNew(t, c)
	s.base.look = func() string {
		b, err := json.Marshal(s.tr.Snapshot())
		return fmt.Sprintf("%s %v", b, err)
	}
	return s
}

func (s *street) say(format string, args ...any) { fmt.Fprintf(&s.said, format+"\n", args...) }

func (s *street) request(t *testing.T) *http.Request {
	fields := []string{"X-Id", fmt.Sprint(s.came), "Authorization", "Bearer " + []string{"one", "two", "three"}[s.rng.IntN(3)], "X-Client", []string{"ann", "bob", ""}[s.rng.IntN(3)]}
	text := strings.Repeat("word ", s.rng.IntN(60))
	model := []string{"gpt-4o", "gpt-4o-mini"}[s.rng.IntN(2)]
	switch s.rng.IntN(6) {
	case 0, 1:
		return request(t, http.MethodPost, "https://api.openai.com/v1/chat/completions", `{"model":"`+model+`","max_tokens":40,"messages":[{"role":"user","content":"`+text+`"}]}`, append(fields, "Content-Type", "application/json")...)
	case 2:
		return request(t, http.MethodPost, "https://api.anthropic.com/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":40,"messages":[{"role":"user","content":"`+text+`"}]}`,
			append(fields, "Content-Type", "application/json", "X-Api-Key", "key")...)
	case 3:
		return request(t, http.MethodPost, "https://example.org/orders", text, fields...)
	case 4:
		return get(t, fmt.Sprintf("https://example.org/orders/%d", s.rng.IntN(99)), fields...)
	}
	return get(t, "https://other.example.org:8443/list", fields...)
}

func (s *street) send(t *testing.T) {
	s.came++
	ctx, cancel := t.Context(), context.CancelFunc(func() {})
	if s.rng.IntN(6) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(s.rng.IntN(9000))*time.Millisecond+time.Duration(s.came*331))
	}
	defer cancel()
	r := s.request(t).WithContext(ctx)
	at, ahead, err := s.tr.Ask(r)
	s.say("%d to %s: at %v, %d ahead, %t", s.came, r.URL, at, ahead, err != nil)
	status, body, err := do(t, s.tr, r)
	how := fmt.Sprint(status)
	var e *transport.Error
	switch {
	case errors.As(err, &e):
		how = "refused"
		s.say("%v, ready %v, client %q, %d ahead, %q %v, %d of %d, %v, %d attempts, %v", e.Partition, e.Ready.Sub(s.base.began), e.Client, e.Ahead, e.Name, e.Unit, e.Size, e.Limit, e.MaxWait, e.Attempts, e.Refusal)
	case err != nil:
		how = "failed"
	}
	s.sum[how]++
	s.say("%d: %s %s at %v", s.came, how, body, time.Since(s.base.began))
}

func (s *street) look() {
	synctest.Wait()
	s.base.mu.Lock()
	lines := slices.Concat(s.base.said, s.ended, strings.Split(s.log.String(), "\n"))
	s.base.said, s.ended = nil, nil
	s.base.mu.Unlock()
	s.log.Reset()
	slices.Sort(lines)
	s.say("%s", strings.Join(lines, "\n"))
	s.say("%s\n%+v", s.base.look(), s.tr.Stats())
	if s.came%4 > 0 {
		return
	}
	var parts []string
	for _, p := range s.tr.Partitions() {
		parts = append(parts, fmt.Sprintf("%+v", p))
	}
	slices.Sort(parts)
	s.say("%s", strings.Join(parts, "\n"))
}

// For any answers, a Transport waits, sends, sends again, refuses and reports as before. The golden
// has each attempt with its instant and key, each answer and error, every snapshot, every line of
// the log.
func TestWhatATransportSays(t *testing.T) {
	race.Without(t) // one call after another
	byScope := func(p transport.Partition) limit.Limiter {
		switch p.Scope {
		case provider.Key:
			return limit.NewAll(limit.MustRolling(8, 4*time.Second), limit.Named("minute", limit.MustRolling(60, time.Minute)))
		case provider.Model:
			return rolling(t, 900, 10*time.Second, limit.Tokens)
		case provider.Route:
			return limit.MustRolling(3, time.Second)
		case provider.All:
			return limit.MustRolling(25, 10*time.Second)
		}
		return nil
	}
	clients := func(r *http.Request) transport.Client {
		name := r.Header.Get("X-Client")
		return transport.Client{Name: name, Weight: float64(len(name)), MaxWaiting: 5, Limit: func() limit.Limiter { return limit.MustRolling(12, 6*time.Second) }}
	}
	own := func(name string) transport.Key {
		return transport.Key{Name: name, Apply: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+name) }}
	}
	var b strings.Builder
	for _, c := range []struct {
		name   string
		config func() transport.Config
	}{
		{"plain", func() transport.Config { return transport.Config{Limiter: limit.MustRolling(6, 2*time.Second)} }},
		{"by scope", func() transport.Config { return transport.Config{Limit: byScope, MaxWaiting: 20, Attempts: 4} }},
		{"tokens", func() transport.Config {
			return transport.Config{Limit: byScope, Tokens: estimator(t), UntilBody: true, Fill: 4, AttemptTimeout: 3 * time.Second}
		}},
		{"clients", func() transport.Config {
			return transport.Config{Limit: byScope, Client: clients, Tokens: estimator(t)}
		}},
		{"keys of its own", func() transport.Config {
			return transport.Config{Limit: byScope, Tokens: estimator(t), Keys: []transport.Key{own("x"), own("y"), own("z")}}
		}},
		{"hedged and adaptive", func() transport.Config {
			return transport.Config{Adaptive: &limit.AdaptiveConfig{}, Hedge: transport.Hedge{After: 300 * time.Millisecond, Quantile: 0.9, Share: 0.5}, MaxRetryAfter: 2 * time.Second}
		}},
		{"no patience", func() transport.Config {
			return transport.Config{Limiter: limit.MustRolling(6, 8*time.Second), MaxWait: func(*http.Request) time.Duration { return 2 * time.Second }, MaxOutage: time.Second, MaxRetryAfter: time.Second, Attempts: 5}
		}},
	} {
		fmt.Fprintf(&b, "\n%s\n", c.name)
		synctest.Test(t, func(t *testing.T) {
			s := newStreet(t, 1, c.config())
			for step := 1; step <= 100; step++ {
				switch k := s.rng.IntN(16); {
				case k < 12:
					s.send(t)
				case k == 12:
					s.say("lifted %t", s.tr.Lift(transport.Partition{Host: "example.org"}))
				case k == 13:
					s.say("readmitted %t", s.tr.Readmit("x"))
				default:
					time.Sleep(time.Duration(s.rng.IntN(1<<s.rng.IntN(13))) * time.Millisecond)
				}
				s.look()
				if step%10 == 0 {
					sum, _ := json.Marshal(s.sum) // sorted
					fmt.Fprintf(&b, "  at %v: %d came, %s; all it says: %s\n", time.Since(s.base.began), s.came, sum, golden.Sum(s.said.String()))
					s.said.Reset()
				}
			}
			time.Sleep(time.Hour)
			if n := s.tr.Snapshot(); n.Waiting != 0 || n.InFlight != 0 {
				t.Errorf("%s: at the end %d wait, %d are in flight", c.name, n.Waiting, n.InFlight)
			}
		})
	}
	golden.CompareFloats(t, "told.golden", b.String())
}
