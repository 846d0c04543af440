package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// The promise, whatever servers answer, callers do and the network breaks:
//
//   - every lease of every limit is settled, once
//   - every body, of a request or an answer, is closed
//   - no window of arrivals at the server holds more than the limit, of a key or of all
//   - a request is sent as often as configured at most, and not again if it may have been processed and that matters
//   - nothing is sent for a key from a refusal on for as long as it asked
//   - there is either an answer or an error, at the deadline at the latest; the answer's bytes are the server's
func FuzzRoundTrip(f *testing.F) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		program := make([]byte, 300)
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		f.Add(program)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, program []byte) {
		synctest.Test(t, func(t *testing.T) { newWorld(t, program[:min(len(program), 600)]).run() })
	})
}

const (
	worldAll, worldKey = 6, 3 // requests per window, of all and of a key
	worldWindow        = time.Second
	worldAttempts      = 3
)

// world is a server, its network and its clients. The first bytes of the program are what clients do, from its end come what
// befalls the requests.
type world struct {
	t       *testing.T
	tr      *transport.Transport
	limits  ledger
	start   time.Time
	clients []byte

	mu       sync.Mutex // guards what follows
	fates    []byte
	arrivals map[string][]limittest.Arrival // by key; "": all
	paused   map[string][2]time.Duration    // by key: since when, until when
	bodies   []*tracked
	sent     map[string]int // by request
	done     map[string]int // of those, how often it may have been processed
}

func newWorld(t *testing.T, program []byte) *world {
	w := &world{t: t, start: time.Now(), arrivals: map[string][]limittest.Arrival{}, paused: map[string][2]time.Duration{}, sent: map[string]int{}, done: map[string]int{}}
	var b byte
	if len(program) > 0 {
		b = program[0]
	}
	third := len(program) / 3
	w.clients, w.fates = program[:third], program[third:]
	c := transport.Config{
		Base: roundTripper(w.serve), Attempts: worldAttempts, UntilBody: b&1 > 0, MaxRetryAfter: 20 * time.Second,
		Limiter: w.limits.new(limit.MustRolling(worldAll, worldWindow)),
		Partition: func(r *http.Request) transport.Partition {
			return transport.Partition{Host: "a.test", Key: r.Header.Get("K")}
		},
		Scope: func(transport.Partition, provider.Observation) provider.Scope { return provider.Key },
		Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return w.limits.new(limit.MustRolling(worldKey, worldWindow))
		},
	}
	if b&2 > 0 {
		c.Tokens = estimator(t)
	}
	if b&4 > 0 {
		c.Ended = func(a transport.Attempt) {
			if a.Number > worldAttempts || a.Again && a.Number == worldAttempts {
				t.Errorf("attempt %d of %d: %+v", a.Number, worldAttempts, a)
			}
		}
	}
	w.tr = mustNew(t, c)
	return w
}

func (w *world) now() time.Duration { return time.Since(w.start) }

func (w *world) fate() byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.fates) == 0 {
		return 0
	}
	b := w.fates[0]
	w.fates = w.fates[1:]
	return b
}

func (w *world) run() {
	var wg sync.WaitGroup
	for i := 0; i+2 < len(w.clients); i += 3 {
		what, end, read := w.clients[i], w.clients[i+1], w.clients[i+2]
		time.Sleep(time.Duration(what>>5) * 30 * time.Millisecond)
		wg.Go(func() { w.client(fmt.Sprint(i), what, end, read) })
	}
	wg.Wait()
	time.Sleep(time.Minute)
	if n, never := w.limits.open(); n != 0 || never != nil {
		w.t.Errorf("%d leases are open; %v", n, never)
	}
	if n := transport.Active(w.tr); n != 0 {
		w.t.Errorf("%d requests are under way", n)
	}
	for i, b := range w.bodies {
		if b.closed == 0 {
			w.t.Errorf("body %d, %s, was not closed", i, b.name)
		}
	}
	for key, arrivals := range w.arrivals {
		n := int64(worldKey)
		if key == "" {
			n = worldAll
		}
		slices.SortFunc(arrivals, func(a, b limittest.Arrival) int { return int(a.At - b.At) })
		if err := limittest.Rolling(n, worldWindow, limit.Requests)(arrivals); err != nil {
			w.t.Errorf("key %q: %v", key, err)
		}
	}
	for id, n := range w.sent {
		if n > worldAttempts {
			w.t.Errorf("request %s was sent %d times", id, n)
		}
	}
}

