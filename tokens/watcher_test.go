package tokens_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/paceline-go/paceline/tokens"
)

func iotestOneByte(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) }

// pieces reads s at most n bytes at a time.
func pieces(s string, n int) io.Reader {
	if n < 1 {
		return strings.NewReader(s)
	}
	return readFunc(func(p []byte) (int, error) {
		if s == "" {
			return 0, io.EOF
		}
		k := copy(p, s[:min(n, len(s))])
		s = s[k:]
		return k, nil
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func drain(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const chatStream = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"data: [DONE]\n\n"},"finish_reason":null}],"usage":null}

: keep-alive

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":31,"completion_tokens":12,"total_tokens":43,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":4,"audio_tokens":0}}}

data: [DONE]

`

const responsesStream = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","error":null,"output":[],"usage":null}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","delta":"Hi \"there {"}

event: response.completed
data: {"response":{"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":1},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":48}},"sequence_number":9,"type":"response.completed"}

`

const messagesStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

`

var (
	chatUsage      = tokens.Usage{Input: 31, CachedInput: 8, Output: 12, Reasoning: 4, Total: 43}
	responsesUsage = tokens.Usage{Input: 37, CachedInput: 1, Output: 11, Reasoning: 3, Total: 48}
	messagesUsage  = tokens.Usage{Input: 1125, CachedInput: 1000, CacheWrite: 100, Output: 15, Total: 1140}
)

var streams = []struct {
	api   tokens.API
	text  string
	usage tokens.Usage
}{
	{tokens.Chat, chatStream, chatUsage},
	{tokens.Responses, responsesStream, responsesUsage},
	{tokens.Messages, messagesStream, messagesUsage},
}

// Every stream, cut into pieces of every size, with all three line ends and behind a byte order
// mark.
func TestStreamInPieces(t *testing.T) {
	for _, s := range streams {
		for name, text := range map[string]string{
			"LF":               s.text,
			"CRLF":             strings.ReplaceAll(s.text, "\n", "\r\n"),
			"CR":               strings.ReplaceAll(s.text, "\n", "\r"),
			"a mark":           "\ufeff" + s.text,
			"no space":         strings.ReplaceAll(s.text, "data: ", "data:"),
			"no last line":     strings.TrimRight(s.text, "\n"),
			"fields between":   strings.ReplaceAll(s.text, "data: ", "id: 7\ndata\nretry: 10\ndatum: {\ndata: "),
			"split data":       strings.ReplaceAll(s.text, `,"usage":{`, ",\ndata: \"usage\":{"),
			"split data, CRLF": strings.ReplaceAll(strings.ReplaceAll(s.text, `,"usage":{`, ",\ndata: \"usage\":{"), "\n", "\r\n"),
			"after its end":    s.text + s.text[:200],
			"nothing happens":  strings.Repeat("\n", 50) + s.text,
		} {
			for n := range 40 {
				w := tokens.NewWatcher(s.api, true, pieces(text, n))
				if got := drain(t, w); got != text {
					t.Fatalf("%v, %s, pieces of %d: the stream was changed", s.api, name, n)
				}
				if u, err := w.Usage(); err != nil || u != s.usage {
					t.Fatalf("%v, %s, pieces of %d: %+v, %v; want %+v", s.api, name, n, u, err, s.usage)
				}
			}
		}
	}
}

// A stream that ends before its last byte is incomplete, and its last report is a lower bound.
func TestStreamEndsEarly(t *testing.T) {
	for _, s := range streams {
		whole := len(strings.TrimRight(s.text, "\n"))
		for n := range whole {
			w := tokens.NewWatcher(s.api, true, strings.NewReader(s.text[:n]))
			drain(t, w)
			u, err := w.Usage()
			if (s.api == tokens.Chat || s.api == tokens.Messages) && err == nil && u == s.usage {
				continue // all but the mark is there: see TestStreamWithoutItsMark
			}
			if !errors.Is(err, tokens.ErrIncomplete) {
				t.Fatalf("%v, cut after byte %d of %d: %+v, %v", s.api, n, whole, u, err)
			}
			if u.Input > s.usage.Input || u.Output > s.usage.Output || u.Total > s.usage.Total {
				t.Fatalf("%v, cut after byte %d: %+v is more than the whole %+v", s.api, n, u, s.usage)
			}
		}
		// The connection breaks instead of ending. Half an event does not count, even if it is
		// JSON.
		w := tokens.NewWatcher(s.api, true, io.MultiReader(strings.NewReader(s.text[:whole]), iotest.ErrReader(io.ErrUnexpectedEOF)))
		if _, err := io.ReadAll(w); err != io.ErrUnexpectedEOF {
			t.Fatalf("the reader's error is gone: %v", err)
		}
		if _, err := w.Usage(); !errors.Is(err, tokens.ErrIncomplete) {
			t.Errorf("%v, broken off before the last blank line: %v", s.api, err)
		}
	}
	// An aborted stream of Anthropic keeps the input that it reported.
	w := tokens.NewWatcher(tokens.Messages, true, strings.NewReader(messagesStream[:strings.Index(messagesStream, "event: message_delta")]))
	drain(t, w)
	if u, err := w.Usage(); !errors.Is(err, tokens.ErrIncomplete) || u.Input != 1125 || u.Output != 1 {
		t.Errorf("aborted: %+v, %v; want 1125 in and 1 out so far", u, err)
	}
}

// Some servers leave out the mark at the end. Their usage counts if it is the final one and the
// connection closes in good order.
func TestStreamWithoutItsMark(t *testing.T) {
	const (
		text   = "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"finish_reason\\\":1\"},\"finish_reason\":null}]%s}\n\n"
		stop   = "data: {\"choices\":[{\"delta\":{},\"finish_reason\" : \"stop\"}]%s}\n\n"
		none   = ",\"usage\":null"
		one    = ",\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}"
		two    = ",\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}"
		usage  = "data: {\"choices\":[]" + two + "}\n\n"
		failed = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n"
		start  = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n"
		delta  = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":2}}\n\n"
	)
	used := tokens.Usage{Input: 5, Output: 2, Total: 7}
	for _, test := range []struct {
		name string
		api  tokens.API
		text string
		want tokens.Usage
		err  error
	}{
		{"a chunk of its own", tokens.Chat, fmt.Sprintf(text, none) + fmt.Sprintf(stop, none) + usage, used, nil},
		{"a chunk of its own, with no blank line", tokens.Chat, fmt.Sprintf(text, "") + strings.TrimSpace(usage), used, nil},
		{"with the reason", tokens.Chat, fmt.Sprintf(text, "") + fmt.Sprintf(stop, two), used, nil},
		{"sums, and the reason", tokens.Chat, fmt.Sprintf(text, one) + fmt.Sprintf(stop, two), used, nil},
		{"sums, the reason, and a chunk of its own", tokens.Chat, fmt.Sprintf(text, one) + fmt.Sprintf(stop, one) + usage, used, nil},
		{"completions", tokens.Completions, fmt.Sprintf(text, "") + usage, used, nil},
		{"sums that are cut", tokens.Chat, fmt.Sprintf(text, one) + fmt.Sprintf(text, two), used, tokens.ErrIncomplete},
		{"text after the usage", tokens.Chat, usage + fmt.Sprintf(text, none), used, tokens.ErrIncomplete},
		{"the reason and no usage", tokens.Chat, fmt.Sprintf(stop, none), tokens.Usage{}, tokens.ErrIncomplete},
		{"an error after it", tokens.Chat, usage + failed, used, tokens.ErrIncomplete},
		{"half of the chunk", tokens.Chat, fmt.Sprintf(text, "") + usage[:40], tokens.Usage{}, tokens.ErrIncomplete},
		{"messages", tokens.Messages, start + delta, used, nil},
		{"messages, before the end", tokens.Messages, start, tokens.Usage{Input: 5, Output: 1, Total: 6}, tokens.ErrIncomplete},
	} {
		for _, n := range []int{0, 1, 7} {
			w := tokens.NewWatcher(test.api, true, pieces(test.text, n))
			drain(t, w)
			if u, err := w.Usage(); u != test.want || !errors.Is(err, test.err) || err != nil && test.err == nil {
				t.Errorf("%s: %+v, %v; want %+v, %v", test.name, u, err, test.want, test.err)
			}
		}
		// A connection that breaks proves nothing.
		w := tokens.NewWatcher(test.api, true, io.MultiReader(strings.NewReader(test.text), iotest.ErrReader(io.ErrUnexpectedEOF)))
		_, _ = io.ReadAll(w)
		if _, err := w.Usage(); !errors.Is(err, tokens.ErrIncomplete) {
			t.Errorf("%s, broken off: %v", test.name, err)
		}
	}
}

func TestStreamsOfOtherKinds(t *testing.T) {
	for _, test := range []struct {
		name string
		api  tokens.API
		text string
		want tokens.Usage
		err  error
	}{
		{"no usage asked for", tokens.Chat, "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", tokens.Usage{}, tokens.ErrNoUsage},
		{"sums in every chunk", tokens.Chat, "data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\ndata: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
			tokens.Usage{Input: 5, Output: 2, Total: 7}, nil},
		{"an error on the way", tokens.Chat, "data: {\"choices\":[]}\n\ndata: {\"error\":{\"message\":\"overloaded\"}}\n\ndata: [DONE]\n\n", tokens.Usage{}, tokens.ErrIncomplete},
		{"an error that is none", tokens.Chat, "data: {\"error\":null,\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n", tokens.Usage{Input: 5, Output: 1, Total: 6}, nil},
		{"done inside a longer line", tokens.Chat, "data: [DONE] not\n\n", tokens.Usage{}, tokens.ErrIncomplete},
		{"done under another name", tokens.Chat, "date: [DONE]\n\n", tokens.Usage{}, tokens.ErrIncomplete},
		{"half a number", tokens.Chat, "data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1", tokens.Usage{}, tokens.ErrIncomplete},
		{"a number over two lines", tokens.Chat, "data: {\"usage\":{\"prompt_tokens\":3\ndata: 1,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n", tokens.Usage{}, tokens.ErrNoUsage},
		{"a negative count", tokens.Chat, "data: {\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n", tokens.Usage{}, tokens.ErrMalformed},
		{"an event that is no JSON", tokens.Chat, "data: {\"usage\"}\n\ndata: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n", tokens.Usage{Input: 5, Output: 1, Total: 6}, nil},
		{"stopped by the maximum", tokens.Responses, "data: {\"type\":\"response.incomplete\",\"response\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":16}}}\n\n", tokens.Usage{Input: 5, Output: 16, Total: 21}, nil},
		{"failed", tokens.Responses, "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"},\"usage\":null}}\n\n", tokens.Usage{}, tokens.ErrNoUsage},
		{"an error instead", tokens.Responses, "data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\"}\n\n", tokens.Usage{}, tokens.ErrIncomplete},
		{"another API's end", tokens.Responses, "data: [DONE]\n\n", tokens.Usage{}, tokens.ErrIncomplete},
		{"usage of a delta that is no end", tokens.Responses, "data: {\"type\":\"response.in_progress\",\"response\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":16}}}\n\n", tokens.Usage{}, tokens.ErrIncomplete},
		{"overloaded", tokens.Messages, messagesStream[:strings.Index(messagesStream, "event: message_delta")] +
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", tokens.Usage{Input: 1125, CachedInput: 1000, CacheWrite: 100, Output: 1, Total: 1126}, tokens.ErrIncomplete},
		{"input corrected at the end", tokens.Messages, strings.Replace(messagesStream, `"usage":{"output_tokens":15}`, `"usage":{"input_tokens":30,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":15,"output_tokens_details":{"thinking_tokens":6}}`, 1),
			tokens.Usage{Input: 30, Output: 15, Reasoning: 6, Total: 45}, nil},
		{"empty", tokens.Messages, "", tokens.Usage{}, tokens.ErrIncomplete},
		{"HTML", tokens.Messages, "<html>\n\n502\n\n</html>", tokens.Usage{}, tokens.ErrIncomplete},
		{"no API", tokens.NoAPI, chatStream, tokens.Usage{}, tokens.ErrNoUsage},
	} {
		w := tokens.NewWatcher(test.api, true, strings.NewReader(test.text))
		if got := drain(t, w); got != test.text {
			t.Errorf("%s: the stream was changed", test.name)
		}
		if u, err := w.Usage(); u != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %+v, %v; want %+v, %v", test.name, u, err, test.want, test.err)
		}
	}
}

