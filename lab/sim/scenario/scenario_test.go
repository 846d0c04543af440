package scenario_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/sim/scenario"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
)

func read(text string) (fleet.Scenario, error) {
	return scenario.Read("test.yaml", strings.NewReader(text), nil)
}

// Each example runs, and says what it seems to say.
func TestExamples(t *testing.T) {
	near := latency.Uniform(20*time.Millisecond, 40*time.Millisecond)
	want := map[string]fleet.Scenario{
		"shared": {Name: "ten workers", Duration: 30 * time.Minute, Seed: 1, Server: fleet.Quota{Limit: 4500, Window: time.Hour},
			Groups: []fleet.Group{{Name: "workers", Processes: 2, Threads: 5, Link: near}}},
		"quota-halved": {Name: "halved in secret", Duration: 3 * time.Hour, Seed: 7, Sample: 10 * time.Second,
			Server: fleet.Quota{Limit: 4500, Window: time.Hour, Capacity: 4500, Full: true, Service: latency.Exponential(20*time.Millisecond, 10*time.Millisecond),
				Changes: []fleet.Change{{At: time.Hour, Factor: 0.5}, {At: 2 * time.Hour, Factor: 1}}},
			Groups: []fleet.Group{{Name: "workers", Processes: 10, Link: latency.Lognormal(15*time.Millisecond, 80*time.Millisecond)}}},
		"mixed": {Name: "a mixed day", Duration: 24 * time.Hour, Server: fleet.Quota{Kind: fleet.GCRA, Limit: 4500, Window: time.Hour, Level: 100},
			Groups: []fleet.Group{
				{Name: "always", Processes: 5, Link: near},
				{Name: "in bursts", Processes: 5, Link: near, Demand: fleet.Demand{Kind: fleet.OnOff, On: 5 * time.Minute, Off: 10 * time.Minute}},
				{Name: "seldom", Processes: 10, Link: latency.Bimodal(30*time.Millisecond, 3*time.Second, 0.01), Demand: fleet.Demand{Kind: fleet.Light, PerSecond: 30. / 3600}},
				{Name: "import", Threads: 4, Params: strategy.Params{Weight: 2, MaxWait: time.Hour}, Work: 50 * time.Millisecond,
					Join: 22 * time.Hour, Spread: 10 * time.Second, Leave: 24 * time.Hour, Demand: fleet.Demand{Total: 2000}},
				{Name: "slow start", Processes: 2, Link: near, Params: strategy.Params{Start: 20 * time.Second}},
				{Name: "fast start", Processes: 2, Link: near, Params: strategy.Params{Start: 4 * time.Second}},
			}},
		"replicas": {Name: "replicas and a store", Duration: 5 * time.Minute, Seed: 2, Server: fleet.Quota{Kind: fleet.Rolling, Limit: 200, Window: time.Second},
			Store: fleet.Store{Link: latency.Uniform(250*time.Microsecond, 5*time.Millisecond), Work: latency.Constant(time.Millisecond), Split: true,
				Outages: []fleet.Outage{{At: time.Minute, Lasts: time.Minute, Group: "replicas", Processes: 2}, {At: 3 * time.Minute, Lasts: time.Minute}}},
			Groups: []fleet.Group{{Name: "replicas", Processes: 8, Threads: 40, Link: latency.Uniform(0, 50*time.Millisecond)}}},
		"day": {Name: "from two until the next evening", Duration: 30 * time.Hour,
			Server: fleet.Quota{Kind: fleet.Calendar, Limit: 200_000, Window: 24 * time.Hour, Unit: limit.Tokens, Into: 14 * time.Hour, Level: 50_000,
				Headers: fleet.Headers{Reset: fleet.WholeSeconds, RetryAfter: fleet.WholeSeconds, Skew: 2 * time.Second, Stale: 5 * time.Second, Replicas: 3, Factor: 0.5, Noise: 10, Rounded: 100}},
			Groups: []fleet.Group{
				{Name: "small", Processes: 2, Params: strategy.Params{MinSleep: time.Minute}, Costs: fleet.Costs{Mean: 20}},
				{Name: "large", Threads: 2, Params: strategy.Params{MinSleep: time.Minute, Kind: fairshare.FixedWindow}, Costs: fleet.Costs{Mean: 400, Exponential: true}, Spread: 3 * time.Second, Stagger: 50 * time.Millisecond},
			}},
	}
	for name, want := range want {
		text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(string(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		runs(t, name, got)
		for i := range got.Groups {
			if got.Groups[i].Strategy.Name == "" {
				t.Errorf("%s: group %d has no strategy", name, i)
			}
			got.Groups[i].Strategy = strategy.Strategy{}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

// runs has a scenario run for ten minutes of it.
func runs(t *testing.T, name string, s fleet.Scenario) {
	t.Helper()
	f, err := fleet.New(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if f.Advance(min(10*time.Minute, s.Duration)); f.Report().Requests == 0 {
		t.Errorf("%s: no requests in ten minutes", name)
	}
}

// A file's recorded latencies are beside it, wherever it is read from.
func TestLoadOpensRecordings(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "counted.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	recording, err := os.ReadFile(filepath.Join("testdata", "round-trips.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "counted.yaml")
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("counted.yaml", text)
	if _, err := scenario.Load(file); err == nil || !strings.Contains(err.Error(), "counted.yaml:7:87: link: recorded:round-trips.txt") {
		t.Errorf("without the recording: %v", err)
	}
	write("round-trips.txt", recording)
	s, err := scenario.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if largest, ok := s.Groups[0].Link.Max(); !ok || largest != 45*time.Millisecond {
		t.Errorf("the largest recorded latency is %v (%v)", largest, ok)
	}
	if !s.Server.Silent || s.Server.Kind != fleet.Calendar || s.Server.Tick != time.Second || s.Server.Limit != 75 || s.Server.Window != time.Minute {
		t.Errorf("the server is %+v", s.Server)
	}
	runs(t, "counted", s)
	if _, err := scenario.Load(filepath.Join(dir, "gone.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

const head = "version: 1\nduration: 1h\n"

func TestErrors(t *testing.T) {
	const group = "groups:\n  - strategy: retry-only\n"
	for _, c := range []struct {
		text string
		want []string // each with its line
	}{
		{"", []string{"test.yaml: is empty: want version, name, duration"}},
		{"# nothing\n", []string{"test.yaml: is empty"}},
		{"- 1\n", []string{"test.yaml:1:1: a list is no scenario: want version, name"}},
		{"a: b: c\n", []string{"test.yaml: no YAML: mapping values are not allowed"}},
		{"a: *b\n", []string{"test.yaml: no YAML: unknown anchor 'b'"}},
		{head + group + "---\na: 1\n", []string{"test.yaml:5:1: a second document"}},
		{"name: x\n", []string{":1: version is missing", ":1: duration is missing", ":1: groups is missing"}},
		{"version: 2\nduration: 1h\n" + group, []string{`test.yaml:1:10: version: "2" is not 1`}},
		{head + group + "colour: red\n", []string{`test.yaml:5:1: "colour" is not known: want version, name, duration, seed, sample, server, store, expect, groups`}},
		{head + group + "    nice: 1\n", []string{`test.yaml:5:5: "nice" is not known in groups: want name, strategy, params, processes,`}},
		{head + group + "    params: {slope: 1}\n", []string{`test.yaml:5:14: "slope" is not known in params: want rate, burst, start,`}},
		{head + group + "seed: 1\nseed: 2\n", []string{`test.yaml:6:1: "seed" is there already, in line 5`}},
		{head + group + "seed: -1\n", []string{`test.yaml:5:7: seed: "-1" is not a whole number of 0 or more`}},
		{head + group + "    processes: -3\n", []string{`test.yaml:5:16: processes: "-3" is not a whole number of 1 or more`}},
		{head + group + "    threads: 0\n", []string{`test.yaml:5:14: threads: "0" is not a whole number of 1 or more`}},
		{head + group + "    threads: 2.5\n", []string{`test.yaml:5:14: threads: "2.5"`}},
		{head + group + "    threads: 2000000\n", []string{`test.yaml:5:14: groups[0].threads: 2000000 is not from 1 to 1000000`}},
		{head + "groups:\n  - strategy: nix\n", []string{`test.yaml:4:15: strategy "nix" is none of null, retry-only`}},
		{head + "groups:\n  - name: a\n", []string{`test.yaml:4:5: strategy is missing: want one of null, retry-only`}},
		{head + "groups:\n  - strategy:\n", []string{`test.yaml:4:14: strategy: nothing is no text`}},
		{head + "groups:\n  - strategy: [a]\n", []string{`test.yaml:4:15: strategy: a list is no text`}},
		{head + "groups:\n  - strategy: null\n    link: no\n", []string{`test.yaml:5:11: link: "no" is no law`}},
		{head + "groups: 5\n", []string{`test.yaml:3:9: groups: "5" is no list`}},
		{head + "groups: [7]\n", []string{`test.yaml:3:10: groups: "7" is no mapping: want name, strategy`}},
		{head + "groups: []\n", []string{`test.yaml:3:9: groups: is empty`}},
		{head + group + "    link: fast\n", []string{`test.yaml:5:11: link: "fast" is no law; accepted: constant:10ms, uniform:0-50ms`}},
		{head + group + "    link: normal:5ms\n", []string{`test.yaml:5:11: link: "normal:5ms": no law is called "normal"; accepted: constant:10ms`}},
		{head + group + "    link: \"pareto:\"\n", []string{`test.yaml:5:11: link: "pareto:": no "," before the exponent; accepted:`}},
		{head + group + "    link: recorded:x.txt\n", []string{`test.yaml:5:11: link: recorded:x.txt: files cannot be opened here`}},
		{head + group + "    link: [1]\n", []string{`test.yaml:5:11: link: a list is no latency law; accepted:`}},
		{head + group + "    join: 2h\n    leave: 1h\n", []string{`test.yaml:6:12: groups[0].leave: 1h0m0s is not after Join 2h0m0s`}},
		{head + group + "    leave: 0s\n", []string{`test.yaml:5:12: leave: nobody leaves at 0`}},
		{head + group + "    join: -1s\n", []string{`test.yaml:5:11: join: "-1s" is not 0 or more`}},
		{head + group + "    join: 10\n", []string{`test.yaml:5:11: join: "10" is no time: want one such as 500ms`}},
		{head + group + "    demand: {kind: on-off, on: 5m}\n", []string{`test.yaml:5:13: groups[0].demand.off: 0s is missing or wrong: on-off wants a period`}},
		{head + group + "    demand:\n      kind: light\n", []string{`test.yaml:6:7: groups[0].demand.rate: 0 is missing or wrong: light wants a rate`}},
		{head + group + "    demand:\n      kind: always\n      rate: 5/s\n", []string{`test.yaml:7:13: groups[0].demand.rate: 5 is for other kinds of demand than always`}},
		{head + group + "    demand: heavy\n", []string{`test.yaml:5:13: demand: "heavy" is none of always, on-off, light`}},
		{head + group + "    params: {rate: 5}\n", []string{`test.yaml:5:20: rate: "5" is no rate: want one such as 20/s`}},
		{head + group + "    params: {sharing: none}\n", []string{`test.yaml:5:23: sharing: Sharing "none" is none of racing, shared, local`}},
		{head + group + "    params: {kind: leaky}\n", []string{`test.yaml:5:20: kind: "leaky" is none of unknown kind, token bucket, fixed window`}},
		{head + group + "    params: {burst: 0.5}\n", []string{`test.yaml:5:13: groups[0].params: do not suit strategy "retry-only"`}},
		{head + group + "server: {kind: leaky}\n", []string{`test.yaml:5:16: kind: "leaky" is none of bucket, gcra, decrease-only, rolling, calendar, weighted`}},
		{head + group + "server: {quota: 4500}\n", []string{`test.yaml:5:17: quota: "4500" is no rate: want one such as 20/s, 100/min`}},
		{head + group + "server:\n  quota: 5/1us\n", []string{`test.yaml:6:10: server.quota: 1µs is not from 1ms`}},
		{head + group + "server:\n  level: -5\n", []string{`test.yaml:6:10: level (which may be full, too, or 0): "-5" is not a whole number`}},
		{head + group + "server:\n  kind: rolling\n  level: 0\n", []string{`test.yaml:7:10: level: 0 of a rolling server: want 1 or more, or full`}},
		{head + group + "server: {headers: {reset: soon}}\n", []string{`test.yaml:5:27: reset: "soon" is none of untold, exact, whole-seconds`}},
		{head + group + "server:\n  kind: gcra\n  headers:\n    reset: exact\n", []string{`test.yaml:8:12: server.headers.reset: exact of a gcra quota, which does not tell it`}},
		{head + group + "server:\n  headers:\n    replicas: 3\n", []string{`test.yaml:7:15: server.headers.replicas: 3 is not from 1 to 1000, or has no Stale: 0s`}},
		{head + group + "server: {headers: {factor: -1}}\n", []string{`test.yaml:5:28: server.headers.factor: -1 is not above 0`}},
		{head + group + "server: {headers: {skew: 3s}}\n", []string{`test.yaml:5:26: server.headers.skew: 3s of a reset that is not told`}},
		{head + group + "server: {headers: {noise: -3}}\n", []string{`test.yaml:5:27: server.headers.noise: -3 is not from 0`}},
		{head + group + "server: {headers: {stale: 1us}}\n", []string{`test.yaml:5:27: server.headers.stale: 1µs of 1 replicas: want a millisecond`}},
		{head + group + "server:\n  into: 5m\n", []string{`test.yaml:6:9: server.into: 5m0s of a bucket quota: want 0, or for a calendar's`}},
		{head + group + "server: {unit: pounds}\n", []string{`test.yaml:5:16: unit: "pounds" is none of requests, weight, orders, input tokens,`}},
		{head + group + "    costs: {mean: 5000}\n", []string{`test.yaml:5:19: groups[0].costs.mean: 5000 is not from 1 to what the quota holds, 4500 at its least`}},
		{head + group + "server: {silent: maybe}\n", []string{`test.yaml:5:18: silent: "maybe" is neither true nor false`}},
		{head + group + "server:\n  changes:\n    - {at: 20m, factor: 2}\n    - {at: 10m, factor: 1}\n", []string{
			`test.yaml:8:12: server.changes[1].at: 10m0s is not after the change before at 20m0s`}},
		{head + group + "server:\n  changes:\n    - {at: 2h, factor: 2}\n", []string{`test.yaml:7:12: server.changes[0].at: 2h0m0s is not after the beginning at 0s and before the end at 1h0m0s`}},
		{head + group + "server:\n  changes:\n    - {at: 20m, factor: -2}\n", []string{`test.yaml:7:25: server.changes[0].factor: -2 is not above 0`}},
		{head + group + "server:\n  changes:\n    - {at: 20m}\n", []string{`test.yaml:7:7: server.changes[0].factor: 0 is not above 0`}},
		{"version: 1\nduration: soon\nseed: x\n" + group + "    processes: -1\n", []string{":2:11: duration:", ":3:7: seed:", ":6:16: processes:"}},
		{strings.Repeat("#", 1<<20+1), []string{"test.yaml: is longer than 1048576 bytes"}},
	} {
		_, err := read(c.text)
		lines := []string{}
		if err != nil {
			lines = strings.Split(err.Error(), "\n")
		}
		shown := c.text
		if len(shown) > 200 {
			shown = fmt.Sprintf("%d bytes", len(shown))
		}
		if len(lines) != len(c.want) {
			t.Errorf("%s\ngot\n%v\nwant %d errors", shown, err, len(c.want))
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s\ngot\n%s\nwant\n%s", shown, lines[i], want)
			}
		}
	}
}

// Whatever a file holds: it is refused with a line of it, or it can run.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatal("no examples", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("a: &a [*a]\ngroups: [*a, {strategy: {}}]\n")
	f.Add(head + "groups: &g\n  - {strategy: retry-only, link: *g}\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := read(text)
		if err == nil {
			clients := 0
			for _, g := range s.Groups {
				clients += max(g.Processes, 1) * max(g.Threads, 1)
			}
			if clients > 1000 { // takes long, that is all
				err = s.Check()
			} else {
				_, err = fleet.New(s)
			}
			if err != nil {
				t.Errorf("read, but %v", err)
			}
			return
		}
		all := []error{err}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			all = joined.Unwrap()
		}
		for _, err := range all {
			var e *scenario.Error
			if !errors.As(err, &e) || e.Line < 0 || e.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+strings.Count(text, "\u0085")+strings.Count(text, "\u2028")+strings.Count(text, "\u2029")+1 || e.Problem == "" {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
