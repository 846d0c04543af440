package host

import (
	"encoding/json"
	"net/http"
	"time"
)

// What lines of logs say became of a request, where servers have it in common.
const (
	Accepted = "accepted"
	Limited  = "limited"
	TooLarge = "too_large" // it is more than a limit: it never passes
)

// Failure is the body of an answer that says what is wrong, of servers that have no provider's words for it.
func Failure(msg string) map[string]any { return map[string]any{"status": "error", "error_msg": msg} }

// Answer writes an answer with a body of JSON.
func Answer(w http.ResponseWriter, status int, v map[string]any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and one checked number
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(text, '\n')) // nobody to tell: the client has gone
}

// RoundUp returns d in whole units, up: who comes back then is not too early.
func RoundUp(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		d += unit - rest
	}
	return d
}
