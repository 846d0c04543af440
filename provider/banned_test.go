package provider_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// A message speaks of a ban if it says that somebody is banned or blocked. Blocked content is no ban.
func TestSaysBanned(t *testing.T) {
	for message, want := range map[string]bool{
		"api_key is banned":                         true,
		"Way too many requests; IP(1.2.3.4) BANNED": true,
		"Sorry, you have been blocked":              true,
		"This API key was blocked.":                 true,
		"Your request was blocked by our policy":    false,
		"the port is blocked":                       false,
		"bannedness, unbanned, keyblocked":          false,
		"insufficient permissions":                  false,
		"":                                          false,
	} {
		if got := provider.SaysBanned(message); got != want {
			t.Errorf("%q: %v", message, got)
		}
	}
}

// A key is out of use if the message says it of the key, and of all that the key may do.
func TestSaysKeyOut(t *testing.T) {
	for message, want := range map[string]bool{
		"api_key is banned":                                                    true,
		"Your API key has been revoked.":                                       true,
		"This API key was permanently disabled; contact us":                    true,
		"API key expired. Please renew the API key.":                           true,
		"The key you provided is suspended":                                    true,
		"Key banned for abuse":                                                 true,
		"the key is not banned":                                                false,
		"An API key may be blocked":                                            false,
		"the key is blocked from accessing gpt-4":                              false,
		"API key is disabled for this endpoint":                                false,
		"This key is suspended until tomorrow":                                 false,
		"access token is expired":                                              false,
		"Sorry, you have been blocked":                                         false,
		"user is banned":                                                       false,
		"the key is wrong, and nobody knows why it was not rejected or banned": false,
		"": false,
	} {
		if got := provider.SaysKeyOut(message); got != want {
			t.Errorf("%q: %v", message, got)
		}
	}
}

// A refusal that says in words until when somebody is banned is a ban, and that instant is obeyed. Without
// an end, and by other statuses, words are not enough.
func TestBannedUntil(t *testing.T) {
	now := time.Unix(1_768_478_400, 0)
	for _, tc := range []struct {
		status  int
		message string
		wait    time.Duration // 0: it is no ban
	}{
		{403, "Way too many queries; IP(1.2.3.4) banned until 1768478460000.", time.Minute},
		{418, "temporarily banned until 1768478460", time.Minute},
		{403, "You are banned until 2026-01-15T12:01:00Z", time.Minute},
		{418, "IP banned until 2026-01-15 12:01:00", time.Minute},
		{403, "Your IP has been blocked for 10 minutes", 10 * time.Minute},
		{403, "api_key is banned, try again in 60 seconds", time.Minute},
		{403, "api_key is banned", 0},
		{418, "banned until 1768478340", 0}, // it is over
		{403, "No access to model a until 2026-01-15T12:01:00Z", 0},
		{403, "banned since 1768478340000", 0},
		{400, "banned until 1768478460", 0},
		{401, "banned until 1768478460", 0},
	} {
		r := provider.Response{Status: tc.status, Header: http.Header{}, Body: []byte(`{"code":7,"msg":"` + tc.message + `"}`)}
		o := provider.Detect(r).Read(now, r)
		if banned := o.Refusal == provider.Banned; banned != (tc.wait > 0) || o.RetryAfter != tc.wait {
			t.Errorf("%d %q: %q for %v, want %v", tc.status, tc.message, o.Refusal, o.RetryAfter, tc.wait)
		}
	}
}
