package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/golden"
	"github.com/paceline-go/paceline/internal/journal"
	"github.com/paceline-go/paceline/internal/race"
	"github.com/paceline-go/paceline/internal/uptime"
	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
)

// pipes is a network within the process, for virtual time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// prompts are n requests of a batch, of different sizes.
func prompts(p Provider, n int, from int) string {
	rng := rand.New(rand.NewPCG(7, uint64(from)))
	var b strings.Builder
	for i := from; i < from+n; i++ {
		text := strings.Repeat("rain falls on ", 1+rng.IntN(60))
		most := 50 + rng.IntN(400)
		if p == Anthropic {
			fmt.Fprintf(&b, `{"custom_id":"p%d","params":{"model":"claude-sonnet-4","max_tokens":%d,"messages":[{"role":"user","content":%q}]}}`+"\n", i, most, text)
			continue
		}
		switch i % 5 {
		case 3:
			fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/responses","body":{"model":"gpt-4o","max_output_tokens":%d,"input":%q}}`+"\n", i, most, text)
		case 4:
			fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/embeddings","body":{"model":"gpt-4o","input":%q}}`+"\n", i, text)
		default:
			fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"system","content":"Be terse."},{"role":"user","name":"ann","content":%q}]}}`+"\n", i, most, text)
		}
	}
	return b.String()
}

func embeddings(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/embeddings","body":{"model":"text-embedding-3-small","input":%q}}`+"\n", i, strings.Repeat("international cooperation ", 20+i%60))
	}
	return b.String()
}

func minutely(n int64, unit limit.Unit, bucket bool) Rate {
	return Rate{N: n, Per: time.Minute, Unit: unit, Bucket: bucket, Text: fmt.Sprintf("%d/m %v", n, unit)}
}

// virtually runs a batch against a server in virtual time: call it in a bubble.
type virtually struct {
	t      *testing.T
	server llm.Config
	config Config
	llm    LLMConfig
	tamper func(*Run)

	plan   Plan
	opened Plan // after Open
	totals Totals
	report llm.Report
	err    error
	took   time.Duration
}

func (v *virtually) run(input string) {
	v.t.Helper()
	l, err := llm.New(v.server)
	if err != nil {
		v.t.Fatal(err)
	}
	network := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: l}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(network) }()
	v.send(network, input)
	_ = srv.Close()
	<-served
	_ = l.Close()
	v.report = l.Report()
}

func (v *virtually) send(network *pipes, input string) {
	t := v.t
	t.Helper()
	v.llm.BaseURL = "http://server/v1"
	v.llm.Limits = v.config.Limits
	format, err := NewLLM(v.llm)
	if err != nil {
		t.Fatal(err)
	}
	c := v.config
	c.Format = format
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Minute
	}
	if c.Header, err = ParseHeaders([]string{v.llm.Provider.KeyHeader()}); err != nil {
		t.Fatal(err)
	}
	if c.Keys == nil {
		c.Keys = []Key{{"A", "s3cret-Of-9a7Kq"}}
	}
	c.UserAgent = "test"
	c.clock = bubbleClock
	notice := c.Notice
	c.Notice = func(s string) {
		t.Log(s)
		if notice != nil {
			notice(s)
		}
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	over := newTransport(&r.c)
	over.DialContext = network.dial
	r.sender.over(over)
	if err := errors.Join(r.Peek(), r.Check("in", strings.NewReader(input))); err != nil {
		t.Fatal(err)
	}
	v.plan = r.Plan(time.Now())
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	v.opened = r.Plan(time.Now())
	if v.tamper != nil {
		v.tamper(r)
	}
	began := time.Now()
	v.err = r.Send(context.Background(), "in", strings.NewReader(input))
	v.took = time.Since(began)
	if v.totals, err = r.Close(); err != nil {
		t.Error(err)
	}
}

