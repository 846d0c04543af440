package llm_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/paceline-go/paceline/internal/race"
	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
)

func newServer(t testing.TB, c llm.Config) *llm.Server {
	t.Helper()
	l, err := llm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// uses makes every request use the same.
func uses(input, cached, output int64) func(llm.Ask) llm.Usage {
	return func(llm.Ask) llm.Usage {
		return llm.Usage{Input: input, Cached: cached, Output: output}
	}
}

const (
	chat       = "/v1/chat/completions"
	responses  = "/v1/responses"
	embeddings = "/v1/embeddings"
	messages   = "/v1/messages"
)

func llmRequest(path, key, body string) *http.Request {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	llmHeader(r.Header, key)
	return r
}

func llmHeader(h http.Header, key string) {
	h.Set("Content-Type", "application/json")
	h.Set("Anthropic-Version", "2023-06-01")
	h.Set("Authorization", "Bearer "+key)
	h.Set("X-Api-Key", key)
}

// ask makes one request in memory.
func ask(l http.Handler, path, key, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	l.ServeHTTP(w, llmRequest(path, key, body))
	return w
}

// prompt is a chat or messages body of which the model reads that many tokens.
func prompt(inputTokens, maxTokens int) string {
	bound := ""
	if maxTokens > 0 {
		bound = fmt.Sprintf(`"max_tokens":%d,`, maxTokens)
	}
	return fmt.Sprintf(`{"model":"m",%s"messages":[{"role":"user","content":%q}]}`, bound, strings.Repeat("four", inputTokens))
}

func at(start time.Time, d time.Duration) { time.Sleep(time.Until(start.Add(d))) }

// 150 requests and 630 tokens a minute are 2 and 10 a second, in buckets that are full after a second; more than 10 tokens pass by
// themselves.
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
		// A limit of less than one a second is one.
		l = newServer(t, llm.Config{Limits: llm.Limits{Requests: 30, PerSecond: true}})
		for i, want := range []int{200, 429} {
			if w := ask(l, chat, "sk-1", prompt(1, 1)); w.Code != want {
				t.Errorf("request %d: %d %s", i, w.Code, w.Body)
			}
		}
		l.Close()
	})
}

// A bucket of 3 requests and 100 tokens a minute as OpenAI counts: the larger of the input and of what a request allows
// itself. Instant, request, answer and the three fields of each limit.
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
		// Four requests in the first minute, which used 12 tokens each, or 8 where only one was allowed; and what was refused.
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

// Anthropic counts output as it is produced, by a request that had one token left when it arrived.
func TestLLMProducedTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		config := llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 60, Output: 600}, LogTo: &log,
			Truth: uses(10, 0, 1000), First: latency.Constant(time.Second), TokensPerSecond: 100}
		l := newServer(t, config)
		start := time.Now()
		var all sync.WaitGroup
		all.Go(func() { ask(l, messages, "k", strings.Replace(prompt(10, 4000), "{", `{"stream":true,`, 1)) })
		all.Go(func() { // it leaves, and what it asked for is produced to the end
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
			{900 * time.Millisecond, 200, "600", ""},  // nothing has been produced but the first token of each
			{4100 * time.Millisecond, 429, "0", "20"}, // 304, 304 and 216, and 31 have come back
			{4500 * time.Millisecond, 429, "0", "31"}, // those under way go on: 344, 344 and 256, 35
			{6500 * time.Millisecond, 429, "0", "89"}, // also where the client has left: 544, 544 and 456, 55
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

// A server that corrects reserves the input and max_tokens, and puts the truth in their place when the answer ends; what is read
// from a cache does not count.
func TestLLMAnthropicTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer(t, llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 60, Input: 30_000, Output: 6000},
			Count: llm.CountCorrected, Truth: uses(11_000, 9_000, 600), First: latency.Constant(time.Second), TokensPerSecond: 100})
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
		// By now all of the 3400 has been given back, and the rest has flowed back.
		w = ask(l, messages, "sk-ant-1", prompt(28_000, 5900))
		if h := w.Header(); w.Code != 200 || h.Get("anthropic-ratelimit-output-tokens-remaining") != "0" || h.Get("anthropic-ratelimit-input-tokens-remaining") != "2000" {
			t.Errorf("%d %v", w.Code, h)
		}
		// Too large, ever.
		w = ask(l, messages, "sk-ant-1", prompt(30_001, 1))
		if w.Code != 429 || w.Header().Get("retry-after") != "" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
		if r := l.Report(); r.Wrong != 0 || r.Accounts[0].Cached != 18_000 || r.Accounts[0].Limits[1].Worst != 4000 {
			t.Errorf("%+v", r)
		}
	})
}

