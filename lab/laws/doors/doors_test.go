// Package doors tries what is promised of a shared quota end to end, through every way that a user has to the server: Gate, Pool,
// transport and `paceline run`, in virtual time, beside what the simulator says. It has nothing but tests.
package doors

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/service"
	"github.com/paceline-go/paceline/transport"
)

// leg is the latency to the server, and back.
const leg = 30 * time.Millisecond

// shared is a quota that strangers share: a fake server that speaks as real ones do, and the same for the simulator.
type shared struct {
	name   string
	path   string
	server service.Config
	quota  fleet.Quota
	span   time.Duration
	law    fairshare.FairConfig
	auto   bool // nobody knows the quota: fairshare.Auto is in the place of Fair
	empty  int  // how many requests have used up what the server starts with, before the first client comes
}

// limiter is that of one client.
func (q *shared) limiter(rng *rand.Rand) (limit.Limiter, error) {
	if q.auto {
		return fairshare.NewAuto(fairshare.AutoConfig{Rng: rng})
	}
	c := q.law
	c.Rng = rng
	return fairshare.NewFair(c)
}

// client is one of the strangers.
type client struct {
	quota *shared
	seed  uint64
	net   *path
}

func (c *client) limiter(t *testing.T) limit.Limiter {
	l, err := c.quota.limiter(rand.New(rand.NewPCG(c.seed, 1)))
	if err != nil {
		t.Error(err)
	}
	return l
}

func (c *client) url() string { return "http://api.test" + c.quota.path }

// door is a way to the server. It sends until the context ends, and returns how many requests were served.
type door struct {
	name string
	open func(ctx context.Context, t *testing.T, c *client) int
}

var doors = []door{{"Gate", throughGate}, {"Pool", throughPool}, {"transport", throughTransport}, {"run", throughRun}}

func (c *client) ask(ctx context.Context) classify.Verdict {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url(), nil)
	if err != nil {
		panic(err)
	}
	began := time.Now()
	resp, err := c.net.RoundTrip(req)
	a := classify.From(req, resp, err)
	if err == nil {
		a.Body, a.Err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	a.Now, a.Took = time.Now(), time.Since(began)
	a.RTT = a.Took
	return (&classify.Policy{}).Of(&a)
}

func throughGate(ctx context.Context, t *testing.T, c *client) (served int) {
	gate := paceline.NewGate(c.limiter(t))
	for ctx.Err() == nil {
		_ = gate.DoWith(ctx, limit.One, func() (limit.Outcome, error) {
			v := c.ask(ctx)
			if v.Result == limit.Accepted {
				served++
			}
			return v.Outcome, nil
		})
	}
	return served
}

func throughPool(ctx context.Context, t *testing.T, c *client) (served int) {
	p, err := pool.New(pool.Config{
		Keys:     []pool.Key{{Name: "one", Limiter: c.limiter(t)}},
		InFlight: 1,
		Queue:    pool.QueueConfig{MaxLen: 4},
		Send: func(ctx context.Context, _ pool.Attempt) pool.Answer {
			v := c.ask(ctx)
			return v.Answer()
		},
		Ended: func(e pool.Ended) {
			if e.State == pool.Done {
				served++
			}
		},
	})
	if err != nil {
		t.Error(err)
		return 0
	}
	var feeder sync.WaitGroup
	feeder.Go(func() {
		for i := 0; ; i++ {
			if p.Submit(ctx, pool.Request{ID: strconv.Itoa(i), Cost: limit.One}) != nil {
				return
			}
		}
	})
	_ = p.Run(ctx)
	feeder.Wait()
	return served
}

func throughTransport(ctx context.Context, t *testing.T, c *client) (served int) {
	tr, err := transport.New(transport.Config{Base: c.net, Limiter: c.limiter(t), Attempts: 1 << 20, MaxRetryAfter: 2 * time.Hour})
	if err != nil {
		t.Error(err)
		return 0
	}
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url(), nil)
		if err != nil {
			panic(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("a request was lost: %v", err)
			}
			return served
		}
		if resp.StatusCode == http.StatusOK {
			served++
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	return served
}

// path is a server in memory, a leg away.
type path struct {
	server  http.Handler
	empty   int
	begin   sync.Once
	mu      sync.Mutex
	refused int
}

func (p *path) RoundTrip(r *http.Request) (*http.Response, error) {
	return ratetest.InMemory(p).RoundTrip(r)
}

// ServeHTTP is how requests come that come over connections.
func (p *path) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(leg)
	p.begin.Do(func() {
		for range p.empty {
			p.server.ServeHTTP(httptest.NewRecorder(), r)
		}
	})
	status := &status{w, http.StatusOK}
	p.server.ServeHTTP(status, r)
	time.Sleep(leg)
	if status.code != http.StatusOK {
		p.mu.Lock()
		p.refused++
		p.mu.Unlock()
	}
}

