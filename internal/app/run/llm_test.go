package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
)

// The server refuses nothing, whatever it counts. The run takes as long as its plan says.
func TestLLMWithinTheLimits(t *testing.T) {
	t.Parallel()
	before, first := latency.Uniform(0, 50*time.Millisecond), latency.Uniform(200*time.Millisecond, 2*time.Second)
	for _, c := range []struct {
		name   string
		server llm.Config
		llm    format.LLMConfig
		limits []format.Rate
		n      int
		late   time.Duration // the trial of the first alone, 3 s at most, and the last answer, after the time that the plan says; 0: the plan has what is reserved, which is not used
	}{
		{"OpenAI as documented", llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000}}, format.LLMConfig{LimitsOf: "openai"},
			[]format.Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Tokens, true)}, 300, 8 * time.Second},
		{"OpenAI, requests bind", llm.Config{Limits: llm.Limits{Requests: 60, Tokens: 90_000}}, format.LLMConfig{LimitsOf: "openai"},
			[]format.Rate{minutely(60, limit.Requests, true), minutely(90_000, limit.Tokens, true)}, 130, 8 * time.Second},
		// Their tokens have more than four characters each, by which the server counts.
		{"embeddings", llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000}}, format.LLMConfig{LimitsOf: "openai"},
			[]format.Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Tokens, true)}, 150, 8 * time.Second},
		{"sums that stay", llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000}}, format.LLMConfig{Count: tokens.Sum},
			[]format.Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Tokens, true)}, 300, 8 * time.Second},
		// Every window later by the trial.
		{"rolling windows", llm.Config{Rolling: true, Limits: llm.Limits{Requests: 500, Tokens: 30_000}}, format.LLMConfig{LimitsOf: "openai"},
			[]format.Rate{minutely(500, limit.Requests, false), minutely(30_000, limit.Tokens, false)}, 300, 13 * time.Second},
		{"usage corrects", llm.Config{Count: "corrected", Limits: llm.Limits{Requests: 500, Tokens: 30_000}}, format.LLMConfig{Count: tokens.Used},
			[]format.Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Tokens, true)}, 300, 0},
		{"Anthropic as documented", llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 500, Input: 30_000, Output: 20_000}}, format.LLMConfig{Provider: format.Anthropic, LimitsOf: "anthropic"},
			[]format.Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Input, true), minutely(20_000, limit.Output, true)}, 300, 0},
		{"Anthropic, less output in a minute than one asks for", llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 500, Output: 1000}}, format.LLMConfig{Provider: format.Anthropic},
			[]format.Rate{minutely(500, limit.Requests, true), minutely(1000, limit.Output, true)}, 60, 0},
	} {
		if race.Enabled && (c.name == "OpenAI, requests bind" || c.name == "sums that stay" || c.name == "embeddings") {
			continue // the same goroutines, a second each
		}
		if race.Enabled || need.Fewer(true, false) {
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

// The limits also hold per second, and a request takes more than a second's tokens.
func TestLLMPerSecond(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		limits := []format.Rate{minutely(300, limit.Requests, true), minutely(6000, limit.Tokens, true)}
		for _, minute := range limits[:2:2] {
			second, ok := format.PerSecond(minute)
			if !ok {
				t.Fatal(minute.Text)
			}
			limits = append(limits, second)
		}
		v := &virtually{t: t, llm: format.LLMConfig{LimitsOf: "openai"}, config: Config{Out: out, Limits: limits},
			server: llm.Config{Limits: llm.Limits{Requests: 300, Tokens: 6000, PerSecond: true}, Before: latency.Uniform(0, 10*time.Millisecond), Seed: 1}}
		v.run(prompts(format.OpenAI, n, 0))
		v.once(n)
		planned := time.Duration(v.plan.Seconds * float64(time.Second))
		t.Logf("%v of %v as planned", v.took, planned)
		if len(v.report.Verdicts) != 1 || v.report.Verdicts["accepted"] != n || v.report.Wrong != 0 || planned < 2*time.Minute || v.took > planned*102/100 {
			t.Errorf("%v; %v of %v as planned; the server: %v, wrong %v", v.err, v.took, planned, v.report.Verdicts, v.report.FirstWrong)
		}
	})
}

// With answers of every kind nothing is lost, and nothing is there twice.
func TestLLMFaults(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		v := &virtually{t: t, config: Config{Out: out, Attempts: 30, Limits: []format.Rate{minutely(500, limit.Requests, true), minutely(30_000, limit.Tokens, true)}},
			server: llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000}, First: latency.Uniform(100*time.Millisecond, time.Second), Seed: 5,
				Faults: map[string]float64{"429": 0.03, "500": 0.03, "502": 0.02, "overloaded": 0.02,
					"reset": 0.02, "cut": 0.02, "ended": 0.03, "no-usage": 0.05, "no-headers": 0.03, "lying-headers": 0.03, "garbled-headers": 0.03}}}
		v.run(prompts(format.OpenAI, n, 0))
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

// A prompt that is refused again and again is not at fault. While the server states when to come
// back, no attempt is counted.
func TestLLMRefusedOverAndOver(t *testing.T) {
	for _, p := range []format.Provider{format.OpenAI, format.Anthropic} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			v := &virtually{t: t, llm: format.LLMConfig{Provider: p}, config: Config{Out: out, Attempts: 2, Concurrency: 1, Limits: []format.Rate{minutely(500, limit.Requests, true)}},
				server: llm.Config{Provider: llm.Provider(p), Limits: llm.Limits{Requests: 500}, RetryAfter: 7 * time.Second,
					Script: slices.Repeat([]string{"429"}, 20)}}
			v.run(prompts(p, 3, 0))
			v.once(3)
			if v.err != nil || v.totals.Done != 3 || v.totals.Dead != 0 || v.totals.Rejected != 20 || v.took < 140*time.Second || v.took > 142*time.Second {
				t.Errorf("%v: %v %+v in %v", p, v.err, v.totals, v.took)
			}
		})
	}
}

