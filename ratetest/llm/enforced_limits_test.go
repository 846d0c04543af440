package llm_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// 150 requests and 630 tokens a minute are 2 and 10 a second, in buckets that are full after a
// second. A request of more than 10 tokens passes alone.
func TestLLMPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer(t, llm.Config{Limits: llm.Limits{Requests: 150, Tokens: 630, PerSecond: true}, Truth: uses(1, 0, 1)})
		start := time.Now()
		for i, s := range []struct {
			at     time.Duration
			out    int
			status int
			says   string
		}{
			{0, 3, 200, ""},
			{0, 25, 429, "on tokens per second (TPS): Limit 10, Used 3, Requested 25. Please try again in 300ms."},
			{0, 8, 429, "on tokens per second (TPS): Limit 10, Used 3, Requested 8. Please try again in 100ms."},
			{0, 7, 200, ""},
			{499 * time.Millisecond, 1, 429, "on requests per second (RPS): Limit 2, Used 2, Requested 1. Please try again in 1ms."},
			{999 * time.Millisecond, 25, 429, "Please try again in 1ms."},
			{time.Second, 25, 200, ""},
			{2599 * time.Millisecond, 1, 429, "on tokens per second (TPS): Limit 10, Used 10, Requested 1. Please try again in 1ms."},
			{2600 * time.Millisecond, 1, 200, ""},
			{3600 * time.Millisecond, 631, 429, "Request too large for m in organization org-ratetest on tokens per min (TPM): Limit 630, Requested 631."},
		} {
			at(start, s.at)
			w := ask(l, chat, "sk-1", prompt(1, s.out))
			if w.Code != s.status || !strings.Contains(w.Body.String(), s.says) || w.Header().Get("x-ratelimit-limit-requests") != "150" {
				t.Errorf("step %d: %d, %v, %s", i, w.Code, w.Header(), w.Body)
			}
		}
		l.Close()
		r := l.Report()
		if r.Wrong != 0 || r.Verdicts["accepted"] != 4 || r.Verdicts["limited"] != 5 || r.Verdicts["too_large"] != 1 {
			t.Errorf("%+v", r)
		}
		for _, w := range r.Accounts[0].Limits {
			if w.Counted > w.Limit {
				t.Errorf("%+v", w)
			}
		}
		// A limit below one a second is rounded up to one.
		l = newServer(t, llm.Config{Limits: llm.Limits{Requests: 30, PerSecond: true}})
		for i, want := range []int{200, 429} {
			if w := ask(l, chat, "sk-1", prompt(1, 1)); w.Code != want {
				t.Errorf("request %d: %d %s", i, w.Code, w.Body)
			}
		}
		l.Close()
	})
}

