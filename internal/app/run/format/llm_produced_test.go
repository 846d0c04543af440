package format

import (
	"testing"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
)

// Output that counts as it is produced is not reserved. An estimate of a request does not bound it.
func TestLLMProducedIsBoundedByWhatItMayCome(t *testing.T) {
	limits := []Rate{minuteLimit(1000, limit.Output, true), minuteLimit(30_000, limit.Input, true)}
	l, err := NewLLM(LLMConfig{Provider: Anthropic, Overrun: 0.05, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	body, err := tokens.Parse(tokens.Messages, []byte(`{"model":"claude-sonnet-4","max_tokens":4096,"messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l.estimator.Learn(l.estimator.Of(body), tokens.Usage{Input: 10, Output: 20})
	}
	var q Request
	if l.estimate(&q, body, false); q.Estimate.Output != 20 || q.Cost[limit.Output] != 4096 || l.tooLarge("m", q.Cost) {
		t.Errorf("%+v: %v", q.Estimate, q.Cost)
	}
	if drawn := l.Drawn(limits); !drawn[0].Produced || drawn[1].Produced || limits[0].Produced {
		t.Errorf("%+v of %+v", drawn, limits)
	}
}
