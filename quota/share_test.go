package quota_test

import (
	"testing"

	"github.com/paceline-go/paceline/quota"
)

// Names of one model, and models of one family, count in one limit.
func TestSharedModel(t *testing.T) {
	for _, c := range []struct{ provider, model, want string }{
		{"openai", "gpt-4o", "gpt-4o"}, {"openai", "gpt-4o-2024-08-06", "gpt-4o"}, {"openai", "gpt-4o-mini", "gpt-4o-mini"},
		{"openai", "gpt-4o-mini-2024-07-18", "gpt-4o-mini"}, {"openai", "chatgpt-4o-latest", "chatgpt-4o"}, {"openai", "-2024-08-06", "-2024-08-06"},
		{"openai", "gpt-4o-2024-08-xx", "gpt-4o-2024-08-xx"}, {"openai", "", ""},
		{"anthropic", "claude-opus-4-5-20251101", "claude-opus-4"}, {"anthropic", "claude-opus-4-1", "claude-opus-4"}, {"anthropic", "claude-opus-4-20250514", "claude-opus-4"},
		{"anthropic", "claude-opus-5", "claude-opus-5"}, {"anthropic", "claude-sonnet-4-6", "claude-sonnet-4"}, {"anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5"},
		{"anthropic", "claude-3-5-haiku-latest", "claude-3-5-haiku"}, {"anthropic", "claude-opus-40", "claude-opus-40"},
		{"groq", "llama-2024-01-01", "llama-2024-01-01"}, {"nobody", "gpt-4o-2024-08-06", "gpt-4o-2024-08-06"},
	} {
		if got := quota.SharedModel(c.provider, c.model); got != c.want {
			t.Errorf("%s, %s: in the limits of %q, want %q", c.provider, c.model, got, c.want)
		}
	}
}