// client makes one request. what has its kind, end when it gives up, read what becomes of the answer.
func (w *world) client(id string, what, end, read byte) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	deadline := time.Hour
	switch end % 4 {
	case 0:
		deadline = time.Duration(end) * 20 * time.Millisecond
		var stop func()
		ctx, stop = context.WithTimeout(ctx, deadline)
		defer stop()
	case 1:
		deadline = time.Duration(end) * 20 * time.Millisecond
		defer time.AfterFunc(deadline, cancel).Stop()
	}
	var fields []string
	if what&4 > 0 {
		fields = append(fields, "Idempotency-Key", id)
	}
	method, body := http.MethodPost, prompt
	if what&8 > 0 {
		method, body = http.MethodGet, ""
	}
	r := request(w.t, method, chat, body, append(fields, "K", string('a'+what&3), "Id", id)...)
	if body != "" {
		in := w.track("of request "+id, []byte(body), false, nil)
		r.Body = in
		if what&16 > 0 {
			r.GetBody = nil
		} else {
			r.GetBody = func() (io.ReadCloser, error) { return w.track("again of request "+id, []byte(body), false, nil), nil }
		}
	}
	asked := w.now()
	before := *r.WithContext(ctx)
	r = r.WithContext(ctx)
	resp, err := func() (resp *http.Response, err error) {
		defer func() {
			if p := recover(); p != nil {
				if p != "the base" {
					panic(p)
				}
				err = errBroken
			}
		}()
		return w.tr.RoundTrip(r)
	}()
	if (resp == nil) == (err == nil) {
		w.t.Errorf("request %s: %v and %v", id, resp, err)
	}
	if took := w.now() - asked; took > deadline {
		w.t.Errorf("request %s took %v, its end is %v", id, took, deadline)
	}
	if r.Body != before.Body || r.Header.Get("Id") != id || len(r.Header) != len(before.Header) {
		w.t.Errorf("request %s was changed", id)
	}
	if err != nil {
		return
	}
	// Most read all, some a part, some nothing; some close twice.
	switch read % 4 {
	case 0:
		io.CopyN(io.Discard, resp.Body, int64(read))
	case 1:
	default:
		got, err := io.ReadAll(resp.Body)
		if want := resp.Header.Get("Body"); err == nil && string(got) != want || !strings.HasPrefix(want, string(got)) {
			w.t.Errorf("request %s: read %q %v, want %q", id, got, err, want)
		}
	}
	resp.Body.Close()
	if read&16 > 0 {
		resp.Body.Close()
	}
}

