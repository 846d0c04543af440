package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/ratetest/service"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// served is a server within the process, which counts what it answers by status.
type served struct {
	http.Handler
	mu     sync.Mutex
	status map[int]int
	last   time.Time // that something was served
}

func (s *served) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	s.ServeHTTP(w, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == nil {
		s.status = map[int]int{}
	}
	if s.status[w.Code]++; w.Code == 200 {
		s.last = time.Now()
	}
	return w.Result(), nil
}

// Who counts input and output together is sent no more than that, known or not, at full rate, and hardly less.
func TestSumsAreNotRefused(t *testing.T) {
	for _, c := range []struct {
		provider, url, model string
		limits               func() limit.Limiter
		perMinute            float64 // of tokens
	}{
		{"groq", "http://gateway.test/openai/v1/chat/completions", `"model":"m",`, func() limit.Limiter {
			return transport.MustPublished("groq:free")(transport.Partition{Scope: quota.Model})
		}, 12_000},
		{"groq", "https://api.groq.com/openai/v1/chat/completions", `"model":"m",`, func() limit.Limiter {
			return transport.MustPublished("groq:free")(transport.Partition{Scope: quota.Model})
		}, 12_000},
		{"azure-openai", "https://a.openai.azure.com/openai/deployments/d/chat/completions", "", func() limit.Limiter { return rolling(t, 12_000, time.Minute, limit.Tokens) }, 12_000},
	} {
		t.Run(c.url, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := service.Config{Provider: c.provider, Before: latency.Constant(20 * time.Millisecond), After: latency.Constant(20 * time.Millisecond)}
				if c.provider == "azure-openai" {
					config.Limits = []quota.Policy{{Name: "tokens", Limit: 12_000}}
				}
				s, err := service.New(config)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				server := &served{Handler: s}
				limits := c.limits()
				tr := mustNew(t, transport.Config{Base: server, Tokens: estimator(t), Attempts: 1, Limit: func(p transport.Partition) limit.Limiter {
					if p.Scope == quota.Model {
						return limits
					}
					return nil
				}})
				begin := time.Now()
				var all sync.WaitGroup
				const n, most = 40, 600
				body := fmt.Sprintf(`{%s"max_tokens":%d,"messages":[{"role":"user","content":"%s"}]}`, c.model, most, strings.Repeat("the word is ", 200))
				for range n {
					all.Go(func() { do(t, tr, request(t, http.MethodPost, c.url, body)) })
				}
				all.Wait()
				took := server.last.Sub(begin)
				each := float64(len(body)+3)/4 + most
				ideal := time.Duration((n*each/c.perMinute - 1) * float64(time.Minute))
				t.Logf("%d: %v in %v, of %v at best", n, server.status, took, ideal)
				if server.status[200] != n || len(server.status) != 1 || took > ideal+ideal/5+time.Minute {
					t.Errorf("answered %v in %v, of %v at best", server.status, took, ideal)
				}
			})
		})
	}
}

// A server that is known counts as its row says, and one that is not the sum, until an answer tells whose it is. OpenAI's fields
// alone prove nothing: all speak as OpenAI does.
func TestCountedAsDocumented(t *testing.T) {
	for _, c := range []struct {
		name, url, provider string
		fields              []string
		total               [2]int64 // beside the input: of the first, and of those after an answer
	}{
		{"OpenAI", "https://api.openai.com/v1/chat/completions", "", nil, [2]int64{-1, -1}},
		{"Groq", "https://api.groq.com/openai/v1/chat/completions", "", nil, [2]int64{100, 100}},
		{"Azure", "https://a.openai.azure.com/openai/deployments/d/chat/completions", "", nil, [2]int64{100, 100}},
		{"Cerebras", "https://api.cerebras.ai/v1/chat/completions", "", nil, [2]int64{100, 100}},
		{"Mistral", "https://api.mistral.ai/v1/chat/completions", "", nil, [2]int64{100, 100}},
		{"Anthropic", "https://api.anthropic.com/v1/messages", "", nil, [2]int64{100, 100}},
		{"nobody knows", chat, "", nil, [2]int64{100, 100}},
		{"it is said", chat, "openai", nil, [2]int64{-1, -1}},
		{"it shows", chat, "", []string{"X-RateLimit-Limit-Requests", "500", "X-RateLimit-Remaining-Requests", "499", "Openai-Organization", "org"}, [2]int64{100, -1}},
		{"it speaks like it", chat, "", []string{"X-RateLimit-Limit-Requests", "500", "X-RateLimit-Remaining-Requests", "499"}, [2]int64{100, 100}},
	} {
		synctest.Test(t, func(t *testing.T) {
			spy := &spy{}
			said, _ := quota.Lookup(c.provider)
			if c.provider == "" {
				said = nil
			}
			tr := mustNew(t, transport.Config{Limiter: spy, Tokens: estimator(t), Provider: said, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				io.Copy(io.Discard, r.Body)
				return reply(200, `{}`, c.fields...), nil
			})})
			for i, want := range c.total {
				if _, _, err := do(t, tr, request(t, http.MethodPost, c.url, prompt)); err != nil {
					t.Fatal(err)
				}
				if want += spy.cost[limit.Input]; want < 100 {
					want = 100
				}
				if got := spy.cost[limit.Tokens]; got != want {
					t.Errorf("%s, request %d: %v, want %d tokens", c.name, i+1, spy.cost, want)
				}
			}
		})
	}
}

// Every Counting that quota has in its rows is one.
func TestCountingsOfTheRows(t *testing.T) {
	n := 0
	for _, p := range quota.Providers() {
		if p.Tokens == "" {
			continue
		}
		n++
		if c, err := tokens.ParseCounting(string(p.Tokens)); err != nil || c == tokens.Documented {
			t.Errorf("%s: %v %v", p.Name, c, err)
		}
	}
	if n < 5 {
		t.Error(n)
	}
}