// Without credit the run stops. Requests that have not ended are left for a later run.
func TestLLMUnpaid(t *testing.T) {
	for _, p := range []format.Provider{format.OpenAI, format.Anthropic} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			script := make([]string, 40)
			for i := 10; i < len(script); i++ {
				script[i] = "unpaid"
			}
			v := &virtually{t: t, llm: format.LLMConfig{Provider: p}, config: Config{Out: out, Concurrency: 4, Limits: []format.Rate{minutely(500, limit.Requests, true)}},
				server: llm.Config{Provider: llm.Provider(p), Limits: llm.Limits{Requests: 500}, Script: script}}
			v.run(prompts(p, 50, 0))
			if !errors.Is(v.err, pool.ErrExhausted) || !strings.Contains(v.err.Error(), "there is no credit") || v.totals.Done != 10 || v.totals.Left != 40 ||
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

// A run is broken off again and again, while the server stays. The server refuses nothing: the
// windows of the earlier runs count.
func TestLLMResumes(t *testing.T) {
	race.Without(t) // TestLLMEachModelResumes drains a run and goes on, too
	t.Parallel()
	n := need.Fewer(100, 200)
	for _, bucket := range []bool{true, false} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			l, err := llm.New(llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000}, Rolling: !bucket,
				Before: latency.Uniform(0, 50*time.Millisecond), First: latency.Uniform(200*time.Millisecond, 2*time.Second), Seed: 9})
			if err != nil {
				t.Fatal(err)
			}
			network := fakeconn.New()
			srv := &http.Server{Handler: l}
			served := make(chan error, 1)
			go func() { served <- srv.Serve(network) }()
			rng := rand.New(rand.NewPCG(1, 2))
			input := prompts(format.OpenAI, n, 0)
			v := &virtually{t: t, config: Config{Out: out, Limits: []format.Rate{minutely(500, limit.Requests, bucket), minutely(30_000, limit.Tokens, bucket)}}}
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

// The ETA is right where a limit binds, where Concurrency does, and where the run before has used
// what the bucket held.
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
			eta := make(chan time.Duration, 1)
			v := &virtually{t: t, config: Config{Out: out, Concurrency: c.concurrency, Limits: []format.Rate{minutely(60, limit.Requests, true)}},
				server: llm.Config{Limits: llm.Limits{Requests: 1e6}, First: latency.Uniform(time.Second, 3*time.Second)}}
			v.tamper = func(r *Run) {
				go func() {
					time.Sleep(c.after)
					eta <- c.after + r.Progress().ETA
				}()
			}
			v.run(prompts(format.OpenAI, c.n, 0))
			said := <-eta
			if d := said.Seconds() / v.took.Seconds(); d < 0.85 || d > 1.15 {
				t.Errorf("%s: it ends after %v, and %v was said", c.name, v.took, said)
			}
			if d := v.opened.Seconds / v.took.Seconds(); c.concurrency > 1 && (d < 0.85 || d > 1.15) {
				t.Errorf("%s: it ends after %v, and the plan was %v s", c.name, v.took, v.opened.Seconds)
			}
		}
	})
}

// Results as the providers write them.
func TestLLMGolden(t *testing.T) {
	for _, p := range []format.Provider{format.OpenAI, format.Anthropic} {
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
		batch, err := format.NewLLM(format.LLMConfig{Provider: p, BaseURL: srv.URL})
		if err != nil {
			t.Fatal(err)
		}
		header, _ := format.ParseHeaders([]string{p.KeyHeader()})
		r, err := New(Config{Out: out, Format: batch, Attempts: 1, Concurrency: 1, Keys: []format.Key{{Name: "A", Secret: "s3cret-Of-9a7Kq"}}, Header: header})
		if err != nil {
			t.Fatal(err)
		}
		var in strings.Builder
		for _, model := range []string{"good", "bad", "page", "gone"} {
			body := fmt.Sprintf(`{"model":%q,"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`, model)
			if p == format.OpenAI {
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
		for _, path := range []string{out, strings.TrimSuffix(out, ".jsonl") + ".errors.jsonl"} {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(append(got, filepath.Base(path)+"\n"...), text...)
		}
		times := regexp.MustCompile(`"(waited_ms|latency_ms|at)":[^,}]*`)
		golden.Compare(t, p.String()+".golden", times.ReplaceAllString(string(got), `"$1":TIME`))
	}
}

// With an estimate more is in flight. Usage above it is reported. A request that overruns is
// refused at worst, and sent again.
func TestLLMEstimate(t *testing.T) {
	race.Without(t) // TestLLMWithinTheLimits has these goroutines
	t.Parallel()
	var took [2]time.Duration
	for i, overrun := range []float64{0, 0.05} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			const n = 300
			v := &virtually{t: t, llm: format.LLMConfig{Provider: format.Anthropic, Count: tokens.Used, Overrun: overrun},
				config: Config{Out: out, Queue: 20, Attempts: 20, Limits: []format.Rate{minutely(6000, limit.Output, true)}},
				server: llm.Config{Provider: llm.Anthropic, Count: "true", Limits: llm.Limits{Output: 6000}, Seed: 4,
					Law: llm.Law{OutputMedian: 40, OutputP99: 80}, First: latency.Uniform(20*time.Second, 30*time.Second)}}
			v.run(prompts(format.Anthropic, n, 0))
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