func TestWatcherCloses(t *testing.T) {
	closed := 0
	w := tokens.NewWatcher(tokens.Chat, true, closer{strings.NewReader(""), &closed})
	if err := w.Close(); err != nil || closed != 1 {
		t.Errorf("closed %d times, %v", closed, err)
	}
	if err := tokens.NewWatcher(tokens.Chat, true, strings.NewReader("")).Close(); err != nil {
		t.Error(err)
	}
	// An answer in one document that breaks off.
	w = tokens.NewWatcher(tokens.Chat, false, strings.NewReader(`{"usage":{"prompt_tokens":5,"completion_tokens":1}`))
	drain(t, w)
	if _, err := w.Usage(); !errors.Is(err, tokens.ErrIncomplete) {
		t.Errorf("half a document: %v", err)
	}
}

type closer struct {
	io.Reader
	n *int
}

func (c closer) Close() error { *c.n++; return nil }

// endless answers a responses stream whose last event repeats n kilobytes of text.
func endless(n int) string {
	return strings.Replace(responsesStream, `"text":"Hi"`, `"text":"`+strings.Repeat(`a\n"`[:3]+strings.Repeat("b", 1021), n)+`"`, 1)
}

func TestWatcherAllocates(t *testing.T) {
	text := endless(64)
	buf := make([]byte, 4<<10)
	r := strings.NewReader(text)
	allocs := testing.AllocsPerRun(20, func() {
		r.Reset(text)
		w := tokens.NewWatcher(tokens.Responses, true, r)
		for {
			if _, err := w.Read(buf); err == io.EOF {
				break
			}
		}
		if u, err := w.Usage(); err != nil || u != responsesUsage {
			t.Fatalf("%+v, %v", u, err)
		}
	})
	if allocs > 1 {
		t.Errorf("%v allocations per stream of %d kB, want the Watcher alone", allocs, len(text)>>10)
	}
}

