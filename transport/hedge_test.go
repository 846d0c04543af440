package transport_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/transport"
)

// answer is what a slow base does with a request.
type answer struct {
	after  time.Duration
	status int // 0: err
	err    error
}

// slow is a server within the process, whose answers take the given times, in order. It heeds
// contexts.
type slow struct {
	answers []answer

	mu     sync.Mutex
	begin  time.Time
	sent   []time.Duration
	bodies []string
	gone   []time.Duration // when a request was given up
	served int             // answers
	closed int             // of their bodies
}

func lagging(a ...answer) *slow { return &slow{answers: a, begin: time.Now()} }

func (b *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	b.mu.Lock()
	n := len(b.sent)
	b.sent = append(b.sent, time.Since(b.begin))
	b.bodies = append(b.bodies, string(body))
	b.mu.Unlock()
	a := b.answers[min(n, len(b.answers)-1)]
	select {
	case <-time.After(a.after):
	case <-r.Context().Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		b.gone = append(b.gone, time.Since(b.begin))
		return nil, context.Cause(r.Context())
	}
	if a.err != nil {
		return nil, a.err
	}
	b.mu.Lock()
	b.served++
	b.mu.Unlock()
	resp := reply(a.status, string(rune('a'+n)))
	resp.Body = &told{resp.Body, b}
	return resp, nil
}

// told is a body whose Close is counted.
type told struct {
	io.ReadCloser
	b *slow
}

func (c *told) Close() error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.b.closed++
	return c.ReadCloser.Close()
}

func serves(after time.Duration) answer { return answer{after: after, status: 200} }

// ends is a Transport's reports of attempts.
type ends struct {
	mu  sync.Mutex
	all []transport.Attempt
}

func (e *ends) add(a transport.Attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, a)
}

