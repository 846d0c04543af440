package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxReply is the largest size of a reply, in bytes.
const maxReply = 64 << 10

// Names of members in JSON, the best first. OAuth servers use them, and commands that print a token
// (gcloud, az, aws, kubectl's plug-ins).
var (
	valueNames  = []string{"access_token", "accessToken", "token", "authorizationToken", "id_token"}
	lastsNames  = []string{"expires_in", "expiresIn"}
	expiryNames = []string{"expires_at", "expiresAt", "expiry", "expires_on", "expiration", "expirationTimestamp",
		"token_expiry", "expireTime"}
	// within are the names of objects that may have those members.
	within = []string{"credential", "status", "data"}
)

// readToken reads a token from a reply: the token itself on one line, or a JSON object with it. The
// object states the end of the token. Otherwise the token does, if it is a JWT with an exp; its
// signature is not verified. wall is the instant of asking. Errors quote nothing of the reply but a
// character that a token cannot have.
func readToken(reply []byte, wall time.Time) (Token, error) {
	text := bytes.TrimSpace(reply)
	switch {
	case len(text) == 0:
		return Token{}, errors.New("it is empty, expected a token, or a JSON object with one")
	case len(reply) > maxReply:
		return Token{}, fmt.Errorf("it has more than %d bytes, expected a token, or a JSON object with one", maxReply)
	case text[0] == '{':
		return readObject(text, wall)
	}
	t := Token{Value: string(text)}
	if err := check(t.Value); err != nil {
		return Token{}, err
	}
	t.Lasts = lastsJWT(t.Value, wall)
	return t, nil
}

// check returns an error if a text cannot be a token.
func check(value string) error {
	if n := strings.Count(value, "\n"); n > 0 {
		return fmt.Errorf("it has %d lines, expected a token alone on one, or a JSON object with one", n+1)
	}
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c >= 0x7f {
			return fmt.Errorf("it has %q in it, expected a token alone, or a JSON object with one", rune(c))
		}
	}
	return nil
}

func readObject(text []byte, wall time.Time) (Token, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return Token{}, errors.New("it begins like a JSON object and is none")
	}
	for _, name := range within {
		var inner map[string]json.RawMessage
		_ = json.Unmarshal(all[name], &inner) // it may be of another kind
		if inner != nil && member(all, valueNames) == nil {
			all = inner
		}
	}
	raw := member(all, valueNames)
	var t Token
	if raw == nil || json.Unmarshal(raw, &t.Value) != nil || t.Value == "" {
		return Token{}, fmt.Errorf("it is a JSON object without a token, expected a text by one of these names: %s",
			strings.Join(valueNames, ", "))
	}
	if err := check(t.Value); err != nil {
		return Token{}, fmt.Errorf("of the JSON object: %w", err)
	}
	var known bool
	if raw := member(all, lastsNames); raw != nil {
		if t.Lasts, known = seconds(raw); !known {
			return Token{}, fmt.Errorf("expires_in of the JSON object is no number of seconds")
		}
	} else if raw := member(all, expiryNames); raw != nil {
		at, ok := instant(raw)
		if !ok {
			return Token{}, fmt.Errorf("the JSON object says when its token expires, and neither as in RFC 3339 " +
				"(2026-07-03T14:00:00Z) nor in seconds since 1970")
		}
		t.Lasts, known = lasts(at, wall), true
	}
	if !known {
		t.Lasts = lastsJWT(t.Value, wall)
	}
	return t, nil
}

// member returns the member with the first of these names that is there and is not null.
func member(all map[string]json.RawMessage, names []string) json.RawMessage {
	for _, name := range names {
		if raw := all[name]; len(raw) > 0 && raw[0] != 'n' {
			return raw
		}
	}
	return nil
}

// jsonNumber reads a number, also in quotes, as Azure writes it.
func jsonNumber(raw json.RawMessage) (float64, bool) {
	text := string(raw)
	_ = json.Unmarshal(raw, &text) // a value that is no text stays as it is
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsNaN(n)
}

const longest = 100 * 365 * 24 * time.Hour

// seconds reads a duration in seconds. It is never 0, which would mean that it is unknown.
func seconds(raw json.RawMessage) (time.Duration, bool) {
	n, ok := jsonNumber(raw)
	return duration(n), ok
}

func duration(n float64) time.Duration {
	d := time.Duration(min(max(n, -longest.Seconds()), longest.Seconds()) * float64(time.Second))
	if d == 0 {
		return -1
	}
	return d
}

func instant(raw json.RawMessage) (time.Time, bool) {
	if n, ok := jsonNumber(raw); ok {
		const milliseconds = 1e11 // in seconds this is the year 5138, in milliseconds 1973
		if n > milliseconds {
			n /= 1000
		}
		return time.Unix(0, 0).Add(duration(n)), true
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil
}

func lasts(until, wall time.Time) time.Duration {
	if d := until.Sub(wall); d != 0 {
		return d
	}
	return -1
}

// lastsJWT is the life of a JWT by its exp (RFC 7519, 4.1.4). It is 0 if the value is no JWT, or
// has no exp.
func lastsJWT(value string, wall time.Time) time.Duration {
	parts := strings.Split(value, ".")
	if len(parts) != 3 {
		return 0
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var says struct {
		Expires *float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(claims, &says) != nil || says.Expires == nil {
		return 0
	}
	return lasts(time.Unix(0, 0).Add(duration(*says.Expires)), wall)
}

// withExpiry returns the token. If its life is not known, it comes from the token itself.
func withExpiry(t Token, wall time.Time) Token {
	if t.Lasts == 0 {
		t.Lasts = lastsJWT(t.Value, wall)
	}
	return t
}
