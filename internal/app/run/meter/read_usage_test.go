package meter

import (
	"net/http"
	"testing"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
)

// A stream of events says the same as a document, and half of one is no answer.
func TestRead(t *testing.T) {
	const events = "text/event-stream; charset=utf-8"
	const chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
	const last = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n"
	for _, c := range []struct {
		name           string
		api            tokens.API
		kind, body     string
		in, out        int64
		stated, failed bool
		broken         error
	}{
		{"a document", tokens.Chat, "application/json", `{"usage":{"prompt_tokens":7,"completion_tokens":3}}`, 7, 3, true, false, nil},
		{"without usage", tokens.Chat, "", `{}`, 0, 0, false, false, nil},
		{"an error", tokens.Chat, "", `{"error":{"message":"x"}}`, 0, 0, false, true, nil},
		{"no error", tokens.Responses, "", `{"error":null,"usage":{"input_tokens":1,"output_tokens":2}}`, 1, 2, true, false, nil},
		{"half a document", tokens.Chat, "", `{"usage":`, 0, 0, false, false, errNoJSON},
		{"speech", tokens.Media, "audio/mpeg", "\xff\xfb", 0, 0, false, false, nil},
		{"a stream", tokens.Chat, events, chunk + last + "data: [DONE]\n\n", 7, 3, true, false, nil},
		{"a stream without usage", tokens.Chat, events, chunk + "data: [DONE]\n\n", 0, 0, false, false, nil},
		{"half a stream", tokens.Chat, events, chunk, 0, 0, false, false, errBrokenOff},
		{"an error in a stream", tokens.Chat, events, chunk + "data: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]\n\n", 0, 0, false, false, errBrokenOff},
	} {
		a := Read(c.api, http.Header{"Content-Type": {c.kind}}, []byte(c.body))
		if a.Stated != c.stated || a.Failed != c.failed || a.Broken != c.broken || a.Stated && (a.Usage.Input != c.in || a.Usage.Output != c.out) {
			t.Errorf("%s: %+v", c.name, a)
		}
	}
	bedrock := http.Header{"X-Amzn-Bedrock-Input-Token-Count": {"5"}, "X-Amzn-Bedrock-Output-Token-Count": {"6"}}
	if a := Read(tokens.Invoke, bedrock, []byte(`{}`)); !a.Stated || a.Usage.Output != 6 {
		t.Errorf("a header that states the usage: %+v", a)
	}
}

// What an answer used takes the place of what was reserved, but for what is no token, where the server counts so.
func TestSettle(t *testing.T) {
	reserved := limit.Cost{limit.Requests: 5, limit.Input: 10, limit.Output: 20, limit.Tokens: 30}
	e := tokens.Estimate{API: tokens.Messages, Model: "m"}
	u := tokens.Usage{Input: 12, CachedInput: 4, Output: 25, Total: 37}
	exact := tokens.Usage{Input: 12, Output: 20, Total: 32}
	if got := newMeter(t, Config{Count: tokens.Used}).Settle(e, reserved, exact); got.Overrun || !got.Counts {
		t.Errorf("as much output as was reserved: %+v", got)
	}
	for count, want := range map[tokens.Counting]Settled{
		tokens.Sum:  {},
		tokens.Used: {Counts: true, Overrun: true, Cost: limit.Cost{limit.Requests: 5, limit.Input: 8, limit.Output: 25, limit.Tokens: 33}},
		// Before, no output fitted into a reserve of none, and each answer was an overrun.
		tokens.Input: {Counts: true, Cost: limit.Cost{limit.Requests: 5, limit.Input: 12, limit.Tokens: 12}},
	} {
		if got := newMeter(t, Config{Count: count}).Settle(e, reserved, u); got != want {
			t.Errorf("%v: %+v, want %+v", count, got, want)
		}
	}
}
