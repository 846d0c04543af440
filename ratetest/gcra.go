package ratetest

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/internal/host"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// GCRAConfig describes a GCRA. The zero value is Heroku's platform API: 4500 requests, refilled at
// 4500 an hour. The bucket is empty at the start, as in the published simulations of Heroku's API.
type GCRAConfig struct {
	// Limit is the refill per Window, at an even rate. If zero, 4500 per hour.
	Limit  int64
	Window time.Duration
	// Capacity is the most requests in the bucket. If zero, Limit.
	Capacity int64
	// Level is the number of requests in the bucket when the first request arrives. The server's
	// clock starts then. If zero, none.
	Level int64
	// Scale is the speed of the server's clock relative to the real one. If zero, 1. At most 1000.
	Scale float64
	// VirtualClients is the number of clients of a virtual clock, by which the server counts. Then
	// Scale, Before and After are not set. If zero, the clock is real. See Exchange.
	VirtualClients int
	// Before and After are the latencies of each request on its way to the check and back, by the
	// server's clock. If zero, none.
	Before, After latency.Law
	// Seed is the seed of the latencies.
	Seed uint64
	// LogTo, if not nil, gets a line of JSON for each request, in the order of the checks: see
	// GCRALine. A slow writer delays answers, not checks. The server does not close LogTo.
	LogTo io.Writer
}

// GCRA is a server with one quota for all clients. The clients do not know each other. It answers
// every request with one of
//
//	200 {"status":"OK"}
//	429 {"id":"rate_limit","message":"..."}
//
// Every answer has two header fields. RateLimit-Remaining is the whole requests left in the bucket.
// RateLimit-Multiplier is 1, as at Heroku. There is no Retry-After.
//
// A GCRA is an http.Handler that also runs in memory and in a synctest bubble. Start gives it a
// socket. Safe for concurrent use.
type GCRA struct {
	host.Host // has Start, StartListener, URL, Close and Shutdown

	config GCRAConfig
	clock  *host.Clock
	log    host.Journal
	work   *host.Requests

	mu     sync.Mutex // guards the fields below, and is never held across a wait or a write
	rng    *rand.Rand
	rule   rule.Rule
	first  mono.Time // by the server's clock: the check of the first request; never: there was none
	left   int64
	report GCRAReport
}

// GCRALine is a line of GCRAConfig.LogTo. Instants are in nanoseconds of the server's clock since
// the first check. New versions may add fields, and remove none.
type GCRALine struct {
	Checked   int64  `json:"checked_ns"`
	Before    int64  `json:"before_ns"`
	After     int64  `json:"after_ns"`
	Client    string `json:"client,omitempty"` // the client's User-Agent
	Status    int    `json:"status"`
	Remaining int64  `json:"remaining"`
}

// GCRAReport sums up the requests that reached a GCRA.
type GCRAReport struct {
	Accepted int   `json:"accepted"`
	Limited  int   `json:"limited"`
	Dropped  int   `json:"dropped"` // requests that were on their way when the server closed
	Peak     int   `json:"peak"`    // the most requests under way at once
	Left     int64 `json:"left"`    // whole requests that are left now
	// Unused is the refill that was lost while the bucket was full, in requests.
	Unused float64 `json:"unused"`
	// Elapsed is the time since the first check, by the server's clock.
	Elapsed time.Duration `json:"elapsed_ns"`
}

