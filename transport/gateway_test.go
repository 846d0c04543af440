package transport_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/transport"
)

// Whose limits an unknown gateway states. If it speaks like OpenAI, they are a model's, since every
// server documented to send these fields counts so. They are then a bucket, so that the next goes
// when a part of it is back. Otherwise they are the key's, which is the stricter reading.
func TestWhoseLimitsAStrangersAre(t *testing.T) {
	for name, c := range map[string]struct {
		fields []string
		holds  bool // the other model, too
	}{
		"as OpenAI": {[]string{"X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "30s"}, false},
		"as many":   {[]string{"X-Ratelimit-Limit", "60", "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "30"}, true},
		"the draft": {[]string{"Ratelimit-Policy", `"default";q=60;w=60`, "Ratelimit", `"default";r=0;t=30`}, true},
	} {
		for _, refuses := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				status := 200
				if refuses {
					status = 429
				}
				b := newBase(0, func(n int, r *http.Request) *http.Response {
					if n == 1 {
						return reply(status, "{}", c.fields...)
					}
					return reply(200, "{}")
				})
				tr := mustNew(t, transport.Config{Base: b, Tokens: estimator(t), Attempts: 1})
				for _, model := range []string{"small", "large", "small"} {
					do(t, tr, request(t, http.MethodPost, "https://gateway.test/v1/chat/completions", chatOf(model), "Authorization", "Bearer a"))
				}
				at := b.at()
				if held := at[1] >= 29*time.Second; held != c.holds || at[2] == at[0] {
					t.Errorf("%s, refused %t: sent at %v; the other model is held: %t, want %t", name, refuses, at, held, c.holds)
				}
			})
		}
	}
}
