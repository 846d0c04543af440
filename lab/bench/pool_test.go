package bench

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// poolRun is a row of the table whose client is a Pool, which sends over HTTP to ratetest's exchange.
type poolRun struct {
	scenario sim.Exchange
	exchange *ratetest.Exchange
	http     *http.Client
	keys     []string
	rng      *rand.Rand
	began    time.Time

	mu     sync.Mutex // guards the fields below
	tally  sim.Tally
	within int // successes within the scenario's Duration
	made   int // requests
	delay  samples
}

// inFlight bounds the connections of a row.
const inFlight = 500

// newPoolRun starts the exchange. It ends with the test.
func newPoolRun(t *testing.T, x sim.Exchange) *poolRun {
	r := &poolRun{scenario: x, keys: []string{"key1", "key2", "key3", "key4", "key5"}[:x.Server.Keys],
		rng: rand.New(rand.NewPCG(x.Seed, 1)), began: time.Now(), delay: newSamples()}
	var err error
	its := x.Server
	r.exchange, err = ratetest.NewExchange(ratetest.Config{Keys: r.keys, Limit: its.Limit, Window: its.Window,
		BanAfter: its.BanAfter, AnyNonce: its.AnyNonce, Before: x.Forward, After: x.Back})
	if err != nil {
		t.Fatal(err)
	}
	listener, server, done := fakeconn.New(), &http.Server{Handler: r.exchange}, make(chan error)
	go func() { done <- server.Serve(listener) }()
	transport := &http.Transport{MaxIdleConnsPerHost: inFlight, DialContext: listener.Dial}
	r.http = &http.Client{Transport: transport}
	t.Cleanup(func() {
		time.Sleep(time.Second) // for requests on their way that nobody waits for
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return r
}

// run makes and sends requests for the scenario's Duration, and waits for their answers.
func (r *poolRun) run(t *testing.T) {
	x := &r.scenario
	keys := make([]pool.Key, x.Server.Keys)
	for i := range keys {
		keys[i] = pool.Key{Name: r.keys[i], Limiter: x.Limiter(), InFlight: x.InFlight, Gap: x.Gap}
		if x.Nonce != sim.NoNonces {
			keys[i].Nonce = &pool.NonceConfig{}
		}
	}
	config := x.Queue
	if x.Generator == sim.Saturating {
		config.MaxLen = 2 * x.Server.Keys
	}
	var p *pool.Pool
	p, err := pool.New(pool.Config{
		Keys: keys, Queue: config, Timeout: x.Timeout, Epoch: r.began, InFlight: inFlight,
		Send: func(ctx context.Context, a pool.Attempt) pool.Answer {
			r.sent(a.Request, p.Now().Sub(a.Submitted))
			ans := r.send(ctx, &a)
			r.answered(ans.Result)
			return ans
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	making, stop := context.WithDeadline(t.Context(), r.began.Add(x.Duration))
	defer stop()
	var generator sync.WaitGroup
	generator.Go(func() {
		r.generate(making, p)
		p.Drain()
	})
	if err := p.Run(t.Context()); err != nil && !errors.Is(err, pool.ErrExhausted) {
		t.Fatal(err)
	}
	stop() // all keys may be banned
	generator.Wait()
	r.tally.Counts = p.Counts()
	r.tally.WakeUps = int(p.WakeUps()) + r.tally.Sent // the end of each sending wakes the client, too
}

// generate makes requests at the instants of sim's generator, until ctx ends. It begins an interval anew where it
// waited for room.
func (r *poolRun) generate(ctx context.Context, p *pool.Pool) {
	x := &r.scenario
	for next := r.began; ; next = next.Add(x.Generator.Interval(r.rng)) {
		if end, _ := ctx.Deadline(); x.Generator != sim.Saturating && !next.Before(end) {
			<-ctx.Done()
		} else if x.Generator != sim.Saturating {
			time.Sleep(time.Until(next))
		}
		if ctx.Err() != nil {
			return
		}
		for range max(x.Generator.Batch(x.Server.Keys), 1) {
			request := pool.Request{Cost: limit.One, TTL: x.TTL - x.Reserve, Value: new(bool)}
			err := p.TrySubmit(request)
			if errors.Is(err, pool.ErrFull) {
				err = p.Submit(ctx, request)
				next = time.Now()
			}
			if err != nil {
				return
			}
			r.mu.Lock()
			r.made++
			r.mu.Unlock()
		}
	}
}

func (r *poolRun) sent(request pool.Request, delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Sent++
	if before := request.Value.(*bool); !*before {
		*before = true
		record(r.delay.delay, delay)
	}
}

// send sends one attempt, as any client of the exchange would.
func (r *poolRun) send(ctx context.Context, a *pool.Attempt) (ans pool.Answer) {
	values := url.Values{"api_key": {r.keys[a.Key]}, "req_id": {strconv.Itoa(a.Number)}}
	if r.scenario.Nonce != sim.NoNonces {
		values.Set("nonce", strconv.FormatUint(a.Nonce, 10))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://exchange"+ratetest.Path+"?"+values.Encode(), nil)
	if err != nil {
		return pool.Answer{Invalid: true, Reason: err.Error()}
	}
	resp, err := r.http.Do(request)
	if err != nil {
		return pool.Answer{Reason: err.Error()}
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return pool.Answer{Reason: err.Error()}
	}
	switch ans.Result = limit.Failed; resp.StatusCode {
	case http.StatusOK:
		ans.Result = limit.Accepted
	case http.StatusTooManyRequests:
		ans.Result = limit.Limited
	case http.StatusForbidden, http.StatusUnauthorized:
		ans.Banned = true
	case http.StatusBadRequest: // its nonce was not above the last
		ans.Misordered = true
	}
	return ans
}

func (r *poolRun) answered(result limit.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if result == limit.Accepted && time.Since(r.began) <= r.scenario.Duration {
		r.within++
	}
}

// A Pool over HTTP, in virtual time, does what the simulated one does, instant for instant where latency is constant. It
// waits for the answers at its end, and there the two may differ by a few.
func TestPoolIsTheSimulation(t *testing.T) {
	race.Without(t) // package pool has stress tests of its own
	law := latency.Constant(11 * time.Millisecond)
	rows := map[string]Row{}
	for _, r := range (Exchange{Latency: latency.Uniform(0, latencyMax)}).Rows() {
		rows[r.ID()] = r
	}
	for _, c := range []struct {
		id     string
		change func(*sim.Exchange)
	}{
		{"lease/original", nil},
		{"lease/saturating/nonce", nil},
		{"lease-bounded/original", nil},
		{"load: burst/burst", nil},
		{"load: constant/constant", nil},
		{"queue: ours/original/nonce", func(x *sim.Exchange) { x.Server.AnyNonce, x.Nonce = true, sim.NoNonces }},
		{"queue: ours, backpressure/original/nonce", nil},
		{"queue: ours, backpressure/original/nonce", func(x *sim.Exchange) { x.Generator = sim.Burst; x.TTL = time.Minute }},
		// Each is sent several times, and none is waited for long enough.
		{"queue: ours/original/nonce", func(x *sim.Exchange) { x.Generator = sim.Constant; x.Timeout = 15 * time.Millisecond }},
	} {
		row, ok := rows[c.id]
		if !ok {
			t.Fatalf("no row %s", c.id)
		}
		x := row.Scenario
		x.Server.AnyNonce = !row.Nonce()
		x.Forward, x.Back, x.Seed = law, law, 1
		x.Duration = 20*time.Second + 500*time.Microsecond // not at the end of any interval
		if c.change != nil {
			c.change(&x)
		}
		delay := newSamples()
		virtual := x
		virtual.OnSend = func(d time.Duration) { record(delay.delay, d) }
		want, err := virtual.Run()
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			got := newPoolRun(t, x)
			got.run(t)
			served := got.exchange.Report().Judge

			near := func(what string, got, want, slack int) {
				if got < want-slack || got > want+slack {
					t.Errorf("%s: %s: %d over HTTP, %d simulated", c.id, what, got, want)
				}
			}
			keys := x.Server.Keys
			near("made", got.made, want.Counts.Submitted, keys)
			near("sent", got.tally.Sent, want.Sent, 2*keys)
			near("answered", got.within, want.Successes, keys)
			near("bad nonces", served.Total.BadNonce, want.BadNonce, 2*keys)
			near("refused", served.Total.Limited, want.Rejected, 2*keys)
			near("verdicts against the rule", served.Faults, 0, 0)
			near("wake-ups", got.tally.WakeUps, want.WakeUps, max(2*keys, want.WakeUps/50))
			near("delays", int(got.delay.delay.TotalCount()), int(delay.delay.TotalCount()), 2*keys)
			if x.Generator == sim.Saturating {
				return // twice as many wait over HTTP, so that none is missing while the generator's goroutine wakes
			}
			a, b := quantiles(got.delay.delay), quantiles(delay.delay)
			if math.Abs(a.Mean-b.Mean) > 1+0.02*b.Mean || math.Abs(a.Max-b.Max) > 5+0.02*b.Max {
				t.Errorf("%s: delays %+v over HTTP, %+v simulated", c.id, a, b)
			}
		})
	}
}
