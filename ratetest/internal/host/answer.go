package host

import (
	"encoding/json"
	"net/http"
	"time"
)

// The verdicts that the logs of several servers have in common.
const (
	Accepted = "accepted"
	Limited  = "limited"
	TooLarge = "too_large" // more than a limit allows: it never passes
)

// Failure is the body of an answer that explains an error, for servers without a provider's own
// form.
func Failure(msg string) map[string]any { return map[string]any{"status": "error", "error_msg": msg} }

// Answer writes an answer with a body of JSON.
func Answer(w http.ResponseWriter, status int, v map[string]any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and one checked number
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(text, '\n')) // an error means that the client has gone
}

// RoundUp returns d rounded up to whole units. A client that returns then is not too early.
func RoundUp(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		d += unit - rest
	}
	return d
}
