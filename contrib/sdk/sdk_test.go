// Package sdk has the official Go SDKs of OpenAI and Anthropic as clients: on our transport, against our servers, in virtual
// time. It is a module of its own for the sake of their dependencies.
package sdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// An sdk makes one call: of the kinds that it has, whole or as a stream that is read to its end.
type sdk struct {
	provider llm.Provider
	limits   llm.Limits
	kinds    []string
	takes    time.Duration // 1,500 calls, at most
	client   func(h *http.Client, url string, retries int) call
}

type call func(ctx context.Context, kind, text string, most int64) error

var openAI = sdk{
	provider: llm.OpenAI, limits: llm.Limits{Requests: 500, Tokens: 30_000},
	kinds: []string{"chat", "chat stream", "responses", "responses stream", "embeddings"}, takes: 190 * time.Second, // 96,000 tokens of one model
	client: func(h *http.Client, url string, retries int) call {
		c := openai.NewClient(openaiopt.WithHTTPClient(h), openaiopt.WithBaseURL(url+"/v1/"), openaiopt.WithAPIKey("sk-test"), openaiopt.WithMaxRetries(retries))
		return func(ctx context.Context, kind, text string, most int64) error {
			chat := openai.ChatCompletionNewParams{
				Model: openai.ChatModelGPT4o, MaxCompletionTokens: openai.Int(most),
				Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
			}
			response := responses.ResponseNewParams{
				Model: openai.ChatModelGPT4o, MaxOutputTokens: openai.Int(most), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)},
			}
			switch kind {
			case "chat":
				r, err := c.Chat.Completions.New(ctx, chat)
				return answered(err, func() string { return r.Choices[0].Message.Content })
			case "chat stream":
				chat.StreamOptions.IncludeUsage = openai.Bool(true)
				s := c.Chat.Completions.NewStreaming(ctx, chat)
				said := ""
				for s.Next() {
					for _, choice := range s.Current().Choices {
						said += choice.Delta.Content
					}
				}
				return answered(errors.Join(s.Err(), s.Close()), func() string { return said })
			case "responses":
				r, err := c.Responses.New(ctx, response)
				return answered(err, func() string { return r.OutputText() })
			case "responses stream":
				s := c.Responses.NewStreaming(ctx, response)
				said := ""
				for s.Next() {
					said += s.Current().Delta
				}
				return answered(errors.Join(s.Err(), s.Close()), func() string { return said })
			}
			_, err := c.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: openai.EmbeddingModelTextEmbedding3Small,
				Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String(text)}})
			return err
		}
	},
}

var claude = sdk{
	provider: llm.Anthropic, limits: llm.Limits{Requests: 500, Input: 30_000, Output: 12_000},
	kinds: []string{"messages", "messages stream"}, takes: 500 * time.Second, // 8 windows of output
	client: func(h *http.Client, url string, retries int) call {
		c := anthropic.NewClient(anthropicopt.WithHTTPClient(h), anthropicopt.WithBaseURL(url), anthropicopt.WithAPIKey("sk-ant-test"), anthropicopt.WithMaxRetries(retries))
		return func(ctx context.Context, kind, text string, most int64) error {
			message := anthropic.MessageNewParams{
				Model: "claude-sonnet-4-0", MaxTokens: most, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
			}
			if kind == "messages" {
				r, err := c.Messages.New(ctx, message)
				return answered(err, func() string { return r.Content[0].Text })
			}
			s := c.Messages.NewStreaming(ctx, message)
			var m anthropic.Message
			for s.Next() {
				if err := m.Accumulate(s.Current()); err != nil {
					return err
				}
			}
			return answered(errors.Join(s.Err(), s.Close()), func() string { return m.Content[0].Text })
		}
	},
}

var sdks = []sdk{openAI, claude}

func answered(err error, text func() string) error {
	if err == nil && text() == "" {
		return errors.New("an answer without text")
	}
	return err
}

// bench is a server with a network in memory, since loopback sockets are outside of virtual time, and an SDK on our
// transport.
type bench struct {
	server *llm.Server
	paced  *transport.Transport
	ask    call
}