// A bucket of 3 requests and 100 tokens a minute. As at OpenAI, the larger of the input and the
// allowed output counts. The columns are instant, request, answer and the three fields of each
// limit.
func TestLLMOpenAITimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer(t, llm.Config{Limits: llm.Limits{Requests: 3, Tokens: 100}, Truth: uses(7, 0, 5)})
		start := time.Now()
		for i, s := range []struct {
			at         time.Duration
			in, out    int
			status     int
			requests   string // remaining, reset
			tokens     string
			retryAfter string // ms, s
			says       string
		}{
			{0, 10, 40, 200, "2 20s", "60 24s", "", ""},
			{0, 30, 10, 200, "1 40s", "30 42s", "", ""},
			{0, 31, 5, 429, "1 40s", "30 42s", "600 1", "on tokens per min (TPM): Limit 100, Used 70, Requested 31. Please try again in 600ms."},
			{599 * time.Millisecond, 31, 5, 429, "1 39.401s", "30 41.401s", "1 1", "Used 70, Requested 31. Please try again in 1ms."},
			{600 * time.Millisecond, 31, 0, 200, "0 59.4s", "0 1m0s", "", ""},
			{time.Second, 1, 0, 429, "0 59s", "0 59.6s", "19000 19", "on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 19s."},
			{time.Second, 1, 101, 429, "0 59s", "0 59.6s", "", "Request too large for m in organization org-ratetest on tokens per min (TPM): Limit 100, Requested 101."},
			{20 * time.Second, 1, 1, 200, "0 1m0s", "31 41.2s", "", ""},
			{10 * time.Minute, 1, 1, 200, "2 20s", "99 600ms", "", ""},
		} {
			at(start, s.at)
			w := ask(l, chat, "sk-1", prompt(s.in, s.out))
			h := w.Header()
			get := func(family string) string {
				return h.Get("x-ratelimit-remaining-"+family) + " " + h.Get("x-ratelimit-reset-"+family)
			}
			retry := strings.TrimSpace(h.Get("retry-after-ms") + " " + h.Get("retry-after"))
			if w.Code != s.status || get("requests") != s.requests || get("tokens") != s.tokens || retry != s.retryAfter || !strings.Contains(w.Body.String(), s.says) {
				t.Errorf("step %d: %d, requests %s, tokens %s, retry after %q, %s", i, w.Code, get("requests"), get("tokens"), retry, w.Body)
			}
			if h.Get("x-ratelimit-limit-requests") != "3" || h.Get("x-ratelimit-limit-tokens") != "100" || h.Get("openai-version") == "" ||
				!regexp.MustCompile(`^req_[a-z0-9]{24}$`).MatchString(h.Get("x-request-id")) || w.Code == 200 && h.Get("openai-processing-ms") != "0" {
				t.Errorf("step %d: %v", i, h)
			}
		}
		// Another key, and another model, have limits of their own.
		for _, w := range []*httptest.ResponseRecorder{
			ask(l, chat, "sk-2", prompt(100, 0)),
			ask(l, chat, "sk-1", strings.Replace(prompt(100, 0), `"m"`, `"n"`, 1)),
		} {
			if w.Code != 200 || w.Header().Get("x-ratelimit-remaining-tokens") != "0" {
				t.Errorf("%d %v", w.Code, w.Header())
			}
		}
		r := l.Report()
		if len(r.Accounts) != 3 || r.Wrong != 0 || r.Verdicts["accepted"] != 7 || r.Verdicts["limited"] != 3 || r.Verdicts["too_large"] != 1 {
			t.Errorf("%+v", r)
		}
		// Four requests passed in the first minute. They used 12 tokens each, or 8 where only one
		// was allowed. The others were refused.
		a := r.Accounts[0]
		if a.Key != "key 1" || a.Model != "m" || a.Accepted != 5 || a.Limited != 4 || a.Input != 35 || a.Output != 17 {
			t.Errorf("%+v", a)
		}
		want := []llm.Window{
			{Name: "requests", Limit: 3, Window: time.Minute, Counted: 3, Worst: 4, WorstPercent: 400.0 / 3, Sent: 8, SentPercent: 800.0 / 3},
			{Name: "tokens", Limit: 100, Window: time.Minute, Counted: 100, Worst: 44, WorstPercent: 44, Sent: 92, SentPercent: 92},
		}
		if !reflect.DeepEqual(a.Limits, want) {
			t.Errorf("%+v", a.Limits)
		}
	})
}

// The stated working time begins when the server counts the request, and a client may conclude
// that. It excludes the way to the check and the reading of the body.
func TestLLMProcessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(string, []byte) (int64, bool) { time.Sleep(time.Second); return 1, true }
		l := newServer(t, llm.Config{Before: latency.Constant(500 * time.Millisecond), First: latency.Constant(200 * time.Millisecond), Input: slow, Truth: uses(7, 0, 5)})
		for _, body := range []string{prompt(10, 10), strings.Replace(prompt(10, 10), "{", `{"stream":true,`, 1)} {
			if h := ask(l, chat, "sk-1", body).Header(); h.Get("openai-processing-ms") != "200" {
				t.Errorf("%s: %v", body, h)
			}
		}
	})
}

