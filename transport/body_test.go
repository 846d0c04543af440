package transport_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

const (
	chat      = "http://a.test/v1/chat/completions"
	messages  = "http://a.test/v1/messages"
	responses = "http://a.test/v1/responses"
	// A model that nobody knows: a little more than the guess.
	prompt = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`
)

func estimator(t testing.TB) *tokens.Estimator {
	t.Helper()
	e, err := tokens.New(tokens.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// events is a chat stream that used 7 + 5 tokens.
func events(end string) string {
	return "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n" +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5,\"total_tokens\":12}}\n\n" + end
}

func stream(body string) *http.Response {
	return reply(200, body, "Content-Type", "text/event-stream")
}

// documented stands for tokens.Documented in a table where zero is tokens.Used.
const documented tokens.Counting = 99

// Tokens are reserved before the send and settled with what was used when the answer's body ends.
func TestTokens(t *testing.T) {
	for _, tc := range []struct {
		name, url, body string
		answer          func() *http.Response
		close           int             // after how many bytes to close; 0: read to the end
		count           tokens.Counting // if zero, tokens.Used
		result          limit.Result
		metered         bool
		actual          limit.Cost
	}{
		{name: "as documented a chat counts what it may use", url: chat, body: prompt, count: documented, answer: func() *http.Response {
			return reply(200, `{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`)
		}, result: limit.Accepted},
		{name: "as documented messages count what they used", url: messages, body: prompt, count: documented, answer: func() *http.Response {
			return reply(200, `{"type":"message","usage":{"input_tokens":7,"output_tokens":5}}`)
		}, result: limit.Accepted, metered: true, actual: limit.Cost{1, 0, 0, 7, 5, 12}},
		{name: "chat", url: chat, body: prompt, answer: func() *http.Response {
			return reply(200, `{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`)
		}, result: limit.Accepted, metered: true, actual: limit.Cost{1, 0, 0, 7, 5, 12}},
		{name: "messages: what is read from the cache does not count", url: messages, body: prompt, answer: func() *http.Response {
			return reply(200, `{"type":"message","usage":{"input_tokens":7,"cache_read_input_tokens":90,"cache_creation_input_tokens":2,"output_tokens":5}}`)
		}, result: limit.Accepted, metered: true, actual: limit.Cost{1, 0, 0, 9, 5, 14}},
		{name: "chat, a stream", url: chat, body: prompt, answer: func() *http.Response { return stream(events("data: [DONE]\n\n")) },
			result: limit.Accepted, metered: true, actual: limit.Cost{1, 0, 0, 7, 5, 12}},
		{name: "closed after its end, before EOF", url: chat, body: prompt, answer: func() *http.Response { return stream(events("data: [DONE]\n\n") + "\n") }, close: len(events("data: [DONE]\n\n")),
			result: limit.Accepted, metered: true, actual: limit.Cost{1, 0, 0, 7, 5, 12}},
		{name: "a stream that ends early", url: chat, body: prompt, answer: func() *http.Response { return stream(events("")[:60]) }, result: limit.Unknown},
		{name: "a stream without its mark", url: chat, body: prompt, answer: func() *http.Response { return stream(events("")) },
			result: limit.Accepted, metered: true, actual: limit.Cost{1, 0, 0, 7, 5, 12}},
		{name: "closed early", url: chat, body: prompt, answer: func() *http.Response { return stream(events("data: [DONE]\n\n")) }, close: 20, result: limit.Unknown},
		{name: "closed before the first byte", url: chat, body: prompt, answer: func() *http.Response { return stream(events("")) }, close: -1, result: limit.Unknown},
		{name: "messages, an error before all output", url: messages, body: prompt, answer: func() *http.Response {
			return stream("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n" +
				"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n")
		}, result: limit.Failed},
		{name: "messages, a stream", url: messages, body: prompt, answer: func() *http.Response {
			return stream("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n" +
				"event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
		}, result: limit.Accepted, metered: true, actual: limit.Cost{1, 0, 0, 7, 5, 12}},
		{name: "responses, a stream: the last event has it", url: responses, body: `{"model":"m","max_output_tokens":100,"input":"hello"}`, answer: func() *http.Response {
			return stream("event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n" +
				"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":5,\"total_tokens\":12}}}\n\n")
		}, result: limit.Accepted, metered: true, actual: limit.Cost{1, 0, 0, 7, 5, 12}},
		{name: "usage is missing", url: chat, body: prompt, answer: func() *http.Response { return reply(200, `{"choices":[]}`) }, result: limit.Accepted},
		{name: "usage is impossible", url: chat, body: prompt, answer: func() *http.Response {
			return reply(200, `{"usage":{"prompt_tokens":-7,"completion_tokens":5}}`)
		}, result: limit.Accepted},
		{name: "a coding that is damaged", url: chat, body: prompt, answer: func() *http.Response { return reply(200, "\x1f\x8b..........", "Content-Encoding", "x-gzip") }, result: limit.Accepted},
		{name: "a coding that is not known", url: chat, body: prompt, answer: func() *http.Response { return reply(200, "\x1f\x9d\x90\x00", "Content-Encoding", "compress") }, result: limit.Accepted},
		{name: "a malformed body", url: chat, body: `{"model":`, answer: func() *http.Response { return reply(400, `{"error":{}}`) }, result: limit.Failed},
		{name: "a refusal", url: chat, body: prompt, answer: func() *http.Response { return reply(429, `{}`) }, result: limit.Limited},
		{name: "another endpoint", url: "http://a.test/v1/models", body: prompt, answer: func() *http.Response { return reply(200, `{}`) }, result: limit.Accepted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spy := &spy{}
				count := tokens.Used
				if tc.count == documented {
					count = tokens.Documented
				}
				dialect, _ := provider.Lookup(map[string]string{messages: "anthropic"}[tc.url])
				if dialect == nil {
					dialect, _ = provider.Lookup("openai")
				}
				tr := mustNew(t, transport.Config{
					Limiter: spy, Tokens: estimator(t), Counting: count, Attempts: 1, Provider: dialect,
					Base: roundTripper(func(r *http.Request) (*http.Response, error) {
						got, _ := io.ReadAll(r.Body)
						r.Body.Close()
						if string(got) != tc.body {
							t.Errorf("the server got %q", got)
						}
						return tc.answer(), nil
					}),
				})
				resp, err := tr.RoundTrip(request(t, http.MethodPost, tc.url, tc.body))
				if err != nil {
					t.Fatal(err)
				}
				want, _ := io.ReadAll(tc.answer().Body)
				if tc.close != 0 {
					want = want[:max(tc.close, 0)]
				}
				got, plain := make([]byte, len(want)), plainly(resp)
				if _, err := io.ReadFull(plain, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("read %q %v", got, err)
				}
				if tc.close == 0 {
					if n, err := plain.Read(make([]byte, 1)); n != 0 || err != io.EOF {
						t.Error(n, err)
					}
				}
				resp.Body.Close()
				resp.Body.Close()
				if len(spy.ended) != 1 || spy.open != 0 {
					t.Fatalf("settled %d times, %d open", len(spy.ended), spy.open)
				}
				o := spy.ended[0]
				if spoken != nil && tc.name == "messages, an error before all output" {
					tc.result = limit.Unknown // its first piece ends before the error: see coded.RoundTripper
				}
				if o.Result != tc.result || o.Metered != tc.metered || o.Actual != tc.actual {
					t.Errorf("settled as %+v", o)
				}
				admitted := limit.One
				if est, err := estimator(t).Estimate(tokens.APIOf(tc.url), []byte(tc.body)); err == nil && est.Input > 0 {
					admitted[limit.Input], admitted[limit.Output], admitted[limit.Tokens] = est.Input, 100, est.Input+100
					if tc.count == documented && tc.url == chat {
						admitted[limit.Tokens] = 100
					}
				}
				if spy.cost != admitted {
					t.Errorf("admitted %v, want %v", spy.cost, admitted)
				}
			})
		})
	}
}

// spy is a limiter that allows all, and notes how it ended.
type spy struct {
	cost  limit.Cost
	ended []limit.Outcome
	open  int
}

func (s *spy) Ready(now mono.Time, _ limit.Cost) mono.Time { return now }
func (s *spy) Admit(sent *limit.Sent) {
	s.open++
	s.cost = sent.Cost
}
func (s *spy) Settle(_ mono.Time, _ *limit.Sent, o *limit.Outcome) {
	s.open--
	if o.Result != limit.Unsent {
		s.ended = append(s.ended, *o)
	}
}

// A unit that the caller does not count is not settled either.
func TestUnitsThatDoNotCount(t *testing.T) {
	spy := &spy{}
	tr := mustNew(t, transport.Config{
		Limiter: spy, Tokens: estimator(t), Counting: tokens.Used,
		Cost: func(_ *http.Request, c limit.Cost) limit.Cost { c[limit.Output], c[limit.Other] = 0, 3; return c },
		Base: newBase(0, func(int, *http.Request) *http.Response {
			return reply(200, `{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`)
		}),
	})
	do(t, tr, request(t, http.MethodPost, chat, prompt))
	if want := (limit.Cost{limit.Requests: 1, limit.Input: 7, limit.Tokens: 12, limit.Other: 3}); len(spy.ended) != 1 || spy.ended[0].Actual != want {
		t.Errorf("settled as %+v", spy.ended)
	}
}

// An answer that is read to its end and then closed teaches once.
func TestLearnsOnce(t *testing.T) {
	e, err := tokens.New(tokens.Config{InputOverrun: 0.34}) // two answers make it sure
	if err != nil {
		t.Fatal(err)
	}
	tr := mustNew(t, transport.Config{Tokens: e, Base: newBase(0, func(int, *http.Request) *http.Response {
		return reply(200, `{"usage":{"prompt_tokens":7,"completion_tokens":5}}`)
	})})
	for n := range 3 {
		if est, err := e.Estimate(tokens.Chat, []byte(prompt)); err != nil || est.Calibrated != (n >= 2) {
			t.Errorf("after %d answers: %+v %v", n, est, err)
		}
		do(t, tr, request(t, http.MethodPost, chat, prompt))
	}
}

// The end of a long answer settles as of its header: that is when it had surely arrived.
func TestArrivalOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response {
			r := stream(events("data: [DONE]\n\n"))
			r.Body = &slowly{Reader: r.Body, each: 4 * time.Second}
			return r
		})
		tr := mustNew(t, transport.Config{Base: b, Tokens: estimator(t), Limiter: rolling(t, 1, time.Minute, limit.Requests)})
		for range 2 {
			if _, _, err := do(t, tr, request(t, http.MethodPost, chat, prompt)); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := b.at(), seconds(0, 60); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// A server that states how long it worked had the request before that: its window ends sooner. An
// impossible value is ignored.
func TestArrivalBeforeTheWork(t *testing.T) {
	for _, c := range []struct {
		said string
		want time.Duration
	}{
		{"", 64 * time.Second},
		{"3000", 61*time.Second + time.Millisecond + 300*time.Microsecond},
		{"1", 64 * time.Second},
		{"3999", 60*time.Second + 2*time.Millisecond + 399900*time.Nanosecond},
		{"4000", 60*time.Second + time.Millisecond + 400*time.Microsecond},
		{"4002", 64 * time.Second},
		{"99999999999999", 64 * time.Second},
		{"-3000", 64 * time.Second},
		{"3 s", 64 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(4*time.Second, func(int, *http.Request) *http.Response {
				return reply(200, "{}", "OpenAI-Processing-Ms", c.said, "X-RateLimit-Limit-Requests", "500", "X-RateLimit-Remaining-Requests", "499", "X-RateLimit-Reset-Requests", "1ms")
			})
			openai, _ := provider.Lookup("openai")
			tr := mustNew(t, transport.Config{Base: b, Provider: openai, Limiter: rolling(t, 1, time.Minute, limit.Requests)})
			for range 2 {
				if _, _, err := do(t, tr, request(t, http.MethodPost, chat, prompt)); err != nil {
					t.Fatal(err)
				}
			}
			if got := b.at()[1]; got != c.want {
				t.Errorf("%q: sent again at %v, want %v", c.said, got, c.want)
			}
		})
	}
}

type slowly struct {
	io.Reader
	each time.Duration
}

func (s *slowly) Read(p []byte) (int, error) { time.Sleep(s.each); return s.Reader.Read(p) }
func (s *slowly) Close() error               { return nil }

// A request that is larger than the limit fails before it is sent, and the error names the limit and the size.
func TestLargerThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		tr := mustNew(t, transport.Config{Base: b, Tokens: estimator(t), Limiter: limit.NewAll(
			rolling(t, 10, time.Minute, limit.Requests), rolling(t, 3000, time.Minute, limit.Tokens))})
		_, err := tr.RoundTrip(request(t, http.MethodPost, chat, strings.Replace(prompt, "100", "4000", 1)))
		var e *transport.Error
		if !errors.Is(err, paceline.ErrNever) || !errors.As(err, &e) || e.Unit != limit.Tokens || e.Limit != 3000 || e.Size < 4000 {
			t.Fatalf("%v", err)
		}
		if s := err.Error(); !strings.Contains(s, "3000") || !strings.Contains(s, fmt.Sprint(e.Size)) || !strings.Contains(s, "tokens") {
			t.Error(s)
		}
		if len(b.at()) != 0 {
			t.Error("it was sent")
		}
	})
}

// An estimate never proves that a request never fits: neither the size of a text that may be in the
// cache, nor that of a file, a body that cannot be read, or one that is too long. It waits for the
// whole limit, goes alone, and the answer has the last word. Stated costs are no estimates.
func TestAnEstimateIsNoProof(t *testing.T) {
	long := strings.Repeat("understandable ", 25_000)
	docx := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("PK\x03\x04 no pages", 60_000)))
	cached := `{"usage":{"input_tokens":900,"cache_read_input_tokens":24000,"output_tokens":5}}`
	text := `{"model":"claude-x","max_tokens":100,"messages":[{"role":"user","content":"` + long + `"}]}`
	for _, c := range []struct {
		name, url, body string
		fields          []string
		unit            limit.Unit
		count           tokens.Counting
		config          func(*transport.Config)
		never           bool
	}{
		{name: "nearly all is in the cache", url: messages, body: text, unit: limit.Input, count: tokens.Produced},
		{name: "tokens in all", url: messages, body: text, unit: limit.Tokens, count: tokens.Used},
		{name: "reserved at arrival", url: chat, body: text, unit: limit.Tokens, count: tokens.Reserved},
		{name: "a document of Word", url: messages, unit: limit.Input, count: tokens.Produced, body: `{"model":"claude-x","max_tokens":100,"messages":[{"role":"user",` +
			`"content":[{"type":"document","source":{"type":"base64","media_type":"application/vnd.openxmlformats-officedocument.wordprocessingml.document","data":"` + docx + `"}}]}]}`},
		{name: "a body that is compressed", url: messages, body: text, fields: []string{"Content-Encoding", "gzip"}, unit: limit.Input},
		{name: "a body that is too long", url: messages, body: text, unit: limit.Input, config: func(c *transport.Config) { c.MaxBody = 100 }},
		{name: "a body that is no JSON", url: messages, body: "{" + text, unit: limit.Input, config: func(c *transport.Config) { c.Uncounted = 50_000 }},
		{name: "an earlier answer that the server keeps", url: responses, body: `{"model":"m","max_output_tokens":10,"previous_response_id":"r","input":"hi"}`,
			unit: limit.Input, config: func(c *transport.Config) { c.Uncounted = 50_000 }},

		{name: "a maximum that the server counts", url: chat, body: strings.Replace(prompt, "100", "40000", 1), unit: limit.Tokens, count: tokens.Sum, never: true},
		{name: "a cost that the user states", url: messages, body: prompt, unit: limit.Input, never: true, config: func(c *transport.Config) {
			c.Cost = func(_ *http.Request, cost limit.Cost) limit.Cost { cost[limit.Input] = 30_001; return cost }
		}},
		{name: "of a route without tokens", url: "http://a.test/x", unit: limit.Tokens, never: true, config: func(c *transport.Config) {
			c.Cost = func(_ *http.Request, cost limit.Cost) limit.Cost { cost[limit.Tokens] = 30_001; return cost }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(time.Second, func(int, *http.Request) *http.Response { return reply(200, cached) })
				config := transport.Config{Base: b, Tokens: estimator(t), Counting: c.count, Limiter: rolling(t, 30_000, time.Minute, c.unit)}
				if c.config != nil {
					c.config(&config)
				}
				tr := mustNew(t, config)
				send := func(body string, fields ...string) error {
					_, _, err := do(t, tr, request(t, http.MethodPost, c.url, body, fields...))
					return err
				}
				if c.never {
					if err := send(c.body); !errors.Is(err, paceline.ErrNever) || len(b.at()) > 0 {
						t.Errorf("%v, sent at %v", err, b.at())
					}
					return
				}
				if err := send(prompt); err != nil { // something is used of the limit
					t.Fatal(err)
				}
				if err := send(c.body, c.fields...); err != nil {
					t.Fatal(err)
				}
				if at := b.at(); len(at) != 2 || at[1] < 60*time.Second {
					t.Errorf("sent at %v, and the first one used a part until 61 s", at)
				}
			})
		})
	}
}

// What a file guessed by its bytes is worth shows in the first answer. The next one no longer waits
// for the whole limit.
func TestAGuessedFileIsLearned(t *testing.T) {
	docx := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("PK\x03\x04 no pages", 60_000)))
	body := `{"model":"claude-x","max_tokens":100,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","data":"` + docx + `"}}]}]}`
	synctest.Test(t, func(t *testing.T) {
		b := newBase(time.Second, func(int, *http.Request) *http.Response {
			return reply(200, `{"usage":{"input_tokens":3000,"output_tokens":5}}`)
		})
		tr := mustNew(t, transport.Config{Base: b, Tokens: estimator(t), Counting: tokens.Produced, Limiter: rolling(t, 30_000, time.Minute, limit.Input)})
		for range 6 {
			if _, _, err := do(t, tr, request(t, http.MethodPost, messages, body)); err != nil {
				t.Fatal(err)
			}
		}
		if at := b.at(); at[5] > 10*time.Second {
			t.Errorf("sent at %v, and 30,000 a minute are ten of 3,000", at)
		}
	})
}

// A body without a maximum may use more than the limit, as far as is known: it goes when all of the
// limit is free.
func TestAssumedMaximumFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response {
			return reply(200, `{"usage":{"prompt_tokens":7,"completion_tokens":5}}`)
		})
		tr := mustNew(t, transport.Config{Base: b, Tokens: estimator(t), Counting: tokens.Used, Limiter: rolling(t, 3000, time.Minute, limit.Tokens)})
		for range 2 {
			if _, _, err := do(t, tr, request(t, http.MethodPost, chat, `{"model":"m","messages":[{"role":"user","content":"hello"}]}`)); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := b.at(), seconds(0, 60); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// Bodies that can be read once are read once, and can be sent again if they were read for their tokens.
func TestBodyIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		tr := mustNew(t, transport.Config{
			Tokens: estimator(t), MaxBody: int64(len(prompt)),
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				b, _ := io.ReadAll(r.Body)
				r.Body.Close()
				got = append(got, string(b))
				return reply(429, ""), nil
			}),
		})
		for _, tc := range []struct {
			body string
			sent int
		}{{prompt, 3}, {prompt + " ", 1}} {
			got = nil
			body := &closed{Reader: strings.NewReader(tc.body)}
			r := request(t, http.MethodPost, chat, tc.body)
			r.Body, r.GetBody = body, nil
			do(t, tr, r)
			if want := slices.Repeat([]string{tc.body}, tc.sent); !slices.Equal(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
			if body.n == 0 {
				t.Error("not closed")
			}
		}
		r := request(t, http.MethodPost, chat, prompt)
		r.Body, r.GetBody = io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{})), nil
		if _, err := tr.RoundTrip(r); !errors.Is(err, errBroken) {
			t.Error(err)
		}
	})
}