// ends says how often each custom_id is in the results and in the errors.
func (v *virtually) ends() map[string]int {
	all := map[string]int{}
	for _, path := range []string{v.config.Out, beside(v.config.Out, ".errors.jsonl")} {
		text, err := os.ReadFile(path)
		if err != nil {
			v.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var r struct {
				ID string `json:"custom_id"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.ID == "" {
				v.t.Fatalf("%s: %v in %q", path, err, line)
			}
			all[r.ID]++
		}
	}
	return all
}

func (v *virtually) once(n int) {
	v.t.Helper()
	ends := v.ends()
	for i := range n {
		if id := fmt.Sprint("p", i); ends[id] != 1 {
			v.t.Errorf("%s has %d lines in the results and the errors", id, ends[id])
		}
	}
	if len(ends) != n || v.totals.Lost != 0 {
		v.t.Errorf("%d ids ended, want %d; %+v", len(ends), n, v.totals)
	}
}

// What a server refuses: nothing, whoever counts, however it counts, and the run takes as long as its plan says.
func TestLLMWithinTheLimits(t *testing.T) {
	t.Parallel()
	before, first := latency.Uniform(0, 50*time.Millisecond), latency.Uniform(200*time.Millisecond, 2*time.Second)
	for _, c := range []struct {
		name   string
		server llm.Config
		llm    LLMConfig
		limits []Rate
		n      int
		late   time.Duration // the trial of the first alone, 3 s at most, and the last answer, after the time that the plan says; 0: the plan has what is reserved, which is not used
	}{
		{"OpenAI as documented", llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000}}, LLMConfig{LimitsOf: "openai"},
			[]Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Tokens, true)}, 300, 8 * time.Second},
		{"OpenAI, requests bind", llm.Config{Limits: llm.Limits{Requests: 60, Tokens: 90_000}}, LLMConfig{LimitsOf: "openai"},
			[]Rate{minutely(60, limit.Requests, true), minutely(90_000, limit.Tokens, true)}, 130, 8 * time.Second},
		// Their tokens have more than four characters each, by which the server counts.
		{"embeddings", llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000}}, LLMConfig{LimitsOf: "openai"},
			[]Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Tokens, true)}, 150, 8 * time.Second},
		{"sums that stay", llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000}}, LLMConfig{Count: tokens.Sum},
			[]Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Tokens, true)}, 300, 8 * time.Second},
		// Every window later by the trial.
		{"rolling windows", llm.Config{Rolling: true, Limits: llm.Limits{Requests: 500, Tokens: 30_000}}, LLMConfig{LimitsOf: "openai"},
			[]Rate{minutely(500, limit.Requests, false), minutely(30_000, limit.Tokens, false)}, 300, 13 * time.Second},
		{"usage corrects", llm.Config{Count: llm.CountCorrected, Limits: llm.Limits{Requests: 500, Tokens: 30_000}}, LLMConfig{Count: tokens.Used},
			[]Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Tokens, true)}, 300, 0},
		{"Anthropic as documented", llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 500, Input: 30_000, Output: 20_000}}, LLMConfig{Provider: Anthropic, LimitsOf: "anthropic"},
			[]Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Input, true), minutely(20_000, limit.Output, true)}, 300, 0},
		{"Anthropic, less output in a minute than one asks for", llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 500, Output: 1000}}, LLMConfig{Provider: Anthropic},
			[]Rate{minutely(500, limit.Requests, true), minutely(1000, limit.Output, true)}, 60, 0},
	} {
		if race.Enabled && (c.name == "OpenAI, requests bind" || c.name == "sums that stay" || c.name == "embeddings") {
			continue // the same goroutines, a second each
		}
		if race.Enabled {
			c.n /= 2
		}
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.jsonl")
			synctest.Test(t, func(t *testing.T) {
				c.server.Before, c.server.First, c.server.TokensPerSecond, c.server.Seed = before, first, 200, 3
				v := &virtually{t: t, server: c.server, llm: c.llm, config: Config{Out: out, Limits: c.limits, Queue: 100}}
				input := prompts(c.llm.Provider, c.n, 0)
				if c.name == "embeddings" {
					input = embeddings(c.n)
				}
				v.run(input)
				v.once(c.n)
				if n := v.report.Verdicts["accepted"]; v.err != nil || n != c.n || len(v.report.Verdicts) != 1 || v.report.Wrong != 0 {
					t.Errorf("%v; the server: %v, wrong %v", v.err, v.report.Verdicts, v.report.FirstWrong)
				}
				planned := time.Duration(v.plan.Seconds * float64(time.Second))
				t.Logf("%v of %v as planned; %.1f %% of the ceiling", v.took, planned, v.totals.Percent)
				if v.took > planned+c.late || c.late > 0 && v.took < planned {
					t.Errorf("it took %v, and the plan says %v", v.took, planned)
				}
			})
		})
	}
}

// Where the limits also hold per second, too, and a request is of more than a second's tokens.
func TestLLMPerSecond(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		limits := []Rate{minutely(300, limit.Requests, true), minutely(6000, limit.Tokens, true)}
		for _, minute := range limits[:2:2] {
			second, ok := PerSecond(minute)
			if !ok {
				t.Fatal(minute.Text)
			}
			limits = append(limits, second)
		}
		v := &virtually{t: t, llm: LLMConfig{LimitsOf: "openai"}, config: Config{Out: out, Limits: limits},
			server: llm.Config{Limits: llm.Limits{Requests: 300, Tokens: 6000, PerSecond: true}, Before: latency.Uniform(0, 10*time.Millisecond), Seed: 1}}
		v.run(prompts(OpenAI, n, 0))
		v.once(n)
		planned := time.Duration(v.plan.Seconds * float64(time.Second))
		t.Logf("%v of %v as planned", v.took, planned)
		if len(v.report.Verdicts) != 1 || v.report.Verdicts["accepted"] != n || v.report.Wrong != 0 || planned < 2*time.Minute || v.took > planned*102/100 {
			t.Errorf("%v; %v of %v as planned; the server: %v, wrong %v", v.err, v.took, planned, v.report.Verdicts, v.report.FirstWrong)
		}
	})
}

// Answers of every kind: nothing is lost, nothing is there twice.
func TestLLMFaults(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		v := &virtually{t: t, config: Config{Out: out, Attempts: 30, Limits: []Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Tokens, true)}},
			server: llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000}, First: latency.Uniform(100*time.Millisecond, time.Second), Seed: 5,
				Faults: map[llm.Fault]float64{llm.Refused: 0.03, llm.Failed: 0.03, llm.BadGateway: 0.02, llm.Unavailable: 0.02,
					llm.Reset: 0.02, llm.Cut: 0.02, llm.Ended: 0.03, llm.NoUsage: 0.05, llm.NoHeaders: 0.03, llm.LyingHeaders: 0.03, llm.GarbledHeaders: 0.03}}}
		v.run(prompts(OpenAI, n, 0))
		v.once(n)
		if v.err != nil || v.totals.Done != n || v.report.Verdicts["limited"] != 0 || v.totals.Rejected == 0 || len(v.report.Faults) < 11 {
			t.Errorf("%v %+v; %v, %v", v.err, v.totals, v.report.Verdicts, v.report.Faults)
		}
		// Half an answer is not one.
		text, _ := os.ReadFile(out)
		for line := range strings.Lines(string(text)) {
			var r struct {
				Response struct {
					Body map[string]any `json:"body"`
				} `json:"response"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.Response.Body["model"] != "gpt-4o" && r.Response.Body["object"] != "list" {
				t.Errorf("%v: %.300s", err, line)
			}
		}
	})
}