// A rolling minute counts a request until a minute and a tick after it, at its true cost once that is known.
func TestLLMRolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer(t, llm.Config{Rolling: true, RefusedCount: true, Count: llm.CountCorrected, Limits: llm.Limits{Requests: 3, Tokens: 100},
			Truth: uses(10, 0, 20)})
		start := time.Now()
		for i, s := range []struct {
			at               time.Duration
			in, out          int
			status           int
			requests, tokens string // that are left
		}{
			{0, 10, 90, 200, "2", "0"}, // fields are from before the answer
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

// Whoever waits as long as a refusal says gets through, in both languages, and no earlier.
func TestLLMRetryAfterIsEnough(t *testing.T) {
	for seed := range fewer(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			c := llm.Config{Provider: llm.Provider(seed % 2), Rolling: seed%3 == 0, Count: llm.Counting(seed % 4), Seed: seed,
				Limits: llm.Limits{Requests: 1 + rng.Int64N(9), Input: 50 + rng.Int64N(200), Output: 300, Tokens: 400, TokensPerDay: 3000}}
			path := []string{chat, messages}[seed%2]
			l := newServer(t, c)
			for range 40 {
				body := prompt(1+rng.IntN(40), 1+rng.IntN(200))
				w := ask(l, path, "k", body)
				if w.Code == 429 {
					d, _ := quota.Lookup(c.Provider.String())
					o := d.Read(time.Now(), quota.Response{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()})
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
					if w = ask(l, path, "k", body); w.Code != 200 && c.Count != llm.CountTrue {
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

// watch reads what an answer used, as a client does.
func watch(t *testing.T, path string, stream bool, body io.Reader) (string, tokens.Usage, error) {
	t.Helper()
	w := tokens.NewWatcher(tokens.APIOf(path), stream, body)
	text, err := io.ReadAll(w)
	u, uerr := w.Usage()
	return string(text), u, errors.Join(err, uerr)
}

// Every API, whole and as a stream, says what was used in the place where a client looks for it.
func TestLLMUsage(t *testing.T) {
	for _, c := range []struct {
		path, more string // of the body
		body       string
		provider   llm.Provider
	}{
		{chat, `,"stream_options":{"include_usage":true},"n":2`, prompt(5, 50), llm.OpenAI},
		{responses, "", `{"model":"m","max_output_tokens":50,"input":"hello"}`, llm.OpenAI},
		{messages, "", prompt(5, 50), llm.Anthropic},
	} {
		// 13 of 50 tokens of each choice; and all that are allowed.
		for _, output := range []int64{13, 50} {
			choices := int64(1)
			if c.path == chat {
				choices = 2
			}
			l := newServer(t, llm.Config{Provider: c.provider, Truth: func(a llm.Ask) llm.Usage {
				return llm.Usage{Input: 2000, Cached: 1024, Output: output * a.Choices, Reasoning: 4 * a.Choices}
			}})
			want := tokens.Usage{Input: 2000, CachedInput: 1024, Output: output * choices, Reasoning: 4 * choices, Total: 2000 + output*choices}
			if c.path == messages {
				want.Reasoning = 0 // not said
			}
			var texts [2]string
			for i, stream := range []bool{false, true} {
				body := strings.TrimSuffix(c.body, "}") + c.more + fmt.Sprintf(`,"stream":%v}`, stream)
				w := ask(l, c.path, "k", body)
				kind := "application/json"
				if stream {
					kind = "text/event-stream; charset=utf-8"
				}
				text, u, err := watch(t, c.path, stream, w.Body)
				if w.Code != 200 || u != want || err != nil || w.Header().Get("Content-Type") != kind {
					t.Errorf("%s, stream %v: %d, %+v, %v, want %+v\n%s", c.path, stream, w.Code, u, err, want, text)
				}
				texts[i] = text
			}
			if whole, streamed := answered(t, texts[0]), deltas(t, texts[1]); whole != streamed || int64(len(whole)) != 4*(output-4) {
				t.Errorf("%s: %q whole, %q streamed", c.path, whole, streamed)
			}
			finish := map[string][2]string{chat: {`"finish_reason":"stop"`, `"finish_reason":"length"`}, responses: {`"status":"completed"`, `"reason":"max_output_tokens"`},
				messages: {`"stop_reason":"end_turn"`, `"stop_reason":"max_tokens"`}}[c.path][output/50]
			if !strings.Contains(texts[0], finish) || !strings.Contains(texts[1], finish) {
				t.Errorf("%s: no %s in %s\n%s", c.path, finish, texts[0], texts[1])
			}
		}
	}
}

// answered returns the text of the first choice of a whole answer.
func answered(t *testing.T, body string) string {
	var a struct {
		Choices []struct {
			Message struct{ Content string }
		}
		Output  []struct{ Content []struct{ Text string } }
		Content []struct{ Text string }
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatal(err)
	}
	switch {
	case len(a.Choices) > 0:
		return a.Choices[0].Message.Content
	case len(a.Output) > 0:
		return a.Output[0].Content[0].Text
	}
	return a.Content[0].Text
}

// deltas joins the pieces of the first choice of a stream.
func deltas(t *testing.T, body string) (text string) {
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			Type    string
			Choices []struct {
				Index int
				Delta struct{ Content string }
			}
			Delta json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		var piece struct{ Text string }
		switch {
		case e.Type == "content_block_delta":
			json.Unmarshal(e.Delta, &piece)
		case e.Type == "response.output_text.delta":
			json.Unmarshal(e.Delta, &piece.Text)
		case len(e.Choices) > 0 && e.Choices[0].Index == 0:
			piece.Text = e.Choices[0].Delta.Content
		}
		text += piece.Text
	}
	return text
}

// The events of each stream, in order, with the instants at which they are sent: 2 s to the first token, then 10 ms each.
func TestLLMStream(t *testing.T) {
	for path, want := range map[string]string{
		chat: `role@2000 text@2080 text@2160 text@2170 stop@2170 usage@2170 [DONE]@2170`,
		responses: `response.created@2000 response.in_progress@2000 response.output_item.added@2000 response.content_part.added@2000 ` +
			`response.output_text.delta@2080 response.output_text.delta@2160 response.output_text.delta@2170 response.output_text.done@2170 ` +
			`response.content_part.done@2170 response.output_item.done@2170 response.completed@2170`,
		messages: `message_start@2000 content_block_start@2000 ping@2000 content_block_delta@2080 content_block_delta@2160 content_block_delta@2170 ` +
			`content_block_stop@2170 message_delta@2170 message_stop@2170`,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := llm.Config{Truth: uses(5, 0, 17), First: latency.Constant(2 * time.Second), TokensPerSecond: 100}
			body := `{"model":"m","stream":true,"input":"x","max_tokens":20,"messages":[{"role":"user","content":"x"}],"stream_options":{"include_usage":true}}`
			if path == messages {
				c.Provider = llm.Anthropic
			}
			l := newServer(t, c)
			w := &timed{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
			l.ServeHTTP(w, llmRequest(path, "k", body))
			if got := strings.Join(w.events, " "); got != want {
				t.Errorf("%s: %s\nwant %s\n%s", path, got, want, w.Body)
			}
			if path == responses && !strings.Contains(w.Body.String(), `"sequence_number":10,`) {
				t.Errorf("%s", w.Body)
			}
		})
	}
}

// timed names events and the millisecond of each.
type timed struct {
	*httptest.ResponseRecorder
	start  time.Time
	events []string
}

func (w *timed) Write(p []byte) (int, error) {
	line, rest, _ := strings.Cut(string(p), "\n")
	name, ok := strings.CutPrefix(line, "event: ")
	switch {
	case ok && strings.Contains(rest, `"type":"`+name+`"`):
	case strings.Contains(line, "[DONE]"):
		name = "[DONE]"
	case strings.Contains(line, `"role"`):
		name = "role"
	case strings.Contains(line, `"finish_reason":"stop"`):
		name = "stop"
	case strings.Contains(line, `"usage":{`):
		name = "usage"
	case strings.Contains(line, `"usage":null`):
		name = "text"
	}
	w.events = append(w.events, fmt.Sprintf("%s@%d", name, time.Since(w.start).Milliseconds()))
	return w.ResponseRecorder.Write(p)
}

func TestLLMEmbeddings(t *testing.T) {
	l := newServer(t, llm.Config{})
	for _, c := range []struct {
		body         string
		vectors, dim int
	}{
		{`{"model":"e","input":"hello"}`, 1, 1536},
		{`{"model":"e","input":["a","b","c"],"dimensions":3}`, 3, 3},
		{`{"model":"e","input":[1,2,3],"dimensions":7,"encoding_format":"base64"}`, 1, 7},
		{`{"model":"e","input":[[1,2],[3]],"dimensions":7}`, 2, 7},
	} {
		w := ask(l, embeddings, "k", c.body)
		var a struct {
			Object string
			Data   []struct {
				Index     int
				Embedding json.RawMessage
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != 200 || len(a.Data) != c.vectors || a.Object != "list" {
			t.Fatalf("%s: %d %v %s", c.body, w.Code, err, w.Body)
		}
		for i, d := range a.Data {
			var v []float64
			var packed string
			if json.Unmarshal(d.Embedding, &packed) == nil {
				raw, err := base64.StdEncoding.DecodeString(packed)
				if err != nil {
					t.Fatal(err)
				}
				for ; len(raw) >= 4; raw = raw[4:] {
					v = append(v, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
				}
			} else if err := json.Unmarshal(d.Embedding, &v); err != nil {
				t.Fatal(err)
			}
			length := 0.0
			for _, x := range v {
				length += x * x
			}
			if d.Index != i || len(v) != c.dim || math.Abs(length-1) > 1e-5 {
				t.Errorf("%s: vector %d of %d, of length %v", c.body, d.Index, len(v), math.Sqrt(length))
			}
		}
		if u, err := tokens.ParseUsage(tokens.Embeddings, w.Body.Bytes()); err != nil || u.Input < 1 || u.Output != 0 {
			t.Errorf("%+v, %v", u, err)
		}
	}
}

// What the server cannot read, or does not know, in the words of each provider.
func TestLLMErrors(t *testing.T) {
	openai := newServer(t, llm.Config{Keys: []string{"good"}, Models: []string{"m"}})
	claude := newServer(t, llm.Config{Provider: llm.Anthropic, Keys: []string{"good"}, Models: []string{"m"}})
	big := strings.Repeat(" ", 32<<20) + "{}"
	for _, c := range []struct {
		l               *llm.Server
		path, key, body string
		status          int
		says            string
	}{
		{openai, chat, "bad", prompt(1, 1), 401, `"code":"invalid_api_key"`},
		{openai, chat, "good", `{"model":`, 400, `parse the JSON body`},
		{openai, chat, "good", `null`, 400, `"type":"invalid_request_error","param":null,"code":null`},
		{openai, chat, "good", `{"messages":[{"role":"user"}]}`, 400, `"message":"model: field required","type":"invalid_request_error","param":"model","code":"missing_required_parameter"`},
		{openai, chat, "good", `{"model":"m","messages":[]}`, 400, `"param":"messages"`},
		{openai, chat, "good", `{"model":"m","messages":"x"}`, 400, `messages: not a list`},
		{openai, chat, "good", `{"model":"m","messages":[{"content":"x"}]}`, 400, `messages.0.role: field required`},
		{openai, chat, "good", `{"model":3,"messages":[{"role":"user"}]}`, 400, `model: 3 is of a wrong type`},
		{openai, chat, "good", prompt(1, 2_000_000), 400, `max_tokens: 2000000 is not from 1 to 1048576`},
		{openai, chat, "good", `{"model":"m","n":0,"messages":[{"role":"user"}]}`, 400, `n: 0 is not from 1 to 128`},
		{openai, chat, "good", strings.Replace(prompt(1, 1), `"m"`, `"gpt-9"`, 1), 404, "The model `gpt-9` does not exist"},
		{openai, chat, "good", big, 413, `maximum size`},
		{openai, responses, "good", `{"model":"m"}`, 400, `"param":"input"`},
		{openai, responses, "good", `{"model":"m","previous_response_id":"resp_1"}`, 200, `"object":"response"`},
		{openai, embeddings, "good", `{"model":"m","input":{}}`, 400, `"param":"input"`},
		{openai, embeddings, "good", `{"model":"m","input":[1,"a"]}`, 400, `"param":"input"`},
		{openai, embeddings, "good", `{"model":"m","input":"x","dimensions":5000}`, 400, `dimensions: 5000`},
		{openai, embeddings, "good", `{"model":"m","input":"x","encoding_format":"int8"}`, 400, `int8`},
		{openai, messages, "good", prompt(1, 1), 404, `"code":"unknown_url"`},
		{claude, messages, "bad", prompt(1, 1), 401, `{"error":{"message":"invalid x-api-key","type":"authentication_error"},"request_id":"req_`},
		{claude, messages, "good", prompt(1, 0), 400, `max_tokens: field required`},
		{claude, messages, "good", `{"model":"x","max_tokens":1,"messages":[{"role":"user"}]}`, 404, `"type":"not_found_error"`},
		{claude, messages, "good", big, 413, `"type":"request_too_large"`},
		{claude, chat, "good", prompt(1, 1), 404, `"type":"not_found_error"`},
	} {
		w := ask(c.l, c.path, c.key, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %.60s: %d %.300s, want %d, %s", c.path, c.body, w.Code, w.Body, c.status, c.says)
		}
	}
	for status, change := range map[int]func(*http.Request){
		405: func(r *http.Request) { r.Method = "GET" },
		415: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		401: func(r *http.Request) { r.Header.Del("X-Api-Key"); r.Header.Del("Authorization") },
		400: func(r *http.Request) { r.Header.Del("Anthropic-Version") },
	} {
		r := llmRequest(messages, "good", prompt(1, 1))
		change(r)
		w := httptest.NewRecorder()
		if claude.ServeHTTP(w, r); w.Code != status {
			t.Errorf("%d, want %d: %s", w.Code, status, w.Body)
		}
	}
	if r := openai.Report(); r.Verdicts["malformed"] != 15 || r.Verdicts["unauthorized"] != 1 || r.Verdicts["unknown_model"] != 1 || len(r.Accounts) != 1 {
		t.Errorf("%+v", r)
	}
}

// Quotas of a day, and of credit, are refusals of their own kind to who reads them.
func TestLLMKindsOfRefusal(t *testing.T) {
	for _, c := range []struct {
		name   string
		config llm.Config
		want   quota.Refusal
		after  time.Duration
		status int
	}{
		{"a minute", llm.Config{Limits: llm.Limits{Requests: 1}}, quota.RateLimited, time.Minute, 429},
		{"a day", llm.Config{Limits: llm.Limits{Requests: 9, RequestsPerDay: 1}}, quota.QuotaExhausted, 24 * time.Hour, 429},
		{"too large", llm.Config{Limits: llm.Limits{Tokens: 3}}, quota.TooLarge, 0, 429},
		{"credit", llm.Config{Credit: 1}, quota.Unpaid, 0, 429},
		{"overloaded", llm.Config{Script: []llm.Fault{0, llm.Unavailable}}, quota.Overloaded, time.Second, 503},
		{"injected", llm.Config{Script: []llm.Fault{0, llm.Refused}, RetryAfter: 3 * time.Second}, quota.RateLimited, 3 * time.Second, 429},
		{"a minute", llm.Config{Provider: llm.Anthropic, Limits: llm.Limits{Requests: 1}}, quota.RateLimited, time.Minute, 429},
		{"credit", llm.Config{Provider: llm.Anthropic, Credit: 1}, quota.Unpaid, 0, 400},
		{"overloaded", llm.Config{Provider: llm.Anthropic, Script: []llm.Fault{0, llm.Unavailable}}, quota.Overloaded, time.Second, 529},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newServer(t, c.config)
			path := []string{chat, messages}[c.config.Provider]
			ask(l, path, "k", prompt(1, 1))
			w := ask(l, path, "k", prompt(5, 1))
			d, _ := quota.Lookup(c.config.Provider.String())
			o := d.Read(time.Now(), quota.Response{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()})
			if w.Code != c.status || o.Refusal != c.want || o.RetryAfter != c.after || len(o.Problems) > 0 {
				t.Errorf("%v, %s: %d, %+v\n%v %s", c.config.Provider, c.name, w.Code, o, w.Header(), w.Body)
			}
		})
	}
}

// Each fault over a socket, as a client meets it, on a stream and not.
func TestLLMFaults(t *testing.T) {
	for _, provider := range []llm.Provider{llm.OpenAI, llm.Anthropic} {
		path := []string{chat, messages}[provider]
		for fault := llm.NoFault; fault <= llm.GarbledHeaders; fault++ {
			for _, stream := range []bool{false, true} {
				name := fmt.Sprintf("%v, %v, stream %v", provider, fault, stream)
				var log bytes.Buffer
				l := newServer(t, llm.Config{Provider: provider, Script: []llm.Fault{fault}, Truth: uses(9, 0, 100), LogTo: &log})
				if err := l.Start(""); err != nil {
					t.Fatal(err)
				}
				body := strings.TrimSuffix(prompt(5, 200), "}") + fmt.Sprintf(`,"stream":%v,"stream_options":{"include_usage":true}}`, stream)
				r, _ := http.NewRequest("POST", l.URL()+path, strings.NewReader(body))
				llmHeader(r.Header, "k")
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				w, err := client.Do(r)
				var text string
				var usage tokens.Usage
				var o quota.Observation
				status := 0
				if err == nil {
					status = w.StatusCode
					d, _ := quota.Lookup(provider.String())
					text, usage, err = watch(t, path, strings.HasPrefix(w.Header.Get("Content-Type"), "text/event-stream"), w.Body)
					w.Body.Close()
					o = d.Read(time.Now(), quota.Response{Status: status, Header: w.Header, Body: []byte(text)})
				}
				overloaded := []int{503, 529}[provider]
				unpaid := []int{429, 400}[provider]
				headers := len(o.Limits) > 0 && len(o.Problems) == 0
				ok := map[llm.Fault]bool{
					llm.NoFault:        status == 200 && err == nil && usage.Output == 100 && headers,
					llm.Refused:        status == 429 && o.RetryAfter == time.Second && headers && o.Limits[0].Remaining.N > 0,
					llm.Failed:         status == 500 && strings.Contains(text, []string{"server_error", "api_error"}[provider]),
					llm.BadGateway:     status == 502 && strings.HasPrefix(text, "<html>"),
					llm.Unavailable:    status == overloaded && o.Refusal == quota.Overloaded,
					llm.Unpaid:         status == unpaid && o.Refusal == quota.Unpaid && o.RetryAfter == 0,
					llm.Reset:          errors.Is(err, syscall.ECONNRESET) && status == 0,
					llm.Cut:            errors.Is(err, io.ErrUnexpectedEOF) && status == 200 && text != "",
					llm.Ended:          errors.Is(err, tokens.ErrIncomplete) && !errors.Is(err, io.ErrUnexpectedEOF) && status == 200 && text != "",
					llm.ErrorEvent:     status == 200 && stream && errors.Is(err, tokens.ErrIncomplete) || status == 500 && !stream,
					llm.NoUsage:        status == 200 && errors.Is(err, tokens.ErrNoUsage),
					llm.NoHeaders:      status == 200 && err == nil && len(o.Limits)+len(o.Problems) == 0,
					llm.LyingHeaders:   status == 200 && err == nil && headers && o.Limits[0].Remaining.N == o.Policies[0].Limit,
					llm.GarbledHeaders: status == 200 && err == nil && len(o.Problems) > 3,
				}[fault]
				if !ok {
					t.Errorf("%s: status %d, %v, usage %+v, %+v\n%s", name, status, err, usage, o, text)
				}
				client.CloseIdleConnections()
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				report := l.Report()
				if n := report.Faults[fault.String()]; n != 1 && fault != 0 || report.Wrong > 0 {
					t.Errorf("%s: %+v", name, report)
				}
				if f, err := llm.ParseFault(fault.String()); f != fault || err != nil {
					t.Errorf("%v, %v", f, err)
				}
				again, err := llm.Judge(llm.Config{Provider: provider}, &log)
				if again.Elapsed = report.Elapsed; err != nil || !reflect.DeepEqual(again, report) {
					t.Errorf("%s: by the log %+v, %v\nwant %+v", name, again, err, report)
				}
			}
		}
	}
	goleak.VerifyNone(t)
}

// A client that leaves a stream has used what was sent until then.
func TestLLMClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := newServer(t, llm.Config{Provider: llm.Anthropic, Truth: uses(10, 0, 1000), TokensPerSecond: 10, LogTo: &log})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		w := httptest.NewRecorder()
		l.ServeHTTP(w, llmRequest(messages, "k", strings.Replace(prompt(7, 2000), "{", `{"stream":true,`, 1)).WithContext(ctx))
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		// 12 events of 8 tokens.
		if !strings.Contains(log.String(), `{"event":"amended","at_ns":10000000000,"n":1,"key":"key 1","model":"m","counted":[0,3,0,3]}`) || strings.Count(log.String(), "[0,0,8,8]") != 11 {
			t.Errorf("%s", &log)
		}
		l.Close()
	})
}

// A server that closes answers what is under way at once.
func TestLLMCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newServer(t, llm.Config{Truth: uses(10, 0, 1000), TokensPerSecond: 10})
		late := newServer(t, llm.Config{Before: latency.Constant(time.Minute)})
		var all sync.WaitGroup
		all.Go(func() {
			w := ask(l, chat, "k", strings.Replace(prompt(7, 2000), "{", `{"stream":true,`, 1))
			if !strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n") {
				t.Errorf("%s", w.Body)
			}
		})
		all.Go(func() {
			if w := ask(late, chat, "k", prompt(1, 1)); w.Code != 503 || !strings.Contains(w.Body.String(), "closing") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
		time.Sleep(time.Second)
		start := time.Now()
		l.Close()
		late.Close()
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		all.Wait()
		if w := ask(l, chat, "k", prompt(1, 1)); w.Code != 503 {
			t.Errorf("%d after Close", w.Code)
		}
		if r := late.Report(); r.Dropped != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// Whatever comes, in whatever way it counts, no verdict is against the rule, and the log says the same as the server.
func TestLLMJudge(t *testing.T) {
	for seed := range fewer(48) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			var log bytes.Buffer
			c := llm.Config{
				Provider: llm.Provider(seed % 2), Rolling: seed%3 > 0, RefusedCount: seed%3 > 1, Count: llm.Counting(seed % 4), Seed: seed,
				Limits:      llm.Limits{Requests: 1 + rng.Int64N(30), Input: rng.Int64N(900), Output: rng.Int64N(900), Tokens: rng.Int64N(2000), TokensPerDay: rng.Int64N(9000)},
				ModelLimits: map[string]llm.Limits{"n": {Requests: 2, Window: 3 * time.Second}},
				Law:         llm.Law{Spread: 0.5, OutputMedian: 30, OutputP99: 300, Cached: 0.3, Reasoning: 0.2},
				Before:      latency.Uniform(0, 300*time.Millisecond), First: latency.Uniform(0, time.Second), TokensPerSecond: 50,
				Faults: map[llm.Fault]float64{llm.Refused: 0.05, llm.Failed: 0.05, llm.BadGateway: 0.05, llm.Unavailable: 0.05, llm.Ended: 0.05,
					llm.ErrorEvent: 0.05, llm.LyingHeaders: 0.05, llm.Unpaid: 0.02},
				LogTo: &log,
			}
			path := []string{chat, messages}[seed%2]
			l := newServer(t, c)
			var all sync.WaitGroup
			for range 300 {
				body := prompt(1+rng.IntN(60), 1+rng.IntN(150))
				if rng.IntN(5) == 0 {
					body = strings.Replace(body, `"m"`, `"n"`, 1)
				}
				if rng.IntN(2) == 0 {
					body = strings.Replace(body, "{", `{"stream":true,`, 1)
				}
				r := llmRequest(path, strconv.Itoa(rng.IntN(2)), body)
				if rng.IntN(4) == 0 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.Int64N(int64(3*time.Second))))
					defer cancel()
					r = r.WithContext(ctx)
				}
				all.Go(func() { l.ServeHTTP(httptest.NewRecorder(), r) })
				time.Sleep(time.Duration(rng.ExpFloat64() * float64(300*time.Millisecond)))
			}
			all.Wait()
			l.Close()
			report := l.Report()
			if report.Wrong > 0 || report.Verdicts["accepted"] < 10 || report.Verdicts["limited"] < 5 {
				t.Errorf("seed %d: %+v", seed, report)
			}
			for _, a := range report.Accounts {
				for _, w := range a.Limits {
					// As one rolling window that knows the truth there is no way to use more; a bucket lets through twice as much.
					sure := c.Rolling && !c.RefusedCount && c.Count == llm.CountTrue
					if w.Counted > w.Limit || sure && w.Worst != w.Counted || w.Sent < w.Worst || (w.Name == "requests") && w.Worst > 2*w.Limit {
						t.Errorf("seed %d: %+v", seed, w)
					}
				}
			}
			text := log.String()
			again, err := llm.Judge(c, strings.NewReader(text))
			if again.Elapsed = report.Elapsed; err != nil || !reflect.DeepEqual(again, report) {
				t.Fatalf("seed %d: by the log %+v, %v\nwant %+v", seed, again, err, report)
			}
			// The judge finds a verdict that is wrong, either way.
			for from, to := range map[string]string{`"verdict":"limited"`: `"verdict":"accepted"`, `"verdict":"accepted"`: `"verdict":"limited"`} {
				i := strings.Index(text, from)
				wrong, err := llm.Judge(c, strings.NewReader(text[:i]+to+text[i+len(from):]))
				if err != nil || wrong.Wrong == 0 {
					t.Errorf("seed %d: %s was not found: %+v, %v", seed, to, wrong, err)
				}
			}
		})
	}
}

