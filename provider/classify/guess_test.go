package classify_test

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// For an unknown server, Guess finds a refusal with status 200: a short body like that of a
// provider that refuses so. A quotation of one is no refusal. Neither is a body about limits that
// refuses nothing, or one of a known provider.
func TestGuess(t *testing.T) {
	const refusal, unspoken = `{"error":["EAPI:Rate limit exceeded"]}`, `{"code":"50061","msg":"sub-account limit"}` // in words, and in none
	guess := classify.Policy{Guess: true}
	for _, c := range []struct {
		name   string
		policy classify.Policy
		status int
		body   string
		shown  string
		want   limit.Result
	}{
		{"refused", guess, 200, refusal, "", limit.Limited},
		{"with another good status", guess, 202, refusal, "", limit.Limited},
		{"in no words", guess, 200, unspoken, "", limit.Limited},
		{"in no words, and nobody asked for it", classify.Policy{}, 200, unspoken, "", limit.Accepted},
		{"in words, and nobody asked for it", classify.Policy{}, 200, refusal, "", limit.Limited},
		{"long", guess, 200, `{"error":["EAPI:Rate limit exceeded"],"quotes":"` + strings.Repeat("x", 2<<10) + `"}`, "", limit.Accepted},
		{"as long as may be", guess, 200, `{"error":["EAPI:Rate limit exceeded"],"q":"` + strings.Repeat("x", 1800) + `"}`, "", limit.Limited},
		{"about limits", guess, 200, `{"error":[],"result":{"limit":5}}`, "", limit.Accepted},
		{"in other words", guess, 200, `{"error":["EGeneral:Internal error"]}`, "", limit.Accepted},
		{"of one who is known not to refuse so", guess, 200, unspoken, "openai", limit.Accepted},
		{"of one who is known not to refuse so, in words", guess, 200, refusal, "openai", limit.Limited},
	} {
		a := classify.Evidence{Status: c.status, Header: header("Content-Type", "application/json"), Body: []byte(c.body), Now: noon, Shown: dialect(c.shown)}
		v := c.policy.Of(&a)
		if v.Result != c.want || (v.Said.Refusal != provider.None) != (c.want == limit.Limited) {
			t.Errorf("%s: %v, %q, read as %q", c.name, v.Result, v.Said.Refusal, v.Said.Dialect)
		}
		if needs := c.policy.NeedsBody(&a); needs != (c.policy.Guess && c.shown == "") {
			t.Errorf("%s: needs the body: %v", c.name, needs)
		}
	}
}

// Guess takes nothing from an answer that is no refusal: the remainder in its header counts as
// without Guess.
func TestGuessHearsWhatIsLeft(t *testing.T) {
	for _, guesses := range []bool{true, false} {
		for _, fields := range [][]string{nil, {"X-RateLimit-Limit", "50", "X-RateLimit-Remaining", "3"}} {
			p := classify.Policy{Guess: guesses}
			a := classify.Evidence{Status: 200, Header: header(append(fields, "Content-Type", "application/json")...), Body: []byte(`{"result":1}`), Now: noon}
			v := p.Of(&a)
			if heard := len(v.Said.Limits) == 1 && v.Remaining[limit.Requests] == 3; v.Result != limit.Accepted || heard != (fields != nil) {
				t.Errorf("guesses %v, %q: %v, %+v", guesses, fields, v.Result, v.Said)
			}
		}
	}
}
