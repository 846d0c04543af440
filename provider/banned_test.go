package provider_test

import (
	"testing"

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
