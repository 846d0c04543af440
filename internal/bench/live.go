package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/rule"
	"github.com/paceline-go/paceline/sim"
)

// Metric is a line of a live run: what a row did so far, and since the line before.
type Metric struct {
	Row                      string
	Elapsed, Interval        time.Duration
	Successes, Failures      int // so far
	SinceLast, FailSinceLast int
	Mean                     time.Duration // latency of successes since they were made, so far
}

// Live runs the rows side by side for length, each against a server of its own on loopback, and tells metric what every
// row has done each time that every has passed.
func Live(ctx context.Context, rows []Row, law latency.Law, seed uint64, length, every time.Duration, metric func(Metric)) ([]Result, error) {
	results := make([]Result, len(rows))
	errs := make([]error, len(rows))
	var wg sync.WaitGroup
	for i := range rows {
		wg.Go(func() { results[i], errs[i] = live(ctx, &rows[i], law, seed+uint64(i), length, every, metric) })
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

// client is one row's: either a Pool or the published workers.
type client struct {
	row      *Row
	rng      *rand.Rand
	http     *http.Client
	url      string
	keys     []string
	began    time.Time
	mu       sync.Mutex // guards what is below
	samples  samples
	tally    sim.Tally
	made     time.Duration // sum of latencies since making
	within   int           // successes within the length of the run, as a ceiling counts them
	requests int
	ended    int
	length   time.Duration
}

func live(ctx context.Context, row *Row, law latency.Law, seed uint64, length, every time.Duration, metric func(Metric)) (Result, error) {
	result := row.result(length)
	x := &row.Scenario
	names := make([]string, x.Server.Keys)
	for i := range names {
		names[i] = fmt.Sprintf("key%d", i+1)
	}
	server, err := ratetest.NewExchange(ratetest.Config{
		Keys: names, Rule: rule.ExchangeConfig{AnyNonce: x.Nonce == sim.NoNonces}, Before: law, After: law, Seed: seed,
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
	c := &client{
		row: row, rng: rand.New(rand.NewPCG(seed, 1)), http: &http.Client{Transport: transport},
		url: server.URL(), keys: names, began: time.Now(), samples: newSamples(), length: length,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ticking sync.WaitGroup
	ticking.Go(func() { c.tick(ctx, every, metric) })

	if x.Workers {
		err = c.runWorkers(ctx, length)
	} else {
		err = c.runPool(ctx, length)
	}
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

// generate makes requests until ctx ends. It keeps to its schedule when it wakes late.
func (c *client) generate(ctx context.Context, submit func(context.Context) error) {
	x := &c.row.Scenario
	next := c.began
	for ctx.Err() == nil {
		n := 1
		switch x.Generator {
		case sim.Original:
			next = next.Add(time.Duration(c.rng.Int64N(int64(21*time.Millisecond) + 1)))
		case sim.Burst:
			n = 20 * x.Server.Keys
		}
		if x.Generator != sim.Saturating && !sleepUntil(ctx, next) {
			return
		}
		for range n {
			if submit(ctx) == nil {
				c.mu.Lock()
				c.requests++
				c.mu.Unlock()
			}
		}
		switch x.Generator {
		case sim.Burst:
			next = next.Add(3 * time.Second)
		case sim.Constant:
			next = next.Add(2 * time.Second)
		}
	}
}

// liveInFlight bounds the connections of a row: its first moment would otherwise open one for every request that a window
// allows, 10,000 with 500 keys, and time out on dialling them.
const liveInFlight = 500

func sleepUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (c *client) runPool(ctx context.Context, length time.Duration) error {
	x := &c.row.Scenario
	keys := make([]dispatch.Key, x.Server.Keys)
	for i := range keys {
		keys[i] = dispatch.Key{Name: c.keys[i], Limiter: x.Limiter(), InFlight: x.InFlight, Gap: x.Gap}
		if x.Nonce != sim.NoNonces {
			keys[i].Nonce = &dispatch.NonceConfig{}
		}
	}
	config := x.Queue
	if x.Generator == sim.Saturating {
		config.MaxLen = 2 * x.Server.Keys
	}
	var pool *paceline.Pool
	pool, err := paceline.NewPool(paceline.PoolConfig{
		Keys: keys, Queue: config, Timeout: x.Timeout, Epoch: c.began, InFlight: liveInFlight,
		Send: func(ctx context.Context, a dispatch.Attempt) dispatch.Answer {
			now := pool.Now()
			c.sent(now.Sub(a.Submitted))
			nonce := ""
			if x.Nonce != sim.NoNonces {
				nonce = strconv.FormatUint(a.Nonce, 10)
			}
			ans := c.send(ctx, a.Key, nonce, a.Number)
			c.answered(&ans, pool.Now().Sub(a.Submitted))
			return ans
		},
		Ended: func(queue.Ended) { c.ended++ },
	})
	if err != nil {
		return err
	}
	making, stop := context.WithTimeout(ctx, length)
	defer stop()
	var generator sync.WaitGroup
	generator.Go(func() {
		c.generate(making, func(ctx context.Context) error {
			return pool.Submit(ctx, queue.Request{Cost: limit.One, TTL: x.TTL - x.Reserve})
		})
		pool.Drain()
	})
	err = pool.Run(ctx)
	stop() // all keys may be banned
	generator.Wait()
	if errors.Is(err, dispatch.ErrExhausted) {
		err = nil
	}
	c.tally.Counts = pool.Counts()
	c.tally.WakeUps = int(pool.WakeUps()) + c.tally.Sent
	c.tally.Lost = c.requests - c.ended - c.tally.Counts.Waiting - c.tally.Counts.InFlight
	return err
}

// runWorkers is the published client: a worker per key takes a request from the shared queue, waits for its limiter,
// sends it and waits for the answer.
func (c *client) runWorkers(ctx context.Context, length time.Duration) error {
	x := &c.row.Scenario
	q, err := queue.New(x.Queue)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	changed := sync.NewCond(&mu)
	now := func() mono.Time { return mono.Time(time.Since(c.began)) }
	stopped := false
	retire := func(e queue.Ended) {
		if e.State.Ended() {
			c.ended++
		}
	}
	worker := func(key int) error {
		limiter := x.Limiter()
		nonce, err := dispatch.NewNonce(c.began, dispatch.NonceConfig{})
		if err != nil {
			return err
		}
		for counter := 1; ; counter++ {
			mu.Lock()
			var ticket queue.Ticket
			for !stopped {
				t, _, ok := q.Head(now())
				if ok {
					ticket = t
					break
				}
				changed.Wait()
			}
			if stopped {
				mu.Unlock()
				return nil
			}
			info := q.Info(ticket)
			number := q.Take(now(), ticket)
			changed.Broadcast() // room
			mu.Unlock()

			taken := now()
			ready := limiter.Ready(taken, limit.One)
			late := info.Deadline <= taken
			for t := taken; ready > t && !late; t = now() {
				c.mu.Lock()
				c.tally.Polls++
				c.mu.Unlock()
				if x.Poll > 0 {
					time.Sleep(x.Poll)
				} else {
					time.Sleep(ready.Sub(t))
				}
				late = now() > info.Deadline
				ready = limiter.Ready(now(), limit.One)
			}
			if late {
				mu.Lock()
				retire(q.Retry(now(), ticket, now(), "deadline passed while waiting for the limiter"))
				mu.Unlock()
				continue
			}
			sent := now()
			digits := ""
			switch wall := c.began.Add(time.Duration(sent)).UnixMilli(); x.Nonce {
			case sim.Timestamp:
				digits = strconv.FormatInt(wall, 10)
			case sim.Concatenated:
				digits = fmt.Sprintf("%d%d%d", wall, 140_000_000_000_000+key, counter)
			case sim.Ours:
				digits = strconv.FormatUint(nonce.Next(sent), 10)
			}
			c.sent(sent.Sub(info.Submitted))
			lease := limiter.Admit(sent, limit.One)
			attempt, cancel := context.WithTimeout(ctx, x.Timeout)
			ans := c.send(attempt, key, digits, number)
			cancel()
			c.answered(&ans, now().Sub(info.Submitted))
			limiter.Settle(now(), lease, ans.Outcome)
			mu.Lock()
			if ans.Result == limit.Accepted {
				retire(q.Done(now(), ticket))
			} else {
				retire(q.Retry(now(), ticket, now(), ans.Result.String()))
			}
			mu.Unlock()
		}
	}

	making, stop := context.WithTimeout(ctx, length)
	defer stop()
	var wg sync.WaitGroup
	errs := make([]error, x.Server.Keys)
	for k := range errs {
		wg.Go(func() { errs[k] = worker(k) })
	}
	wake := context.AfterFunc(making, changed.Broadcast) // a generator that waits for room
	defer wake()
	c.generate(making, func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		for full(q, x) && ctx.Err() == nil {
			changed.Wait()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := q.Submit(now(), queue.Request{Cost: limit.One, TTL: x.TTL - x.Reserve})
		changed.Signal()
		return err
	})
	mu.Lock()
	stopped = true
	mu.Unlock()
	changed.Broadcast()
	wg.Wait()
	c.tally.Counts = q.Counts()
	c.tally.WakeUps = c.tally.Polls + c.tally.Sent
	c.tally.Lost = c.requests - c.ended - c.tally.Counts.Waiting - c.tally.Counts.InFlight
	return errors.Join(errs...)
}

func full(q *queue.Queue, x *sim.Exchange) bool {
	most := x.Queue.MaxLen
	if x.Generator == sim.Saturating {
		most = x.Server.Keys
	}
	return most > 0 && q.Counts().Waiting >= most
}

func (c *client) sent(delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Sent++
	record(c.samples.delay, delay)
}

// send sends one attempt, as any client of the exchange would.
func (c *client) send(ctx context.Context, key int, nonce string, number int) dispatch.Answer {
	values := url.Values{"api_key": {c.keys[key]}, "req_id": {strconv.Itoa(number)}}
	if nonce != "" {
		values.Set("nonce", nonce)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+ratetest.Path+"?"+values.Encode(), nil)
	if err != nil {
		return dispatch.Answer{Invalid: true, Reason: err.Error()}
	}
	start := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return dispatch.Answer{Reason: err.Error()}
	}
	defer resp.Body.Close()
	var body struct {
		Status  string `json:"status"`
		Message string `json:"error_msg"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return dispatch.Answer{Reason: err.Error()}
	}
	_, _ = io.Copy(io.Discard, resp.Body) // to the end, or the connection is not used again
	ans := dispatch.Answer{Reason: body.Message}
	ans.RTT = time.Since(start)
	switch resp.StatusCode {
	case http.StatusOK:
		ans.Result = limit.Accepted
	case http.StatusTooManyRequests:
		ans.Result = limit.Limited
	case http.StatusForbidden, http.StatusUnauthorized:
		ans.Result, ans.Banned = limit.Failed, true
	default:
		ans.Result = limit.Failed
	}
	return ans
}

func (c *client) answered(ans *dispatch.Answer, sinceMade time.Duration) {
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
	record(c.samples.sinceSent, ans.RTT)
}