var errBroken = errors.New("disk on fire")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

// An answer that is neither read nor closed returns its place when it is garbage.
func TestForgottenBody(t *testing.T) {
	one, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1, Late: -1})
	if err != nil {
		t.Fatal(err)
	}
	tr := mustNew(t, transport.Config{Base: newBase(0, ok), Limiter: one, UntilBody: true})
	if _, err := tr.RoundTrip(get(t, "http://a.test/")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error)
	go func() {
		_, _, err := do(t, tr, get(t, "http://a.test/").WithContext(ctx))
		done <- err
	}()
	for {
		runtime.GC()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// Without UntilBody an open stream delays no other; with it, it does until it is closed.
func TestUntilBody(t *testing.T) {
	for _, until := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			one, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			b := newBase(0, ok)
			tr := mustNew(t, transport.Config{Base: b, Limiter: one, UntilBody: until})
			resp, err := tr.RoundTrip(get(t, "http://a.test/"))
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(5*time.Second, func() { resp.Body.Close() })
			do(t, tr, get(t, "http://a.test/"))
			want := seconds(0, 0)
			if until {
				want = seconds(0, 5)
			}
			if got := b.at(); !slices.Equal(got, want) {
				t.Errorf("UntilBody %v: sent at %v, want %v", until, got, want)
			}
			time.Sleep(10 * time.Second)
		})
	}
}

