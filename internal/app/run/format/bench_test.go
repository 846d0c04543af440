package format

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// BenchmarkReadBatch checks a batch of a thousand prompts, as a run does before it sends.
func BenchmarkReadBatch(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, `{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o",`+
			`"max_tokens":200,"messages":[{"role":"user","content":%q}]}}`+"\n", i, strings.Repeat("rain falls on the plain ", 30))
	}
	l, err := NewLLM(LLMConfig{LimitsOf: "openai"})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		r := NewReader(l, "in", strings.NewReader(text.String()), InputLimits{})
		r.Pass = Checking
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
		err = nil
	}
}
