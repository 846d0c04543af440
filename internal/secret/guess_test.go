package secret

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"testing"
)

// Placeholders for keys in documentation are text; keys of servers are secrets.
func TestGuessable(t *testing.T) {
	for _, v := range []string{
		"", "x", "ollama", "test", "none", "EMPTY", "null", "key1", "any", "secret", "sk-no-key-required", "sk-xxxxxxxxxxxxxxxxxxxxxxxx", "lm-studio", "not-needed",
		"dummy", "changeme", "your-api-key", "your-api-key-here", "YOUR_API_KEY", "token-abc123", "sk-1234", "sk-1234567890", "sk-1234567890abcdef",
		"sk-placeholder", "placeholder", "no-key-required", "anything", "local", "localhost:11434", "00000000-0000-0000-0000-000000000000",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abcabcabcabcabcabcabcabcabcabcabcabcabcabc", "0123456789", "password123", "insert-key-here",
		"sk-your-key-here", "test-api-key", "hidden-value", "fake-key-for-tests", "demo", "a1b2c3",
	} {
		if !Guessable(v) {
			t.Errorf("%q has %.1f bits: it would be taken out of answers", v, Bits(v))
		}
	}
	for _, v := range []string{
		"sk-proj-h8Zl2Vq0TnXw5KbYcR7m", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE", "abxdqefghizkjlmw", "7c9e6679-7425-40de-944b-e07fc1f90ae7",
		"glpat-8dJk2mPq4rXz", "xoxb-2489-1134-aZqLmPk8", "correct-horse-battery-staple", "3f9a1c07be5284d6", "Zq8#vR2!mLp0", "s3cr/et+v4lueX9",
	} {
		if Guessable(v) {
			t.Errorf("%q has %.1f bits: it would be shown", v, Bits(v))
		}
	}
	// Of those drawn at random none is taken for a word, as long as there is more in them than
	// small letters.
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := make([]byte, 18)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		for _, v := range []string{hex.EncodeToString(b[:10]), base64.RawURLEncoding.EncodeToString(b)} {
			if Guessable(v) {
				t.Fatalf("%q has %.1f bits", v, Bits(v))
			}
		}
	}
}

// A weak key that is plainly no secret is none to warn about.
func TestPlaceholder(t *testing.T) {
	for v, want := range map[string]bool{
		"test": true, "EMPTY": true, "sk-no-key-required": true, "your-api-key": true, "ollama": true, "test-key-1": true, "not-needed": true,
		"hunter2": false, "key1": false, "contest": false, "secret": false, "test-h8Zl2Vq0TnXw5KbYcR7m": false, "": false,
	} {
		if got := Placeholder(v); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
}

// Keys in place of a variable's name are not shown, however easy they are to guess.
func TestNamesVariable(t *testing.T) {
	for _, v := range []string{"OPENAI_API_KEY", "ANTHROPIC_KEY_2", "K1", "_KEY", "MY_COMPANYS_STAGING_OPENROUTER_API_KEY"} {
		if !NamesVariable(v) {
			t.Errorf("%q has %.1f bits: it would be taken for a key", v, Bits(v))
		}
	}
	for _, v := range []string{"", "sk-abc", "sk_abc", "hunter2", "gsk_abc123DEF456ghi789", "AKIAIOSFODNN7EXAMPLE", "1234", "9F86D081884C7D659A2FEAA0C55AD015", "postgres://u:p@h/d"} {
		if NamesVariable(v) {
			t.Errorf("%q has %.1f bits: it would be shown", v, Bits(v))
		}
	}
}

// A token in a path is told from names, versions and dates.
func TestLooksRandom(t *testing.T) {
	for _, v := range []string{
		"", "v1", "openai", "my-gpt4-deployment-prod", "2024-10-01-preview", "gpt-4o-mini-2024-07-18", "europe-west4", "user_profiles_v2", "chat", "accounts/fireworks", "llama-3.3-70b-instruct", "5f0c", "12345678901234567890",
	} {
		if LooksRandom(v) {
			t.Errorf("%q has %.1f bits: it would be hidden", v, Bits(v))
		}
	}
	for _, v := range []string{"bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "B00x7Kq2Fz9Lm4Hx6Tn", "XyZ7q4w9Lr2vT8mN1kP3sD6f", "us3r-Bt7Kq2Fz9Lm4Hx6", "7c9e6679-7425-40de-944b-e07fc1f90ae7"} {
		if !LooksRandom(v) {
			t.Errorf("%q has %.1f bits: it would be shown", v, Bits(v))
		}
	}
}

// A key in a wrong place is not repeated, and words are.
func TestSanitizeText(t *testing.T) {
	const key = "sk-proj-h8Zl2Vq0TnXw5KbYcR7m"
	for text, want := range map[string]string{
		"no colon": "no colon", "Authorization Bearer " + key: "Authorization Bearer …", key: "…", "X-Api-Key=" + key + ";": "X-Api-Key=…", "OPENAI_API_KEY": "OPENAI_API_KEY", "\"" + key + "\"": "\"…\"", "": "", "  a": "  a",
	} {
		if got := SanitizeText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
