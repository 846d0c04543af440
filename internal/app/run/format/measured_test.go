package format

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
)

// A request is counted with the bound that it is sent with, and not with its own.
func TestMeasuredWithTheBoundOfTheRun(t *testing.T) {
	l, err := NewLLM(LLMConfig{Provider: OpenAI, BaseURL: "http://h/v1"})
	if err != nil {
		t.Fatal(err)
	}
	const line = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":9000,"messages":[]}}`
	r := NewReader(l, "in", strings.NewReader(line+"\n"), InputLimits{})
	if r.Meter, err = meter.New(meter.Config{Host: "h", Count: tokens.Sum, MaxTokens: 500}); err != nil {
		t.Fatal(err)
	}
	q, err := r.Next()
	if err != nil || q.Estimate.MaxOutput != 500 || q.Cost[limit.Tokens] > 600 || !strings.Contains(string(q.Body), `"max_tokens":500`) {
		t.Errorf("%v: %+v, %v, sent as %s", err, q.Estimate, q.Cost, q.Body)
	}
}
