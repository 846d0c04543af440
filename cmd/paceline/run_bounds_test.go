package main

import (
	"strings"
	"testing"
)

// How the server counts is heeded for published limits, too.
func TestRunPresetHeedsRule(t *testing.T) {
	in := write(t, "in.jsonl", prompts(700))
	for _, c := range []struct{ rule, limit string }{
		{"", "limit 500/m requests 700: 24s"}, // a bucket, as OpenAI documents it: 200 more than it holds
		{"--rule bucket", "limit 500/m requests 700: 24s"},
		{"--rule rolling", "limit 500/m requests 700: 1m0s"}, // a second window
	} {
		args := append(strings.Fields("run --preset openai:tier1 --tpm 10000000 --base-url http://h --dry-run "+c.rule), in)
		if code, stdout, stderr := paceline("", args...); code != 0 || !strings.Contains(squeezed(stdout), c.limit) {
			t.Errorf("%q: exit %d, expected %q in\n%s%s", c.rule, code, c.limit, stdout, stderr)
		}
	}
	anchored := write(t, "plain.jsonl", numbered(100, "http://127.0.0.1:1/"))
	for _, c := range []struct{ rule, limit string }{
		{"", "limit 60/h requests 100: 1h0m0s"}, {"--rule bucket", "limit 60/h requests 100: 40m0s"},
	} {
		args := append(strings.Fields("run --preset github:unauthenticated --dry-run "+c.rule), anchored)
		if _, stdout, stderr := paceline("", args...); !strings.Contains(squeezed(stdout), c.limit) {
			t.Errorf("%q: expected %q in\n%s%s", c.rule, c.limit, stdout, stderr)
		}
	}
}

// squeezed has one blank between words.
func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }
