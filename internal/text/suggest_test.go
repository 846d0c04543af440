package text

import (
	"strings"
	"testing"
)

func TestSuggest(t *testing.T) {
	all := []string{"run", "binance", "binance-futures", "bybit", "github", "gitlab", "npm", "okx", "okta", "openai", "x", "xai"}
	for name, want := range map[string]string{
		"githb": "github", "GitHub": "github", "gihtub": "github", "git": "github gitlab", "binanc": "binance binance-futures", "okt": "okta okx", "opnai": "openai",
		"nix": "", "": "", "a": "", "zzzzzz": "", "np": "npm", "rnu": "run", "nur": "",
	} {
		if got := strings.Join(Suggest(name, all), " "); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abcd", "badc", 2}, {"abc", "cab", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