// A prompt that is refused over and over is not to blame: while the server says when to come back, no attempt is counted.
func TestLLMRefusedOverAndOver(t *testing.T) {
	for _, p := range []Provider{OpenAI, Anthropic} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			v := &virtually{t: t, llm: LLMConfig{Provider: p}, config: Config{Out: out, Attempts: 2, Concurrency: 1, Limits: []Rate{minutely(500, limit.Requests, true)}},
				server: llm.Config{Provider: llm.Provider(p), Limits: llm.Limits{Requests: 500}, RetryAfter: 7 * time.Second,
					Script: slices.Repeat([]llm.Fault{llm.Refused}, 20)}}
			v.run(prompts(p, 3, 0))
			v.once(3)
			if v.err != nil || v.totals.Done != 3 || v.totals.Dead != 0 || v.totals.Rejected != 20 || v.took < 140*time.Second || v.took > 142*time.Second {
				t.Errorf("%v: %v %+v in %v", p, v.err, v.totals, v.took)
			}
		})
	}
}

// Without credit the run stops; what has not ended is left, for a run later.
func TestLLMUnpaid(t *testing.T) {
	for _, p := range []Provider{OpenAI, Anthropic} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			script := make([]llm.Fault, 40)
			for i := 10; i < len(script); i++ {
				script[i] = llm.Unpaid
			}
			v := &virtually{t: t, llm: LLMConfig{Provider: p}, config: Config{Out: out, Concurrency: 4, Limits: []Rate{minutely(500, limit.Requests, true)}},
				server: llm.Config{Provider: llm.Provider(p), Limits: llm.Limits{Requests: 500}, Script: script}}
			v.run(prompts(p, 50, 0))
			if !errors.Is(v.err, dispatch.ErrExhausted) || !strings.Contains(v.err.Error(), "there is no credit") || v.totals.Done != 10 || v.totals.Left != 40 ||
				v.totals.Dead != 0 || v.totals.Sends > 14 {
				t.Errorf("%v: %v %+v", p, v.err, v.totals)
			}
			v.server.Script = nil
			v.run(prompts(p, 50, 0))
			v.once(50)
			if v.plan.DoneBefore != 10 || v.plan.Requests != 40 || v.plan.Answers == 0 || v.plan.Expected == nil || *v.plan.Expected <= 0 {
				t.Errorf("the plan of the second run: %+v", v.plan)
			}
		})
	}
}

