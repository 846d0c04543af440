package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/ratetest/latency"
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
		if race.Enabled && c.n > 100 {
			continue // the same goroutines, for longer
		}
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

// Without PerSecond, some requests are refused, and nearly all are served in the end.
func TestPerSecondUntold(t *testing.T) {
	race.Without(t) // the requests go as those of TestPerSecond
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

// unhurried is a quick server whose answers take 1 to 3 s.
func unhurried() llm.Config {
	c := quick()
	c.First = latency.Uniform(time.Second, 3*time.Second)
	return c
}

// While an answer is missing, its request may or may not have been counted. So the requests in
// flight never exceed a second's part, and slow answers make this the binding limit. Of 500 a
// second it is one of 300, or two of 250, in the time of an answer; of 8 requests a second, 8. That
// much goes, and nothing is refused.
func TestPerSecondSlowAnswers(t *testing.T) {
	race.Without(t) // the requests go as those of TestPerSecond
	for size, inFlight := range map[int]float64{300: 1, 250: 2, 100: 5, 25: 8} {
		const mean = 2.015 // of an answer, with the way there and back
		n := int(240 * inFlight / mean)
		a, tokens := flood(t, n, []int{size}, unhurried(), transport.Config{Preset: "openai:tier1", PerSecond: true})
		safe, got := inFlight*float64(size)/mean, float64(tokens)/a.took.Seconds()
		t.Logf("%d tokens each: %.0f of 500 a second, %.0f %% of what is safe; %d refused", size, got, 100*got/safe, a.limited)
		if a.limited > 0 || a.served != n || got < 0.9*safe {
			t.Errorf("%d tokens each: %d of %d served, %d refused, %.0f of %.0f a second", size, a.served, n, a.limited, got, safe)
		}
	}
}

// One more in flight may be refused, however long after the first it is sent, while the first has
// no answer. The first may be on its way still, and arrive at the same instant.
func TestPerSecondOneMoreIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := llm.New(unhurried())
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		var refused atomic.Int64
		var all sync.WaitGroup
		for _, way := range []time.Duration{2 * time.Second, 50 * time.Millisecond} {
			all.Go(func() {
				r := request(t, http.MethodPost, chat, sentence(300), "Authorization", "Bearer k", "Content-Type", "application/json")
				resp, err := within{server, way}.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				io.Copy(io.Discard, resp.Body)
				if resp.StatusCode == http.StatusTooManyRequests {
					refused.Add(1)
				}
			})
			time.Sleep(1950 * time.Millisecond) // the bucket of the first is long full again, had it arrived
		}
		all.Wait()
		if refused.Load() != 1 {
			t.Errorf("%d of two were refused", refused.Load())
		}
	})
}