// with runs f in virtual time.
func with(t *testing.T, s sdk, server llm.Config, paced transport.Config, retries int, f func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		server.Provider = s.provider
		if server.Limits == (llm.Limits{}) {
			server.Limits = s.limits
		}
		l, err := llm.New(server)
		if err != nil {
			t.Fatal(err)
		}
		network := fakeconn.New()
		l.StartListener(network)
		base := &http.Transport{DialContext: network.Dial, MaxIdleConnsPerHost: 1000}
		paced.Base = base
		tr, err := transport.New(paced)
		if err != nil {
			t.Fatal(err)
		}
		f(&bench{server: l, paced: tr, ask: s.client(&http.Client{Transport: tr}, l.URL(), retries)})
		base.CloseIdleConnections()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func estimator(t *testing.T, c tokens.Config) *tokens.Estimator {
	t.Helper()
	e, err := tokens.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// limits are those of the server, per model, as any window of a minute.
func limits(l llm.Limits) func(transport.Partition) limit.Limiter {
	return func(p transport.Partition) limit.Limiter {
		if p.Scope != provider.Model {
			return nil
		}
		var all []limit.Limiter
		for unit, n := range map[limit.Unit]int64{limit.Requests: l.Requests, limit.Input: l.Input, limit.Output: l.Output, limit.Tokens: l.Tokens} {
			if n > 0 {
				r, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Minute, Unit: unit})
				if err != nil {
					panic(err)
				}
				all = append(all, r)
			}
		}
		return limit.NewAll(all...)
	}
}

// At full rate, with the SDK's own retries on and off, nothing is refused and every call is answered: 1,500 calls, all made
// at the start, of every kind that the SDK has. The server's words about its limits are not needed for that, nor do they do
// harm where they are wrong.
func TestFullRate(t *testing.T) {
	words := []string{"ok", "no-headers", "lying-headers", "garbled-headers"}
	for _, s := range sdks {
		for i, fault := range append(words, "ok") {
			retries := 2 * min(i, 1)
			t.Run(fmt.Sprintf("%v, %d retries, headers %v", s.provider, retries, fault), func(t *testing.T) {
				// The host is nobody's that is known: who counts how is to be said, or all are taken to count the sum.
				counting := tokens.Reserved
				if s.provider == llm.Anthropic {
					counting = tokens.Used
				}
				config := transport.Config{Limit: limits(s.limits), Tokens: estimator(t, tokens.Config{}), Counting: counting}
				server := llm.Config{First: latency.Constant(300 * time.Millisecond), TokensPerSecond: 100}
				if fault != "ok" {
					server.Faults = map[string]float64{fault: 1}
				}
				with(t, s, server, config, retries, func(b *bench) {
					start := time.Now()
					failed := calls(b, s, 1500)
					took := time.Since(start)
					r := b.server.Report()
					if len(failed) > 0 || r.Verdicts["accepted"] != 1500 || len(r.Verdicts) != 1 || r.Retries != 0 || r.Wrong != 0 {
						t.Errorf("%d calls failed: %v; the server: %+v", len(failed), failed[:min(3, len(failed))], r)
					}
					if took > s.takes {
						t.Errorf("it took %v, want %v at most", took, s.takes)
					}
					for _, a := range r.Accounts {
						t.Logf("%v %s: %d accepted in %v, %+v", s.provider, a.Model, a.Accepted, took, a.Limits)
					}
				})
			})
		}
	}
}