func TestJudgeLLMBadLog(t *testing.T) {
	for want, log := range map[string]string{
		"line 1 of the log: unexpected end": `{"event":`,
		`line 2 of the log: event "x"`:      `{"event":"request","verdict":"malformed"}` + "\n" + `{"event":"x"}`,
		"line 1 of the log: -1 tokens":      `{"event":"request","verdict":"accepted","used":{"input":-1}}`,
		"-9223372036854775808 tokens":       `{"event":"amended","counted":[0,-9223372036854775808,0,0]}`,
	} {
		if _, err := llm.Judge(llm.Config{}, strings.NewReader(log)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", log, err, want)
		}
	}
}

// What a request uses spreads about its size, and is within what it allows itself.
func TestLLMLaw(t *testing.T) {
	var log bytes.Buffer
	l := newServer(t, llm.Config{Limits: llm.Limits{Requests: -1, Input: -1, Output: -1, Tokens: -1}, LogTo: &log, Law: llm.Law{Cached: 0.25}})
	n := float64(fewer(4000))
	for range int(n) {
		if w := ask(l, chat, "k", prompt(1100, 300)); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	var below, median, cut, cached int
	spread := 0.0
	for line := range strings.Lines(log.String()) {
		var r llm.Line
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		u := r.Used
		if u.Output < 1 || u.Output > 300 || u.Input < 1 || r.Estimate != 1100 || u.Cached%128 != 0 {
			t.Fatalf("%+v", r)
		}
		x := math.Log(float64(u.Input) / 1100)
		spread += x * x
		below += map[bool]int{true: 1}[x < 0]
		median += map[bool]int{true: 1}[u.Output < 150]
		cut += map[bool]int{true: 1}[u.Output == 300]
		cached += map[bool]int{true: 1}[u.Cached > 0]
	}
	// 300 is 0.70 deviations above the median: 24 % are cut. The input is at least 1024 where it is above −0.72 deviations: 76 %.
	tolerance := map[string]float64{"spread": 0.006, "input below the estimate": 0.06, "output below the median": 0.06, "output cut": 0.05, "cached": 0.05}
	for what, share := range map[string][2]float64{"input below the estimate": {float64(below) / n, 0.5}, "output below the median": {float64(median) / n, 0.5},
		"output cut": {float64(cut) / n, 0.242}, "cached": {float64(cached) / n, 0.25 * 0.764}, "spread": {math.Sqrt(spread / n), 0.1}} {
		if math.Abs(share[0]-share[1]) > tolerance[what] {
			t.Errorf("%s: %v, want %v", what, share[0], share[1])
		}
	}
	if r := l.Report(); len(r.Accounts) != 1 || len(r.Accounts[0].Limits) != 0 {
		t.Errorf("%+v", r)
	}
}

// The same requests in the same order meet the same fate, whatever else they ask for.
func TestLLMSeed(t *testing.T) {
	run := func(seed uint64, body string) (s string) {
		l := newServer(t, llm.Config{Seed: seed, Faults: map[llm.Fault]float64{llm.Refused: 0.5}})
		for range 40 {
			s += strconv.Itoa(ask(l, chat, "k", body).Code) + " "
		}
		return s
	}
	a, b, c := run(1, prompt(1, 1)), run(1, prompt(9, 5)), run(2, prompt(1, 1))
	if a != b || a == c || strings.Count(a, "429") < 10 || strings.Count(a, "200") < 10 {
		t.Errorf("%s\n%s\n%s", a, b, c)
	}
}

// Where any key will do, memory is bounded, and no key is written down.
func TestLLMStrangers(t *testing.T) {
	var log bytes.Buffer
	l := newServer(t, llm.Config{LogTo: &log})
	codes := map[int]int{}
	for i := range 1100 {
		codes[ask(l, chat, fmt.Sprintf("sk-secret-%d", i), prompt(1, 1)).Code]++
	}
	if codes[200] != 1000 || codes[401] != 100 {
		t.Errorf("%v", codes)
	}
	if strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), `"key":"key 1000"`) {
		t.Error("the log has keys")
	}
}

