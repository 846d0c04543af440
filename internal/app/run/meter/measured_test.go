package meter

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
)

func minuteLimit(n int64, unit limit.Unit) rate.Limit {
	return rate.Limit{N: n, Per: time.Minute, Unit: unit, Bucket: true, Text: fmt.Sprintf("%d/m %v", n, unit)}
}

func newMeter(t testing.TB, c Config) *Meter {
	t.Helper()
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func parsed(t testing.TB, api tokens.API, text string) tokens.Body {
	t.Helper()
	body, err := tokens.Parse(api, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Output that counts as it is produced is not reserved. An estimate of a request does not bound it.
func TestProducedIsBoundedByWhatMayCome(t *testing.T) {
	limits := []rate.Limit{minuteLimit(1000, limit.Output), minuteLimit(30_000, limit.Input)}
	m := newMeter(t, Config{API: tokens.Messages, Overrun: 0.05, Limits: limits})
	body := parsed(t, tokens.Messages, `{"model":"claude-sonnet-4","max_tokens":4096,"messages":[{"role":"user","content":"Hello"}]}`)
	for range 100 {
		m.Settle(m.estimator.Of(body), limit.Cost{}, tokens.Usage{Input: 10, Output: 20})
	}
	if q, err := m.Measure(body, false, false); err != nil || q.Estimate.Output != 20 || q.Cost[limit.Output] != 4096 {
		t.Errorf("%+v: %v, %v", q.Estimate, q.Cost, err)
	}
	if drawn := m.Drawn(limits); !drawn[0].Produced || drawn[1].Produced || limits[0].Produced {
		t.Errorf("%+v of %+v", drawn, limits)
	}
}

// Most of many requests are guessed, corrected by the counted ones. A request that may be too large
// for a limit is counted.
func TestWhatMayBeTooLargeIsCounted(t *testing.T) {
	m := newMeter(t, Config{Limits: []rate.Limit{minuteLimit(2000, limit.Tokens)}})
	of := func(text string) (roughly, exactly int64) {
		b := parsed(t, tokens.Chat, fmt.Sprintf(`{"model":"gpt-4o","max_tokens":1,"messages":[{"role":"user","content":%q}]}`, text))
		rough, _ := m.Measure(b, true, false)
		exact, _ := m.Measure(b, false, false)
		return rough.Estimate.Input, exact.Estimate.Input
	}
	for range 200 {
		of("rain falls on the plain")
	}
	digits := strings.Repeat("7 3 9 0 4 ", 40) // unlike all earlier texts
	if roughly, exactly := of(digits); roughly == exactly {
		t.Errorf("all are counted, or both come to %d", exactly)
	}
	if roughly, exactly := of(strings.Repeat(digits, 12)); roughly != exactly {
		t.Errorf("guessed as %d, and it counts %d", roughly, exactly)
	}
}

// A request costs as much as its estimate at least, whether its input is counted or guessed. Where all are alike, the guess is
// what was counted.
func TestGuessesCost(t *testing.T) {
	m := newMeter(t, Config{Limits: []rate.Limit{minuteLimit(2000, limit.Tokens)}})
	b := parsed(t, tokens.Chat, `{"model":"gpt-4o","max_tokens":7,"messages":[{"role":"user","content":"rain falls on the plain"}]}`)
	counted := m.estimator.Of(b).Input
	if rough := m.rough.Of(b).Input; rough == counted {
		t.Fatalf("without a correction it is guessed as %d, too", rough)
	}
	for n := range 300 { // from the 201st on it is guessed
		q, err := m.Measure(b, true, false)
		if q.Estimate.Input != counted {
			t.Fatalf("request %d: %d tokens of input, want %d", n, q.Estimate.Input, counted)
		}
		if least := q.Estimate.Input + 7; err != nil || q.Cost[limit.Tokens] < least || q.Cost[limit.Requests] != 1 {
			t.Fatalf("request %d: %v of %+v, %v; want %d tokens at least", n, q.Cost, q.Estimate, err, least)
		}
	}
}

// What the input alone makes too large is only an estimate: it goes alone. Output that a request asks for is
// none, and an answer since the check may have raised it.
func TestTooLarge(t *testing.T) {
	m := newMeter(t, Config{Limits: []rate.Limit{minuteLimit(1000, limit.Tokens), {N: 50, Per: time.Minute,
		Unit: limit.Tokens, Bucket: true, Model: "gpt-4.1", Text: "50/m"}}, MaxOutput: 10})
	of := func(body string, checked bool) (Measured, error) {
		return m.Measure(parsed(t, tokens.Chat, body), false, checked)
	}
	long := fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":%q}]}`, strings.Repeat("rain ", 3000))
	if q, err := of(long, false); err != nil || q.Cost[limit.Tokens] != 1000 || !q.Unbounded {
		t.Errorf("a long input: %+v, %v", q, err)
	}
	_, err := of(`{"model":"gpt-4o","max_tokens":2000}`, false)
	if large, is := errors.AsType[*TooLarge](err); !is || large.Limit.N != 1000 || !strings.Contains(err.Error(), "at most 2000 out") {
		t.Errorf("much output: %v", err)
	}
	if q, err := of(`{"model":"gpt-4o","max_tokens":2000}`, true); err != nil || q.Cost[limit.Tokens] != 1000 || q.Unbounded {
		t.Errorf("much output, checked: %+v, %v", q, err)
	}
	if _, err := of(`{"model":"gpt-4.1","max_tokens":60}`, false); err == nil || !strings.Contains(err.Error(), "limit 50/m allows 50") {
		t.Errorf("beyond the limit of its model: %v", err)
	}
}

// A body counts by its path, whatever the host. The model may be in the URL.
func TestBody(t *testing.T) {
	for _, c := range []struct{ method, url, body, model, wrong string }{
		{http.MethodPost, "http://h/openai/v1/chat/completions?x=1", `{"model":"m"}`, "m", ""},
		{http.MethodPost, "https://h/openai/deployments/four/chat/completions", `{}`, "four", ""},
		{http.MethodPost, "https://h/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[]}`, "gemini-2.5-pro", ""},
		{http.MethodGet, "https://h/v1/chat/completions", `{}`, "", "the tokens of GET /v1/chat/completions cannot be counted, expected POST to a path that ends in /chat/completions"},
		{http.MethodPost, "https://h/v1/images%2F", `{}`, "", "the tokens of POST /v1/images%2F cannot be counted"},
		{http.MethodPost, "https://h/v1/messages", `[]`, "", "messages request: malformed body: not a JSON object"},
		{http.MethodPost, "https://h/v1/messages", "", "", "messages request: malformed body: unexpected end of JSON input"},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := Body(c.method, u, []byte(c.body))
		if c.wrong == "" && (err != nil || body.Model != c.model) || c.wrong != "" && (err == nil || !strings.HasPrefix(err.Error(), c.wrong)) {
			t.Errorf("%s %s: %q, %v", c.method, c.url, body.Model, err)
		}
	}
}

// The paths that the error names are of APIs.
func TestPathsAreKnown(t *testing.T) {
	n := 0
	for _, word := range strings.FieldsFunc(Paths, func(c rune) bool { return c == ' ' || c == ',' }) {
		if strings.ContainsAny(word[:1], "/:") {
			if n++; tokens.APIOf(word) == tokens.NoAPI {
				t.Errorf("%s is of no known API", word)
			}
		}
	}
	if n < 6 {
		t.Errorf("%d paths in %s", n, Paths)
	}
}

// The provider of a known host says how it counts and what it charges, and that of the limits says it for
// another host.
func TestProvider(t *testing.T) {
	for _, c := range []struct {
		config                   Config
		limitsOf, sells, dialect string
		own                      bool
		counts                   tokens.Counting
	}{
		{Config{Host: "api.openai.com"}, "openai", "openai", "openai", true, tokens.Reserved},
		{Config{Host: "api.groq.com"}, "groq", "groq", "groq", true, tokens.Sum},
		{Config{Host: "api.openai.com", LimitsOf: "groq"}, "groq", "openai", "openai", true, tokens.Sum},
		{Config{Host: "gateway:80"}, "", "openai", "openai", false, tokens.Sum},
		{Config{Host: "gateway:80", LimitsOf: "groq"}, "groq", "groq", "openai", false, tokens.Sum},
		{Config{Host: "gateway:80", LimitsOf: "openai"}, "openai", "openai", "openai", false, tokens.Reserved},
		{Config{Host: "gateway:80", API: tokens.Messages}, "anthropic", "anthropic", "anthropic", false, tokens.Produced},
		{Config{Host: "gateway:80", API: tokens.Messages, Count: tokens.Used}, "anthropic", "anthropic", "anthropic", false, tokens.Used},
	} {
		m := newMeter(t, c.config)
		if m.LimitsOf() != c.limitsOf || m.Seller() != c.sells || m.Dialect().Name() != c.dialect || m.IsOwn() != c.own || m.Count() != c.counts {
			t.Errorf("%+v: limits of %q, prices of %q, answers of %s, own %v, %v", c.config, m.LimitsOf(), m.Seller(), m.Dialect().Name(), m.IsOwn(), m.Count())
		}
	}
	if _, err := New(Config{Overrun: 0.05}); err == nil {
		t.Error("an estimate of output that counts as it is asked for")
	}
	limits := newMeter(t, Config{LimitsOf: "openai"}).Drawn([]rate.Limit{{Model: "gpt-4o-2024-08-06"}})
	if !slices.ContainsFunc(limits, func(l rate.Limit) bool { return l.Model == "gpt-4o" }) {
		t.Errorf("a model with a date has limits of its own: %+v", limits)
	}
}

// A model whose vocabulary is known has its tokens counted, and not estimated.
func TestCountsExactly(t *testing.T) {
	m := newMeter(t, Config{Host: "api.openai.com"})
	for model, want := range map[string]bool{"gpt-4o-mini": true, "a-model-of-nobody": false} {
		if got := m.CountsExactly(model); got != want {
			t.Errorf("%s: %v, want %v", model, got, want)
		}
	}
}