// A run is broken off again and again; the server stays, and refuses nothing: the windows of the runs before count.
func TestLLMResumes(t *testing.T) {
	t.Parallel()
	n := 200
	if race.Enabled {
		n = 100
	}
	for _, bucket := range []bool{true, false} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			l, err := llm.New(llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000}, Rolling: !bucket,
				Before: latency.Uniform(0, 50*time.Millisecond), First: latency.Uniform(200*time.Millisecond, 2*time.Second), Seed: 9})
			if err != nil {
				t.Fatal(err)
			}
			network := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
			srv := &http.Server{Handler: l}
			served := make(chan error, 1)
			go func() { served <- srv.Serve(network) }()
			rng := rand.New(rand.NewPCG(1, 2))
			input := prompts(OpenAI, n, 0)
			v := &virtually{t: t, config: Config{Out: out, Limits: []Rate{minutely(500, limit.Requests, bucket), minutely(30_000, limit.Tokens, bucket)}}}
			for runs := 0; ; runs++ {
				v.tamper = func(r *Run) {
					go func() {
						time.Sleep(time.Second + time.Duration(rng.Int64N(int64(5*time.Second))))
						r.Drain()
					}()
				}
				v.send(network, input)
				if v.totals.Left == 0 {
					t.Logf("%d runs", runs+1)
					break
				}
			}
			time.Sleep(30 * time.Second) // the last of those who drain
			v.once(n)
			_ = srv.Close()
			<-served
			_ = l.Close()
			if r := l.Report(); r.Verdicts["accepted"] != n || len(r.Verdicts) != 1 {
				t.Errorf("the server: %v", r.Verdicts)
			}
		})
	}
}

// Of a bucket that a run before has used nothing is known but the refill since; one that was not used has filled.
func TestReplayBucket(t *testing.T) {
	cost := func(n int64) limit.Cost { return limit.Cost{limit.Requests: 1, limit.Tokens: n} }
	for _, c := range []struct {
		name  string
		last  int64 // sends of the runs before
		sends []journal.Sent
		free  int64 // tokens that may go at once
	}{
		{"no run before", 0, nil, 600},
		{"a run long ago", 1, nil, 600},
		{"200 a second ago", 1, []journal.Sent{{Key: "A", Cost: cost(200), Counts: -1e9, Result: limit.Accepted}}, 410},
		{"all a second ago", 1, []journal.Sent{{Key: "A", Cost: cost(600), Counts: -1e9, Result: limit.Accepted}}, 10},
		{"all a minute ago, and all of what came since", 2, []journal.Sent{{Key: "A", Cost: cost(600), Counts: -60e9, Result: limit.Accepted},
			{Key: "A", Cost: cost(590), Counts: -1e9, Result: limit.Accepted}}, 10},
		// It may have been empty before the first of these, but not below empty when it let them go.
		{"half of it every 30 s", 4, []journal.Sent{{Key: "A", Cost: cost(300), Counts: -100e9, Result: limit.Accepted}, {Key: "A", Cost: cost(300), Counts: -70e9, Result: limit.Accepted},
			{Key: "A", Cost: cost(300), Counts: -40e9, Result: limit.Accepted}, {Key: "A", Cost: cost(300), Counts: -10e9, Result: limit.Accepted}}, 100},
		{"10 times as much as it holds now: the limit was higher", 2, []journal.Sent{{Key: "A", Cost: cost(3000), Counts: -20e9, Result: limit.Accepted},
			{Key: "A", Cost: cost(3000), Counts: -10e9, Result: limit.Accepted}}, 100},
	} {
		r, err := New(Config{Limits: []Rate{minutely(600, limit.Tokens, true)}, Keys: []Key{{"A", ""}}})
		if err != nil {
			t.Fatal(err)
		}
		r.epoch, r.keep = time.Unix(1e9, 0), 126*time.Second
		r.store.history = &journal.History{Last: c.last, Sends: c.sends}
		for i := range c.sends {
			c.sends[i].Counts += r.epoch.UnixNano()
		}
		if err := r.newPools(); err != nil {
			t.Fatal(err)
		}
		l, free := r.groups[0].limiters[0][0], int64(0)
		for l.Ready(mono.Time(0), cost(1)) <= 0 {
			l.Settle(0, l.Admit(0, cost(1)), limit.Outcome{Result: limit.Accepted})
			free++
		}
		// The refill is a little less than stated.
		if free < c.free-1 || free > c.free {
			t.Errorf("%s: %d tokens may go, want %d", c.name, free, c.free)
		}
	}
}

// The ETA is right where a limit binds, where Concurrency does, and where the run before has used what the bucket held.
func TestLLMETA(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) { // one bubble: each would begin at the same instant
		for _, c := range []struct {
			name        string
			concurrency int
			n           int
			after       time.Duration // when it is asked
		}{
			{"by the limit", 64, 100, 20 * time.Second},
			{"by what is in flight", 1, 120, 20 * time.Second},
			{"by the limit", 64, 230, 5 * time.Second},
			{"again, from an empty bucket", 64, 270, time.Second},
		} {
			var eta time.Duration
			v := &virtually{t: t, config: Config{Out: out, Concurrency: c.concurrency, Limits: []Rate{minutely(60, limit.Requests, true)}},
				server: llm.Config{Limits: llm.Limits{Requests: 1e6}, First: latency.Uniform(time.Second, 3*time.Second)}}
			v.tamper = func(r *Run) {
				go func() {
					time.Sleep(c.after)
					eta = c.after + r.Progress().ETA
				}()
			}
			v.run(prompts(OpenAI, c.n, 0))
			if d := eta.Seconds() / v.took.Seconds(); d < 0.85 || d > 1.15 {
				t.Errorf("%s: it ends after %v, and %v was said", c.name, v.took, eta)
			}
			if d := v.opened.Seconds / v.took.Seconds(); c.concurrency > 1 && (d < 0.85 || d > 1.15) {
				t.Errorf("%s: it ends after %v, and the plan was %v s", c.name, v.took, v.opened.Seconds)
			}
		}
	})
}