// The caller reads the server's bytes as they come, metered or not, whatever they are: half
// characters, half events, nonsense. The client and the server here are real ones.
func TestStreamsAreUntouched(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var pieces [][]byte
	for range 200 {
		p := make([]byte, 1+rng.IntN(2000))
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		if rng.IntN(2) == 0 {
			p = []byte(events("") + "\r\n: comment\r\ndata: {\"x\":\"\xe2")
		}
		pieces = append(pieces, p)
	}
	want := sha256.Sum256(bytes.Join(pieces, nil))
	read := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			w.Write(p)
			w.(http.Flusher).Flush()
			<-read // the next piece is written only when this one has been read
		}
	}))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	for _, metered := range []bool{false, true} {
		c := transport.Config{Base: base, Limiter: limit.MustRolling(10, time.Second)}
		if metered {
			c.Tokens = estimator(t)
		}
		tr := mustNew(t, c)
		resp, err := tr.RoundTrip(request(t, http.MethodPost, server.URL+"/v1/chat/completions", prompt))
		if err != nil {
			t.Fatal(err)
		}
		got := sha256.New()
		for _, p := range pieces {
			if _, err := io.CopyN(got, resp.Body, int64(len(p))); err != nil {
				t.Fatal(err)
			}
			read <- struct{}{}
		}
		if n, err := resp.Body.Read(make([]byte, 8)); n != 0 || err != io.EOF {
			t.Error(n, err)
		}
		resp.Body.Close()
		if [32]byte(got.Sum(nil)) != want {
			t.Errorf("metered %v: the bytes differ", metered)
		}
	}
}