// Anthropic counts output as it is produced. A request passes if one token was left at its arrival.
func TestLLMProducedTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		config := llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 60, Output: 600}, LogTo: &log,
			Truth: uses(10, 0, 1000), First: latency.Constant(time.Second), TokensPerSecond: 100}
		l := newServer(t, config)
		start := time.Now()
		var all sync.WaitGroup
		all.Go(func() { ask(l, messages, "k", strings.Replace(prompt(10, 4000), "{", `{"stream":true,`, 1)) })
		all.Go(func() { // the client leaves, and its whole output is produced
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			l.ServeHTTP(httptest.NewRecorder(), llmRequest(messages, "k", prompt(10, 700)).WithContext(ctx))
		})
		for _, s := range []struct {
			at     time.Duration
			status int
			left   string // rounded to the nearest thousand, but 600 at most
			wait   string
		}{
			{900 * time.Millisecond, 200, "600", ""},  // only the first token of each has been produced
			{4100 * time.Millisecond, 429, "0", "20"}, // 304, 304 and 216, and 31 have come back
			{4500 * time.Millisecond, 429, "0", "31"}, // the requests under way go on: 344, 344 and 256, 35
			{6500 * time.Millisecond, 429, "0", "89"}, // the abandoned one too: 544, 544 and 456, 55
			{300 * time.Second, 200, "600", ""},
		} {
			at(start, s.at)
			go func() {
				w := ask(l, messages, "k", prompt(10, 5900))
				if h := w.Header(); w.Code != s.status || h.Get("anthropic-ratelimit-output-tokens-remaining") != s.left || h.Get("retry-after") != s.wait {
					t.Errorf("at %v: %d %v", s.at, w.Code, h)
				}
			}()
			synctest.Wait()
		}
		all.Wait()
		time.Sleep(time.Minute)
		r := l.Report()
		if a := r.Accounts[0]; r.Wrong != 0 || a.Accepted != 4 || a.Output != 3700 || a.Limited != 3 {
			t.Errorf("%+v", r)
		}
		l.Close()
		again, err := llm.Judge(config, &log)
		if again.Elapsed = r.Elapsed; err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("by the log %+v, %v\nwant %+v", again, err, r)
		}
	})
}

// With CountCorrected the server reserves the input and max_tokens. The true usage replaces them
// when the answer ends. Input from a cache does not count.
func TestLLMAnthropicTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer(t, llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 60, Input: 30_000, Output: 6000},
			Count: "corrected", Truth: uses(11_000, 9_000, 600), First: latency.Constant(time.Second), TokensPerSecond: 100})
		start := time.Now()
		second := func(n int) string { return start.Add(time.Duration(n) * time.Second).UTC().Format(time.RFC3339) }
		ends := make(chan *httptest.ResponseRecorder, 2)
		go func() { ends <- ask(l, messages, "sk-ant-1", prompt(10_000, 4000)) }()
		at(start, 500*time.Millisecond)
		// 2000 and 50 flow back: 4000 of 6000 are reserved.
		w := ask(l, messages, "sk-ant-1", prompt(10_000, 4000))
		if h := w.Header(); w.Code != 429 || h.Get("retry-after") != "20" || h.Get("x-should-retry") != "true" ||
			h.Get("anthropic-ratelimit-output-tokens-limit") != "6000" || h.Get("anthropic-ratelimit-output-tokens-remaining") != "2000" ||
			h.Get("anthropic-ratelimit-output-tokens-reset") != second(40) || h.Get("anthropic-ratelimit-input-tokens-remaining") != "20000" ||
			h.Get("anthropic-ratelimit-tokens-limit") != "36000" || h.Get("anthropic-ratelimit-tokens-remaining") != "22000" ||
			h.Get("anthropic-ratelimit-requests-remaining") != "59" || h.Get("anthropic-ratelimit-requests-reset") != second(1) {
			t.Errorf("%d %v", w.Code, h)
		}
		if want := `"of 6,000 output tokens per minute`; !strings.Contains(w.Body.String(), want[1:]) || !strings.Contains(w.Body.String(), `"rate_limit_error"`) {
			t.Errorf("%s", w.Body)
		}
		if first := <-ends; first.Code != 200 || time.Since(start) != 7*time.Second { // 1 s, and 600 tokens of 10 ms
			t.Errorf("%d after %v", first.Code, time.Since(start))
		}
		// By now all of the 3400 was given back, and the rest has flowed back.
		w = ask(l, messages, "sk-ant-1", prompt(28_000, 5900))
		if h := w.Header(); w.Code != 200 || h.Get("anthropic-ratelimit-output-tokens-remaining") != "0" || h.Get("anthropic-ratelimit-input-tokens-remaining") != "2000" {
			t.Errorf("%d %v", w.Code, h)
		}
		// This request is larger than the limit and never passes.
		w = ask(l, messages, "sk-ant-1", prompt(30_001, 1))
		if w.Code != 429 || w.Header().Get("retry-after") != "" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
		if r := l.Report(); r.Wrong != 0 || r.Accounts[0].Cached != 18_000 || r.Accounts[0].Limits[1].Worst != 4000 {
			t.Errorf("%+v", r)
		}
	})
}

