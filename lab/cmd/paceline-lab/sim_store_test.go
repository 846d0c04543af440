package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/sim/scenario"
)

// The report of replicas that share by a simulated store says what the store had to do, and what parts come to where
// only some are cut off.
func TestSimStore(t *testing.T) {
	race.Without(t) // the simulator is sequential
	file := filepath.Join("..", "..", "sim", "scenario", "testdata", "replicas.yaml")
	code, out, errs := simulate(t.Context(), "", file)
	for _, want := range []string{
		"replicas and a store: 320 clients", "statements per request", "replicas: share, 8 × 40",
		"outage          at 60 s for 60 s, 2 of 8 cut off: 119 % of the quota sent from 69 s on, when the first went on with its part",
		"outage          at 180 s for 60 s, 8 of 8 cut off: 96 % of the quota sent from 189 s on", "by parts), 0 limited",
	} {
		if code != cli.ExitOK || !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("exit %d, %s; want %q in\n%s", code, errs, want, out)
		}
	}
	for _, other := range []string{"fair", "share"} {
		code, out, errs = simulate(t.Context(), "", file, "--strategy", other, "-o", "json")
		var r fleet.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.ExitOK {
			t.Fatalf("--strategy %s: exit %d, %v, %s", other, code, err, errs)
		}
		if r.Groups[0].Strategy != other || (r.Store != nil) != (other == "share") {
			t.Errorf("--strategy %s: by %s, store %+v", other, r.Groups[0].Strategy, r.Store)
		}
	}
	const others = `{version: 1, duration: 10m, server: {quota: 3600/h, capacity: 5}, groups: [{strategy: fair, threads: 3}, {strategy: aimd, params: {weight: 2}}]}`
	_, out, _ = simulate(t.Context(), others, "-", "--strategy", "share", "-o", "json")
	var r fleet.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Limited > 0 || r.Store == nil || r.Store.Turns == 0 || r.Served < 590 {
		t.Errorf("%v; whoever follows a law shares instead: %d served, %d limited, store %+v", err, r.Served, r.Limited, r.Store)
	}
}

// What --init has of a store, commented out, is right beside a group that shares.
func TestSimInitStore(t *testing.T) {
	text, err := os.ReadFile("sim_init.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, store, ok := strings.Cut(string(text), "\n#store:\n")
	if !ok {
		t.Fatal("there is no store in it")
	}
	all := "version: 1\nduration: 30m\nserver: {quota: 4500/h}\ngroups:\n  - {name: replicas, strategy: share, processes: 3}\nstore:\n" + strings.ReplaceAll("\n"+store, "\n#", "\n")
	s, err := scenario.Read("init", strings.NewReader(all), nil)
	if err != nil || len(s.Store.Outages) != 2 || !s.Store.Split {
		t.Errorf("%+v, %v in\n%s", s.Store, err, all)
	}
}
