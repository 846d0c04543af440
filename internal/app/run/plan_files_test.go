package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// The plan counts the files for a provider's batch API by the bytes of the input.
func TestFilesOfABatch(t *testing.T) {
	for lines, want := range map[int]int{10: 1, 2000: 1} { // a file for format.OpenAI has 200 MB
		llm, err := format.NewLLM(format.LLMConfig{Provider: format.OpenAI})
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t)
		b.config.Format, b.config.Prices = llm, Prices{Input: 1, Output: 1}
		b.config.Header, _ = format.ParseHeaders([]string{format.OpenAI.KeyHeader()})
		b.config.Keys = []format.Key{{Name: "A", Secret: "s3cret-Of-9a7Kq"}}
		b.config.Notice = func(string) {}
		r := b.made(b.config)
		line := `{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"` + strings.Repeat("x ", 500) + `"}]}}` + "\n"
		var text strings.Builder
		for i := range lines {
			fmt.Fprintf(&text, line, i)
		}
		if err := r.Check("in", strings.NewReader(text.String())); err != nil {
			t.Fatal(err)
		}
		plan := r.Plan(b.config.Until)
		if plan.Batch == nil || plan.Batch.Files != want || plan.Bytes != int64(text.Len()) {
			t.Errorf("%d lines of %d bytes: %+v", lines, text.Len(), plan.Batch)
		}
	}
}
