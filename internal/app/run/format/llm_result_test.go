package format

import "testing"

// An answer reports its tokens of output under either name. Zero tokens are a report, too: a plan divides by all
// answers that report.
func TestOutputOf(t *testing.T) {
	for _, c := range []struct {
		body   string
		tokens int64
		ok     bool
	}{
		{`{"usage":{"prompt_tokens":8,"completion_tokens":5}}`, 5, true},
		{`{"usage":{"input_tokens":8,"output_tokens":6}}`, 6, true},
		{`{"usage":{"prompt_tokens":8,"completion_tokens":0}}`, 0, true},
		{`{"usage":{"input_tokens":8,"output_tokens":0}}`, 0, true},
		{`{"usage":{"completion_tokens":-1,"output_tokens":6}}`, 6, true},
		{`{"usage":{"output_tokens":-1}}`, 0, false},
		{`{"usage":{"prompt_tokens":8}}`, 0, false}, // embeddings
		{`{"id":"x"}`, 0, false}, {`"text"`, 0, false}, {``, 0, false},
	} {
		if tokens, ok := OutputOf([]byte(c.body)); tokens != c.tokens || ok != c.ok {
			t.Errorf("%s: %d, %v, want %d, %v", c.body, tokens, ok, c.tokens, c.ok)
		}
	}
}
