package transport_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
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
	resp, err := ratetest.InMemory(s.Handler).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == nil {
		s.status = map[int]int{}
	}
	if s.status[resp.StatusCode]++; resp.StatusCode == http.StatusOK {
		s.last = time.Now()
	}
	return resp, nil
}

// The configuration says who answers behind a name, and how tokens count there. It goes before the name of the host.
func TestTheConfiguredProviderCounts(t *testing.T) {
	groq, _ := provider.Lookup("groq")
	for _, c := range []struct {
		host       string
		configured provider.Dialect
		want       int64 // of tokens
	}{
		{"api.openai.com", nil, 100}, // the larger of input and output
		{"api.openai.com", groq, 119},
		{"api.groq.com", nil, 119},
		{"gateway.test", groq, 119},
	} {
		synctest.Test(t, func(t *testing.T) {
			var cost limit.Cost
			tr := mustNew(t, transport.Config{Base: newBase(0, ok), Provider: c.configured, Tokens: estimator(t),
				Ended: func(a transport.Attempt) { cost = a.Cost }})
			const body = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Why?"}]}`
			do(t, tr, request(t, http.MethodPost, "https://"+c.host+"/openai/v1/chat/completions", body))
			if cost[limit.Tokens] != c.want {
				t.Errorf("at %s, by the configuration of groq: %v: %v, want %d tokens", c.host, c.configured != nil, cost, c.want)
			}
		})
	}
}

