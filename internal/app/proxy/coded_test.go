package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/send/decode"
	"github.com/paceline-go/paceline/internal/testkit/coded"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/provider"
)

// spoken is the coding of all answers of servers; nil: none.
var spoken *coded.Coding

// inCoding serves what h serves, in that coding.
func inCoding(h http.Handler) http.Handler {
	if spoken == nil {
		return h
	}
	return spoken.Handler(h)
}

// plainly returns a reader of an answer as its client understands it.
func plainly(resp *http.Response) io.Reader {
	if spoken == nil || resp.Header.Get("Content-Encoding") != spoken.Field {
		return resp.Body
	}
	return decode.Of(resp.Header).NewReader(resp.Body)
}

// Whatever the answers are coded in, clients' budgets, verdicts and keys are the same.
func TestInEachCoding(t *testing.T) {
	race.Without(t) // each of these tests has run with it, in no coding
	need.NotShort(t, "package transport has this test, and an answer is decoded in one place")
	defer func() { spoken = nil }()
	for i := range coded.All {
		spoken = &coded.All[i]
		t.Run(spoken.Name, func(t *testing.T) {
			type test struct {
				name string
				run  func(*testing.T)
			}
			all := []test{
				{"money", TestMoneyBinds}, {"not served", TestMoneyOfWhatIsNotServed}, {"per request", TestMoneyPerRequest}, {"keys", TestKeys}, {"denied", TestKeysThatAreDenied},
				{"limits of clients", TestClientsOwnLimits}, {"waits", TestWaits}, {"long waits", TestRefusesLongWaits}, {"secrets", TestSecretsAreNotShown}, {"shared", TestSharedRefusals},
				{"head", TestHeadAndRedirect}, {"trailers", TestTrailers}, {"restarts", TestStateOverRestarts},
			}
			if i < len(coded.All)-1 { // the last is of two codings
				all = all[:need.Fewer(2, len(all))]
			}
			for _, test := range all {
				t.Run(test.name, test.run)
			}
		})
	}
}

// A client that accepts compressed answers waits as long as a refusal says, and what it used counts.
func TestAcceptEncodingMakesNoDifference(t *testing.T) {
	const (
		path    = "/v1beta/models/gemini-2.5-flash:generateContent"
		refusal = `{"error":{"code":429,"message":"Please retry in 6s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"6s"}]}}`
		answer  = `{"candidates":[{"content":{"parts":[{"text":"w"}]}}],"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":7,"totalTokenCount":18}}`
	)
	defer func() { spoken = nil }()
	codings := []*coded.Coding{nil}
	for i := range coded.All {
		codings = append(codings, &coded.All[i])
	}
	for _, spoken = range codings {
		synctest.Test(t, func(t *testing.T) {
			var sent []time.Duration
			begin := time.Now()
			server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent = append(sent, time.Since(begin))
				w.Header().Set("Content-Type", "application/json")
				if len(sent) == 1 {
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = io.WriteString(w, refusal)
					return
				}
				_, _ = io.WriteString(w, answer)
			})
			c := to(mustURL(t, "http://gemini.test"))
			c.Upstreams[0].Tokens = true
			c.Upstreams[0].Provider, _ = provider.Lookup("gemini")
			c.MaxWait = time.Minute
			virtually(t, server, c, func(p *Proxy, client func() *http.Client) {
				status, text := asked(t, client(), path, `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":500}}`, "web")
				if status != http.StatusOK || text != answer || !slices.Equal(sent, []time.Duration{0, 6 * time.Second}) {
					t.Errorf("%d %q, sent at %v", status, text, sent)
				}
				synctest.Wait()
				if used := p.Sources()[0].Snapshot().Used; used.Input != 11 || used.Output != 7 {
					t.Errorf("used %+v", used)
				}
			})
		})
	}
}

// Each event reaches the client at its own flush, and the bytes are those that the server sent.
func TestEventsInEachCoding(t *testing.T) {
	for _, c := range coded.All {
		synctest.Test(t, func(t *testing.T) {
			events := make([]string, 20)
			for i := range events {
				events[i] = fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":\"word %d\"}}]}\n\n", i)
			}
			events = append(events, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5,\"total_tokens\":12}}\n\n", "data: [DONE]\n\n")
			pieces := c.Events(events...)
			next := make(chan struct{}, 1)
			server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", c.Field)
				for _, p := range pieces {
					<-next
					_, _ = w.Write(p)
					_ = http.NewResponseController(w).Flush()
				}
			})
			conf := to(mustURL(t, "http://openai.test"))
			conf.Upstreams[0].Tokens = true
			virtually(t, server, conf, func(p *Proxy, client func() *http.Client) {
				r, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://proxy.test/v1/chat/completions", strings.NewReader(`{"model":"m","max_tokens":100,"stream":true,"messages":[]}`))
				r.Header.Set("Accept-Encoding", c.Field)
				next <- struct{}{}
				resp, err := client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				for i, want := range pieces {
					if i > 0 {
						next <- struct{}{}
					}
					got := make([]byte, len(want))
					if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, want) {
						t.Fatalf("%s, event %d: %q, %v", c.Name, i, got, err)
					}
				}
				if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
					t.Errorf("%s: %q, %v at the end", c.Name, rest, err)
				}
				resp.Body.Close()
				synctest.Wait()
				if used := p.Sources()[0].Snapshot().Used; used.Input != 7 || used.Output != 5 {
					t.Errorf("%s: used %+v", c.Name, used)
				}
			})
		})
	}
}

// How long an event takes through the proxy, from the server's write to the client's read.
func BenchmarkEvent(b *testing.B) {
	for _, metered := range []bool{false, true} {
		for _, c := range coded.All {
			b.Run(fmt.Sprintf("%s/metered=%v", c.Name, metered), func(b *testing.B) {
				events := make([]string, b.N+1)
				for i := range events {
					events[i] = fmt.Sprintf("data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"delta\":{\"content\":\"word %d\"}}]}\n\n", i)
				}
				pieces, next := c.Events(events...), make(chan []byte)
				u := upstreamOf(b, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					w.Header().Set("Content-Encoding", c.Field)
					for p := range next {
						_, _ = w.Write(p)
						_ = http.NewResponseController(w).Flush()
					}
				})
				conf := to(u)
				conf.Upstreams[0].Tokens = metered
				x := start(b, conf)
				r, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, x.url+"/v1/chat/completions", strings.NewReader(`{"model":"m","max_tokens":100,"stream":true,"messages":[]}`))
				go func() { next <- pieces[0] }()
				resp, err := clientOf(b).Do(r)
				if err != nil {
					b.Fatal(err)
				}
				read := func(p []byte) {
					if _, err := io.ReadFull(resp.Body, p); err != nil {
						b.Fatal(err)
					}
				}
				read(make([]byte, len(pieces[0])))
				took := make([]time.Duration, b.N)
				b.ResetTimer()
				for i := range b.N {
					begin := time.Now()
					next <- pieces[i+1]
					read(make([]byte, len(pieces[i+1])))
					took[i] = time.Since(begin)
				}
				b.StopTimer()
				close(next)
				resp.Body.Close()
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
				x.stop()
			})
		}
	}
}