// What was in flight when a run with a higher limit died may still arrive: the next waits for one bucket at most.
func TestReplayBucketLate(t *testing.T) {
	r, err := New(Config{Limits: []Rate{minutely(600, limit.Tokens, true)}, Keys: []Key{{"A", ""}}})
	if err != nil {
		t.Fatal(err)
	}
	r.epoch, r.keep = time.Unix(1e9, 0), 126*time.Second
	r.store.history = &journal.History{Last: 64}
	for range 64 {
		r.store.history.Sends = append(r.store.history.Sends, journal.Sent{Key: "A", Cost: limit.Cost{limit.Tokens: 4000}, Counts: r.epoch.Add(journal.Late).UnixNano(), Result: limit.Unknown})
	}
	if err := r.newPools(); err != nil {
		t.Fatal(err)
	}
	one := limit.Cost{limit.Tokens: 1}
	at := r.groups[0].limiters[0][0].Ready(0, one)
	if at == limit.AfterSettle || at == limit.Never {
		t.Fatalf("never")
	}
	if at < mono.Time(journal.Late) || at > mono.Time(journal.Late+time.Minute) {
		t.Errorf("the next goes at %v", at)
	}
}

// Results as the providers write them.
func TestLLMGolden(t *testing.T) {
	for _, p := range []Provider{OpenAI, Anthropic} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			var body struct {
				Model string `json:"model"`
			}
			_ = json.NewDecoder(q.Body).Decode(&body)
			if q.Header.Get("Content-Type") != "application/json" || q.Method != "POST" {
				t.Errorf("%s %v", q.Method, q.Header)
			}
			id := [...]string{"x-request-id", "request-id"}[p]
			w.Header().Set(id, "req_"+body.Model)
			switch body.Model {
			case "good":
				fmt.Fprint(w, "{\n  \"id\": \"x\", \"text\": \"<é> "+q.Header.Get("Authorization")+q.Header.Get("X-Api-Key")+
					"\",\n  \"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 4, \"input_tokens\": 3, \"output_tokens\": 4}\n}\n")
			case "bad":
				w.WriteHeader(400)
				fmt.Fprint(w, `{"type":"error","error":{"message":"messages: field required","type":"invalid_request_error"}}`)
			case "page":
				w.WriteHeader(404)
				fmt.Fprint(w, "<html>not here</html>")
			case "gone":
				panic(http.ErrAbortHandler)
			}
		}))
		out := filepath.Join(t.TempDir(), "out.jsonl")
		format, err := NewLLM(LLMConfig{Provider: p, BaseURL: srv.URL})
		if err != nil {
			t.Fatal(err)
		}
		header, _ := ParseHeaders([]string{p.KeyHeader()})
		r, err := New(Config{Out: out, Format: format, Attempts: 1, Concurrency: 1, Keys: []Key{{"A", "s3cret-Of-9a7Kq"}}, Header: header})
		if err != nil {
			t.Fatal(err)
		}
		var in strings.Builder
		for _, model := range []string{"good", "bad", "page", "gone"} {
			body := fmt.Sprintf(`{"model":%q,"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`, model)
			if p == OpenAI {
				fmt.Fprintf(&in, `{"custom_id":"request-%s","method":"POST","url":"/v1/chat/completions","body":%s}`+"\n", model, body)
			} else {
				fmt.Fprintf(&in, `{"custom_id":"request-%s","params":%s}`+"\n", model, body)
			}
		}
		if err := errors.Join(r.Check("in", strings.NewReader(in.String())), r.Open(), r.Send(context.Background(), "in", strings.NewReader(in.String()))); err != nil {
			t.Fatal(err)
		}
		totals, err := r.Close()
		if err != nil || totals.Done != 1 || totals.Dead != 3 || totals.InputTokens != 3 || totals.OutputTokens != 4 || totals.Lost != 0 {
			t.Errorf("%v %+v", err, totals)
		}
		srv.Close()
		var got []byte
		for _, path := range []string{out, beside(out, ".errors.jsonl")} {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(append(got, filepath.Base(path)+"\n"...), text...)
		}
		golden.Compare(t, p.String()+".golden", string(got))
	}
}

