package transport_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// A refusal that says in words when to come back is waited for, whatever provider is configured. Three
// tries went in 0.2 s, and the caller got the refusal.
func TestWordsAreWaitedFor(t *testing.T) {
	for _, c := range []struct{ dialect, body string }{
		{"", `{"error":{"message":"Usage limit reached. Resets in 0min 6sec."}}`},
		{"", "Too many requests, wait 6 seconds."},
		{"openai", `{"error":{"code":"429","message":"Rate limit exceeded. Try again in 6 seconds."}}`},
		{"azure-openai", `{"error":{"code":"429","message":"Rate limit exceeded. Try again in 6 seconds."}}`},
		{"anthropic", `{"type":"error","error":{"type":"rate_limit_error","message":"You've hit your limit · resets 12:00:06am (UTC)"}}`},
	} {
		synctest.Test(t, func(t *testing.T) { // which begins at midnight of UTC
			began := time.Now()
			var at []time.Duration
			b := newBase(0, func(int, *http.Request) *http.Response {
				if at = append(at, time.Since(began)); at[len(at)-1] < 6*time.Second {
					return reply(429, c.body, "Content-Type", "application/json")
				}
				return reply(200, "")
			})
			config := transport.Config{Base: b}
			config.Provider, _ = provider.Lookup(c.dialect)
			status, _, err := do(t, mustNew(t, config), request(t, http.MethodPost, "http://a.test/", "{}"))
			if err != nil || status != 200 || len(at) != 2 || at[1] > 8*time.Second {
				t.Errorf("%s %s: %d, %v; tried at %v", c.dialect, c.body, status, err, at)
			}
		})
	}
}
