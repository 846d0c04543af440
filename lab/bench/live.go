package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/rule"
)

// Metric is what a row of a live run has done so far, and since the Metric before.
type Metric struct {
	Row                      string
	Elapsed, Interval        time.Duration
	Successes, Failures      int // so far
	SinceLast, FailSinceLast int
	Mean                     time.Duration // latency of successes since they were made, so far
}

// Live runs the rows side by side for length, each against a server of its own on loopback. Each
// time that every has passed, it tells metric what every row has done. It measures beside them
// whether the machine is too slow for so many.
func Live(ctx context.Context, rows []Row, law latency.Law, seed uint64, length, every time.Duration,
	metric func(Metric)) ([]Result, Lateness, error) {
	results := make([]Result, len(rows))
	errs := make([]error, len(rows))
	var wg, sleeper sync.WaitGroup
	var late []time.Duration
	awake, wake := context.WithCancel(ctx)
	sleeper.Go(func() { late = asleep(awake) })
	for i := range rows {
		wg.Go(func() { results[i], errs[i] = live(ctx, &rows[i], law, seed+uint64(i), length, every, metric) })
	}
	wg.Wait()
	wake()
	sleeper.Wait()
	return results, lateBy(late), errors.Join(errs...)
}

// client is the client of one row: either a Pool or the published workers.
type client struct {
	row      *Row
	rng      *rand.Rand
	http     *http.Client
	url      string
	keys     []string
	began    time.Time
	mu       sync.Mutex // guards the fields below
	samples  samples
	tally    sim.Tally
	made     time.Duration // the sum of the times from the making of requests to their answers
	within   int           // successes within the length of the run, as a ceiling counts them
	requests int
	ended    int
	length   time.Duration
}

func live(ctx context.Context, row *Row, law latency.Law, seed uint64, length, every time.Duration,
	metric func(Metric)) (Result, error) {
	result := row.result(length)
	x := &row.Scenario
	names := make([]string, x.Server.Keys)
	for i := range names {
		names[i] = fmt.Sprintf("key%d", i+1)
	}
	enforced := x.Server
	enforced.AnyNonce = x.Nonce == sim.NoNonces
	server, err := ratetest.NewExchange(ratetest.Config{
		Keys: names, Rule: enforced, Before: law, After: law, Seed: seed,
	})
	if err != nil {
		return result, err
	}
	if err := server.Start(""); err != nil {
		return result, err
	}
	defer server.Close()

	transport := &http.Transport{MaxIdleConnsPerHost: liveInFlight}
	defer transport.CloseIdleConnections()
	c := newClient(row, seed, length, names, server.URL(), transport)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ticking sync.WaitGroup
	ticking.Go(func() { c.tick(ctx, every, metric) })

	err = c.run(ctx)
	cancel()
	ticking.Wait()
	if err != nil {
		return result, err
	}

	judged := server.Report().Judge
	if judged.Faults > 0 {
		return result, fmt.Errorf("the judge found %d verdicts against the rule: %v", judged.Faults, judged.FirstFaults)
	}
	c.tally.Rejected, c.tally.BadNonce = judged.Total[rule.Limited], judged.Total[rule.BadNonce]
	for k, legs := range server.Legs() {
		if judged.Keys[k].Banned {
			c.tally.BannedKeys++
		}
		if len(legs) > 0 {
			most, err := row.ceilingConfig().Most(length, legs)
			if err != nil {
				return result, err
			}
			result.Ceiling += float64(most) / length.Seconds()
		}
	}
	result.Ceiling = min(result.Ceiling, float64(c.requests)/length.Seconds())
	result.add(c.tally, length, 1)
	result.Rate = float64(c.within) / length.Seconds()
	result.finish(c.samples)
	return result, nil
}

func newClient(row *Row, seed uint64, length time.Duration, keys []string, url string,
	transport http.RoundTripper) *client {
	return &client{
		row: row, rng: rand.New(rand.NewPCG(seed, 1)), http: &http.Client{Transport: transport},
		url: url, keys: keys, began: time.Now(), samples: newSamples(), length: length,
	}
}

// run makes and sends requests for c.length, and waits for their answers.
func (c *client) run(ctx context.Context) error {
	if c.row.Scenario.Workers {
		return c.runWorkers(ctx)
	}
	return c.runPool(ctx)
}