// A rolling minute counts a request until a minute and a tick after it. It counts the true cost
// once that is known.
func TestLLMRolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer(t, llm.Config{Rolling: true, RefusedCount: true, Count: "corrected", Limits: llm.Limits{Requests: 3, Tokens: 100},
			Truth: uses(10, 0, 20)})
		start := time.Now()
		for i, s := range []struct {
			at               time.Duration
			in, out          int
			status           int
			requests, tokens string // the amounts left
		}{
			{0, 10, 90, 200, "2", "0"}, // fields show the state before the answer
			{time.Second, 60, 10, 200, "1", "0"},
			{time.Second, 60, 10, 429, "0", "50"}, // counts as a request; the others used 30 and 20
			{time.Minute, 10, 10, 429, "0", "50"},
			{time.Minute + time.Millisecond, 10, 10, 429, "0", "80"}, // the first has left, the refused ones have not
			{3 * time.Minute, 10, 90, 200, "2", "0"},
		} {
			at(start, s.at)
			w := ask(l, chat, "k", prompt(s.in, s.out))
			if h := w.Header(); w.Code != s.status || h.Get("x-ratelimit-remaining-requests") != s.requests || h.Get("x-ratelimit-remaining-tokens") != s.tokens {
				t.Errorf("step %d: %d %v %s", i, w.Code, h, w.Body)
			}
		}
		if r := l.Report(); r.Wrong != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// A client that waits as long as a refusal states then passes, and no earlier, in both languages.
func TestLLMRetryAfterIsEnough(t *testing.T) {
	for seed := range fewer(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			c := llm.Config{Provider: llm.Provider(seed % 2), Rolling: seed%3 == 0, Count: []string{"", "reserved", "corrected", "true"}[seed%4], Seed: seed,
				Limits: llm.Limits{Requests: 1 + rng.Int64N(9), Input: 50 + rng.Int64N(200), Output: 300, Tokens: 400, TokensPerDay: 3000}}
			path := []string{chat, messages}[seed%2]
			l := newServer(t, c)
			for range 40 {
				body := prompt(1+rng.IntN(40), 1+rng.IntN(200))
				w := ask(l, path, "k", body)
				if w.Code == 429 {
					d, _ := provider.Lookup(c.Provider.String())
					o := d.Read(time.Now(), provider.Response{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()})
					if o.RetryAfter <= 0 || len(o.Problems) > 0 {
						t.Fatalf("seed %d: %+v of %v %s", seed, o, w.Header(), w.Body)
					}
					if c.Provider == llm.OpenAI && o.RetryAfter > time.Millisecond { // Anthropic's are whole seconds
						time.Sleep(o.RetryAfter - time.Millisecond)
						o.RetryAfter = time.Millisecond
						if w = ask(l, path, "k", body); w.Code != 429 {
							t.Fatalf("seed %d: got through too early", seed)
						}
					}
					time.Sleep(o.RetryAfter)
					if w = ask(l, path, "k", body); w.Code != 200 && c.Count != "true" {
						t.Fatalf("seed %d: %d after %v: %s", seed, w.Code, o.RetryAfter, w.Body)
					}
				}
				time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Second))))
			}
			if r := l.Report(); r.Wrong > 0 || r.Verdicts["limited"] < 5 {
				t.Errorf("seed %d: %+v", seed, r)
			}
		})
	}
}
