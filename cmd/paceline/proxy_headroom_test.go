package main

import (
	"os"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// What is left free is checked, said in words, and refused where no part can be left.
func TestHeadroomOfTheProxy(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = `
version: 1
clients:
  default: {reserve: 25%, in_flight: 4}
upstreams:
  - {to: "https://a.test", limits: [20/s], use: 75%, ramp: 2m}
`
	if err := os.WriteFile("p.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := paceline("", "proxy", "check", "p.yaml")
	for _, want := range []string{"leaves 25 % of each limit free for others", "4 in flight",
		"75 % of each limit is used", "the load rises in 2m"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("exit %d %s: %q is not in\n%s", code, stderr, want, stdout)
		}
	}
	proxy, run := []string{"proxy", "--to", "https://a.test", "--limit"}, []string{"run", "in.jsonl", "--limit"}
	for want, args := range map[string][]string{
		`"0.5x" is no part of a whole, expected 75% or 0.75`: append(proxy[:4:4], "9/s", "--use", "0.5x"),
		"which finds its own part":                           append(proxy[:4:4], "auto", "--use", "50%"),
		"--use with --limit auto, which finds its own part":  append(run[:3:3], "auto", "--use", "50%"),
		"--ramp with --strangers, which finds its own part":  append(run[:3:3], "9/s", "--strangers", "--ramp", "1m"),
		"--ramp -1s, expected 0s or more":                    append(run[:3:3], "9/s", "--ramp", "-1s"),
	} {
		if code, _, stderr := paceline("", args...); code != cli.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d %s, want %q", args, code, stderr, want)
		}
	}
}