func (c *client) tick(ctx context.Context, every time.Duration, metric func(Metric)) {
	if every <= 0 || metric == nil {
		return
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last := Metric{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c.mu.Lock()
		m := Metric{Row: c.row.ID(), Elapsed: time.Since(c.began), Successes: c.tally.Successes, Failures: c.tally.Failures}
		if m.Successes > 0 {
			m.Mean = c.made / time.Duration(m.Successes)
		}
		c.mu.Unlock()
		m.Interval = m.Elapsed - last.Elapsed
		m.SinceLast, m.FailSinceLast = m.Successes-last.Successes, m.Failures-last.Failures
		metric(m)
		last = m
	}
}

// generate makes requests at the instants of sim's generator, until ctx ends. If it woke late, it
// keeps to the schedule; if submit had to wait for room, the next interval begins when submit
// returns.
func (c *client) generate(ctx context.Context, submit func(context.Context) (waited bool, err error)) {
	x := &c.row.Scenario
	next := c.began
	for ctx.Err() == nil && (x.Generator == sim.Saturating || sleepUntil(ctx, next)) {
		for range max(x.Generator.Batch(x.Server.Keys), 1) {
			waited, err := submit(ctx)
			if err != nil {
				return
			}
			if waited {
				next = time.Now()
			}
			c.mu.Lock()
			c.requests++
			c.mu.Unlock()
		}
		next = next.Add(x.Generator.Interval(c.rng))
	}
}

// liveInFlight bounds the connections of a row. Otherwise the row would begin with a connection for
// each request that a window allows, which is 10,000 with 500 keys, and many would time out while
// they are dialled.
const liveInFlight = 500

// sleepUntil sleeps until t, and returns false if ctx ends first or at the same time.
func sleepUntil(ctx context.Context, t time.Time) bool {
	if end, ok := ctx.Deadline(); ok && !t.Before(end) {
		<-ctx.Done()
		return false
	}
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (c *client) runPool(ctx context.Context) error {
	x := &c.row.Scenario
	keys := make([]pool.Key, x.Server.Keys)
	for i := range keys {
		keys[i] = pool.Key{Name: c.keys[i], Limiter: x.Limiter(), InFlight: x.InFlight, Gap: x.Gap}
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
		Keys: keys, Queue: config, Timeout: x.Timeout, Epoch: c.began, InFlight: liveInFlight,
		Send: func(ctx context.Context, a pool.Attempt) pool.Answer {
			sent := p.Now()
			c.sent(a.Request, sent.Sub(a.Submitted))
			nonce := ""
			if x.Nonce != sim.NoNonces {
				nonce = strconv.FormatUint(a.Nonce, 10)
			}
			ans := c.send(ctx, a.Key, nonce, a.Number)
			now := p.Now()
			c.answered(&ans, now.Sub(a.Submitted), now.Sub(sent))
			return ans
		},
		Ended: func(pool.Ended) { c.ended++ },
	})
	if err != nil {
		return err
	}
	making, stop := context.WithDeadline(ctx, c.began.Add(c.length))
	defer stop()
	var generator sync.WaitGroup
	generator.Go(func() {
		c.generate(making, func(ctx context.Context) (bool, error) {
			r := c.request()
			if err := p.TrySubmit(r); !errors.Is(err, pool.ErrFull) {
				return false, err
			}
			return true, p.Submit(ctx, r)
		})
		p.Drain()
	})
	err = p.Run(ctx)
	stop() // all keys may be banned
	generator.Wait()
	if errors.Is(err, pool.ErrExhausted) {
		err = nil
	}
	c.tally.Counts = p.Counts()
	c.tally.WakeUps = int(p.WakeUps()) + c.tally.Sent // the end of each sending wakes the client, too
	c.tally.Lost = c.requests - c.ended - c.tally.Counts.Waiting - c.tally.Counts.InFlight
	return err
}

// request returns a new request. Its Value says whether it has been sent.
func (c *client) request() pool.Request {
	x := &c.row.Scenario
	return pool.Request{Cost: limit.One, TTL: x.TTL - x.Reserve, Value: new(bool)}
}

func (c *client) sent(r pool.Request, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Sent++
	if before := r.Value.(*bool); !*before {
		*before = true
		record(c.samples.delay, delay)
	}
}

// send sends one attempt, as any client of the exchange would.
func (c *client) send(ctx context.Context, key int, nonce string, number int) pool.Answer {
	values := url.Values{"api_key": {c.keys[key]}, "req_id": {strconv.Itoa(number)}}
	if nonce != "" {
		values.Set("nonce", nonce)
	}
	// The round trip begins when the request is written, which is after dialling and after any stall
	// of this process: the promise of a largest latency counts from there. The transport reports a
	// request as written when it is in the transport's buffer. That is flushed right afterwards, as
	// our requests are smaller than the buffer.
	var wrote atomic.Pointer[time.Time]
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { now := time.Now(); wrote.Store(&now) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+ratetest.Path+"?"+values.Encode(), nil)
	if err != nil {
		return pool.Answer{Invalid: true, Reason: err.Error()}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return pool.Answer{Reason: err.Error()}
	}
	defer resp.Body.Close()
	var body struct {
		Status  string `json:"status"`
		Message string `json:"error_msg"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return pool.Answer{Reason: err.Error()}
	}
	_, _ = io.Copy(io.Discard, resp.Body) // a body that is not read to its end keeps the connection from being used again
	ans := pool.Answer{Reason: body.Message}
	if t := wrote.Load(); t != nil {
		ans.RTT = time.Since(*t)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		ans.Result = limit.Accepted
	case http.StatusTooManyRequests:
		ans.Result = limit.Limited
	case http.StatusForbidden, http.StatusUnauthorized:
		ans.Result, ans.Banned = limit.Failed, true
	default:
		// its nonce was not above the last
		ans.Result, ans.Misordered = limit.Failed, resp.StatusCode == http.StatusBadRequest
	}
	return ans
}

func (c *client) answered(ans *pool.Answer, sinceMade, sinceSent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ans.Result != limit.Accepted {
		c.tally.Failures++
		return
	}
	c.tally.Successes++
	if time.Since(c.began) <= c.length {
		c.within++
	}
	if sinceMade <= c.row.Scenario.TTL {
		c.tally.InTime++
	}
	c.made += sinceMade
	record(c.samples.sinceMade, sinceMade)
	record(c.samples.sinceSent, sinceSent)
}
