package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

const (
	openAILine    = `{"custom_id":"%s","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}}`
	anthropicLine = `{"custom_id":"%s","params":{"model":"claude-sonnet-4","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}}`
)

// A batch that is one array of JSON is recognized by its beginning, also where that ends within the
// first request. An array of rows is none.
func TestSniffArray(t *testing.T) {
	for head, want := range map[string]string{
		"[" + fmt.Sprintf(openAILine, "a") + "]":                       "openai-batch",
		"\ufeff\ufeff [\n  " + fmt.Sprintf(anthropicLine, "a"):         "anthropic-batch",
		`[{"custom_id":"a","method":"POST","url":"/v1/x","body":{"mod`: "openai-batch",
		`[{"custom_id":"a","params":{"model":"clau`:                    "anthropic-batch",
		`[{"params":{"model":"claude"},"custom_id":"a`:                 "anthropic-batch",
		`[{"body":{},"url":"/v1/responses`:                             "",
		`[{"body":{},"url":"/v1/responses"`:                            "openai-batch",
		`[{"url":"https://a/v1/x"},{"custom_id":"a"}]`:                 "",
		`[{"id":1,"name":"custom_id"}]`:                                "",
		`[[{"custom_id":"a"}]]`:                                        "",
		`{"custom_id":"a"}`:                                            "",
		`["custom_id"]`:                                                "", "[": "", "": "", "[{": "", `[{"custom_id"`: "openai-batch",
	} {
		p, is := SniffArray([]byte(head))
		if got := p.String(); is != (want != "") || is && got != want {
			t.Errorf("%s: %s, %v; want %q", head, got, is, want)
		}
	}
}

// The requests of an array equal those of lines, however the array is written. Errors have the
// place.
func TestBatchArray(t *testing.T) {
	read := func(array bool, p Provider, text string) (all []*Request, errs []string) {
		l, err := NewLLM(LLMConfig{Provider: p, Array: array})
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(l, "in", strings.NewReader(text), InputLimits{})
		for {
			q, err := r.Next()
			var bad *InputError
			switch {
			case err == io.EOF:
				return all, errs
			case errors.As(err, &bad):
				errs = append(errs, err.Error())
			case err != nil:
				return all, append(errs, "end: "+err.Error())
			default:
				var its struct {
					ID string `json:"custom_id"`
				}
				if err := json.Unmarshal(r.Raw(), &its); err != nil || its.ID != q.ID {
					t.Errorf("of %s the text is %s: %v", q.ID, r.Raw(), err)
				}
				all = append(all, q)
			}
		}
	}
	for _, p := range []Provider{OpenAI, Anthropic} {
		line := map[Provider]string{OpenAI: openAILine, Anthropic: anthropicLine}[p]
		lines := []string{fmt.Sprintf(line, "a"), fmt.Sprintf(line, "b"), fmt.Sprintf(line, "c")}
		want, _ := read(false, p, strings.Join(lines, "\n"))
		text := "[" + strings.Join(lines, ",") + "]"
		for _, text := range []string{text, "\ufeff [ " + strings.Join(lines, " ,\n ") + "\n]\n", strings.NewReplacer("{", "{\n\t", ",", ",\n").Replace(text)} {
			all, errs := read(true, p, text)
			if len(all) != len(want) || len(errs) > 0 {
				t.Fatalf("%s: %d requests, %v", text, len(all), errs)
			}
			for i, q := range all {
				if q.ID != want[i].ID || q.Digest != want[i].Digest || string(q.Body) != string(want[i].Body) || q.Cost != want[i].Cost || q.URL.String() != want[i].URL.String() {
					t.Errorf("%s: %+v, want %+v", text, q, want[i])
				}
			}
		}
	}
	a := fmt.Sprintf(anthropicLine, "a")
	for text, want := range map[string]string{
		"[" + a + ",\n {\"custom_id\":\"b\",\n  \"what\":1}]": `in:3:3: unknown field "what", expected custom_id, params`,
		"[" + a + ",\n 7]": "in:2:2: a number, expected a JSON object",
		"[" + a:            "end: in:1:115: the array has no end, expected ]: was the file cut off?",
	} {
		all, errs := read(true, Anthropic, text)
		if len(all) != 1 || len(errs) != 1 || errs[0] != want {
			t.Errorf("%s: %d requests, %q, want %q", text, len(all), errs, want)
		}
	}
}
