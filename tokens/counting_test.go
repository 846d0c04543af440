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
	used := tokens.Usage{Input: 40, CachedInput: 30, Output: 7, Total: 50}
	e := newEstimator(t, tokens.Config{})
	for _, c := range []struct {
		name           string
		count          tokens.Counting
		api            tokens.API
		body           string
		output         int64
		total          func(input int64) int64
		settled        bool
		input, in, all int64 // at least; and what it is settled with
	}{
		{"a chat, as documented", tokens.Documented, tokens.Chat, hello, 100, func(int64) int64 { return 100 }, false, 8, 0, 0},
		{"without a bound", tokens.Documented, tokens.Chat, unbounded, 16384, func(in int64) int64 { return in }, false, 8, 0, 0},
		{"without a bound, summed", tokens.Sum, tokens.Chat, unbounded, 16384, func(in int64) int64 { return in + 16384 }, false, 8, 0, 0},
		{"a long prompt: a token per four characters", tokens.Reserved, tokens.Chat, long, 5, func(in int64) int64 { return in }, false, 375, 0, 0},
		{"tools as they stand", tokens.Reserved, tokens.Chat, tools, 5, func(in int64) int64 { return in }, false, int64(len(tools)) / 4, 0, 0},
		{"a chat, used", tokens.Used, tokens.Chat, hello, 100, func(in int64) int64 { return in + 100 }, true, 8, 40, 50},
		{"messages, as documented", tokens.Documented, tokens.Messages, hello, 100, func(in int64) int64 { return in + 100 }, true, 8, 10, 17},
		{"messages, reserved", tokens.Reserved, tokens.Messages, hello, 100, func(int64) int64 { return 100 }, false, 8, 0, 0},
	} {
		b, err := tokens.Parse(c.api, []byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		est := e.Of(b)
		in, out, total := c.count.Reserve(est, b)
		if in < c.input || in > 2*c.input || out != c.output || total != c.total(in) {
			t.Errorf("%s: reserves %d, %d, %d", c.name, in, out, total)
		}
		in, out, total, ok := c.count.Settle(est, used)
		if ok != c.settled || ok && (in != c.in || out != 7 || total != c.all) {
			t.Errorf("%s: settles %d, %d, %d, %v", c.name, in, out, total, ok)
		}
	}
}

func TestCountingNames(t *testing.T) {
	for c := tokens.Documented; c <= tokens.Used; c++ {
		if got, err := tokens.ParseCounting(c.String()); err != nil || got != c {
			t.Error(got, err)
		}
	}
	if _, err := tokens.ParseCounting("guess"); err == nil || !strings.Contains(err.Error(), `"guess"`) || tokens.Counting(9).String() != "Counting(9)" {
		t.Error(err)
	}
}
