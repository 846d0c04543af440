package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/text/table"
	"github.com/paceline-go/paceline/internal/text/width"
	"github.com/paceline-go/paceline/lab/bench"
)

// readTable reads the tables of a text whose first heading is this one: each cell by the heading above it, a map a row. What goes on in
// the next line is put together.
func readTable(t *testing.T, text, first string) (rows []map[string]string) {
	t.Helper()
	var names []string
	var starts []int
	for line := range strings.SplitSeq(text, "\n") {
		runes := []rune(line)
		if strings.TrimSpace(line) == "" {
			names = nil
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(line), first+"  ") {
			names, starts = nil, nil
			for i := range runes {
				if runes[i] != ' ' && (i == 0 || i > 1 && runes[i-1] == ' ' && runes[i-2] == ' ') {
					starts = append(starts, i)
				}
			}
			for i, at := range starts {
				end := len(runes)
				if i+1 < len(starts) {
					end = starts[i+1]
				}
				names = append(names, strings.TrimSpace(string(runes[at:end])))
			}
			continue
		}
		if names == nil {
			continue
		}
		row := map[string]string{}
		for i, at := range starts {
			end := len(runes)
			if i+1 < len(starts) {
				end = min(end, starts[i+1])
			}
			if at < end {
				if at > 0 && runes[at-1] != ' ' {
					t.Fatalf("what is below %q begins before it:\n%s", names[i], line)
				}
				row[names[i]] = strings.TrimSpace(string(runes[at:end]))
			}
		}
		if n := len(rows); n > 0 && row[names[1]] == "" || row[names[min(2, len(names)-1)]] == "" && n > 0 { // goes on
			for name, more := range row {
				rows[n-1][name] = strings.TrimSpace(rows[n-1][name] + " " + more)
			}
			continue
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		t.Fatalf("there is no table that begins with %q in\n%s", first, text)
	}
	return rows
}

// field is a value of decoded JSON, by a path such as wait_ms.p50.
func field(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		v = v.(map[string]any)[name]
	}
	return v
}

// heading is what stands under a heading of a table: a field of the JSON of the same run, times By where that is not 0.
type heading struct {
	name, field string
	by          float64
}

func compareTable(t *testing.T, rows []map[string]string, objects []any, headings []heading) {
	t.Helper()
	if len(rows) != len(objects) {
		t.Fatalf("%d rows, and %d in the JSON: %v", len(rows), len(objects), rows)
	}
	for i, row := range rows {
		for _, h := range headings {
			cell, there := row[h.name]
			if !there {
				t.Fatalf("row %d has nothing under %q: %v", i, h.name, row)
			}
			switch want := field(objects[i], h.field).(type) {
			case string:
				if cell != want {
					t.Errorf("row %d, %s: %q, in the JSON %q", i, h.name, cell, want)
				}
			case float64:
				if h.by != 0 {
					want *= h.by
				}
				whole, _, _ := strings.Cut(cell, " ")
				_, digits, _ := strings.Cut(whole, ".")
				got, err := strconv.ParseFloat(whole, 64)
				if off := 0.5001 * math.Pow10(-len(digits)); (cell != "-" && cell != "–" || want != 0) && (err != nil || math.Abs(got-want) > off) {
					t.Errorf("row %d, %s: %q, in the JSON %v", i, h.name, cell, want)
				}
			case map[string]any: // of several seeds
				median, worst, _ := strings.Cut(cell, "/")
				_, digits, _ := strings.Cut(median, ".")
				text := func(v any) string {
					if v == nil {
						return "never"
					}
					return strconv.FormatFloat(v.(float64), 'f', len(digits), 64)
				}
				if median != text(want["median"]) || worst != text(want["worst"]) {
					t.Errorf("row %d, %s: %q, in the JSON %v", i, h.name, cell, want)
				}
			default:
				t.Errorf("%s is %v in the JSON", h.field, want)
			}
		}
	}
}