type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// came is what became of a fleet.
type came struct {
	served, poorest, refused int
	most                     int // served, if this is the worst of several
}

func (c came) refusedPercent() float64 { return 100 * float64(c.refused) / float64(c.refused+c.served) }

func (c came) String() string {
	return fmt.Sprintf("%d served, %d by the poorest, %d refused (%.2f %%)", c.served, c.poorest, c.refused, c.refusedPercent())
}

// try has so many clients go through a door, each started at random within a while.
func (q *shared) try(t *testing.T, d door, clients int, starts time.Duration) (all came) {
	synctest.Test(t, func(t *testing.T) {
		server, err := service.New(q.server)
		if err != nil {
			t.Fatal(err)
		}
		way := &path{server: server, empty: q.empty}
		// No deadline, which a wait that cannot meet it would fail of at once.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(q.span, cancel)
		served := make([]int, clients)
		draws := rand.New(rand.NewPCG(seed, 2))
		var wg sync.WaitGroup
		for i := range clients {
			c := &client{q, seed<<32 + uint64(i), way}
			late := time.Duration(draws.Float64() * float64(starts))
			wg.Go(func() {
				time.Sleep(late)
				served[i] = d.open(ctx, t, c)
			})
		}
		wg.Wait()
		all = came{poorest: slices.Min(served), refused: way.refused}
		for _, n := range served {
			all.served += n
		}
	})
	return all
}

const seed = 7

// simulated is what the simulator says of it: the worst of twenty seeds, since who is poorest is chance, and so is who is refused.
func (q *shared) simulated(t *testing.T, clients int, starts time.Duration) (worst came) {
	t.Helper()
	own := strategy.Strategy{Name: "this", NewLimiter: func(_ strategy.Params, rng *rand.Rand) (limit.Limiter, error) { return q.limiter(rng) }}
	for seed := range uint64(20) {
		f, err := fleet.New(fleet.Scenario{
			Duration: q.span, Seed: 1 + seed, Server: q.quota,
			Groups: []fleet.Group{{Strategy: own, Processes: clients, Link: latency.Constant(leg), Spread: starts}},
		})
		if err != nil {
			t.Fatal(err)
		}
		f.Advance(q.span)
		r := f.Report()
		this := came{served: r.Served, refused: r.Limited, poorest: 1 << 60}
		for i, n := range r.Groups[0].Requests {
			this.poorest = min(this.poorest, n-r.Groups[0].Limited[i])
		}
		if seed == 0 {
			worst = this
		}
		worst = came{min(worst.served, this.served), min(worst.poorest, this.poorest), max(worst.refused, this.refused), max(worst.most, this.served)}
	}
	return worst
}

