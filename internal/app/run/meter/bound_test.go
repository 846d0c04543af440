package meter

import (
	"encoding/json"
	"testing"

	"github.com/paceline-go/paceline/tokens"
)

// A bound takes the place of the request's own, or is added, and the rest of the body stays as it is.
func TestBound(t *testing.T) {
	for _, c := range []struct {
		host       string
		api        tokens.API
		body, want string
	}{
		{"h", tokens.Chat, `{"model":"m"}`, `{"model":"m","max_tokens":500}`},
		{"api.openai.com", tokens.Chat, `{"model":"m"}`, `{"model":"m","max_completion_tokens":500}`},
		{"h", tokens.Chat, `{ "max_tokens" : 7 , "max_completion_tokens":null,"n":1}`, `{ "max_tokens" : 500 , "max_completion_tokens":500,"n":1}`},
		{"api.openai.com", tokens.Chat, `{"max_tokens":7}`, `{"max_tokens":500}`},
		{"h", tokens.Responses, `{"input":"{\"max_output_tokens\":7}"}`, `{"input":"{\"max_output_tokens\":7}","max_output_tokens":500}`},
		{"h", tokens.Messages, `{}`, `{"max_tokens":500}`},
		{"h", tokens.Messages, `{"a":{"max_tokens":1},"max_tokens":"x"}`, `{"a":{"max_tokens":1},"max_tokens":500}`},
		{"h", tokens.Chat, `[]`, `[]`},
		{"h", tokens.Chat, ``, ``},
	} {
		got, err := newMeter(t, Config{Host: c.host, MaxTokens: 500}).Bound(c.api, []byte(c.body))
		if string(got) != c.want || err != nil {
			t.Errorf("%s: %s, %v, want %s", c.body, got, err, c.want)
		}
	}
	if _, err := newMeter(t, Config{MaxTokens: 5}).Bound(tokens.Embeddings, []byte(`{}`)); err == nil {
		t.Error("embeddings are bounded")
	}
	const noName = `{"max_tokens":1,"\x":2}`
	if got, err := newMeter(t, Config{MaxTokens: 5}).Bound(tokens.Chat, []byte(noName)); err == nil {
		t.Errorf("%s, which has a name that is no text, becomes %q", noName, got)
	}
	if got, err := newMeter(t, Config{}).Bound(tokens.Embeddings, []byte(`{}`)); string(got) != `{}` || err != nil {
		t.Errorf("without a bound: %s, %v", got, err)
	}
}

// FuzzBound: whatever an object has, it is one with the bound, as package tokens reads it.
func FuzzBound(f *testing.F) {
	for _, s := range []string{`{}`, `{"max_tokens":1}`, `{"a":[1,{"b":"}"}],"max_output_tokens":2.5e3 }`, `{"\u006dax_tokens":3}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		body := []byte(text)
		if !json.Valid(body) || text[0] != '{' || text[len(text)-1] != '}' {
			return
		}
		m := newMeter(t, Config{MaxTokens: 77})
		for _, api := range []tokens.API{tokens.Chat, tokens.Responses, tokens.Messages} {
			got, err := m.Bound(api, body)
			if err != nil {
				continue // a name that is no text
			}
			if b, err := tokens.Parse(api, got); err != nil || !b.Bounded || b.MaxOutput != 77 {
				t.Fatalf("%s becomes %s: %+v, %v", text, got, b, err)
			}
		}
	})
}
