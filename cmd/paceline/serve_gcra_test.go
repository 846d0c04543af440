package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/ratetest"
)

func TestServeGCRA(t *testing.T) {
	log := filepath.Join(t.TempDir(), "requests.jsonl")
	stdout := serveVerb(t, []string{"", "a=b", ""}, []int{200, 200, 429},
		"gcra", "--limit", "1", "--window", "1000h", "--capacity", "2", "--level", "2", "--log", log, "-o", "json")
	var r ratetest.GCRAReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Accepted != 2 || r.Limited != 1 || r.Left != 0 {
		t.Errorf("%v: %s", err, stdout)
	}
	lines, err := os.ReadFile(log)
	if err != nil || strings.Count(string(lines), "\n") != 3 {
		t.Errorf("%v: %s", err, lines)
	}
	if stdout := serveVerb(t, []string{""}, []int{200}, "gcra", "--level", "1"); !strings.HasPrefix(stdout, "1 accepted and 0 limited (0.00 %) in ") {
		t.Errorf("%s", stdout)
	}
}

// The greeting has the speed of the server's clock, unless that is virtual.
func TestServeGCRAGreeting(t *testing.T) {
	s := serveGCRA{config: ratetest.GCRAConfig{Limit: 1, Window: time.Hour, Scale: 10}}
	if g := s.greeting("http://a"); !strings.HasSuffix(g.what, ", clock × 10") {
		t.Errorf("%q", g.what)
	}
	s.config.Scale, s.clients = 1, 2
	if g := s.greeting("http://a"); strings.Contains(g.what, "clock") {
		t.Errorf("with a virtual clock: %q", g.what)
	}
}

// A bucket may be full at the start, whatever it holds.
func TestServeGCRAFull(t *testing.T) {
	for args, want := range map[string]int64{"--limit 7 --level full": 7, "--limit 7 --capacity 9 --level full": 9, "--level 3": 3, "": 0} {
		s := serveGCRA{serving: serving{output: "text"}, latencies: latencies{before: "constant:0s"}}
		s.config.Limit, s.config.Window, s.config.Scale = 4500, time.Hour, 1
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Var(&s.level, "level", "")
		f.Int64Var(&s.config.Limit, "limit", 4500, "")
		f.Int64Var(&s.config.Capacity, "capacity", 0, "")
		if err := errors.Join(f.Parse(strings.Fields(args)), s.check()); err != nil || s.config.Level != want {
			t.Errorf("%q: %d, %v; want %d", args, s.config.Level, err, want)
		}
	}
}

func TestServeGCRABadFlags(t *testing.T) {
	for want, args := range map[string]string{
		"--limit 0: want 1 or more":                         "--limit 0",
		"--window -1s: want more than 0":                    "--window -1s",
		"--capacity -1: want 1 or more":                     "--capacity -1",
		"--level 11: want 0 to the capacity of 10, or full": "--limit 10 --level 11",
		"expected a whole number, or full":                  "--level half",
		"--scale NaN: want more than 0 and at most 1000":    "--scale NaN",
		`--output "csv": want text or json`:                 "--output csv",
		"--latency: ":                                       "--latency fast",
	} {
		root := newServe()
		root.SetArgs(append([]string{"gcra"}, strings.Fields(args)...))
		root.SilenceErrors, root.SilenceUsage = true, true
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
