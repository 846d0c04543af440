package llm_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
)

// watch reads the usage of an answer, as a client does.
func watch(t *testing.T, path string, stream bool, body io.Reader) (string, tokens.Usage, error) {
	t.Helper()
	w := tokens.NewWatcher(tokens.APIOf(path), stream, body)
	text, err := io.ReadAll(w)
	u, uerr := w.Usage()
	return string(text), u, errors.Join(err, uerr)
}

// Every API states the usage where a client looks for it, whole and as a stream.
func TestLLMUsage(t *testing.T) {
	for _, c := range []struct {
		path, more string // of the body
		body       string
		provider   llm.Provider
	}{
		{chat, `,"stream_options":{"include_usage":true},"n":2`, prompt(5, 50), llm.OpenAI},
		{responses, "", `{"model":"m","max_output_tokens":50,"input":"hello"}`, llm.OpenAI},
		{messages, "", prompt(5, 50), llm.Anthropic},
	} {
		// 13 of the 50 tokens of each choice, and all 50.
		for _, output := range []int64{13, 50} {
			choices := int64(1)
			if c.path == chat {
				choices = 2
			}
			l := newServer(t, llm.Config{Provider: c.provider, Truth: func(a llm.Ask) llm.Usage {
				return llm.Usage{Input: 2000, Cached: 1024, Output: output * a.Choices, Reasoning: 4 * a.Choices}
			}})
			want := tokens.Usage{Input: 2000, CachedInput: 1024, Output: output * choices, Reasoning: 4 * choices, Total: 2000 + output*choices}
			if c.path == messages {
				want.Reasoning = 0 // the answer does not state it
			}
			var texts [2]string
			for i, stream := range []bool{false, true} {
				body := strings.TrimSuffix(c.body, "}") + c.more + fmt.Sprintf(`,"stream":%v}`, stream)
				w := ask(l, c.path, "k", body)
				kind := "application/json"
				if stream {
					kind = "text/event-stream; charset=utf-8"
				}
				text, u, err := watch(t, c.path, stream, w.Body)
				if w.Code != 200 || u != want || err != nil || w.Header().Get("Content-Type") != kind {
					t.Errorf("%s, stream %v: %d, %+v, %v, want %+v\n%s", c.path, stream, w.Code, u, err, want, text)
				}
				texts[i] = text
			}
			if whole, streamed := answered(t, texts[0]), deltas(t, texts[1]); whole != streamed || int64(len(whole)) != 4*(output-4) {
				t.Errorf("%s: %q whole, %q streamed", c.path, whole, streamed)
			}
			finish := map[string][2]string{chat: {`"finish_reason":"stop"`, `"finish_reason":"length"`}, responses: {`"status":"completed"`, `"reason":"max_output_tokens"`},
				messages: {`"stop_reason":"end_turn"`, `"stop_reason":"max_tokens"`}}[c.path][output/50]
			if !strings.Contains(texts[0], finish) || !strings.Contains(texts[1], finish) {
				t.Errorf("%s: no %s in %s\n%s", c.path, finish, texts[0], texts[1])
			}
		}
	}
}

// answered returns the text of the first choice of a whole answer.
func answered(t *testing.T, body string) string {
	var a struct {
		Choices []struct {
			Message struct{ Content string }
		}
		Output  []struct{ Content []struct{ Text string } }
		Content []struct{ Text string }
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatal(err)
	}
	switch {
	case len(a.Choices) > 0:
		return a.Choices[0].Message.Content
	case len(a.Output) > 0:
		return a.Output[0].Content[0].Text
	}
	return a.Content[0].Text
}

// deltas joins the pieces of the first choice of a stream.
func deltas(t *testing.T, body string) (text string) {
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			Type    string
			Choices []struct {
				Index int
				Delta struct{ Content string }
			}
			Delta json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		var piece struct{ Text string }
		switch {
		case e.Type == "content_block_delta":
			json.Unmarshal(e.Delta, &piece)
		case e.Type == "response.output_text.delta":
			json.Unmarshal(e.Delta, &piece.Text)
		case len(e.Choices) > 0 && e.Choices[0].Index == 0:
			piece.Text = e.Choices[0].Delta.Content
		}
		text += piece.Text
	}
	return text
}

