package run

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// slowServer returns a run of 100 requests a second whose answers take 2 s, and the most that were in flight at its
// server.
func slowServer(t *testing.T) (v *inTime, most *atomic.Int64) {
	most = new(atomic.Int64)
	var open atomic.Int64
	v = newInTime(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := open.Add(1)
		defer open.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		time.Sleep(2 * time.Second)
	}), perSecond(100))
	v.config.Concurrency = 0
	return v, most
}

// A run whose answers take 2 s is not slower than its limits: 64 in flight are 32 a second. Until the first
// answer it has no more in flight.
func TestInFlightFollowsAnswers(t *testing.T) {
	race.Without(t) // TestInFlightIsBounded has these goroutines
	need.NotShort(t, "TestInFlightIsBounded has the bounds")
	const n = 3000
	lines := requests(n, "http://server/")
	for _, c := range []struct {
		name  string
		limit format.Rate
		base  bool
		keys  int
		most  time.Duration // 94 s with 64 in flight
	}{
		{"a window", minutely(6000, limit.Requests, false), false, 0, 20 * time.Second},
		{"a bucket", minutely(6000, limit.Requests, true), false, 0, 20 * time.Second},
		{"a Base", minutely(6000, limit.Requests, false), true, 0, 20 * time.Second},
		{"ten keys", perSecond(20), false, 10, 55 * time.Second}, // 20 in 3 s each, as a request counts until its answer
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, most := slowServer(t)
				v.config.Limits = []format.Rate{c.limit}
				if c.base {
					v.config.Limits = nil
					byServers(c.limit)(v)
				}
				for i := range c.keys {
					v.keys(fmt.Sprint("key-", i))
				}
				early := int64(0)
				v.opened = func(*Run) { time.AfterFunc(1900*time.Millisecond, func() { early = most.Load() }) }
				got := v.run(lines)
				if got.err != nil || got.Done != n || early > AtFirst || most.Load() < 150 || got.took > c.most {
					t.Errorf("%+v, %v; took %v; %d in flight before the first answer, then %d", got.Totals, got.err, got.took, early,
						most.Load())
				}
			})
		})
	}
}

// What the user or the server bounds is kept to, and the line says so. Otherwise the run has as many as it had
// always: beside a backlog, without a limit, and with fast answers.
func TestInFlightIsBounded(t *testing.T) {
	lines := requests(1000, "http://server/")
	for _, c := range []struct {
		name string
		set  func(*Config)
		most int64
		line string
	}{
		{"the flag", func(c *Config) { c.Concurrency = 70 }, 70, "70 in flight is the most that --concurrency allows"},
		{"a server's limit", func(c *Config) { c.MostInFlight = 80 }, 80, "80 in flight is the most that the server's limits allow"},
		{"a server's low limit", func(c *Config) { c.MostInFlight = 3 }, 3, "3 in flight is the most that the server's limits allow"},
		{"no limit", func(c *Config) { c.Limits = nil }, AtFirst, "64 in flight is the most unless --concurrency allows more"},
		{"the answers", func(c *Config) { c.Limits = []format.Rate{minutely(2400, limit.Requests, true)} }, 160,
			"no more than 160 in flight are needed so far"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, most := slowServer(t)
				c.set(&v.config)
				line := ""
				v.opened = func(r *Run) { time.AfterFunc(9500*time.Millisecond, func() { line = r.Progress().Why }) }
				got := v.run(lines)
				if got.err != nil || most.Load() != c.most {
					t.Errorf("%+v, %v; %d in flight, want %d", got.Totals, got.err, most.Load(), c.most)
				}
				if !strings.Contains(line, c.line) {
					t.Errorf("the line says %q, want %q", line, c.line)
				}
			})
		})
	}
}

// Models with limits of their own have one bound together, which follows the answers, too.
func TestInFlightOfModels(t *testing.T) {
	race.Without(t) // TestInFlightIsBounded and TestLLMEachModelResumes have these goroutines
	const each = 600
	out := filepath.Join(t.TempDir(), "out.jsonl")
	input := ofModel("gpt-4o", 0, each) + ofModel("gpt-4.1", each, each)
	synctest.Test(t, func(t *testing.T) {
		rate := minutely(1800, limit.Requests, true)
		rate.EachModel = true
		v := &virtually{t: t, llm: format.LLMConfig{LimitsOf: "openai"}, config: Config{Out: out, Limits: []format.Rate{rate}},
			server: llm.Config{Limits: llm.Limits{Requests: 1_000_000}, First: latency.Constant(4 * time.Second)}}
		v.run(input)
		if v.err != nil || v.totals.Done != 2*each || !v.plan.EachModel || v.took > 34*time.Second {
			t.Errorf("%v, %+v: it took %v, and 20s by the limits", v.err, v.totals, v.took)
		}
	})
}
