package llm_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
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

// uses gives every request the same usage.
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

// prompt returns a chat or messages body with that many tokens of input.
func prompt(inputTokens, maxTokens int) string {
	bound := ""
	if maxTokens > 0 {
		bound = fmt.Sprintf(`"max_tokens":%d,`, maxTokens)
	}
	return fmt.Sprintf(`{"model":"m",%s"messages":[{"role":"user","content":%q}]}`, bound, strings.Repeat("four", inputTokens))
}

func at(start time.Time, d time.Duration) { time.Sleep(time.Until(start.Add(d))) }

// The usage of requests varies about their size, and stays within the allowed output.
func TestLLMLaw(t *testing.T) {
	race.Without(t) // one request after another
	var log bytes.Buffer
	l := newServer(t, llm.Config{Limits: llm.Limits{Requests: -1, Input: -1, Output: -1, Tokens: -1}, LogTo: &log, Law: llm.Law{Cached: 0.25}})
	n := 4000.0
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
	// 300 is 0.70 deviations above the median: 24 % are cut. The input is at least 1024 if it is
	// above −0.72 deviations: 76 %.
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

// The same requests in the same order get the same draws, whatever else they ask for.
func TestLLMSeed(t *testing.T) {
	run := func(seed uint64, body string) (s string) {
		l := newServer(t, llm.Config{Seed: seed, Faults: map[string]float64{"429": 0.5}})
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

// A server that accepts any key bounds its memory, and writes no key to the log.
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
		"no Provider(7)":                                             {Provider: 7},
		`Keys: "a" is empty or there twice`:                          {Keys: []string{"a", "a"}},
		`Models: "" is empty`:                                        {Models: []string{""}},
		"Limits.Window 1.5ms":                                        {Limits: llm.Limits{Window: 1500 * time.Microsecond}},
		"Limits.Tokens 1099511627777 is above":                       {Limits: llm.Limits{Tokens: 1<<40 + 1}},
		`ModelLimits["x"].Window -1s`:                                {ModelLimits: map[string]llm.Limits{"x": {Window: -time.Second}}},
		`no Count "nine"`:                                            {Count: "nine"},
		"RefusedCount without Rolling":                               {RefusedCount: true},
		"PerSecond of openai, Rolling true":                          {Rolling: true, Limits: llm.Limits{PerSecond: true}},
		"PerSecond of anthropic":                                     {Provider: llm.Anthropic, ModelLimits: map[string]llm.Limits{"x": {PerSecond: true}}},
		"Limits.PerSecond with a Window of 1m":                       {Limits: llm.Limits{PerSecond: true, Window: time.Millisecond}},
		"Law.Spread NaN":                                             {Law: llm.Law{Spread: math.NaN()}},
		"OutputMedian 10 and OutputP99 9":                            {Law: llm.Law{OutputMedian: 10, OutputP99: 9}},
		"Law.Cached 2":                                               {Law: llm.Law{Cached: 2}},
		"Law.Reasoning -1":                                           {Law: llm.Law{Reasoning: -1}},
		"TokensPerSecond NaN":                                        {TokensPerSecond: math.NaN()},
		"EventTokens -1":                                             {EventTokens: -1},
		"Credit -1":                                                  {Credit: -1},
		"cut with probability -0.1":                                  {Faults: map[string]float64{"cut": -0.1}},
		"probabilities are 1.2 together":                             {Faults: map[string]float64{"cut": 0.6, "reset": 0.6}},
		"Faults: ok is what happens otherwise":                       {Faults: map[string]float64{"ok": 0.5}},
		`Faults: no fault is called "fire"`:                          {Faults: map[string]float64{"fire": 0.5}},
		`Script[1]: no fault is called "fire": want one of ok, 429,`: {Script: []string{"", "fire"}},
	} {
		if _, err := llm.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}

// FuzzLLMBody: for any body, the answer has a status of the provider with JSON, or is a stream. A
// request that passed has an estimate, and usage within the allowed amounts.
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

// fewer returns a smaller budget under the race detector.
func fewer(n uint64) uint64 {
	if race.Enabled {
		return n / 4
	}
	return n
}

// perMedium is the tokens of a picture.
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