// The beginning of a refusal is read to know its kind; the caller gets all of it, however long, and the error at its end.
func TestRefusalIsReturnedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 64<<10 + 2, 300 << 10} {
			body := strings.Repeat("x", n)
			tr := mustNew(t, transport.Config{Base: newBase(0, func(int, *http.Request) *http.Response { return reply(403, body) })})
			if status, got, err := do(t, tr, get(t, "http://a.test/")); status != 403 || got != body || err != nil {
				t.Errorf("%d bytes: %d, %d bytes, %v", n, status, len(got), err)
			}
		}
		tr := mustNew(t, transport.Config{Base: newBase(0, func(int, *http.Request) *http.Response {
			r := reply(403, "")
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("abc"), broken{}))
			return r
		})})
		resp, err := tr.RoundTrip(get(t, "http://a.test/"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); string(got) != "abc" || err != errBroken {
			t.Errorf("%q %v", got, err)
		}
	})
}

// A thousand goroutines on real connections: all kinds of ends at once. Every leave comes back, and the race detector looks on.
func TestAThousandGoroutinesForReal(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch n := served.Add(1); {
		case n%31 == 0:
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(429)
		case n%37 == 0:
			w.WriteHeader(502)
		case n%41 == 0:
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("X-Ratelimit-Limit-Requests", "100000")
			w.Header().Set("X-Ratelimit-Remaining-Requests", fmt.Sprint(100000-n))
			w.Header().Set("X-Ratelimit-Reset-Requests", "10ms")
			io.WriteString(w, events("data: [DONE]\n\n"))
		}
	}))
	defer server.Close()
	base := &http.Transport{MaxIdleConnsPerHost: 100, MaxConnsPerHost: 100}
	defer base.CloseIdleConnections()
	const inFlight = 20
	counted, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: inFlight, Late: -1})
	if err != nil {
		t.Fatal(err)
	}
	tr := mustNew(t, transport.Config{Base: base, Limiter: counted, Tokens: estimator(t), UntilBody: true, Attempts: 6, Backoff: backoff.Policy{Base: time.Millisecond}})
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%10 == 0 {
				go func() { time.Sleep(time.Duration(i) * 100 * time.Microsecond); cancel() }()
			}
			r := request(t, http.MethodPost, server.URL+"/v1/chat/completions", prompt, "Authorization", fmt.Sprint("Bearer ", i%7), "Idempotency-Key", fmt.Sprint(i))
			resp, err := tr.RoundTrip(r.WithContext(ctx))
			if err != nil {
				if i%10 != 0 {
					t.Error(err)
				}
				return
			}
			if i%3 == 0 {
				io.CopyN(io.Discard, resp.Body, 10)
			} else {
				io.Copy(io.Discard, resp.Body)
			}
			resp.Body.Close()
		})
	}
	wg.Wait()
	// All have come back: that many go at once.
	var bodies []io.Closer
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range inFlight {
		resp, err := tr.RoundTrip(request(t, http.MethodPost, server.URL+"/v1/chat/completions", prompt, "Idempotency-Key", "x").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, resp.Body)
	}
	for _, b := range bodies {
		b.Close()
	}
}
