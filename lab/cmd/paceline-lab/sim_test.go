package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

const tenMinutes = `version: 1
name: two groups
duration: 10m
seed: 5
server: {quota: 360/h, level: 10, changes: [{at: 5m, factor: 2}]}
groups:
  - {name: a, strategy: null, threads: 2, link: "constant:5s"}
  - {name: b, strategy: retry-only, link: "constant:10s"}
`

func simulate(ctx context.Context, stdin string, args ...string) (code int, out, errs string) {
	var o, e strings.Builder
	code = execute(ctx, append([]string{"sim"}, args...), strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

func TestSim(t *testing.T) {
	file := filepath.Join(t.TempDir(), "two.yaml")
	if err := os.WriteFile(file, []byte(tenMinutes), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := simulate(t.Context(), "", file)
	for _, want := range []string{
		"two groups: 3 clients, 10m0s, seed 5", "settled         not by the end, after the change at 300 s", "served to a client on average\n",
		"a: null, 1 × 2; a request is served", "request_count: [60, 60]", "b: retry-only, 1 × 1", "request_count: [30]", "max_sleep_s: [0.00, 0.00]",
	} {
		if code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, %s; want %q in\n%s", code, errs, want, out)
		}
	}
	code, fromFile, _ := simulate(t.Context(), "", file, "-o", "json")
	_, fromStdin, _ := simulate(t.Context(), tenMinutes, "-", "-o", "json")
	if code != cli.ExitOK || fromFile != fromStdin {
		t.Errorf("exit %d; a file and stdin differ:\n%s\n%s", code, fromFile, fromStdin)
	}
	_, other, _ := simulate(t.Context(), tenMinutes, "-", "-o", "json", "--seed", "6", "--strategy", "retry-only", "--sample", "1m")
	var r struct {
		Seed   uint64
		Series *struct {
			At []float64 `json:"at_s"`
		}
		Groups []struct {
			Strategy string
			Requests []int     `json:"request_count"`
			Ratio    []float64 `json:"retry_ratio"`
			MaxSleep []float64 `json:"max_sleep_s"`
		}
	}
	if err := json.Unmarshal([]byte(other), &r); err != nil {
		t.Fatal(err)
	}
	if r.Seed != 6 || r.Groups[0].Strategy != "retry-only" || len(r.Groups[0].Requests) != 2 || len(r.Groups[0].Ratio) != 2 || len(r.Groups[0].MaxSleep) != 2 || len(r.Series.At) != 11 {
		t.Errorf("--seed 6 --strategy retry-only --sample 1m: %+v", r)
	}
}

// Of a fleet nobody reads a number for each client, and a line of them is as wide as the fleet is large.
func TestSimOfManyClients(t *testing.T) {
	code, out, errs := simulate(t.Context(), strings.Replace(tenMinutes, "threads: 2", "threads: 26", 1), "-")
	for _, want := range []string{"max_sleep_s: of 26 from ", "retry_ratio: of 26 from ", "request_count: of 26 from ", "(-o json has all)", "request_count: [30]"} {
		if code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, %s; want %q in\n%s", code, errs, want, out)
		}
	}
}

func TestSimRefuses(t *testing.T) {
	for _, c := range []struct {
		stdin string
		args  []string
		code  int
		says  string
	}{
		{"version: 1\n", nil, cli.ExitConfig, "stdin:1:1: duration is missing"},
		{strings.Replace(tenMinutes, "5m, factor", "-5m, factor", 1), nil, cli.ExitConfig, `stdin:5:50: at: "-5m" is not 0 or more`},
		{tenMinutes, []string{"--strategy", "nix"}, cli.ExitUsage, `--strategy: strategy "nix" is none of null, retry-only`},
		{tenMinutes, []string{"--sample", "1ns"}, cli.ExitConfig, "Sample 1ns makes series of more than"},
	} {
		code, out, errs := simulate(t.Context(), c.stdin, append([]string{"-"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("%v: exit %d, want %d with %q:\n%s%s", c.args, code, c.code, c.says, errs, out)
		}
	}
}

// A run that is interrupted prints what it did until then. A slow machine may not have begun after the first time, so
// it gets longer ones.
func TestSimInterrupted(t *testing.T) {
	const aYear = "version: 1\nduration: 360d\ngroups:\n  - {strategy: retry-only, processes: 1000}\n"
	for after := 150 * time.Millisecond; ; after *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		code, out, errs := simulate(ctx, aYear, "-", "-o", "json")
		cancel()
		var r struct {
			Complete bool
			Requests int
			Seconds  float64
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		if code != cli.ExitInterrupted || r.Complete || !strings.Contains(errs, "interrupted: what has run is printed") {
			t.Fatalf("exit %d, %+v: %s", code, r, errs)
		}
		if r.Requests > 0 && r.Seconds > 0 {
			return
		}
		if after > time.Minute {
			t.Fatalf("nothing was simulated within %v", after)
		}
	}
}

func TestSimThrottle(t *testing.T) {
	code, out, errs := simulate(t.Context(), "", "throttle", "-o", "json", "--seeds", "3", "--strategies", "retry-only,null", "--only", "clear-1s")
	var r struct {
		Ours       *string
		Strategies []struct {
			Name, Scenario string
			Clients, Seeds int
			Minutes        float64
			Retry          map[string]*float64 `json:"retry_percent"`
			MaxSleep       map[string]*float64 `json:"max_sleep_s"`
			SD             map[string]*float64 `json:"request_sd"`
			Jain           map[string]*float64 `json:"jain"`
			Unused         map[string]*float64 `json:"unused_percent"`
			Clear          map[string]*float64 `json:"clear_s"`
			Settle         map[string]*float64 `json:"settle_s"`
		}
		Hours float64 `json:"virtual_hours"`
		Wall  float64 `json:"wall_seconds"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.ExitOK {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	// Of a row and of each of its clients: the longest sleep has one name everywhere.
	if n := strings.Count(out, `"max_sleep_s"`); n != 2*len(r.Strategies) || strings.Contains(out, "max_sleep_val") {
		t.Errorf("max_sleep_s is there %d times in %d rows", n, len(r.Strategies))
	}
	if r.Ours == nil || len(r.Strategies) != 2 || r.Strategies[0].Name != "retry-only" || r.Strategies[1].Name != "null" || r.Wall <= 0 {
		t.Fatalf("%+v", r)
	}
	for _, s := range r.Strategies {
		// Everything is there from the start: 450 requests one after the other, 167 ms each.
		if c := s.Clear["worst"]; s.Scenario != "clear-1s" || s.Clients != 10 || s.Seeds != 3 || c == nil || *c < 75 || *c > 75.5 || *s.Retry["median"] != 0 ||
			*s.Jain["worst"] != 1 || s.Settle != nil || s.SD["median"] == nil || s.Unused["worst"] == nil || s.MaxSleep["worst"] == nil {
			t.Errorf("%+v", s)
		}
	}
	if want := 6 * 75.2 / 3600; r.Hours < want-0.01 || r.Hours > want+0.01 {
		t.Errorf("%v virtual hours, want %v", r.Hours, want)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out, errs := simulate(cancelled, "", "throttle", "-o", "json", "--strategies", "null"); code != cli.ExitInterrupted || !strings.Contains(out, `"strategies": []`) {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