// quotas are of the kinds that strangers share. The servers start as the simulator's do.
var quotas = []shared{
	{
		name: "bucket", path: "/apps", span: 30 * time.Minute, server: service.Config{Provider: "heroku"},
		quota: fleet.Quota{Limit: 4500, Window: time.Hour, Full: true}, law: fairshare.FairConfig{Limit: 4500, Window: time.Hour},
	},
	{
		name: "full again", path: "/", span: 30 * time.Minute, empty: 4500,
		server: service.Config{Provider: "x-ratelimit-seconds", Limits: []provider.Policy{{Name: "requests", Limit: 4500, Window: time.Hour, Rule: provider.Bucket}}},
		quota:  fleet.Quota{Limit: 4500, Window: time.Hour, Headers: fleet.Headers{Reset: fleet.WholeSeconds}},
		law:    fairshare.FairConfig{Limit: 4500, Window: time.Hour},
	},
	{
		name: "fixed", path: "/", span: 3 * time.Hour,
		server: service.Config{Provider: "x-ratelimit-epoch", Limits: []provider.Policy{{Name: "requests", Limit: 5000, Window: time.Hour}}},
		quota:  fleet.Quota{Kind: fleet.Calendar, Limit: 5000, Window: time.Hour, Headers: fleet.Headers{Reset: fleet.WholeSeconds}},
		law:    fairshare.FairConfig{Limit: 5000, Window: time.Hour},
	},
	{
		name: "minute", path: "/", span: 20 * time.Minute,
		server: service.Config{Provider: "x-ratelimit-epoch", Limits: []provider.Policy{{Name: "requests", Limit: 75, Window: time.Minute}}},
		quota:  fleet.Quota{Kind: fleet.Calendar, Limit: 75, Window: time.Minute, Headers: fleet.Headers{Reset: fleet.WholeSeconds}},
		law:    fairshare.FairConfig{Limit: 75, Window: time.Minute},
	},
	{
		name: "rolling", path: "/", span: 3 * time.Hour,
		server: service.Config{Provider: "generic", Limits: []provider.Policy{{Name: "requests", Limit: 4500, Window: time.Hour}}},
		quota:  fleet.Quota{Kind: fleet.Rolling, Limit: 4500, Window: time.Hour, Headers: fleet.Headers{RetryAfter: fleet.WholeSeconds}},
		law:    fairshare.FairConfig{Kind: fairshare.RollingWindow, Limit: 4500, Window: time.Hour},
	},
	{
		name: "429 only", path: "/v1/me", span: 3 * time.Hour,
		server: service.Config{Provider: "spotify", Limits: []provider.Policy{
			{Name: "30 seconds", Limit: 5000, Window: time.Hour, Rule: provider.Calendar}, {Name: "day", Limit: 1 << 30, Window: 24 * time.Hour},
		}},
		quota: fleet.Quota{Kind: fleet.Calendar, Limit: 5000, Window: time.Hour, Silent: true, Headers: fleet.Headers{RetryAfter: fleet.WholeSeconds}},
		law:   fairshare.FairConfig{Kind: fairshare.FixedWindow, Limit: 5000, Window: time.Hour},
	},
	{
		name: "auto, told", path: "/", span: 20 * time.Minute, auto: true,
		server: service.Config{Provider: "x-ratelimit-epoch", Limits: []provider.Policy{{Name: "requests", Limit: 600, Window: time.Minute}}},
		quota:  fleet.Quota{Kind: fleet.Calendar, Limit: 600, Window: time.Minute, Headers: fleet.Headers{Reset: fleet.WholeSeconds}},
	},
	{
		name: "auto, 429 only", path: "/v1/me", span: 10 * time.Minute, auto: true,
		server: service.Config{Provider: "spotify", Limits: []provider.Policy{
			{Name: "30 seconds", Limit: 20, Window: time.Second, Rule: provider.Calendar}, {Name: "day", Limit: 1 << 30, Window: 24 * time.Hour},
		}},
		quota: fleet.Quota{Kind: fleet.Calendar, Limit: 20, Window: time.Second, Silent: true, Headers: fleet.Headers{RetryAfter: fleet.WholeSeconds}},
	},
}

// What is promised of a shared quota comes through every door: who gets least gets at least 95 % of what the simulator gives that
// client, no more is refused than there and a tenth of that and a request in a thousand, and all together do not take more, as they would if a law did not hear what it
// goes by.
func TestShared(t *testing.T) {
	race.Without(t) // TestDoorsAtOnce has these goroutines, and the simulator has none
	long := need.Long()
	crowds, starts := []int{10}, []time.Duration{3 * time.Second}
	if long {
		crowds, starts = []int{1, 10, 50}, []time.Duration{100 * time.Millisecond, 3 * time.Second, time.Minute}
	}
	for i, q := range quotas {
		if !long {
			q.span = min(q.span, 70*time.Minute)
		}
		if q.auto { // it has thousands of requests, and has found the limit within a minute or two
			q.span = need.Fewer(q.span*2/5, q.span)
		}
		for _, clients := range crowds {
			for _, starts := range starts {
				want := q.simulated(t, clients, starts)
				t.Logf("%-9s %3d clients within %v, simulated: %v", q.name, clients, starts, want)
				for j, d := range doors {
					one := i%len(doors) == j // each quota through one door, each door to two quotas
					if !one && !need.Whole() {
						continue
					}
					t.Run(fmt.Sprintf("%s/%d/%v/%s", q.name, clients, starts, d.name), func(t *testing.T) {
						got := q.try(t, d, clients, starts)
						t.Log(got)
						if float64(got.poorest) < 0.95*float64(want.poorest) || got.refusedPercent() > 1.1*want.refusedPercent()+0.1 || float64(got.served) > 1.05*float64(want.most) {
							t.Errorf("%v\nthe simulator has %v", got, want)
						}
					})
				}
			}
		}
	}
}

// TestDoorsAtOnce: ten clients of each quota, each with a door of its own, for a minute. It is for the race detector,
// which sees here what runs beside what in TestShared.
func TestDoorsAtOnce(t *testing.T) {
	for i, q := range quotas {
		d := doors[i%len(doors)]
		t.Run(q.name+"/"+d.name, func(t *testing.T) {
			q.span = min(q.span, time.Minute)
			if got := q.try(t, d, 10, 3*time.Second); got.poorest == 0 {
				t.Errorf("a client is never served: %v", got)
			}
		})
	}
}
