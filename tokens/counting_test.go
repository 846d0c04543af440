package tokens_test

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/tokens"
)

func TestCounting(t *testing.T) {
	hello := `{"model":"claude","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`
	unbounded := `{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}`
	long := `{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"` + strings.Repeat("understandable ", 100) + `"}]}`
	tools := `{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"` + strings.Repeat("f", 400) + `"}}]}`
	escaped := `{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"` + strings.Repeat(`\u0414\u0430 `, 300) + `"},
		{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("AAAA", 9000) + `","detail":"low"}}]}]}`
	used := tokens.Usage{Input: 40, CachedInput: 30, Output: 7, Total: 50}
	e := newEstimator(t, tokens.Config{})
	type three [3]int64
	for _, c := range []struct {
		name    string
		count   tokens.Counting
		api     tokens.API
		body    string
		input   int64 // at least, and at most 1.5 times as much
		output  int64
		total   func(in int64) int64
		least   three
		settled three // the zero value: what was reserved stands
	}{
		{"a chat, reserved", tokens.Reserved, tokens.Chat, hello, 8, 100, func(int64) int64 { return 100 }, three{1, 100, 100}, three{}},
		{"a chat, reserved, without a bound", tokens.Reserved, tokens.Chat, unbounded, 8, 16384, func(in int64) int64 { return in }, three{1, 1, 1}, three{}},
		{"nobody knows", tokens.Documented, tokens.Chat, hello, int64(len(hello)) / 4, 100, func(in int64) int64 { return in + 100 }, three{1, 100, 101}, three{}},
		{"without a bound, summed", tokens.Sum, tokens.Chat, unbounded, int64(len(unbounded)) / 4, 16384, func(in int64) int64 { return in + 16384 }, three{1, 1, 1}, three{}},
		{"a long prompt: a token per four characters", tokens.Reserved, tokens.Chat, long, 375, 5, func(in int64) int64 { return in }, three{1, 5, 5}, three{}},
		{"tools as they stand", tokens.Reserved, tokens.Chat, tools, int64(len(tools)) / 4, 5, func(in int64) int64 { return in }, three{1, 5, 5}, three{}},
		{"a chat, used", tokens.Used, tokens.Chat, hello, 8, 100, func(in int64) int64 { return in + 100 }, three{1, 100, 101}, three{40, 7, 50}},
		{"messages, produced", tokens.Produced, tokens.Messages, hello, 8, 100, func(in int64) int64 { return in + 100 }, three{1, 0, 1}, three{10, 7, 17}},
		{"messages, reserved", tokens.Reserved, tokens.Messages, hello, 8, 100, func(int64) int64 { return 100 }, three{1, 100, 100}, three{}},
		{"input alone", tokens.Input, tokens.Chat, hello, 8, 0, func(in int64) int64 { return in }, three{1, 0, 1}, three{40, 0, 40}},
		{"escapes are not text, media neither", tokens.Sum, tokens.Chat, escaped, 300, 5, func(in int64) int64 { return in + 5 }, three{1, 5, 6}, three{}},
	} {
		b, err := tokens.Parse(c.api, []byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		est := e.Of(b)
		in, out, total := c.count.Reserve(est, b)
		if in < c.input || in > 3*c.input/2 || out != c.output || total != c.total(in) {
			t.Errorf("%s: reserves %d, %d, %d", c.name, in, out, total)
		}
		var least, settled three
		if least[0], least[1], least[2] = c.count.Least(est, b); least != c.least {
			t.Errorf("%s: at least %d, of %d, %d, %d", c.name, least, in, out, total)
		}
		var ok bool
		settled[0], settled[1], settled[2], ok = c.count.Settle(est, used)
		if ok != (c.settled != three{}) || settled != c.settled || ok != c.count.Corrected() {
			t.Errorf("%s: settles %d, %v", c.name, settled, ok)
		}
	}
}

// Documented stands for the Counting in the provider's row. For an unknown provider it is the
// larger reading.
func TestCountingOfAProvider(t *testing.T) {
	for _, c := range []struct {
		count, documented, want tokens.Counting
	}{
		{tokens.Documented, tokens.Reserved, tokens.Reserved}, {tokens.Documented, tokens.Produced, tokens.Produced},
		{tokens.Documented, tokens.Input, tokens.Input}, {tokens.Documented, tokens.Documented, tokens.Sum},
		{tokens.Used, tokens.Sum, tokens.Used}, {tokens.Sum, tokens.Documented, tokens.Sum},
	} {
		if got := c.count.Of(c.documented); got != c.want {
			t.Errorf("%v of %v is %v, want %v", c.count, c.documented, got, c.want)
		}
	}
}

func TestCountingNames(t *testing.T) {
	for c := tokens.Documented; c <= tokens.Input; c++ {
		if got, err := tokens.ParseCounting(c.String()); err != nil || got != c {
			t.Error(got, err)
		}
	}
	if _, err := tokens.ParseCounting("guess"); err == nil || !strings.Contains(err.Error(), `"guess"`) || tokens.Counting(9).String() != "Counting(9)" {
		t.Error(err)
	}
}

// Bedrock counts a token of output of Anthropic's later models five times, when it reserves and
// when the answer is there. It does not count input from a cache.
func TestBurndown(t *testing.T) {
	for model, want := range map[string]int64{
		"anthropic.claude-sonnet-4-5-20250929-v1:0": 5, "us.anthropic.claude-opus-4-20250514-v1:0": 5, "anthropic.claude-3-7-sonnet-20250219-v1:0": 5,
		"anthropic.claude-3-5-haiku-20241022-v1:0": 1, "anthropic.claude-v2:1": 1, "anthropic.claude-instant-v1": 1, "amazon.nova-lite-v1:0": 1,
		"arn:aws:bedrock:us-east-1:1234:application-inference-profile/abc": 5, "arn:aws:bedrock:us-east-1::foundation-model/meta.llama3": 1,
	} {
		for api, others := range map[tokens.API]int64{tokens.Converse: want, tokens.Invoke: want, tokens.Messages: 1} {
			e := tokens.Estimate{API: api, Model: model, Input: 100, Output: 1000}
			if in, out, total := tokens.Used.Reserve(e, tokens.Body{}); in != 100 || out != 1000*others || total != 100+1000*others {
				t.Errorf("%v of %s reserves %d, %d, %d", api, model, in, out, total)
			}
			in, out, total, ok := tokens.Used.Settle(e, tokens.Usage{Input: 110, CachedInput: 40, Output: 20, Total: 130})
			if !ok || in != 70 || out != 20*others || total != 70+20*others {
				t.Errorf("%v of %s counts %d, %d, %d, %v", api, model, in, out, total, ok)
			}
		}
	}
}
