package main

import (
	"strings"
	"testing"
)

func TestRunStrangersFlags(t *testing.T) {
	in := write(t, "in.jsonl", `{"url":"http://127.0.0.1:1/"}`+"\n")
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--limit 20/s --strangers", "", 0},
		{"--limit 20/s --strangers=rolling --share 2.5 --sharers 10", "", 0},
		{"--limit 20/s --strangers=leaky", "--strangers=leaky, expected auto, bucket, fixed, rolling, or nothing", 2},
		{"--limit none --strangers", "--strangers with --limit none: a share of what?", 2},
		{"--limit none --share sqlite:never.db", "--share with --limit none: there is nothing to share; expected a limit", 2},
		{"--limit 20/s --share 2", "--share 2 is for limits that others use, too: it needs --strangers; expected that, or sqlite:FILE", 2},
		{"--limit 20/s --sharers 2", "--sharers is for limits that others use, too: it needs --strangers", 2},
		{"--limit 20/s --strangers --sharers -1", "--sharers -1, expected how many share the limits", 2},
		{"--limit 20/s --strangers --share 0", "--share 0, expected a number above 0", 2},
		{"--limit 20/s --strangers --share 2e6", "Weight 2e+06", 4},
		{"--limit 20/s --strangers --latency-max 5ms", "--latency-max with --strangers: a share is found by answers", 2},
	} {
		code, _, stderr := paceline("", append(append([]string{"run", "--dry-run"}, strings.Fields(c.args)...), in)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, want %d and %q in\n%s", c.args, code, c.code, c.want, stderr)
		}
	}
}
