package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/transport"
)

// within is a server within the process, whose streams are read as they are written.
type within struct {
	http.Handler
	way time.Duration // there, and back
}

func (b within) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(b.way)
	from, to := io.Pipe()
	w := &piped{header: http.Header{}, headed: make(chan int, 1), to: to}
	go func() {
		b.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		to.Close()
	}()
	status := <-w.headed
	time.Sleep(b.way)
	return &http.Response{StatusCode: status, Header: w.header.Clone(), Body: from, ContentLength: -1, Request: r}, nil
}

type piped struct {
	header http.Header
	headed chan int
	once   sync.Once
	to     *io.PipeWriter
}

func (w *piped) Header() http.Header    { return w.header }
func (w *piped) WriteHeader(status int) { w.once.Do(func() { w.headed <- status }) }
func (w *piped) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.to.Write(p)
}

// asked is what came of prompts, all made at once.
type asked struct {
	took  time.Duration // to the last answer
	after int64         // tokens that were answered from a minute on, until then
	limited,
	served int
	report llm.Report
}

func prompts(t *testing.T, n, maxTokens int, stream bool, config llm.Config, limits func(transport.Partition) limit.Limiter) (a asked) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		config.Provider = llm.Anthropic
		server, err := llm.New(config)
		if err != nil {
			t.Fatal(err)
		}
		tr := mustNew(t, transport.Config{Base: within{server, 20 * time.Millisecond}, Tokens: estimator(t), Limit: limits, Fill: 64})
		client := &http.Client{Transport: tr}
		begin := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		for range n {
			all.Go(func() {
				body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":%d,"stream":%v,"messages":[{"role":"user","content":"Hello"}]}`, maxTokens, stream)
				resp, err := client.Do(request(t, http.MethodPost, "https://api.anthropic.com/v1/messages", body, "X-Api-Key", "k", "Anthropic-Version", "2023-06-01", "Content-Type", "application/json"))
				if err != nil {
					t.Error(err)
					return
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				if err == nil && resp.StatusCode == http.StatusOK && (!stream || strings.Contains(string(text), "message_stop")) {
					a.served++
				}
				if a.took = time.Since(begin); a.took > time.Minute {
					a.after += 300
				}
			})
		}
		all.Wait()
		server.Close()
		a.report = server.Report()
		a.limited = a.report.Verdicts["limited"] + a.report.Verdicts["too_large"]
	})
	return a
}

func produced(perMinute int64) func(transport.Partition) limit.Limiter {
	return func(p transport.Partition) limit.Limiter {
		if p.Scope != provider.Model {
			return nil
		}
		l, err := limit.NewProduced(limit.ProducedConfig{Limit: perMinute, Window: time.Minute})
		if err != nil {
			panic(err)
		}
		return l
	}
}

func bucketed(perMinute int64) func(transport.Partition) limit.Limiter {
	return func(p transport.Partition) limit.Limiter {
		if p.Scope != provider.Model {
			return nil
		}
		l, err := limit.NewBucket(limit.BucketConfig{Limit: perMinute, Window: time.Minute, Unit: limit.Output})
		if err != nil {
			panic(err)
		}
		return l
	}
}

func uses(output func(i int) int64) func(llm.Ask) llm.Usage {
	i := -1
	return func(llm.Ask) llm.Usage {
		i++
		return llm.Usage{Input: 10, Output: output(i)}
	}
}

// 8,000 tokens of output a minute, max_tokens of 4,096, of which 300 are produced within 2 s: 40 prompts could be answered in 32 s.
func TestOutputCountsAsItIsProduced(t *testing.T) {
	config := llm.Config{Limits: llm.Limits{Requests: 1000, Output: 8000}, First: latency.Constant(200 * time.Millisecond), TokensPerSecond: 300 / 1.8}
	for _, stream := range []bool{true, false} {
		config.Truth = uses(func(int) int64 { return 300 })
		a := prompts(t, 40, 4096, stream, config, produced(8000))
		if a.limited > 0 || a.served != 40 || a.took > 40*time.Second || a.report.Wrong > 0 {
			t.Errorf("stream %v: 40 in %v, %d refused, %d served", stream, a.took, a.limited, a.served)
		}
		t.Logf("stream %v: 40 in %v", stream, a.took)
		if race.Enabled {
			continue // the same goroutines, for longer
		}
		config.Truth = uses(func(int) int64 { return 300 })
		a = prompts(t, 400, 4096, stream, config, produced(8000))
		share := float64(a.after) / ((a.took - time.Minute).Minutes() * 8000)
		if a.limited > 0 || a.served != 400 || share < 0.95 {
			t.Errorf("stream %v: 400 in %v, from a minute on %.1f %% of the limit, %d refused, %d served", stream, a.took, 100*share, a.limited, a.served)
		}
		t.Logf("stream %v: 400 in %v, from a minute on %.1f %%", stream, a.took, 100*share)
	}
	// A limit that reserves max_tokens: two at a time.
	config.Truth = uses(func(int) int64 { return 300 })
	a := prompts(t, 40, 4096, true, config, bucketed(8000))
	if a.took < time.Minute {
		t.Errorf("a bucket of what is reserved: 40 in %v", a.took)
	}
	t.Logf("reserved: 40 in %v", a.took)
}

// Answers of any size: no request is refused, even if max_tokens is more than the limit.
func TestOutputOfAnySizeIsNotRefused(t *testing.T) {
	race.Without(t) // the requests go as in the test before
	for name, output := range map[string]func(i int) int64{
		"all of it": func(int) int64 { return 4096 },
		"bimodal":   func(i int) int64 { return []int64{20, 4096}[i*7/3%2] },
		"growing":   func(i int) int64 { return min(4096, int64(20+i*100)) },
	} {
		for _, speed := range []float64{500, 60} {
			for _, most := range []int{4096, 20_000} {
				config := llm.Config{Limits: llm.Limits{Requests: 1000, Output: 8000}, First: latency.Uniform(0, time.Second), TokensPerSecond: speed, Truth: uses(output)}
				a := prompts(t, 40, most, speed > 100, config, produced(8000))
				if a.limited > 0 || a.served != 40 || a.report.Wrong > 0 {
					t.Errorf("%s, %.0f a second, max_tokens %d: %d refused, %d served: %v", name, speed, most, a.limited, a.served, a.report.FirstWrong)
				}
			}
		}
	}
}

// The published limits of Anthropic are kept as it counts.
func TestPublishedCountsOutputAsProduced(t *testing.T) {
	l := transport.MustPublished("anthropic:start")(transport.Partition{Scope: provider.Model})
	if at := l.Ready(0, limit.Cost{limit.Requests: 1, limit.Output: 128_000}); at != mono.Time(0) {
		t.Errorf("more output than the limit of a minute may go at %v", at)
	}
	l = transport.MustPublished("groq:free")(transport.Partition{Scope: provider.Model})
	if l == nil {
		t.Skip("no such preset any more")
	}
	if at := l.Ready(0, limit.Cost{limit.Requests: 1, limit.Tokens: 1 << 30}); at != limit.Never {
		t.Errorf("more tokens than the limit of a minute may go at %v", at)
	}
}
