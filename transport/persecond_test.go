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

	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/transport"
)

// sentence is a chat request that counts as so many tokens.
func sentence(tokens int) string {
	return fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"Hello"}]}`, tokens)
}

// flood sends requests of those tokens in turn, n in all, made at once, to a server within the process.
func flood(t *testing.T, n int, sizes []int, config llm.Config, c transport.Config) (a asked, sent int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := llm.New(config)
		if err != nil {
			t.Fatal(err)
		}
		c.Base, c.Tokens = within{server, 5 * time.Millisecond}, estimator(t)
		client := &http.Client{Transport: mustNew(t, c)}
		begin := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		for i := range n {
			tokens := sizes[i%len(sizes)]
			sent += int64(tokens)
			all.Go(func() {
				resp, err := client.Do(request(t, http.MethodPost, chat, sentence(tokens), "Authorization", "Bearer k", "Content-Type", "application/json"))
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				if resp.StatusCode == http.StatusOK {
					a.served++
				}
				a.took = time.Since(begin)
			})
			synctest.Wait() // they are in line in this order
		}
		all.Wait()
		server.Close()
		a.report = server.Report()
		a.limited = a.report.Verdicts["limited"] + a.report.Verdicts["too_large"]
		if a.report.Wrong > 0 {
			t.Errorf("the server was wrong: %v", a.report.FirstWrong)
		}
	})
	return a, sent
}

// quick is a server that holds tier 1 of gpt-4o per second, and answers at once.
func quick() llm.Config {
	return llm.Config{Limits: llm.Limits{Requests: 500, Tokens: 30_000, PerSecond: true}, Before: latency.Uniform(0, 10*time.Millisecond), Seed: 1}
}

// At the full rate, for minutes, nothing is refused and nothing is left unused, be it tokens or requests that bind.
func TestPerSecond(t *testing.T) {
	for name, c := range map[string]struct {
		sizes     []int
		n         int
		perSecond float64 // of tokens or, if below 10, of requests
	}{
		"tokens, some more than a second's": {[]int{50, 120, 400, 80, 1700, 200, 90, 30, 499, 500, 501, 2600}, 300, 500},
		"all more than a second's":          {[]int{900, 2200, 1400}, 81, 500},
		"requests":                          {[]int{20, 40}, 1500, 8},
	} {
		t.Run(name, func(t *testing.T) {
			a, tokens := flood(t, c.n, c.sizes, quick(), transport.Config{Preset: "openai:tier1", PerSecond: true})
			ideal := float64(tokens-int64(c.sizes[len(c.sizes)-1])) / c.perSecond // the last may overdraw
			if c.perSecond < 10 {
				ideal = float64(c.n)/c.perSecond - 1
			}
			share := ideal / a.took.Seconds()
			t.Logf("%d in %v, %.1f %% of the ceiling; %d refused", a.served, a.took, 100*share, a.limited)
			if a.limited > 0 || a.served != c.n || share < 0.98 || share > 1 || ideal < 120 {
				t.Errorf("%d of %d served, %d refused, in %v; ideal %.1f s, %v", a.served, c.n, a.limited, a.took, ideal, a.report.Verdicts)
			}
		})
	}
}

// Who is not told of it is refused, and is served all the same.
func TestPerSecondUntold(t *testing.T) {
	for _, sizes := range [][]int{{50, 120, 400, 80, 1700, 200, 90, 30, 499, 500, 501, 2600}, {20, 40}} {
		a, tokens := flood(t, 200, sizes, quick(), transport.Config{Preset: "openai:tier1", Attempts: 1000})
		t.Logf("%d of 200 (%d tokens) served in %v, %d refused", a.served, tokens, a.took, a.limited)
		if a.limited == 0 || a.served < 190 {
			t.Errorf("%d served, %d refused", a.served, a.limited)
		}
	}
}

func TestPerSecondOfWhoDoesNotSaySo(t *testing.T) {
	_, err := transport.Published("anthropic:start", transport.PerSecond)
	_, alone := transport.New(transport.Config{PerSecond: true})
	_, unknown := transport.Published("openai:tier1", 7)
	if err == nil || !strings.Contains(err.Error(), `"anthropic:start" does not say`) || alone == nil || unknown == nil {
		t.Error(err, alone, unknown)
	}
}