// A server that counts input and output together, known or unknown, gets no more than that at full
// rate, and hardly less.
func TestSumsAreNotRefused(t *testing.T) {
	var groq float64
	published, _ := provider.LookupPreset("groq:free")
	for _, p := range published.Policies {
		if p.Unit == provider.Tokens && p.Window == time.Minute {
			groq = float64(p.Limit)
		}
	}
	for _, c := range []struct {
		provider, url, model string
		limits               func() limit.Limiter
		perMinute            float64 // of tokens
	}{
		{"groq", "http://gateway.test/openai/v1/chat/completions", `"model":"m",`, func() limit.Limiter {
			return transport.MustPublished("groq:free")(transport.Partition{Scope: provider.Model})
		}, groq},
		{"groq", "https://api.groq.com/openai/v1/chat/completions", `"model":"m",`, func() limit.Limiter {
			return transport.MustPublished("groq:free")(transport.Partition{Scope: provider.Model})
		}, groq},
		{"azure-openai", "https://a.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21", "", func() limit.Limiter { return rolling(t, 12_000, time.Minute, limit.Tokens) }, 12_000},
	} {
		t.Run(c.url, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := service.Config{Provider: c.provider, Before: latency.Constant(20 * time.Millisecond), After: latency.Constant(20 * time.Millisecond)}
				if c.provider == "azure-openai" {
					config.Limits = []provider.Policy{{Name: "tokens", Limit: 12_000}}
				}
				s, err := service.New(config)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				server := &served{Handler: s}
				limits := c.limits()
				tr := mustNew(t, transport.Config{Base: server, Tokens: estimator(t), Attempts: 1, Limit: func(p transport.Partition) limit.Limiter {
					if p.Scope == provider.Model {
						return limits
					}
					return nil
				}})
				begin := time.Now()
				var all sync.WaitGroup
				const n, most = 40, 600
				body := fmt.Sprintf(`{%s"max_tokens":%d,"messages":[{"role":"user","content":"%s"}]}`, c.model, most, strings.Repeat("the word is ", 200))
				for range n {
					all.Go(func() {
						do(t, tr, request(t, http.MethodPost, c.url, body, "Authorization", "Bearer key", "Api-Key", "key"))
					})
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

// A known server counts as its row says. An unknown one counts the sum, until an answer shows its
// provider. OpenAI's fields alone prove nothing: many servers send them.
func TestCountedAsDocumented(t *testing.T) {
	for _, c := range []struct {
		name, url, provider string
		fields              []string
		total               [2]int64 // beside the input: of the first, and of those after an answer
	}{
		{"OpenAI", "https://api.openai.com/v1/chat/completions", "", nil, [2]int64{-1, -1}},
		{"Groq", "https://api.groq.com/openai/v1/chat/completions", "", nil, [2]int64{100, 100}},
		{"Azure", "https://a.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21", "", nil, [2]int64{100, 100}},
		{"Cerebras", "https://api.cerebras.ai/v1/chat/completions", "", nil, [2]int64{100, 100}},
		{"Mistral", "https://api.mistral.ai/v1/chat/completions", "", nil, [2]int64{100, 100}},
		{"Anthropic", "https://api.anthropic.com/v1/messages", "", nil, [2]int64{100, 100}},
		{"nobody knows", chat, "", nil, [2]int64{100, 100}},
		{"it is said", chat, "openai", nil, [2]int64{-1, -1}},
		{"limits of openai:tier1", chat, "", nil, [2]int64{-1, -1}},
		{"limits of openai:tier1", "https://api.groq.com/openai/v1/chat/completions", "", nil, [2]int64{100, 100}}, // the host is known
		{"it shows", chat, "", []string{"X-RateLimit-Limit-Requests", "500", "X-RateLimit-Remaining-Requests", "499", "Openai-Organization", "org"}, [2]int64{100, -1}},
		{"it speaks like it", chat, "", []string{"X-RateLimit-Limit-Requests", "500", "X-RateLimit-Remaining-Requests", "499"}, [2]int64{100, 100}},
	} {
		synctest.Test(t, func(t *testing.T) {
			spy := &spy{}
			preset, _ := strings.CutPrefix(c.name, "limits of ")
			if preset == c.name {
				preset = ""
			}
			said, _ := provider.Lookup(c.provider)
			if c.provider == "" {
				said = nil
			}
			tr := mustNew(t, transport.Config{Limiter: spy, Tokens: estimator(t), Provider: said, Preset: preset, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
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
	for _, p := range provider.Providers() {
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

// zeros is a body of zeros that takes no memory, and counts the bytes read.
type zeros struct{ left, read int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	z.left, z.read = z.left-n, z.read+n
	return int(n), nil
}

func (z *zeros) Close() error { return nil }

// A body that is too long to be read counts by its length, which is known before. It goes alone if
// that is more than the limit, waits if it may, and takes no memory.
func TestLongBodies(t *testing.T) {
	var log strings.Builder
	spy := &spy{}
	server := roundTripper(func(r *http.Request) (*http.Response, error) {
		io.Copy(io.Discard, r.Body)
		return reply(200, "{}"), nil
	})
	send := func(tr *transport.Transport, body *zeros, length int64, fields ...string) error {
		r := request(t, http.MethodPost, chat, "", fields...)
		r.Body, r.ContentLength = body, length
		_, _, err := do(t, tr, r)
		return err
	}
	const long = 50 << 20
	limited := mustNew(t, transport.Config{Base: server, Tokens: estimator(t), Limiter: rolling(t, 30_000, time.Minute, limit.Tokens)})
	body := &zeros{left: long}
	if err := send(limited, body, long); err != nil || body.left != 0 {
		t.Errorf("%v; %d bytes are left", err, body.left)
	}
	if p := limited.Partitions(); len(p) != 1 || p[0].Accepted != 1 {
		t.Errorf("%+v", p)
	}
	free := mustNew(t, transport.Config{Base: server, Tokens: estimator(t), Limiter: spy, Uncounted: 9000, MaxBody: 1 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, c := range []struct {
		length int64
		fields []string
		want   int64
	}{{long, nil, long / 4}, {-1, nil, 1<<18 + 1}, {40_000, []string{"Content-Encoding", "gzip"}, 10_000}, {400, []string{"Content-Encoding", "gzip"}, 9000}, {400, nil, 9000}} {
		body := &zeros{left: max(c.length, 0)}
		if c.length < 0 {
			body.left = long
		}
		if err := send(free, body, c.length, c.fields...); err != nil || spy.cost[limit.Tokens] != c.want || spy.cost[limit.Input] != c.want || body.left != 0 {
			t.Errorf("%v %v: %v, %v; %d left", c.length, c.fields, err, spy.cost, body.left)
		}
	}
	if n := strings.Count(log.String(), "tokens cannot be counted"); n != 1 {
		t.Errorf("said %d times:\n%s", n, &log)
	}
	hidden := `{"model":"m","max_output_tokens":100,"previous_response_id":"r"}`
	if do(t, free, request(t, http.MethodPost, responses, hidden)); spy.cost[limit.Input] != 9000 || spy.cost[limit.Tokens] != 9100 || strings.Count(log.String(), "reads more than the body has") != 1 {
		t.Errorf("%v\n%s", spy.cost, &log)
	}
	// The allocations of the body's own client are not ours.
	before := allocated()
	for range 4 {
		send(free, &zeros{left: long}, long)
	}
	if n := (allocated() - before) / 4; n > 256<<10 {
		t.Errorf("%d bytes were allocated for a body of %d", n, long)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Those who speak otherwise are counted, too, in the limits of the model that their path names, and settled with what they say.
func TestVendorsAreCounted(t *testing.T) {
	for _, c := range []struct {
		name, url, body, model  string
		answer                  func() *http.Response
		input, output, tokens   int64 // at least, when it goes
		actualInput, actualBoth int64 // when it is answered
	}{
		{"Gemini, a list", "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent", `{"contents":[{"parts":[{"text":"hello there"}]}],"generationConfig":{"maxOutputTokens":100}}`, "gemini-2.5-flash",
			func() *http.Response {
				return reply(200, `[{"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":5,"totalTokenCount":12}}]`)
			}, 3, 0, 3, 7, 7},
		{"Bedrock's header", "https://bedrock-runtime.us-east-1.amazonaws.com/model/meta.llama3-8b-instruct-v1:0/invoke", `{"prompt":"hello there","max_gen_len":100}`, "meta.llama3-8b-instruct-v1:0",
			func() *http.Response {
				return reply(200, `{"generation":"hi"}`, "X-Amzn-Bedrock-Input-Token-Count", "7", "X-Amzn-Bedrock-Output-Token-Count", "5")
			}, 3, 100, 103, 7, 12},
		{"Bedrock's Converse", "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-lite-v1:0/converse", `{"messages":[{"role":"user","content":[{"text":"hello there"}]}],"inferenceConfig":{"maxTokens":100}}`, "amazon.nova-lite-v1:0",
			func() *http.Response {
				return reply(200, `{"usage":{"inputTokens":7,"outputTokens":5,"totalTokens":12}}`)
			}, 3, 100, 103, 7, 12},
	} {
		spy := &spy{}
		tr := mustNew(t, transport.Config{Limiter: spy, Tokens: estimator(t), Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			io.Copy(io.Discard, r.Body)
			return c.answer(), nil
		})})
		if _, _, err := do(t, tr, request(t, http.MethodPost, c.url, c.body)); err != nil {
			t.Fatal(err)
		}
		if a := spy.cost; a[limit.Input] < c.input || a[limit.Output] != c.output || a[limit.Tokens] < c.tokens || a[limit.Tokens] != a[limit.Input]+a[limit.Output] {
			t.Errorf("%s: admitted %v", c.name, a)
		}
		if o := spy.ended[0]; !o.Metered || o.Actual[limit.Input] != c.actualInput || o.Actual[limit.Tokens] != c.actualBoth {
			t.Errorf("%s: settled as %+v", c.name, o)
		}
		if p := tr.Partitions(); len(p) != 1 || p[0].Partition.Model != c.model {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}

// How a server speaks may be seen in one answer and whose it is in another.
func TestCountedAsShownInTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spy, n := &spy{}, 0
		answers := [][]string{{"X-RateLimit-Limit-Requests", "500", "X-RateLimit-Remaining-Requests", "499"}, {"Openai-Organization", "org"}, nil}
		tr := mustNew(t, transport.Config{Limiter: spy, Tokens: estimator(t), Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			io.Copy(io.Discard, r.Body)
			n++
			return reply(200, `{}`, answers[n-1]...), nil
		})})
		for i, want := range []int64{100, 100, 99} { // beside the input; the last is at least 100 in all
			if _, _, err := do(t, tr, request(t, http.MethodPost, chat, prompt)); err != nil {
				t.Fatal(err)
			}
			if got := spy.cost[limit.Tokens] - spy.cost[limit.Input]; got != want && (want == 100 || got >= 100) {
				t.Errorf("request %d: %v", i+1, spy.cost)
			}
		}
	})
}