// Timelines of requests that are copied after 1 s: the instant of each send, whose answer came
// when, and the end of the other.
func TestHedge(t *testing.T) {
	s := time.Second
	reset := errors.New("reset")
	for _, c := range []struct {
		name     string
		method   string
		body     string
		once     bool // the body is read once
		fields   []string
		attempts int // 0: 1
		answers  []answer
		sent     []float64 // seconds
		body1    string    // of the answer
		status   int
		at       float64 // when it came
		gone     []float64
		stats    transport.Stats
		ended    []string // in any order
	}{
		{name: "quick", answers: []answer{serves(s / 2)}, sent: []float64{0}, body1: "a", at: 0.5, stats: transport.Stats{Attempts: 1}, ended: []string{"accepted"}},
		{name: "slow, the copy is quicker", answers: []answer{serves(10 * s), serves(s / 2)}, sent: []float64{0, 1}, body1: "b", at: 1.5, gone: []float64{1.5},
			stats: transport.Stats{Attempts: 2, Hedged: 1, HedgesWon: 1}, ended: []string{"unknown", "accepted hedged"}},
		{name: "slow, and quicker than the copy", answers: []answer{serves(2 * s), serves(5 * s)}, sent: []float64{0, 1}, body1: "a", at: 2, gone: []float64{2},
			stats: transport.Stats{Attempts: 2, Hedged: 1}, ended: []string{"accepted", "unknown hedged"}},
		{name: "a body is sent twice", method: "PUT", body: "hello", answers: []answer{serves(10 * s), serves(s)}, sent: []float64{0, 1}, body1: "b", at: 2, gone: []float64{2},
			stats: transport.Stats{Attempts: 2, Hedged: 1, HedgesWon: 1}, ended: []string{"unknown", "accepted hedged"}},
		{name: "a body that is read once", method: "PUT", body: "hello", once: true, answers: []answer{serves(10 * s)}, sent: []float64{0}, body1: "a", at: 10, stats: transport.Stats{Attempts: 1}, ended: []string{"accepted"}},
		{name: "not idempotent", method: "POST", body: "hello", answers: []answer{serves(10 * s)}, sent: []float64{0}, body1: "a", at: 10, stats: transport.Stats{Attempts: 1}, ended: []string{"accepted"}},
		{name: "a key makes it idempotent", method: "POST", body: "hello", fields: []string{"Idempotency-Key", "1"}, answers: []answer{serves(10 * s), serves(s)}, sent: []float64{0, 1}, body1: "b", at: 2, gone: []float64{2},
			stats: transport.Stats{Attempts: 2, Hedged: 1, HedgesWon: 1}, ended: []string{"unknown", "accepted hedged"}},
		{name: "the first fails, the copy is answered", answers: []answer{{after: 2 * s, err: reset}, serves(3 * s)}, sent: []float64{0, 1}, body1: "b", at: 4,
			stats: transport.Stats{Attempts: 2, Hedged: 1, HedgesWon: 1}, ended: []string{"unknown", "accepted hedged"}},
		{name: "the copy fails, the first is answered", answers: []answer{serves(4 * s), {after: s, err: reset}}, sent: []float64{0, 1}, body1: "a", at: 4,
			stats: transport.Stats{Attempts: 2, Hedged: 1}, ended: []string{"accepted", "unknown hedged"}},
		{name: "the copy is refused, the first is answered", answers: []answer{serves(4 * s), {after: s, status: 503}}, sent: []float64{0, 1}, body1: "a", at: 4,
			stats: transport.Stats{Attempts: 2, Hedged: 1}, ended: []string{"accepted", "failed hedged"}},
		{name: "both fail, and it goes again", attempts: 2, answers: []answer{{after: 2 * s, err: reset}, {after: 2 * s, err: reset}, serves(s / 2)}, sent: []float64{0, 1, 3.1}, body1: "c", at: 3.6,
			stats: transport.Stats{Attempts: 3, Resent: 1, Hedged: 1}, ended: []string{"unknown", "unknown hedged again", "accepted"}},
		{name: "the first is refused, the copy fails", answers: []answer{{after: 2 * s, status: 503}, {after: 2 * s, err: reset}}, sent: []float64{0, 1}, body1: "a", status: 503, at: 3,
			stats: transport.Stats{Attempts: 2, Hedged: 1}, ended: []string{"failed", "unknown hedged"}},
		{name: "not found is an answer", answers: []answer{serves(10 * s), {after: s, status: 404}}, sent: []float64{0, 1}, body1: "b", status: 404, at: 2, gone: []float64{2},
			stats: transport.Stats{Attempts: 2, Hedged: 1, HedgesWon: 1}, ended: []string{"unknown", "failed hedged"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, told, settled := lagging(c.answers...), new(ends), new(ends)
				tr := mustNew(t, transport.Config{
					Base: b, Attempts: max(c.attempts, 1), Hedge: transport.Hedge{After: s, Share: 1}, Ended: told.add,
					Settled: func(a transport.Attempt, _ limit.Outcome) { settled.add(a) },
					Backoff: backoff.Policy{Jitter: -1}, Limiter: rolling(t, 10, time.Minute, limit.Requests),
				})
				r := request(t, c.method, "http://a.test/", c.body, c.fields...)
				if c.once {
					r.GetBody = nil
				}
				status, body, err := do(t, tr, r)
				if came := time.Since(b.begin).Seconds(); err != nil || status != max(c.status, 200) || body != c.body1 || came != c.at {
					t.Errorf("%d %q %v at %v, want %q at %v", status, body, err, came, c.body1, c.at)
				}
				time.Sleep(time.Minute) // for whatever goes on
				synctest.Wait()
				if !slices.Equal(b.sent, seconds(c.sent...)) || !slices.Equal(b.gone, seconds(c.gone...)) {
					t.Errorf("sent at %v, given up at %v, want %v and %v", b.sent, b.gone, c.sent, c.gone)
				}
				if want := slices.Repeat([]string{c.body}, len(c.sent)); !slices.Equal(b.bodies, want) {
					t.Errorf("bodies %q", b.bodies)
				}
				if len(settled.all) != len(told.all) {
					t.Errorf("%d attempts are settled, and %d have ended", len(settled.all), len(told.all))
				}
				var got []string
				for _, a := range told.all {
					s := a.Result.String()
					if a.Hedged {
						s += " hedged"
					}
					if a.Again {
						s += " again"
					}
					got = append(got, s)
				}
				slices.Sort(got)
				slices.Sort(c.ended)
				if !slices.Equal(got, c.ended) {
					t.Errorf("told of %q, want %q", got, c.ended)
				}
				c.stats.Partitions = 1
				if got := tr.Stats(); got != c.stats {
					t.Errorf("%+v, want %+v", got, c.stats)
				}
				results := map[limit.Result]int64{}
				for _, a := range told.all {
					results[a.Result]++
				}
				l := tr.Partitions()[0]
				if l.InFlight != 0 || l.Accepted != results[limit.Accepted] || l.Failed != results[limit.Failed] || l.Unknown != results[limit.Unknown] {
					t.Errorf("settled as %+v", l.Stats)
				}
				if b.closed != b.served {
					t.Errorf("%d bodies closed of %d", b.closed, b.served)
				}
			})
		})
	}
}