// serve is the network and the server.
func (w *world) serve(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	id, key := r.Header.Get("Id"), r.Header.Get("K")
	now := w.now()
	w.mu.Lock()
	w.sent[id]++
	if p := w.paused[key]; now > p[0] && now < p[1] {
		w.t.Errorf("request %s was sent at %v, and key %s paused from %v to %v", id, now, key, p[0], p[1])
	}
	_, keyed := r.Header["Idempotency-Key"]
	if w.done[id] > 0 && r.Method == http.MethodPost && !keyed {
		w.t.Errorf("request %s may have been processed, and was sent again", id)
	}
	w.mu.Unlock()
	if r.Body != nil {
		defer r.Body.Close()
	}
	arrive := func(after time.Duration) {
		w.mu.Lock()
		defer w.mu.Unlock()
		a := limittest.Arrival{At: mono.Time(w.now() + after), Cost: limit.One}
		w.arrivals[""] = append(w.arrivals[""], a)
		w.arrivals[key] = append(w.arrivals[key], a)
	}
	processed := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done[id]++
	}
	fate, more := w.fate(), w.fate()
	up, down := time.Duration(more&7)*10*time.Millisecond, time.Duration(more>>3&7)*10*time.Millisecond
	if more&64 > 0 {
		down *= 20
	}
	trace := httptrace.ContextClientTrace(ctx)
	if fate&0x80 > 0 { // like net/http
		trace.GetConn("a.test:80")
		if fate&0x7f < 8 {
			w.mu.Lock()
			w.sent[id]-- // nothing was: while the host is down, that is no attempt
			w.mu.Unlock()
			return nil, errors.New("no connection")
		}
		trace.GotConn(httptrace.GotConnInfo{})
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	if err := sleep(ctx, up); err != nil {
		processed()
		arrive(time.Duration(more) * 10 * time.Millisecond) // it was on its way
		return nil, err
	}
	arrive(0)
	if r.Body != nil && fate&1 > 0 {
		if b, _ := io.ReadAll(r.Body); string(b) != prompt {
			w.t.Errorf("request %s: the server got %q", id, b)
		}
	}
	answer := func(status int, body string, slow time.Duration, fields ...string) (*http.Response, error) {
		if err := sleep(ctx, down); err != nil {
			processed()
			return nil, err
		}
		resp := reply(status, "", append(fields, "Body", body)...)
		b := w.track("of an answer to "+id, []byte(body), status == 200 && more&128 > 0, ctx)
		b.slow = slow
		resp.Body = b
		return resp, nil
	}
	switch fate & 0x7f >> 3 {
	case 0, 1, 2:
		return answer(200, `{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`, 0, "Content-Type", "application/json")
	case 3:
		return answer(200, events("data: [DONE]\n\n"), down, "Content-Type", "text/event-stream")
	case 4, 5:
		wait := time.Duration(more) * 100 * time.Millisecond
		resp, err := answer(429, "{}", 0, "Retry-After", fmt.Sprint(wait.Seconds()))
		if err == nil && wait > 0 {
			w.mu.Lock()
			if now := w.now(); now+wait > w.paused[key][1] {
				w.paused[key] = [2]time.Duration{now, now + wait}
			}
			w.mu.Unlock()
		}
		return resp, err
	case 6:
		return answer(429, strings.Repeat("x", int(more)*600), 0)
	case 7:
		processed()
		return answer(500, "broken", down, "Retry-After", fmt.Sprint(more>>4))
	case 8:
		processed()
		return answer(503, "busy", 0)
	case 9:
		return answer(403, "no", down)
	case 10:
		return answer(200, "{}", 0, "RateLimit-Limit", "3", "RateLimit-Remaining", fmt.Sprint(more&3), "RateLimit-Reset", fmt.Sprint(more>>5))
	case 11:
		processed()
		return nil, errBroken
	case 12:
		processed()
		return nil, nil
	case 13:
		processed()
		resp, err := answer(200, "both", 0)
		return resp, errors.Join(err, errBroken)
	case 14:
		panic("the base")
	default:
		return &http.Response{StatusCode: 204, Body: http.NoBody, Header: http.Header{}}, nil
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// tracked is a body that is to be closed. Reads of one with a context end with it, as those of net/http do.
type tracked struct {
	w      *world
	name   string
	from   *bytes.Reader
	breaks bool // half way
	slow   time.Duration
	ctx    context.Context
	closed int
}

func (w *world) track(name string, b []byte, breaks bool, ctx context.Context) *tracked {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := &tracked{w: w, name: name, from: bytes.NewReader(b), breaks: breaks, ctx: ctx}
	w.bodies = append(w.bodies, one)
	return one
}

func (b *tracked) Read(p []byte) (int, error) {
	if b.ctx != nil {
		if err := sleep(b.ctx, b.slow); err != nil {
			return 0, err
		}
	}
	if b.breaks && b.from.Len() < int(b.from.Size()/2) {
		return 0, io.ErrUnexpectedEOF
	}
	return b.from.Read(p[:min(len(p), 1+int(b.from.Size()/4))])
}

func (b *tracked) Close() error {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.closed++
	return nil
}

// ledger counts the leases of limiters that limit, and learns of an admission before its time.
type ledger struct {
	mu    sync.Mutex
	n     int
	early error
	last  limit.Outcome
}

func (s *ledger) new(l limit.Limiter) limit.Limiter { return &counted{Limiter: l, in: s} }

func (s *ledger) open() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.early
}

type counted struct {
	limit.Limiter
	in *ledger
}

func (c *counted) Admit(s *limit.Sent) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.n++
	if at := c.Ready(s.At, s.Cost); at > s.At {
		c.in.early = fmt.Errorf("admitted at %v what is ready at %v", s.At, at)
	}
	c.Limiter.Admit(s)
}

func (c *counted) Settle(now mono.Time, l *limit.Sent, o *limit.Outcome) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.n--
	c.in.last = *o
	c.Limiter.Settle(now, l, o)
}