func TestLLMRefusesBadConfig(t *testing.T) {
	for want, c := range map[string]llm.Config{
		"no Provider(7)":                       {Provider: 7},
		`Keys: "a" is empty or there twice`:    {Keys: []string{"a", "a"}},
		`Models: "" is empty`:                  {Models: []string{""}},
		"Limits.Window 1.5ms":                  {Limits: llm.Limits{Window: 1500 * time.Microsecond}},
		"Limits.Tokens 1099511627777 is above": {Limits: llm.Limits{Tokens: 1<<40 + 1}},
		`ModelLimits["x"].Window -1s`:          {ModelLimits: map[string]llm.Limits{"x": {Window: -time.Second}}},
		"no Count 9":                           {Count: 9},
		"RefusedCount without Rolling":         {RefusedCount: true},
		"PerSecond of openai, Rolling true":    {Rolling: true, Limits: llm.Limits{PerSecond: true}},
		"PerSecond of anthropic":               {Provider: llm.Anthropic, ModelLimits: map[string]llm.Limits{"x": {PerSecond: true}}},
		"Limits.PerSecond with a Window of 1m": {Limits: llm.Limits{PerSecond: true, Window: time.Millisecond}},
		"Law.Spread NaN":                       {Law: llm.Law{Spread: math.NaN()}},
		"OutputMedian 10 and OutputP99 9":      {Law: llm.Law{OutputMedian: 10, OutputP99: 9}},
		"Law.Cached 2":                         {Law: llm.Law{Cached: 2}},
		"Law.Reasoning -1":                     {Law: llm.Law{Reasoning: -1}},
		"TokensPerSecond NaN":                  {TokensPerSecond: math.NaN()},
		"EventTokens -1":                       {EventTokens: -1},
		"Credit -1":                            {Credit: -1},
		"cut with probability -0.1":            {Faults: map[llm.Fault]float64{llm.Cut: -0.1}},
		"probabilities are 1.2 together":       {Faults: map[llm.Fault]float64{llm.Cut: 0.6, llm.Reset: 0.6}},
		"Faults: ok is what happens otherwise": {Faults: map[llm.Fault]float64{llm.NoFault: 0.5}},
		"Faults: there is no Fault(99)":        {Faults: map[llm.Fault]float64{99: 0.5}},
		"Script[1]: there is no Fault(99)":     {Script: []llm.Fault{0, 99}},
	} {
		if _, err := llm.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
	if _, err := llm.ParseFault("fire"); err == nil || !strings.Contains(err.Error(), `"fire": want one of ok, 429,`) {
		t.Errorf("%v", err)
	}
}

// FuzzLLMBody: whatever a body has, the answer is a status that the provider knows with JSON, or a stream, and a request that
// passed has an estimate and usage within what it allows itself.
func FuzzLLMBody(f *testing.F) {
	for _, body := range []string{
		prompt(3, 4), `{"model":"m","stream":true,"n":3,"max_tokens":9,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
		`{"model":"m","input":["a","b"],"dimensions":4}`, `{"model":"m","input":[[1],[2]],"dimensions":1,"encoding_format":"base64"}`,
		`{"model":"m","max_output_tokens":7,"stream":true,"instructions":"x","input":[{"role":"user","content":"é\ud800"}]}`,
		`{"model":"m","max_tokens":1e9,"messages":[]}`, `{"model":"m","max_tokens":-1}`, `[]`, `{"a":`, `{"model":"m","tools":[{"x":1}],"max_tokens":4,"messages":[{"role":"user","content":null}]}`,
	} {
		for api := range uint8(4) {
			f.Add(api, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, api uint8, body []byte) {
		path := []string{chat, responses, embeddings, messages}[api%4]
		c := llm.Config{Limits: llm.Limits{Requests: 5}, EventTokens: 1000}
		if path == messages {
			c.Provider = llm.Anthropic
		}
		var log bytes.Buffer
		c.LogTo = &log
		l := newServer(t, c)
		w := ask(l, path, "k", string(body))
		l.Close()
		var line llm.Line
		if err := json.Unmarshal([]byte(strings.SplitN(log.String(), "\n", 2)[0]), &line); err != nil {
			t.Fatal(err)
		}
		switch w.Code {
		case 200:
			most := cmp.Or(line.MaxOutput, 16_384)
			if line.Estimate < 1 || line.Estimate > int64(len(body))*perMedium || line.Used.Input < 1 || line.Used.Output > most || path != embeddings && line.Used.Output < 1 {
				t.Errorf("%+v", line)
			}
			if line.Stream {
				if _, _, err := watch(t, path, true, w.Body); err != nil && !errors.Is(err, tokens.ErrNoUsage) {
					t.Error(err)
				}
				return
			}
		case 400, 404:
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s", w.Body)
		}
	})
}

// fewer is a budget, smaller under the race detector.
func fewer(n uint64) uint64 {
	if race.Enabled {
		return n / 4
	}
	return n
}

// perMedium is what a picture counts.
const perMedium = 765

func BenchmarkLLM(b *testing.B) {
	for name, body := range map[string]string{"whole": prompt(300, 200), "stream": strings.Replace(prompt(300, 200), "{", `{"stream":true,`, 1)} {
		b.Run(name, func(b *testing.B) {
			l := newServer(b, llm.Config{Limits: llm.Limits{Requests: 1 << 30, Tokens: 1 << 40}, Truth: uses(300, 0, 150)})
			b.ReportAllocs()
			for b.Loop() {
				if w := ask(l, chat, "k", body); w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
