package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli/clitest"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/bench"
)

// Every table says under its headings what the JSON of the same command does, and fits 100 columns.
func TestTablesSayWhatTheJSONDoes(t *testing.T) {
	race.Without(t)
	llm := []clitest.Heading{{Name: "arrivals", Field: "arrivals"}, {Name: "policy", Field: "name"}, {Name: "429", Field: "rejected"}, {Name: "lost", Field: "lost"}, {Name: "seconds", Field: "seconds"},
		{Name: "% ideal", Field: "percent_of_ideal"}, {Name: "wait s p50", Field: "wait_ms.p50", By: 1e-3}, {Name: "wait s p99", Field: "wait_ms.p99", By: 1e-3}}
	for _, c := range []struct {
		command, first, list string
		headings             []clitest.Heading
	}{
		{"bench llm --seeds 1 --prompts 200 --arrivals burst", "arrivals", "policies", llm},
		{"bench llm --seeds 1 --prompts 200 --arrivals burst", "prompts", "produced", []clitest.Heading{{Name: "prompts", Field: "prompts"}, {Name: "outputs", Field: "outputs"}, {Name: "policy", Field: "name"},
			{Name: "429", Field: "rejected"}, {Name: "seconds", Field: "seconds"}, {Name: "ideal s", Field: "ideal_seconds"}, {Name: "% of refill", Field: "steady_percent"}}},
		{"proof --requests 50000", "against an adversary", "adversaries", []clitest.Heading{{Name: "against an adversary", Field: "server"}, {Name: "requests", Field: "requests"},
			{Name: "rejected", Field: "rejected"}, {Name: "no room left after", Field: "tight_percent"}}},
		{"proof --requests 50000", "planted fault", "mutants", []clitest.Heading{{Name: "planted fault", Field: "name"}, {Name: "server", Field: "server"}}},
		{"sim throttle --only cold-10 --seeds 2", "strategy", "strategies", []clitest.Heading{{Name: "limited %", Field: "retry_percent"}, {Name: "max sleep s", Field: "max_sleep_s"},
			{Name: "sd", Field: "request_sd"}, {Name: "CV %", Field: "share_cv_percent"}, {Name: "unused %", Field: "unused_percent"}}},
	} {
		t.Run(c.command+c.first, func(t *testing.T) {
			text := printedOnce(t, strings.Fields(c.command)...)
			object := printedOnce(t, strings.Fields(c.command+" -o json")...)
			var all map[string]any
			if err := json.Unmarshal([]byte(object), &all); err != nil {
				t.Fatal(err)
			}
			clitest.CompareTable(t, clitest.ReadTable(t, text, c.first), all[c.list].([]any), c.headings)
			clitest.Fits(t, text)
		})
	}
}

// A row of the proof is the worst of a kind of server: the JSON has one for each path.
func TestProofTableSaysWhatTheJSONDoes(t *testing.T) {
	race.Without(t)
	text := printedOnce(t, "proof", "--requests", "50000")
	object := printedOnce(t, "proof", "--requests", "50000", "-o", "json")
	var all struct{ Servers []bench.ProofRow }
	if err := json.Unmarshal([]byte(object), &all); err != nil {
		t.Fatal(err)
	}
	type kind struct {
		paths, requests, rejected int
		low                       *bench.ProofRow
	}
	kinds := map[string]*kind{}
	for i := range all.Servers {
		r := &all.Servers[i]
		k := kinds[r.Server]
		if k == nil {
			k = new(kind)
			kinds[r.Server] = k
		}
		k.paths++
		k.requests += r.Requests
		k.rejected += r.Rejected
		if r.Stationary && (k.low == nil || r.PercentOfCeiling < k.low.PercentOfCeiling) {
			k.low = r
		}
	}
	rows := clitest.ReadTable(t, text, "server")
	if len(rows) != len(kinds) {
		t.Fatalf("%d rows of %d kinds of server", len(rows), len(kinds))
	}
	for _, row := range rows {
		k := kinds[row["server"]]
		if k == nil {
			t.Errorf("the JSON has no server %q", row["server"])
			continue
		}
		ceiling, floor, over := "-", row["floor"], "-"
		if k.low != nil {
			ceiling, floor, over = strconv.FormatFloat(k.low.PercentOfCeiling, 'f', 2, 64), fmt.Sprint(k.low.FloorPercent), k.low.Latency
		}
		want := map[string]string{"server": row["server"], "paths": strconv.Itoa(k.paths), "requests": strconv.Itoa(k.requests), "rejected": strconv.Itoa(k.rejected),
			"% ceiling": ceiling, "floor": floor, "lowest over": over}
		if !maps.Equal(row, want) {
			t.Errorf("%v, in the JSON %v", row, want)
		}
	}
}

var aimLine = regexp.MustCompile(`^  (\S.*?)  +(\S+) / (\S+)(?:  +(.*?))?  +(holds|MISSED|open)$`)

// The aims say of each scenario what the JSON does.
func TestAimsSayWhatTheJSONDoes(t *testing.T) {
	race.Without(t)
	args := []string{"sim", "throttle", "--aims", "--only", "jump", "--seeds", "2"}
	text := printedOnce(t, args...)
	object := printedOnce(t, append(args, "-o", "json")...)
	clitest.Fits(t, text)
	var all struct {
		Rows []struct {
			Scenario, Text string
			Figures        []struct {
				Name          string
				Median, Worst *float64
				Holds         bool
			}
		}
	}
	if err := json.Unmarshal([]byte(object), &all); err != nil || len(all.Rows) < 3 {
		t.Fatal(err, len(all.Rows))
	}
	same := func(cell string, v *float64) bool {
		if v == nil {
			return cell == "never"
		}
		_, digits, _ := strings.Cut(cell, ".")
		got, err := strconv.ParseFloat(cell, 64)
		return err == nil && math.Abs(got-*v) <= 0.5001*math.Pow10(-len(digits))
	}
	for _, r := range all.Rows {
		_, of, found := strings.Cut(text, "\n"+r.Scenario+": "+r.Text+"\n")
		if !found {
			t.Errorf("no %s in\n%s", r.Scenario, text)
			continue
		}
		for i, line := range strings.Split(of, "\n")[:len(r.Figures)] {
			f, m := r.Figures[i], aimLine.FindStringSubmatch(line)
			if m == nil || m[1] != f.Name || !same(m[2], f.Median) || !same(m[3], f.Worst) || f.Holds != (m[5] == "holds") {
				t.Errorf("%s: %q, in the JSON %+v", r.Scenario, line, f)
			}
		}
	}
}

func TestTextFits(t *testing.T) {
	race.Without(t)
	t.Parallel()
	long := write(t, "long.yaml", strings.Replace(strings.Replace(tenMinutes, "threads: 2", "threads: 25", 1),
		"name: two groups", "name: "+strings.Repeat("many words ", 12), 1))
	for _, c := range []string{
		"sim " + long, "bench exchange --virtual --seeds 1 --seconds 20 --row lease",
	} {
		_, text, _ := command(strings.Fields(c)...)
		if text == "" {
			t.Errorf("%s prints nothing", c)
		}
		clitest.Fits(t, text)
	}
}