// A copy has its own permit, and goes only if that is free at once. It does not go if the limit is
// used up, if a request waits, or while the server is paused. Its usage counts.
func TestHedgeDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := lagging(serves(3*time.Second), serves(3*time.Second), serves(time.Second/2))
		tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 2, 10*time.Second, limit.Requests), Hedge: transport.Hedge{After: time.Second, Share: 1}})
		var all sync.WaitGroup
		for range 3 { // two go, and are slow; the third waits until both have left the window: 3 + 10 s
			all.Go(func() { do(t, tr, get(t, "http://a.test/")) })
		}
		all.Wait()
		synctest.Wait()
		if want := seconds(0, 0, 13); !slices.Equal(b.sent, want) {
			t.Errorf("sent at %v, want %v", b.sent, want)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a copy counts: with it, the third is the first of the next window
		b := lagging(serves(30*time.Second), serves(time.Second))
		tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 2, 10*time.Second, limit.Requests), Hedge: transport.Hedge{After: time.Second, Share: 1}})
		do(t, tr, get(t, "http://a.test/")) // sent at 0, unknown at 2, so until 2 + 5 s it may arrive; the copy is answered at 2
		do(t, tr, get(t, "http://a.test/"))
		synctest.Wait()
		if want := seconds(0, 1, 12); !slices.Equal(b.sent, want) {
			t.Errorf("sent at %v, want %v", b.sent, want)
		}
	})
}

// Copies are a share of the requests, whatever happens: of 1000 that are all slow, 50; of the first 19, none.
func TestHedgeShare(t *testing.T) {
	for _, c := range []struct {
		requests int
		share    float64
		hedged   int64
	}{{19, 0, 0}, {20, 0, 1}, {1000, 0, 50}, {100, 0.25, 25}, {10, 1, 10}} {
		synctest.Test(t, func(t *testing.T) {
			b := lagging(serves(2 * time.Second))
			tr := mustNew(t, transport.Config{Base: b, Hedge: transport.Hedge{After: time.Second, Share: c.share}})
			var all sync.WaitGroup
			for range c.requests {
				all.Go(func() { do(t, tr, get(t, "http://a.test/")) })
			}
			all.Wait()
			synctest.Wait()
			if got := tr.Stats().Hedged; got != c.hedged || len(b.sent) != c.requests+int(got) {
				t.Errorf("%d requests, share %v: %d copies, want %d; %d were sent", c.requests, c.share, got, c.hedged, len(b.sent))
			}
		})
	}
}

// A server has become slow, and copies answer first. That teaches, too: else all would look fast but the few answers that are waited
// for, and every request would be copied for good.
func TestHedgeLearnsFromTheLosers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quick = 100 * time.Millisecond
		var all []answer
		for range 20 {
			all = append(all, serves(quick))
		}
		for range 5 {
			all = append(all, serves(time.Minute), serves(quick))
		}
		b := lagging(all...)
		tr := mustNew(t, transport.Config{Base: b, Hedge: transport.Hedge{Quantile: 0.9, Share: 1}})
		for range 25 {
			do(t, tr, get(t, "http://a.test/"))
		}
		var copied []time.Duration
		for i := 20; i+1 < len(b.sent); i += 2 {
			copied = append(copied, b.sent[i+1]-b.sent[i])
		}
		if want := []time.Duration{quick, quick, quick, 2 * quick, 2 * quick}; !slices.Equal(copied, want) {
			t.Errorf("copied after %v, want %v", copied, want)
		}
	})
}

// With a Quantile the time is learned: nothing is copied until 20 answers have come, and then what takes longer than 95
// of 100 did. After is the least wait.
func TestHedgeLearns(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		0:                      119 * time.Millisecond, // the 95th of 100 answers
		120 * time.Millisecond: 120 * time.Millisecond,
		time.Second:            time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			var answers []answer
			for i := range 20 {
				answers = append(answers, serves(time.Duration(100+i)*time.Millisecond))
			}
			answers = append(answers, serves(time.Hour), serves(100*time.Millisecond))
			b := lagging(answers...)
			tr := mustNew(t, transport.Config{Base: b, Hedge: transport.Hedge{After: after, Quantile: 0.95, Share: 1}})
			for range 21 {
				if _, _, err := do(t, tr, get(t, "http://a.test/")); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if n := tr.Stats().Hedged; n != 1 || b.sent[21]-b.sent[20] != want {
				t.Errorf("After %v: %d copies, sent at %v, want the copy after %v", after, n, b.sent, want)
			}
		})
	}
}