// The events of each stream, in order, with their instants: 2 s to the first token, then 10 ms
// each.
func TestLLMStream(t *testing.T) {
	for path, want := range map[string]string{
		chat: `role@2000 text@2080 text@2160 text@2170 stop@2170 usage@2170 [DONE]@2170`,
		responses: `response.created@2000 response.in_progress@2000 response.output_item.added@2000 response.content_part.added@2000 ` +
			`response.output_text.delta@2080 response.output_text.delta@2160 response.output_text.delta@2170 response.output_text.done@2170 ` +
			`response.content_part.done@2170 response.output_item.done@2170 response.completed@2170`,
		messages: `message_start@2000 content_block_start@2000 ping@2000 content_block_delta@2080 content_block_delta@2160 content_block_delta@2170 ` +
			`content_block_stop@2170 message_delta@2170 message_stop@2170`,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := llm.Config{Truth: uses(5, 0, 17), First: latency.Constant(2 * time.Second), TokensPerSecond: 100}
			body := `{"model":"m","stream":true,"input":"x","max_tokens":20,"messages":[{"role":"user","content":"x"}],"stream_options":{"include_usage":true}}`
			if path == messages {
				c.Provider = llm.Anthropic
			}
			l := newServer(t, c)
			w := &timed{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
			l.ServeHTTP(w, llmRequest(path, "k", body))
			if got := strings.Join(w.events, " "); got != want {
				t.Errorf("%s: %s\nwant %s\n%s", path, got, want, w.Body)
			}
			if path == responses && !strings.Contains(w.Body.String(), `"sequence_number":10,`) {
				t.Errorf("%s", w.Body)
			}
		})
	}
}

// timed names events and the millisecond of each.
type timed struct {
	*httptest.ResponseRecorder
	start  time.Time
	events []string
}

func (w *timed) Write(p []byte) (int, error) {
	line, rest, _ := strings.Cut(string(p), "\n")
	name, ok := strings.CutPrefix(line, "event: ")
	switch {
	case ok && strings.Contains(rest, `"type":"`+name+`"`):
	case strings.Contains(line, "[DONE]"):
		name = "[DONE]"
	case strings.Contains(line, `"role"`):
		name = "role"
	case strings.Contains(line, `"finish_reason":"stop"`):
		name = "stop"
	case strings.Contains(line, `"usage":{`):
		name = "usage"
	case strings.Contains(line, `"usage":null`):
		name = "text"
	}
	w.events = append(w.events, fmt.Sprintf("%s@%d", name, time.Since(w.start).Milliseconds()))
	return w.ResponseRecorder.Write(p)
}

func TestLLMEmbeddings(t *testing.T) {
	l := newServer(t, llm.Config{})
	for _, c := range []struct {
		body         string
		vectors, dim int
	}{
		{`{"model":"e","input":"hello"}`, 1, 1536},
		{`{"model":"e","input":["a","b","c"],"dimensions":3}`, 3, 3},
		{`{"model":"e","input":[1,2,3],"dimensions":7,"encoding_format":"base64"}`, 1, 7},
		{`{"model":"e","input":[[1,2],[3]],"dimensions":7}`, 2, 7},
	} {
		w := ask(l, embeddings, "k", c.body)
		var a struct {
			Object string
			Data   []struct {
				Index     int
				Embedding json.RawMessage
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != 200 || len(a.Data) != c.vectors || a.Object != "list" {
			t.Fatalf("%s: %d %v %s", c.body, w.Code, err, w.Body)
		}
		for i, d := range a.Data {
			var v []float64
			var packed string
			if json.Unmarshal(d.Embedding, &packed) == nil {
				raw, err := base64.StdEncoding.DecodeString(packed)
				if err != nil {
					t.Fatal(err)
				}
				for ; len(raw) >= 4; raw = raw[4:] {
					v = append(v, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
				}
			} else if err := json.Unmarshal(d.Embedding, &v); err != nil {
				t.Fatal(err)
			}
			length := 0.0
			for _, x := range v {
				length += x * x
			}
			if d.Index != i || len(v) != c.dim || math.Abs(length-1) > 1e-5 {
				t.Errorf("%s: vector %d of %d, of length %v", c.body, d.Index, len(v), math.Sqrt(length))
			}
		}
		if u, err := tokens.ParseUsage(tokens.Embeddings, w.Body.Bytes()); err != nil || u.Input < 1 || u.Output != 0 {
			t.Errorf("%+v, %v", u, err)
		}
	}
}
