package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
)

func readLLM(t testing.TB, c LLMConfig, text string) (all []*Request, errs []string) {
	t.Helper()
	l, err := NewLLM(c)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(l, "in.jsonl", strings.NewReader(text), InputLimits{Line: 400, Body: 200})
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
		all, errs := readLLM(t, LLMConfig{Limits: []Rate{minuteLimit(30_000, limit.Tokens, true)}}, c.line)
		if len(all) != 0 || len(errs) != 1 || errs[0] != "in.jsonl:"+c.want {
			t.Errorf("%s\n got %v\nwant in.jsonl:%s", c.line, errs, c.want)
		}
	}
}

// An estimate of the input is no proof that a request never goes. It costs all of the limit.
func TestLLMEstimateIsNoProof(t *testing.T) {
	input, output := minuteLimit(10, limit.Input, true), minuteLimit(1000, limit.Output, true)
	line := `{"custom_id":"a","params":{"model":"claude-x","max_tokens":2000,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 20) + `"}]}}`
	all, errs := readLLM(t, LLMConfig{Provider: Anthropic, Limits: []Rate{input, output}}, line)
	if len(errs) > 0 || len(all) != 1 || all[0].Cost[limit.Input] != input.Most() || all[0].Estimate.Input <= input.Most() {
		t.Errorf("%+v, %v", all[0], errs)
	}
	line = `{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"max_output_tokens":31,"model":"m","input":"hi"}}`
	if all, errs := readLLM(t, LLMConfig{Limits: []Rate{minuteLimit(30, limit.Tokens, true)}}, line); len(all) > 0 || len(errs) != 1 {
		t.Errorf("its most output is stated, and more than the limit: %+v, %v", all, errs)
	}
}

func TestLLMInput(t *testing.T) {
	const line = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body": {"model":"gpt-4o","n":2,"max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}}`
	for _, c := range []struct {
		config LLMConfig
		url    string
		tokens int64
		input  int64 // as the body is, if the counting is not published
	}{
		{LLMConfig{}, "https://api.openai.com/v1/chat/completions", 200, 8},
		{LLMConfig{BaseURL: "http://h:1/v1/", Count: tokens.Sum}, "http://h:1/v1/chat/completions", 222, 22},
		{LLMConfig{BaseURL: "http://h:1/v1/"}, "http://h:1/v1/chat/completions", 222, 22}, // the counting is not known
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
	// A request without a bound may output what its model can, or MaxOutput. It counts with its
	// input alone, or with that bound.
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

// Any line is refused with its place, or it can be sent and its result can be read again.
// seeds are lines of both forms.
var seeds = map[Provider]string{
	OpenAI: `{"custom_id":"p0","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":50,"messages":[{"role":"user","content":"rain falls on"}]}}
{"custom_id":"p3","method":"POST","url":"/v1/responses","body":{"model":"gpt-4o","max_output_tokens":60,"input":"rain falls on rain"}}
{"custom_id":"p4","method":"POST","url":"/v1/embeddings","body":{"model":"text-embedding-3-small","input":["rain","falls"]}}
`,
	Anthropic: `{"custom_id":"p0","params":{"model":"claude-sonnet-4","max_tokens":50,"messages":[{"role":"user","content":"rain falls on"}]}}
`,
}

func FuzzLLMLine(f *testing.F) {
	for _, p := range []Provider{OpenAI, Anthropic} {
		for line := range strings.Lines(seeds[p]) {
			f.Add(uint8(p), []byte(line))
		}
	}
	f.Add(uint8(0), []byte(`{"custom_id":"\u0000\ud800","method":"POST","url":"/v1/embeddings","body":{"input":[1,2]}}`))
	f.Add(uint8(1), []byte(`{"custom_id":"x","params":{"max_tokens":1e99}}`))
	f.Add(uint8(0), []byte(`{"custom_id":"x","body":{}`))
	f.Fuzz(func(t *testing.T, p uint8, text []byte) {
		provider := Provider(p % 2)
		l, err := NewLLM(LLMConfig{Provider: provider, Limits: []Rate{minuteLimit(1000, limit.Tokens, true)}})
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(l, "in", bytes.NewReader(text), InputLimits{Line: 2000})
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
				line := l.Line(nil, &result)
				e, ok := l.Entry(line, false)
				if !ok || e.ID != q.ID || e.State != result.State || bytes.Count(line, []byte("\n")) != 1 || !strings.HasPrefix(string(line), l.Start()) {
					t.Fatalf("%s is read as %+v, %v", line, e, ok)
				}
			}
		}
	})
}

// minuteLimit is a limit for a minute.
func minuteLimit(n int64, unit limit.Unit, bucket bool) Rate {
	return Rate{N: n, Per: time.Minute, Unit: unit, Bucket: bucket, Text: fmt.Sprintf("%d/m %v", n, unit)}
}