// Every table says under its headings what the JSON of the same command does, and fits 100 columns without --wide.
func TestTablesSayWhatTheJSONDoes(t *testing.T) {
	unraced(t)
	t.Setenv("PACELINE_RUNS", t.TempDir())
	llm := []heading{{name: "arrivals", field: "arrivals"}, {name: "policy", field: "name"}, {name: "429", field: "rejected"}, {name: "lost", field: "lost"}, {name: "seconds", field: "seconds"},
		{name: "% ideal", field: "percent_of_ideal"}, {name: "wait s p50", field: "wait_ms.p50", by: 1e-3}, {name: "wait s p99", field: "wait_ms.p99", by: 1e-3}}
	wide := append(llm[:len(llm):len(llm)], heading{name: "ideal s", field: "ideal_seconds"}, heading{name: "worst req %", field: "worst_window_requests_percent"},
		heading{name: "worst tok %", field: "worst_window_tokens_percent"}, heading{name: "wake-ups", field: "wakeups_per_admission"}, heading{name: "wait s max", field: "wait_ms.max", by: 1e-3},
		heading{name: "overrun %", field: "overrun_percent"}, heading{name: "overrun mean", field: "overrun_tokens"}, heading{name: "overrun most", field: "overrun_tokens_most"},
		heading{name: "overtaken", field: "overtaken_tokens_most"})
	for _, c := range []struct {
		command, wide, first, list string
		headings                   []heading
	}{
		{"bench llm --seeds 1 --prompts 200 --arrivals burst", "", "arrivals", "policies", llm},
		{"bench llm --seeds 1 --prompts 200 --arrivals burst", "--wide", "arrivals", "policies", wide},
		{"bench llm --seeds 1 --prompts 200 --arrivals burst", "", "prompts", "produced", []heading{{name: "prompts", field: "prompts"}, {name: "outputs", field: "outputs"}, {name: "policy", field: "name"},
			{name: "429", field: "rejected"}, {name: "seconds", field: "seconds"}, {name: "ideal s", field: "ideal_seconds"}, {name: "% of refill", field: "steady_percent"}}},
		{"bench llm --seeds 1 --prompts 200 --arrivals burst", "", "policy", "claims", []heading{{name: "policy", field: "name"}, {name: "arrivals", field: "arrivals"},
			{name: "no wait %", field: "no_wait_percent"}, {name: "KS to exp.", field: "exponential_ks"}, {name: "CV", field: "cv"}, {name: "R² of a line", field: "linear_r2"}}},
		{"bench proof --requests 50000", "", "against an adversary", "adversaries", []heading{{name: "against an adversary", field: "server"}, {name: "requests", field: "requests"},
			{name: "rejected", field: "rejected"}, {name: "no room left after", field: "tight_percent"}}},
		{"bench proof --requests 50000", "--wide", "planted fault", "mutants", []heading{{name: "planted fault", field: "name"}, {name: "server", field: "server"}}},
		{"sim throttle --only cold-10 --seeds 2", "", "strategy", "strategies", []heading{{name: "limited %", field: "retry_percent"}, {name: "max sleep s", field: "max_sleep_s"},
			{name: "sd", field: "request_sd"}, {name: "CV %", field: "share_cv_percent"}, {name: "unused %", field: "unused_percent"}}},
	} {
		t.Run(c.command+c.wide+c.first, func(t *testing.T) {
			_, text, _ := command(strings.Fields(c.command + " " + c.wide)...)
			_, object, stderr := command(strings.Fields(c.command + " -o json")...)
			var all map[string]any
			if err := json.Unmarshal([]byte(object), &all); err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			compareTable(t, readTable(t, text, c.first), all[c.list].([]any), c.headings)
			if c.wide == "" {
				fits(t, text)
			}
		})
	}
}

func fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if n := width.Of(line); n > table.Width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// The prices of each provider, and what else is printed in tables, fit and are what the JSON has.
func TestModelsTable(t *testing.T) {
	_, text, _ := command("models")
	_, object, _ := command("models", "-o", "json")
	fits(t, text)
	var all []map[string]any
	if err := json.Unmarshal([]byte(object), &all); err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(block, "\n")
		var rows [][]string
		for _, line := range lines[1:] {
			if f := strings.Fields(line); len(f) > 5 && (f[0] == "–" || f[0][0] >= '0' && f[0][0] <= '9') {
				rows = append(rows, f)
			}
		}
		models := all[i]["models"].([]any)
		if len(rows) != len(models) {
			t.Errorf("%v: %d rows, %d models", all[i]["provider"], len(rows), len(models))
			continue
		}
		for k, row := range rows {
			m := models[k].(map[string]any)
			for n, name := range []string{"usd_per_million_input", "usd_per_million_output", "usd_per_million_cached_input", "context_tokens", "max_output_tokens"} {
				want := "–"
				if v, ok := m[name].(float64); ok && v != 0 {
					want = strconv.FormatFloat(v, 'f', -1, 64)
				}
				if row[n] != want {
					t.Errorf("%v, %s: %s, want %s", m, name, row[n], want)
				}
			}
		}
	}
}

func TestTextFits(t *testing.T) {
	unraced(t)
	t.Parallel()
	long := write(t, "long.yaml", strings.Replace(strings.Replace(tenMinutes, "threads: 2", "threads: 25", 1), "name: two groups", "name: "+strings.Repeat("many words ", 12), 1))
	proxy := filepath.Join(t.TempDir(), "proxy.yaml")
	if code, _, stderr := command("proxy", "--init", proxy); code != cli.ExitOK {
		t.Fatal(stderr)
	}
	for _, c := range []string{"sim " + long, "proxy check " + proxy, "sim published --seeds 1", "explain --providers", "bench exchange --virtual --seeds 1 --seconds 20 --row lease", "sim throttle --aims --only jump --seeds 1"} {
		_, text, _ := command(strings.Fields(c)...)
		if text == "" {
			t.Errorf("%s prints nothing", c)
		}
		fits(t, text)
	}
	saved := write(t, "saved.txt", "HTTP/1.1 429 Too Many Requests\nX-RateLimit-Remaining: 0\n\n")
	for _, c := range []string{"explain --provider github ", "explain --provider etherscan ", "explain "} {
		_, text, _ := command(strings.Fields(c + saved)...)
		fits(t, text)
	}
	var all []struct{ Name string }
	_, object, _ := command("explain", "--providers", "-o", "json")
	if err := json.Unmarshal([]byte(object), &all); err != nil || len(all) < 30 {
		t.Fatal(err, len(all))
	}
	for _, p := range all {
		_, text, _ := command("explain", "--provider", p.Name)
		for line := range strings.SplitSeq(text, "\n") {
			if n := width.Of(line); n > table.Width && strings.Contains(strings.TrimSpace(line[min(30, len(line)):]), " ") {
				t.Error(fmt.Sprint(p.Name, ": ", n, " columns: ", line))
			}
		}
	}
}

// A row of the proof is the worst of a kind of server: the JSON has one for each path.
func TestProofTableSaysWhatTheJSONDoes(t *testing.T) {
	unraced(t)
	_, text, _ := command("bench", "proof", "--requests", "50000")
	_, object, _ := command("bench", "proof", "--requests", "50000", "-o", "json")
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
	rows := readTable(t, text, "server")
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
	unraced(t)
	args := []string{"sim", "throttle", "--aims", "--only", "jump", "--seeds", "2"}
	_, text, _ := command(args...)
	_, object, _ := command(append(args, "-o", "json")...)
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