// NewGCRA returns a server that no request has reached. The error names the field and value.
func NewGCRA(c GCRAConfig) (*GCRA, error) {
	if c.Limit == 0 && c.Window == 0 {
		c.Limit, c.Window = 4500, time.Hour
	}
	c.Capacity = cmp.Or(c.Capacity, c.Limit)
	clock, err := host.NewClock(host.ClockConfig{Scale: c.Scale, Clients: c.VirtualClients,
		Latency: c.Before != latency.Law{} || c.After != latency.Law{}})
	if err != nil {
		return nil, fmt.Errorf("ratetest: GCRA: %w", err)
	}
	if c.Level < 0 || c.Level > c.Capacity {
		return nil, fmt.Errorf("ratetest: GCRA: Level %d is not from 0 to the capacity of %d", c.Level, c.Capacity)
	}
	r, err := rule.NewBucket(rule.BucketConfig{Limit: c.Limit, Window: c.Window, Capacity: c.Capacity,
		Missing: c.Capacity - c.Level, Tick: -1})
	if err != nil {
		return nil, err
	}
	g := &GCRA{config: c, clock: clock, log: host.Journal{To: c.LogTo}, rng: rand.New(rand.NewPCG(c.Seed, 0)),
		rule: r, first: mono.Max, left: c.Level}
	g.Host, g.work = host.New(g, clock, g.log.Flush)
	return g, nil
}

// ServeHTTP implements http.Handler.
func (g *GCRA) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.clock.Answers(w, r) {
		return
	}
	if !g.work.Enter() {
		host.Answer(w, http.StatusServiceUnavailable, host.Failure("the server is closing"))
		return
	}
	defer g.work.Leave()
	g.mu.Lock()
	before, after := g.config.Before.Draw(g.rng), g.config.After.Draw(g.rng)
	g.report.Peak = max(g.report.Peak, g.work.Underway())
	g.mu.Unlock()
	if !g.work.Wait(g.clock.Real(before)) {
		g.mu.Lock()
		g.report.Dropped++
		g.mu.Unlock()
		host.Answer(w, http.StatusServiceUnavailable, host.Failure("the server is closing"))
		return
	}
	passed, left := g.check(r.UserAgent(), before, after)
	g.log.Flush() // Close returns its error
	g.work.Wait(g.clock.Real(after))
	w.Header().Set("RateLimit-Remaining", strconv.FormatInt(left, 10))
	w.Header().Set("RateLimit-Multiplier", "1")
	if !passed {
		host.Answer(w, http.StatusTooManyRequests,
			map[string]any{"id": "rate_limit", "message": "The quota that all clients share is used up."})
		return
	}
	host.Answer(w, http.StatusOK, map[string]any{"status": "OK"})
}

func (g *GCRA) check(client string, before, after time.Duration) (passed bool, left int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.since()
	g.spend(now)
	status := http.StatusTooManyRequests
	if passed = g.rule.Arrive(now, 1); passed {
		g.report.Accepted++
		status = http.StatusOK
	} else {
		g.report.Limited++
	}
	g.left = rule.Left(g.rule, now, g.config.Capacity, g.left)
	if g.log.To != nil {
		g.log.Add(GCRALine{int64(now), int64(before), int64(after), client, status, g.left})
	}
	return passed, g.left
}

// since starts the clock of the rule if it does not run yet. The lock is held.
func (g *GCRA) since() mono.Time {
	now := mono.Time(g.clock.Elapsed())
	g.first = min(g.first, now)
	return mono.Time(now.Sub(g.first))
}

// spend counts the refill since the last check that was lost in a full bucket. The lock is held.
func (g *GCRA) spend(now mono.Time) {
	if d := now.Sub(mono.Time(g.report.Elapsed)); d > 0 {
		refill := float64(d) * float64(g.config.Limit) / float64(g.config.Window)
		g.report.Unused += max(0, refill-float64(g.config.Capacity-g.left))
		g.report.Elapsed = time.Duration(now)
	}
}

// Report sums up the requests so far.
func (g *GCRA) Report() GCRAReport {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first == mono.Max {
		r := g.report
		r.Left = g.left
		return r
	}
	now := g.since()
	g.spend(now)
	g.left = rule.Left(g.rule, now, g.config.Capacity, g.left)
	r := g.report
	r.Left = g.left
	r.Unused = math.Round(r.Unused*1000) / 1000
	return r
}