// An attempt that loses over real connections is cancelled, the answer is whole, and nothing is left behind.
func TestHedgeOverHTTP(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		var sent, n sync.Map
		arrived := map[string]chan struct{}{}
		for i := range 20 {
			arrived[string(rune('a'+i))] = make(chan struct{})
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("X-Id")
			if _, again := n.LoadOrStore(id, true); !again {
				close(arrived[id])
				<-r.Context().Done() // the first of the two is never answered
				return
			}
			io.WriteString(w, strings.Repeat(id, 100_000))
		}))
		server.EnableHTTP2 = h2
		if h2 {
			server.StartTLS()
		} else {
			server.Start()
		}
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			id := r.Header.Get("X-Id")
			if _, isCopy := sent.LoadOrStore(id, true); isCopy {
				<-arrived[id] // on a busy machine all copies overtook their first attempts, and none was answered
			}
			return server.Client().Transport.RoundTrip(r)
		})
		tr := mustNew(t, transport.Config{Base: base, Attempts: 1, Hedge: transport.Hedge{After: time.Millisecond, Share: 1}})
		var all sync.WaitGroup
		for i := range 20 {
			id := string(rune('a' + i))
			all.Go(func() {
				status, body, err := do(t, tr, get(t, server.URL, "X-Id", id))
				if status != 200 || body != strings.Repeat(id, 100_000) || err != nil {
					t.Errorf("h2 %v: %d, %d bytes, %v", h2, status, len(body), err)
				}
			})
		}
		all.Wait()
		if s := tr.Stats(); s.Hedged != 20 || s.HedgesWon == 0 || s.Attempts != 40 {
			t.Errorf("h2 %v: %+v", h2, s)
		}
		tr.CloseIdleConnections()
		server.Close() // waits for those that were cancelled
	}
}

// A Base that panics in a copy panics in RoundTrip, if it waits for the copy, and in any case the permits are settled.
func TestHedgePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := lagging(serves(10*time.Second), serves(0))
		tr := mustNew(t, transport.Config{Hedge: transport.Hedge{After: time.Second, Share: 1}, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := b.RoundTrip(r)
			if err == nil {
				panic("broken")
			}
			return resp, err
		})})
		func() {
			defer func() {
				if got := recover(); got != "broken" {
					t.Errorf("recovered %v", got)
				}
			}()
			do(t, tr, get(t, "http://a.test/"))
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if open := tr.Partitions()[0].InFlight; open != 0 {
			t.Errorf("%d permits are not settled", open)
		}
	})
}

// A copy that is not needed any more, and panics, does not end the program: it is logged, and
// settled. After its end, the partition can be forgotten.
func TestHedgePanicsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var sent atomic.Int64
		tr := mustNew(t, transport.Config{
			MaxPartitions: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)), Hedge: transport.Hedge{After: time.Second, Share: 1},
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				n := sent.Add(1)
				if n == 2 {
					<-r.Context().Done()
					time.Sleep(time.Second)
					panic("broken")
				}
				if n == 1 {
					time.Sleep(2 * time.Second)
				}
				return reply(200, "fine"), nil
			}),
		})
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || err != nil {
			t.Error(status, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if open := tr.Partitions()[0].InFlight; open != 0 || !strings.Contains(log.String(), "broken") {
			t.Errorf("%d permits are not settled; the log says %q", open, log.String())
		}
		do(t, tr, get(t, "http://b.test/"))
		if p := tr.Partitions(); len(p) != 1 || p[0].Partition.Host != "b.test" {
			t.Errorf("%d partitions are remembered", len(p))
		}
	})
}

func TestHedgeConfig(t *testing.T) {
	for _, c := range []struct {
		h    transport.Hedge
		want string
	}{
		{transport.Hedge{After: -1}, "After -1ns is negative"}, {transport.Hedge{Quantile: 1}, "Quantile 1 "}, {transport.Hedge{Quantile: -0.1}, "Quantile -0.1"},
		{transport.Hedge{After: 1, Share: 2}, "Share 2 "}, {transport.Hedge{Share: 0.5}, "neither After nor Quantile"},
	} {
		if _, err := transport.New(transport.Config{Hedge: c.h}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.h, err)
		}
	}
	if _, err := transport.New(transport.Config{AttemptTimeout: -time.Second}); err == nil || !strings.Contains(err.Error(), "AttemptTimeout -1s") {
		t.Error(err)
	}
}
