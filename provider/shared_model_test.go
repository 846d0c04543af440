package provider_test

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/provider"
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
		if got := provider.SharedModel(c.provider, c.model); got != c.want {
			t.Errorf("%s, %s: in the limits of %q, want %q", c.provider, c.model, got, c.want)
		}
	}
}

// A model is found by all its names, and its numbers make sense.
func TestModels(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		input           float64
	}{
		{"openai", "gpt-4o", 2.5}, {"openai", "gpt-4o-2024-08-06", 2.5}, {"openai", "openai/gpt-4o-mini", 0.15}, {"openai", "ft:gpt-4o-mini-2024-07-18:org::id", 0.15},
		{"anthropic", "claude-opus-4-5-20251101", 5}, {"anthropic", "claude-opus-4-1", 15}, {"groq", "openai/gpt-oss-120b", 0.15}, {"cohere", "command-a-03-2025", 2.5},
	} {
		if m, ok := provider.LookupModel(c.provider, c.model); !ok || m.Input != c.input {
			t.Errorf("%s, %s: %+v, %v", c.provider, c.model, m, ok)
		}
	}
	for _, c := range [][2]string{{"openai", "gpt-4o-extra"}, {"openai", ""}, {"nobody", "gpt-4o"}, {"openai", "claude-opus-5"}} {
		if m, ok := provider.LookupModel(c[0], c[1]); ok {
			t.Errorf("%v: %+v", c, m)
		}
	}
	for _, p := range provider.Providers() {
		seen := map[string]bool{}
		for _, m := range p.Models {
			if seen[m.Name] || m.Input <= 0 || m.Output < 0 || m.Cached > m.Input || m.Context > 0 && m.MaxOutput > m.Context || p.ModelsAsOf == "" {
				t.Errorf("%s: %+v", p.Name, m)
			}
			seen[m.Name] = true
		}
		if b := p.Batch; b != nil && (b.Discount <= 0 || b.Discount >= 1 || b.Within <= 0 || b.Docs == "") {
			t.Errorf("%s: batch %+v", p.Name, b)
		}
	}
}

// A preset is of the model that it names, and its dated names; one that names none is of all.
func TestPresetFits(t *testing.T) {
	for _, c := range []struct {
		preset, model string
		fits          bool
	}{
		{"openai:tier1", "gpt-4o", true}, {"openai:tier1", "gpt-4o-2024-08-06", true}, {"openai:tier1", "openai/gpt-4o", true},
		{"openai:tier1", "gpt-4o-mini", false}, {"openai:tier1", "gpt-4", false}, {"openai:tier1", "", false},
		{"anthropic:start", "claude-fable-5", true}, {"anthropic:start", "claude-fable-5-20260101", true}, {"anthropic:start", "claude-opus-4-1", false},
		{"cohere:trial", "command-a", true}, {"openrouter:free", "x", true}, {"heroku", "x", true},
	} {
		p, ok := provider.LookupPreset(c.preset)
		if who, known := provider.Publisher(c.preset); !ok || p.Fits(c.model) != c.fits || !known || !strings.HasPrefix(c.preset, who.Name) {
			t.Errorf("%s fits %q: %v, of %s", c.preset, c.model, !c.fits, who.Name)
		}
	}
	if _, ok := provider.Publisher("openai:tier9"); ok {
		t.Error("somebody publishes openai:tier9")
	}
}