func readLLM(t testing.TB, c LLMConfig, text string) (all []*Request, errs []string) {
	t.Helper()
	l, err := NewLLM(c)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReaderOf(l, "in.jsonl", strings.NewReader(text), InputLimits{Line: 400, Body: 200})
	for range 1000 {
		q, err := r.Next()
		var bad *InputError
		switch {
		case err == io.EOF:
			return all, errs
		case errors.As(err, &bad):
			errs = append(errs, err.Error())
		case err != nil:
			t.Fatal(err)
		default:
			all = append(all, q)
		}
	}
	t.Fatal("no end")
	return nil, nil
}

func TestLLMInputErrors(t *testing.T) {
	const body = `"body":{"model":"gpt-4o","max_tokens":9,"messages":[]}`
	for _, c := range []struct{ line, want string }{
		{`[]`, `1:1: an array, expected a JSON object with custom_id, method, url, body`},
		{`{"custom_id":"a","method":"POST","url":"/v1/chat/completions"}`, `1:1: there is no body, expected custom_id, method, url, body`},
		{`{"method":"POST","url":"/v1/chat/completions",` + body + `}`, `1:1: there is no custom_id, expected custom_id, method, url, body`},
		{`{"custom_id":7,"method":"POST"}`, `1:14: custom_id is a number, expected a string`},
		{`{"custom_id":""}`, `1:14: the custom_id has 0 bytes, expected 1 to 512`},
		{`{"custom_id":"a","method":"GET"}`, `1:27: method "GET", expected "POST"`},
		{`{"custom_id":"a","method":"POST","url":"https://api.openai.com/v1/responses"}`,
			`1:40: url "https://api.openai.com/v1/responses", expected /v1/chat/completions, /v1/responses, /v1/embeddings (the host comes from --base-url)`},
		{`{"custom_id":"a","method":"POST","url":"/v1/images"}`, `1:40: url "/v1/images", expected /v1/chat/completions, /v1/responses, /v1/embeddings (the host comes from --base-url)`},
		{`{"custom_id":"a","method":"POST","url":"/v1/responses","body":"x"}`, `1:63: body is a string, expected an object`},
		{`{"custom_id":"a","metod":"POST"}`, `1:18: unknown field "metod", expected custom_id, method, url, body`},
		{`{"custom_id":"a","custom_id":"b"}`, `1:18: field "custom_id" is given twice, expected once`},
		{`{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"stream":true}}`, `1:63: the body has "stream": true, expected none: the results of a batch are whole answers`},
		{`{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"max_output_tokens":-1}}`, `1:63: body: responses request: malformed body: max_output_tokens: -1 is not a whole number from 0 to 17592186044416`},
		{`{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"max_output_tokens":40000,"model":"gpt-4o","input":"hi"}}`,
			`1:14: custom_id "a" can never go: it counts 40000 tokens (8 in, at most 40000 out), and limit 30000/m tokens allows 30000 at once`},
		{`{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"input":"` + strings.Repeat("x", 200) + `"}}`, `1:63: the body has 212 bytes, expected at most 200 (--max-body)`},
	} {
		all, errs := readLLM(t, LLMConfig{Limits: []Rate{minutely(30_000, limit.Tokens, true)}}, c.line)
		if len(all) != 0 || len(errs) != 1 || errs[0] != "in.jsonl:"+c.want {
			t.Errorf("%s\n got %v\nwant in.jsonl:%s", c.line, errs, c.want)
		}
	}
}