// calls makes n calls at once and returns their errors.
func calls(b *bench, s sdk, n int) (failed []error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		wg.Go(func() {
			text := strings.Repeat("Why is the sky blue? ", 1+i%7)
			if err := b.ask(context.Background(), s.kinds[i%len(s.kinds)], text, int64(40+i%80)); err != nil {
				mu.Lock()
				failed = append(failed, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return failed
}

// A call that is refused each time is sent as often as is configured, whoever tries again: not that often times that often.
func TestAttempts(t *testing.T) {
	refused := slices.Repeat([]string{"429"}, 20)
	for _, s := range sdks {
		for _, tc := range []struct{ ours, retries, sent int }{
			{3, 0, 3}, {3, 2, 3}, {3, 5, 3}, {5, 2, 5}, {2, 2, 2}, {1, 0, 1}, {1, 2, 3},
		} {
			for _, kind := range s.kinds {
				t.Run(fmt.Sprintf("%v %s: %d attempts and %d retries", s.provider, kind, tc.ours, tc.retries), func(t *testing.T) {
					config := transport.Config{Attempts: tc.ours, Tokens: estimator(t, tokens.Config{})}
					with(t, s, llm.Config{Script: refused, RetryAfter: 7 * time.Second}, config, tc.retries, func(b *bench) {
						start := time.Now()
						err := b.ask(context.Background(), kind, "Why?", 20)
						took := time.Since(start)
						if r := b.server.Report(); err == nil || r.Verdicts["faulty"] != tc.sent || len(r.Verdicts) != 1 {
							t.Errorf("sent %v, want %d; %v", r.Verdicts, tc.sent, err)
						}
						if want := time.Duration(tc.sent-1) * 7 * time.Second; took < want || took > want+time.Second {
							t.Errorf("took %v, want %v", took, want)
						}
					})
				})
			}
		}
	}
}

// One refusal with Retry-After, and then room: the call is answered at its second attempt, and nobody who waits beside it is
// sent before that.
func TestRefusedOnce(t *testing.T) {
	for _, s := range sdks {
		for _, retries := range []int{0, 2} {
			t.Run(fmt.Sprintf("%v, %d retries", s.provider, retries), func(t *testing.T) {
				config := transport.Config{Limit: limits(s.limits), Tokens: estimator(t, tokens.Config{})}
				with(t, s, llm.Config{Script: []string{"429"}, RetryAfter: 7 * time.Second}, config, retries, func(b *bench) {
					start := time.Now()
					var wg sync.WaitGroup
					for i := range 3 {
						wg.Go(func() {
							time.Sleep(time.Duration(i) * time.Second)
							err := b.ask(context.Background(), s.kinds[0], "Why?", 20)
							if took := time.Since(start); err != nil || took < 7*time.Second || took > 8*time.Second {
								t.Errorf("call %d: %v after %v", i, err, took)
							}
						})
					}
					wg.Wait()
					if r := b.server.Report(); r.Verdicts["faulty"] != 1 || r.Verdicts["accepted"] != 3 || r.Retries != 0 {
						t.Errorf("%+v", r)
					}
				})
			})
		}
	}
}

// What only the SDK can judge is left to it: a POST that failed at the server, or whose connection broke, may have been
// processed. It tries again twice, by itself.
func TestFailures(t *testing.T) {
	for _, s := range sdks {
		for fault, want := range map[string][2]int{ // sent without and with retries of its own
			"500": {1, 3}, "502": {1, 3}, "reset": {1, 3},
			"overloaded": {3, 3}, // it says Retry-After, so it was not processed
			"unpaid":     {1, 1},
		} {
			for i, retries := range []int{0, 2} {
				t.Run(fmt.Sprintf("%v %v, %d retries", s.provider, fault, retries), func(t *testing.T) {
					config := transport.Config{Limit: limits(s.limits), Tokens: estimator(t, tokens.Config{})}
					with(t, s, llm.Config{Script: slices.Repeat([]string{fault}, 20)}, config, retries, func(b *bench) {
						err := b.ask(context.Background(), s.kinds[0], "Why?", 20)
						if r := b.server.Report(); err == nil || r.Faults[fault] != want[i] {
							t.Errorf("sent %v, want %d; %v", r.Faults, want[i], err)
						}
					})
				})
			}
		}
	}
}

// A prompt that can never fit fails before it is sent, and the error of the SDK says why.
func TestTooLarge(t *testing.T) {
	for _, s := range sdks {
		t.Run(s.provider.String(), func(t *testing.T) {
			config := transport.Config{Limit: limits(s.limits), Tokens: estimator(t, tokens.Config{})}
			with(t, s, llm.Config{}, config, 0, func(b *bench) {
				err := b.ask(context.Background(), s.kinds[1], "Why?", 40_000)
				var e *transport.Error
				if !errors.As(err, &e) || e.Size < 40_000 || e.Limit != max(s.limits.Tokens, s.limits.Output) {
					t.Errorf("%v", err)
				}
				if r := b.server.Report(); len(r.Verdicts) != 0 {
					t.Errorf("sent: %+v", r)
				}
			})
		})
	}
}

// A deadline that cannot be met fails at once, and says when it could.
func TestDeadline(t *testing.T) {
	for _, s := range sdks {
		t.Run(s.provider.String(), func(t *testing.T) {
			config := transport.Config{Limit: limits(llm.Limits{Requests: 1}), Tokens: estimator(t, tokens.Config{})}
			with(t, s, llm.Config{}, config, 0, func(b *bench) {
				if err := b.ask(context.Background(), s.kinds[0], "Why?", 20); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				start := time.Now()
				err := b.ask(ctx, s.kinds[0], "Why?", 20)
				var e *transport.Error
				if !errors.As(err, &e) || e.Ready.Sub(start) < time.Minute || e.Ready.Sub(start) > 61*time.Second || time.Since(start) != 0 {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		})
	}
}