// FuzzWatcher states three facts. Any stream passes unchanged. The usage does not depend on the
// pieces. Without its end a stream is incomplete.
func FuzzWatcher(f *testing.F) {
	for _, s := range streams {
		f.Add(uint8(s.api), []byte(s.text), 7)
		f.Add(uint8(s.api), []byte(strings.ReplaceAll(s.text, "\n", "\r\n")), 1)
		f.Add(uint8(s.api), []byte(s.text[:len(s.text)/2]), 3)
	}
	f.Add(uint8(tokens.Chat), []byte(responsesStream), 7) // its usage ends a stream of a server without marks
	f.Add(uint8(1), []byte("data: {\"usage\":{\"prompt_tokens\":-5}}\n\ndata: [DONE]"), 2)
	f.Add(uint8(1), []byte("\xef\xbbdata:[DONE]\r\r\n\n:\n"), 1)
	f.Add(uint8(4), []byte("data: {\"type\":\"message_stop\"}}}\n\ndata: {\ndata: }\n\n"), 5)
	f.Fuzz(func(t *testing.T, api uint8, text []byte, n int) {
		watch := func(n int) (tokens.Usage, string) {
			w := tokens.NewWatcher(tokens.API(api%5), true, pieces(string(text), n))
			if got := drain(t, w); got != string(text) {
				t.Fatal("the stream was changed")
			}
			u, err := w.Usage()
			return u, fmt.Sprint(err)
		}
		u, err := watch(0)
		if v, cutErr := watch(n); v != u || cutErr != err {
			t.Fatalf("whole: %+v, %s; in pieces of %d: %+v, %s", u, err, n, v, cutErr)
		}
		if u.Input < 0 || u.Output < 0 || u.CachedInput < 0 || u.CacheWrite < 0 || u.Total < u.Input+u.Output {
			t.Fatalf("%+v", u)
		}
		ends := map[tokens.API][]string{ // the mark, or what may end a stream of a server without marks
			tokens.Chat: {"[DONE]", "usage"}, tokens.Responses: {"response."}, tokens.Messages: {"message_stop", "message_delta"},
		}
		has := func(end string) bool { return strings.Contains(string(text), end) }
		if all, ok := ends[tokens.API(api%5)]; ok && err == fmt.Sprint(nil) && !slices.ContainsFunc(all, has) {
			t.Fatalf("complete without its end: %+v", u)
		}
	})
}

func BenchmarkWatcher(b *testing.B) {
	for name, text := range map[string]string{"deltas": strings.Repeat(messagesStream[strings.Index(messagesStream, "event: content_block_delta"):strings.Index(messagesStream, "event: message_delta")], 500), "one event": endless(64)} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 32<<10)
			r := strings.NewReader(text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				r.Reset(text)
				w := tokens.NewWatcher(tokens.Responses, true, r)
				for {
					if _, err := w.Read(buf); err == io.EOF {
						break
					}
				}
			}
		})
	}
}