func TestLLMInput(t *testing.T) {
	const line = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body": {"model":"gpt-4o","n":2,"max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}}`
	for _, c := range []struct {
		config LLMConfig
		url    string
		tokens int64
		input  int64 // as the body stands where nobody publishes what of it is counted
	}{
		{LLMConfig{}, "https://api.openai.com/v1/chat/completions", 200, 8},
		{LLMConfig{BaseURL: "http://h:1/v1/", Count: tokens.Sum}, "http://h:1/v1/chat/completions", 222, 22},
		{LLMConfig{BaseURL: "http://h:1/v1/"}, "http://h:1/v1/chat/completions", 222, 22}, // nobody knows it
		{LLMConfig{BaseURL: "http://h:1/v1/", LimitsOf: "openai"}, "http://h:1/v1/chat/completions", 200, 8},
		{LLMConfig{BaseURL: "https://api.groq.com/openai"}, "https://api.groq.com/openai/v1/chat/completions", 222, 22},
		{LLMConfig{BaseURL: "http://h/gate", Count: tokens.Used}, "http://h/gate/v1/chat/completions", 208, 8},
	} {
		all, errs := readLLM(t, c.config, line)
		if len(errs) > 0 || len(all) != 1 {
			t.Fatal(errs)
		}
		q := all[0]
		if q.URL.String() != c.url || q.ID != "a" || q.Method != "POST" || string(q.Body) != line[70:len(line)-1] || q.Cost[limit.Requests] != 1 ||
			q.Cost[limit.Tokens] != c.tokens || q.Cost[limit.Output] != 200 || q.Cost[limit.Input] != c.input || q.Unbounded {
			t.Errorf("%+v: %+v %s", c.config, q, q.Body)
		}
	}
	// A request that bounds nothing may output what its model can, or what is said, and counts with its input alone, or that.
	const unbounded = `{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"model":"gpt-4o","input":"hi"}}`
	for most, want := range map[int64]int64{0: 16384, 77: 77} {
		all, errs := readLLM(t, LLMConfig{MaxOutput: most}, unbounded)
		if len(errs) > 0 || !all[0].Unbounded || all[0].Cost[limit.Output] != want || all[0].Cost[limit.Tokens] != max(most, all[0].Cost[limit.Input]) {
			t.Errorf("%d: %v %+v", most, errs, all)
		}
	}
}

func TestSniff(t *testing.T) {
	for line, want := range map[string]string{
		`{"custom_id":"a","method":"POST","url":"/v1/responses","body":{}}`: "openai-batch",
		`{"url":"/v1/responses"}`:                 "openai-batch",
		`{"custom_id":"a","params":{}}`:           "anthropic-batch",
		`{"url":"http://h/v1/","id":"custom_id"}`: "",
		`{"id":"a"`: "",
		"":          "",
		"\ufeff" + `{"custom_id":"a","params":{}}`: "anthropic-batch",
	} {
		p, ok := Sniff([]byte(line))
		if got := p.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %v %v", line, p, ok)
		}
	}
}

// Whatever a line has in it: it is refused with its place, or it can be sent, and its result be read again.
func FuzzLLMLine(f *testing.F) {
	for _, p := range []Provider{OpenAI, Anthropic} {
		for line := range strings.Lines(prompts(p, 5, 0)) {
			f.Add(uint8(p), []byte(line))
		}
	}
	f.Add(uint8(0), []byte(`{"custom_id":"\u0000\ud800","method":"POST","url":"/v1/embeddings","body":{"input":[1,2]}}`))
	f.Add(uint8(1), []byte(`{"custom_id":"x","params":{"max_tokens":1e99}}`))
	f.Add(uint8(0), []byte(`{"custom_id":"x","body":{}`))
	f.Fuzz(func(t *testing.T, p uint8, text []byte) {
		provider := Provider(p % 2)
		l, err := NewLLM(LLMConfig{Provider: provider, Limits: []Rate{minutely(1000, limit.Tokens, true)}})
		if err != nil {
			t.Fatal(err)
		}
		r := NewReaderOf(l, "in", bytes.NewReader(text), InputLimits{Line: 2000})
		for range 100 {
			q, err := r.Next()
			if err == io.EOF {
				return
			}
			if bad, ok := errors.AsType[*InputError](err); ok {
				if bad.Line < 1 || bad.Column < 1 || bad.Reason == "" {
					t.Fatalf("%+v", bad)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(q.Body) || q.Cost[limit.Requests] != 1 || q.Cost[limit.Tokens] < 1 || q.Cost[limit.Tokens] > 1000 || q.URL.Host == "" {
				t.Fatalf("%+v", q)
			}
			answer := string(q.Body)
			for _, result := range []Result{{ID: q.ID, State: "done", Status: 200, Body: &answer}, {ID: q.ID, State: "dead", Status: 400, Body: &answer},
				{ID: q.ID, State: "dead", Error: "no answer"}} {
				line := l.line(nil, &result)
				e, ok := l.entry(line, false)
				if !ok || e.ID != q.ID || e.State != result.State || bytes.Count(line, []byte("\n")) != 1 || !strings.HasPrefix(string(line), l.start()) {
					t.Fatalf("%s is read as %+v, %v", line, e, ok)
				}
			}
		}
	})
}

// With an estimate more is in flight, and what is used beyond it is told; whoever overruns is refused at worst, and sent again.
func TestLLMEstimate(t *testing.T) {
	t.Parallel()
	var took [2]time.Duration
	for i, overrun := range []float64{0, 0.05} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			const n = 300
			v := &virtually{t: t, llm: LLMConfig{Provider: Anthropic, Count: tokens.Used, Overrun: overrun},
				config: Config{Out: out, Queue: 20, Attempts: 20, Limits: []Rate{minutely(6000, limit.Output, true)}},
				server: llm.Config{Provider: llm.Anthropic, Count: llm.CountTrue, Limits: llm.Limits{Output: 6000}, Seed: 4,
					Law: llm.Law{OutputMedian: 40, OutputP99: 80}, First: latency.Uniform(20*time.Second, 30*time.Second)}}
			v.run(prompts(Anthropic, n, 0))
			v.once(n)
			took[i] = v.took
			if v.err != nil || v.totals.Done != n || overrun == 0 && (v.totals.Overruns != 0 || v.totals.Rejected != 0) || overrun > 0 && v.totals.Overruns == 0 || v.totals.Overruns > n/5 {
				t.Errorf("overrun %v: %v %+v", overrun, v.err, v.totals)
			}
			t.Logf("overrun %v: %v, %d overruns, %d rejected", overrun, v.took, v.totals.Overruns, v.totals.Rejected)
		})
	}
	if took[1] > took[0]*17/20 { // by the order of the goroutines it is 0.65 to 0.76
		t.Errorf("%v with an estimate, %v without", took[1], took[0])
	}
}

// What another run wrote between the plan and the start is seen; what it had cut short is cut.
func TestPeekedAndChanged(t *testing.T) {
	const line = `{"id":"batch_req_1","custom_id":"p%d","response":{"status_code":200,"request_id":"","body":{}},"error":null}` + "\n"
	for _, c := range []struct {
		before, after string // in the results: when peeked at, and what comes then
		want          int    // requests that are left
	}{
		{"", "", 3}, {"0", "", 2}, {"01", "2", 0}, {"torn0", "", 2}, {"torn", "", 3}, {"", "01", 1},
	} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		text := func(ids string) string {
			torn := strings.TrimPrefix(ids, "torn")
			var b strings.Builder
			for _, id := range torn {
				fmt.Fprintf(&b, line, id-'0')
			}
			if torn != ids {
				b.WriteString(line[:30])
			}
			return b.String()
		}
		if err := os.WriteFile(out, []byte(text(c.before)), 0o644); err != nil {
			t.Fatal(err)
		}
		format, err := NewLLM(LLMConfig{BaseURL: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(Config{Out: out, Format: format})
		if err != nil {
			t.Fatal(err)
		}
		input := prompts(OpenAI, 3, 0)
		if err := errors.Join(r.Peek(), r.Check("in", strings.NewReader(input))); err != nil {
			t.Fatal(err)
		}
		if c.after != "" {
			if err := os.WriteFile(out, []byte(text(c.before)+text(c.after)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Open(); err != nil {
			t.Fatal(err)
		}
		r.Drain()
		_ = r.Send(context.Background(), "in", strings.NewReader(input))
		totals, err := r.Close()
		text2, _ := os.ReadFile(out)
		if err != nil || totals.Left != c.want || totals.Lost != 0 || strings.Count(string(text2), "\n")*(len(line)-1) != len(text2) {
			t.Errorf("%+v: %v, %+v\n%s", c, err, totals, text2)
		}
	}
}

// bubbleClock is the clock of a machine in a synctest bubble: the real one's is not that of the bubble.
func bubbleClock() (time.Time, uptime.Reading) {
	up := time.Since(time.Unix(0, 0))
	return time.Now(), uptime.Reading{Boot: "b", Up: up, Awake: up}
}

// What is drawn on as it is produced is not reserved, and an estimate of what a request comes to is no bound of it.
func TestLLMProducedIsBoundedByWhatItMayCome(t *testing.T) {
	limits := []Rate{minutely(1000, limit.Output, true), minutely(30_000, limit.Input, true)}
	l, err := NewLLM(LLMConfig{Provider: Anthropic, Overrun: 0.05, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	body, err := tokens.Parse(tokens.Messages, []byte(`{"model":"claude-sonnet-4","max_tokens":4096,"messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l.estimator.Learn(l.estimator.Of(body), tokens.Usage{Input: 10, Output: 20})
	}
	var q Request
	if l.estimate(&q, body, false); q.Estimate.Output != 20 || q.Cost[limit.Output] != 4096 || l.tooLarge("m", q.Cost) {
		t.Errorf("%+v: %v", q.Estimate, q.Cost)
	}
	if drawn := l.drawn(limits); !drawn[0].Produced || drawn[1].Produced || limits[0].Produced {
		t.Errorf("%+v of %+v", drawn, limits)
	}
}

// Of many requests most are guessed, corrected by those that were counted; but one that may be too large for a limit is counted.
func TestLLMCountsWhatMayBeTooLarge(t *testing.T) {
	l, err := NewLLM(LLMConfig{Provider: OpenAI, Limits: []Rate{minutely(2000, limit.Tokens, true)}})
	if err != nil {
		t.Fatal(err)
	}
	of := func(text string) (roughly, exactly int64) {
		b, err := tokens.Parse(tokens.Chat, fmt.Appendf(nil, `{"model":"gpt-4o","max_tokens":1,"messages":[{"role":"user","content":%q}]}`, text))
		if err != nil {
			t.Fatal(err)
		}
		var rough, exact Request
		l.estimate(&rough, b, true)
		l.estimate(&exact, b, false)
		return rough.Estimate.Input, exact.Estimate.Input
	}
	for range 200 {
		of("rain falls on the plain")
	}
	digits := strings.Repeat("7 3 9 0 4 ", 40) // nothing like what the others taught
	if roughly, exactly := of(digits); roughly == exactly {
		t.Errorf("all are counted, or both come to %d", exactly)
	}
	if roughly, exactly := of(strings.Repeat(digits, 12)); roughly != exactly {
		t.Errorf("guessed as %d, and it counts %d", roughly, exactly)
	}
}
