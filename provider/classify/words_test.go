package classify_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// A refusal is about the nonce if it names the nonce and a fault of it, in capitals or not, at the
// usual places.
func TestNonceInAnyCase(t *testing.T) {
	for body, about := range map[string]bool{
		`{"error":"INVALID NONCE"}`: true, `{"error":"Nonce Too Small"}`: true, `{"error":"nonce already used"}`: true,
		`{"message":"AccountAPI nonce error"}`: true, `{"error":"Timestamp not increasing"}`: true, `{"error":"timestamp is too old"}`: false,
		`{"error":"nonce"}`: false, `{"error":"Invalid signature"}`: false,
		strings.Repeat(" ", provider.MaxBody-len("invalid nonce")) + "Invalid Nonce":   true,
		strings.Repeat(" ", provider.MaxBody-len("invalid nonce")+1) + "Invalid Nonce": false, // more is not looked at
	} {
		v := (&classify.Policy{}).Of(&classify.Evidence{Status: 400, Nonce: true, Body: []byte(body)})
		if v.Misordered != about {
			t.Errorf("%s: %v", strings.TrimSpace(body), v.Misordered)
		}
	}
}

// Where no limit is known, a failure is not to be tried again at once, and what was served may be.
func TestAdviceWithoutALimit(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusOK: "Come back at once.", http.StatusBadRequest: "It failed,", http.StatusNotFound: "It failed,",
	} {
		if got := classify.Advice(noon, status, provider.Observation{}); !strings.HasPrefix(got, want) {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
}

// Each refusal has its advice, and an instant where the server states one.
func TestAdviceOfRefusals(t *testing.T) {
	in := provider.Observation{RetryAfter: 90 * time.Second}
	for refusal, want := range map[provider.Refusal][2]string{ // without an instant, and with one
		provider.TooMany:        {"then try again.", "at once; come back in 1 min 30 s ("},
		provider.QuotaExhausted: {"does not say when it is back.", "used up; come back in 1 min 30 s ("},
		provider.Banned:         {"does not say until when.", "until it is over, in 1 min 30 s ("},
		provider.RateLimited:    {"the server does not say when.", "Come back in 1 min 30 s ("},
	} {
		for i, o := range []provider.Observation{{}, in} {
			o.Refusal = refusal
			if got := classify.Advice(noon, http.StatusTooManyRequests, o); !strings.Contains(got, want[i]) {
				t.Errorf("%v: %q, want %q", refusal, got, want[i])
			}
		}
	}
}
