package meter

import "testing"

// Each provider says in its own word that an answer was cut at the bound of its output, in a document and in a
// stream. The same word elsewhere says nothing.
func TestIsCut(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   bool
	}{
		{`{"choices":[{"finish_reason":"stop"},{"finish_reason":"length"}]}`, true},
		{`{"choices":[{"finish_reason":"stop","message":{"content":"\"length\""}}]}`, false},
		{`{"choices":[{"finish_reason":null,"message":{"content":"finish_reason\":\"length\""}}],"x":"length"}`, false},
		{`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"max_output_tokens":5}`, true},
		{`{"status":"completed","incomplete_details":null,"max_output_tokens":5}`, false},
		{`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"a":"max_tokens"}`, false},
		{`{"stop_reason":"max_tokens"}`, true},
		{`{"stop_reason":"end_turn","content":[{"text":"max_tokens"}]}`, false},
		{`{"candidates":[{"finishReason":"MAX_TOKENS"}]}`, true},
		{`{"stopReason":"max_tokens"}`, true},
		{`{"finish_reason":"MAX_TOKENS"}`, true},
		{`{"done_reason":"length"}`, true},
		{"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\r\n\r\ndata: [DONE]\n\n", true},
		{"data: {\"choices\":[{\"delta\":{\"content\":\"length\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", false},
		{"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\n", true},
		{"event: response.incomplete\ndata: {\"response\":{\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n", true},
		{"{\"stop_reason\":\"end_turn\",\"quoted\":\n{\"stop_reason\":\"max_tokens\"}\n}", false},
		{"", false},
		{`"length"`, false},
	} {
		if got := IsCut([]byte(c.answer)); got != c.want {
			t.Errorf("%s: %v", c.answer, got)
		}
	}
}
