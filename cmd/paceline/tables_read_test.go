package main

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli/clitest"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/ratetest/service"
)

// jsonOf reads the JSON that a verb printed.
func jsonOf[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// readRight reads a table whose cells end where their columns do, as readTable does one whose cells
// begin there.
func readRight(t *testing.T, text, first string) (rows []map[string]string) {
	t.Helper()
	heading := regexp.MustCompile(`\S+(?: \S+)*`)
	var names []string
	var ends []int
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), first+"  ") {
			for _, at := range heading.FindAllStringIndex(line, -1) {
				names, ends = append(names, line[at[0]:at[1]]), append(ends, at[1])
			}
			ends[len(ends)-1] = math.MaxInt // the last column is as wide as it gets
			continue
		}
		if names == nil {
			continue
		}
		row, from := map[string]string{}, 0
		for i, name := range names {
			end := min(ends[i], len(line))
			row[name], from = strings.TrimSpace(line[min(from, end):end]), end
		}
		if row[names[len(names)-1]] == "" || !strings.HasPrefix(line, " ") && strings.Contains(line, " in ") { // what is said below the table
			break
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		t.Fatalf("there is no table that begins with %q in\n%s", first, text)
	}
	return rows
}

// The providers in the table are those of the JSON, with their hosts and presets.
func TestProvidersTable(t *testing.T) {
	race.Without(t)
	t.Parallel()
	_, text, _ := command("explain", "--providers")
	_, object, _ := command("explain", "--providers", "-o", "json")
	all := jsonOf[[]providerRow](t, object)
	slices.SortStableFunc(all, func(a, b providerRow) int {
		order := kinds(all)
		return slices.Index(order, a.Kind) - slices.Index(order, b.Kind)
	})
	text, _, _ = strings.Cut(text, "\nAll that is known of one")
	rows := clitest.ReadTable(t, text, "provider")
	if len(rows) != len(all) {
		t.Fatalf("%d rows of %d providers", len(rows), len(all))
	}
	for i, r := range all {
		host, presets := "–", "–"
		if n := len(r.Hosts); n == 1 {
			host = r.Hosts[0]
		} else if n > 1 {
			host = fmt.Sprintf("%s and %d more", r.Hosts[0], n-1)
		}
		if len(r.Published) > 0 {
			presets = "--preset"
			for _, p := range r.Published {
				presets += " " + p.Preset
			}
		}
		for name, want := range map[string]string{"provider": r.Name, "name": r.Title, "host": host, "published limits": presets} {
			if got := rows[i][name]; got != want {
				t.Errorf("%s, %s: %q, in the JSON %q", r.Name, name, got, want)
			}
		}
	}
	for _, kind := range kinds(all) {
		if !strings.Contains("\n"+text, "\n"+kind+"\n  provider") {
			t.Errorf("no table of %s", kind)
		}
	}
}

// readPlan reads a plan: the text behind each label, over any number of lines. Notes have one
// label.
func readPlan(text string) map[string]string {
	rows, at, label := map[string]string{}, 0, ""
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			break
		}
		if at == 0 { // the first row is "requests"
			at = len("requests") + len(line[len("requests"):]) - len(strings.TrimLeft(line[len("requests"):], " "))
		}
		if name := strings.TrimSpace(line[:at]); name != "" {
			label = name
		}
		rows[label] = strings.TrimSpace(rows[label] + " " + line[at:])
	}
	return rows
}

// figures are the numbers of a text, in their order.
func figures(text string) (all []float64) {
	for _, m := range regexp.MustCompile(`[0-9][0-9,]*(?:\.[0-9]+)?`).FindAllString(text, -1) {
		v, _ := strconv.ParseFloat(strings.ReplaceAll(m, ",", ""), 64)
		all = append(all, v)
	}
	return all
}

// The plan of --dry-run has behind its labels what the JSON of the same command has.
func TestPlanSaysWhatTheJSONDoes(t *testing.T) {
	in := write(t, "in.jsonl", prompts(70)+`{"custom_id":"other","method":"POST","url":"/v1/responses","body":{"model":"o1","input":"x","max_output_tokens":70}}`+"\n")
	args := []string{"run", "--preset", "openai:tier1", "--tpm", "2000", "--max-output", "500", "--base-url", "https://api.openai.com/v1", "--dry-run", in}
	_, text, _ := paceline("", args...)
	_, object, _ := paceline("", append(args, "-o", "json")...)
	clitest.Fits(t, text)
	p, rows := jsonOf[run.Plan](t, object), readPlan(text)
	same := func(label string, want ...float64) {
		t.Helper()
		got := figures(rows[label])
		if len(got) < len(want) {
			t.Errorf("%s: %q; the JSON has %v", label, rows[label], want)
			return
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 0.00501*max(1, want[i]/1000) {
				t.Errorf("%s: %q; the JSON has %v", label, rows[label], want)
			}
		}
	}
	same("requests", float64(p.Requests))
	same("input", float64(p.Input))
	same("output", float64(p.Output))
	if p.USDMax == nil || p.Largest == nil || p.Batch == nil || p.Batch.USDMax == nil || len(p.Models) != 2 || len(p.Limits) < 2 {
		t.Fatalf("%+v", p)
	}
	same("money", *p.USDMax)
	same("batch API", 100*p.Batch.Discount, *p.Batch.USDMax, p.Batch.WithinHours, float64(p.Batch.Files))
	for _, m := range p.Models {
		same(m.Model, float64(m.Requests), float64(m.Input), float64(m.Output), *m.USDMax)
	}
	if largest, _, _ := strings.Cut(rows["largest"], " "); largest != p.Largest.ID {
		t.Errorf("largest: %q, in the JSON %+v", rows["largest"], p.Largest)
	}
	_, tail, _ := strings.Cut(rows["largest"], " on line ")
	if got := figures(tail); len(got) != 2 || got[0] != float64(p.Largest.Line) || got[1] != float64(p.Largest.Tokens) {
		t.Errorf("largest: %q, in the JSON %+v", rows["largest"], p.Largest)
	}
	for _, l := range p.Limits {
		cost, rest, _ := strings.Cut(rows["limit "+l.Limit], ": ")
		took, _, _ := strings.Cut(strings.TrimSuffix(rest, "<- binds"), ",")
		d, err := time.ParseDuration(strings.TrimSpace(took))
		if err != nil || figures(cost)[0] != float64(l.Cost) || math.Abs(d.Seconds()-l.Seconds) > 0.5 || strings.HasSuffix(rest, "<- binds") != l.Binds {
			t.Errorf("limit %s: %q, in the JSON %+v", l.Limit, rows["limit "+l.Limit], l)
		}
	}
	whole, _, _ := strings.Cut(rows["time"], " and the last answer")
	if d, err := time.ParseDuration(whole); err != nil || math.Abs(d.Seconds()-p.Seconds) > 0.5 {
		t.Errorf("time: %q, in the JSON %v", rows["time"], p.Seconds)
	}
	same("in flight", float64(p.InFlight))
	same("read", float64(p.Lines))
	for _, n := range p.Notes {
		if !strings.Contains(rows["note"], n) {
			t.Errorf("note: %q is not in %q", n, rows["note"])
		}
	}
}

// The report of each kind of server has under its headings what its JSON has after the same
// requests.
func TestReportsSayWhatTheJSONDoes(t *testing.T) {
	objects := func(v any) []any {
		t.Helper()
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return jsonOf[[]any](t, string(text))
	}
	asked := func(n int, query string) (all []string) {
		for range n {
			all = append(all, query)
		}
		return all
	}
	t.Run("provider", func(t *testing.T) {
		try := func(args ...string) string {
			return serveVerb(t, asked(4, "x"), []int{200, 200, 429, 429}, append([]string{"arxiv", "--limit", "2/h", "--limit", "concurrent=5"}, args...)...)
		}
		text, r := try(), jsonOf[service.Report](t, try("-o", "json"))
		clitest.Fits(t, text)
		rows := readRight(t, text, "limit")
		clitest.CompareTable(t, rows, objects(r.Limits), []clitest.Heading{{Name: "limit", Field: "policy"}, {Name: "of", Field: "who"}, {Name: "accepted", Field: "accepted"}, {Name: "refused", Field: "refused"},
			{Name: "most", Field: "limit"}, {Name: "worst window", Field: "worst_window"}, {Name: "in %", Field: "worst_window_percent"}})
		if rows[0]["per"] != "1h" || rows[1]["per"] != "at once" {
			t.Errorf("%v", rows)
		}
		if want := fmt.Sprintf("%d accepted and %d limited in ", r.Accepted, r.Limited); r.Limited == 0 || !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	})
	t.Run("exchange", func(t *testing.T) {
		queries := []string{"api_key=alice&nonce=5&req_id=1", "api_key=alice&nonce=5", "api_key=alice&nonce=6", "api_key=alice&nonce=6", "api_key=bob&nonce=1", "api_key=eve&nonce=1", "api_key=bob"}
		codes := []int{200, 400, 429, 403, 200, 401, 400}
		flags := []string{"--keys", "alice,bob", "--limit", "2", "--window", "1m", "--ban-after", "1"}
		text, r := serve(t, queries, codes, flags...), jsonOf[exchangeReport](t, serve(t, queries, codes, append(flags, "-o", "json")...))
		rows := readRight(t, text, "key")
		clitest.CompareTable(t, rows, objects(r.Keys), []clitest.Heading{{Name: "key", Field: "key"}, {Name: "accepted", Field: "accepted"}, {Name: "bad nonce", Field: "bad_nonce"}, {Name: "limited", Field: "limited"},
			{Name: "after ban", Field: "after_ban"}, {Name: "worst window", Field: "worst_window"}, {Name: "as sent", Field: "worst_window_sent"}})
		for i, k := range r.Keys {
			if (rows[i]["banned"] == "yes") != k.Banned || !strings.HasSuffix(rows[i]["worst window"], fmt.Sprint(" of ", r.Limit)) {
				t.Errorf("%v, in the JSON %+v, of %d", rows[i], k, r.Limit)
			}
		}
		if n, below := r.Accepted, text[strings.LastIndex(strings.TrimRight(text, "\n"), "\n")+1:]; !strings.HasPrefix(below, fmt.Sprint(n, " accepted in ")) ||
			!strings.HasSuffix(below, fmt.Sprintf("; %d with an unknown key, %d malformed, %d dropped at the end\n", r.UnknownKey, r.Malformed, r.Dropped)) {
			t.Errorf("%s, in the JSON %+v", below, r)
		}
	})
	t.Run("openai", func(t *testing.T) {
		try := func(args ...string) string {
			_, out, _ := serveLLMVerb(t, "/v1/chat/completions", asked(4, llmBody), []int{200, 200, 200, 429}, append([]string{"openai", "--rpm", "3", "--tpm", "90", "--keys", "alice", "--models", "m"}, args...)...)
			return out
		}
		text, r := try(), jsonOf[llm.Report](t, try("-o", "json"))
		clitest.Fits(t, text)
		var want []any
		for _, a := range r.Accounts {
			for i := range a.Limits {
				row := objects(a.Limits)[i].(map[string]any)
				row["key"], row["model"], row["accepted"], row["limited"] = a.Key, a.Model, float64(a.Accepted), float64(a.Limited)
				want = append(want, row)
			}
		}
		clitest.CompareTable(t, readRight(t, text, "key"), want, []clitest.Heading{{Name: "key", Field: "key"}, {Name: "model", Field: "model"}, {Name: "accepted", Field: "accepted"}, {Name: "limited", Field: "limited"},
			{Name: "of", Field: "name"}, {Name: "limit", Field: "limit"}, {Name: "worst window", Field: "worst_window"}, {Name: "in %", Field: "worst_window_percent"},
			{Name: "as sent", Field: "worst_window_sent"}, {Name: "sent %", Field: "worst_window_sent_percent"}})
		if below := fmt.Sprintf("%d accepted and %d limited in ", r.Verdicts["accepted"], r.Verdicts["limited"]); !strings.Contains(text, "\n"+below) || !strings.HasSuffix(text, fmt.Sprintf("; %d retries of SDKs, %d dropped at the end\n", r.Retries, r.Dropped)) {
			t.Errorf("%q is not in\n%s", below, text)
		}
	})
	t.Run("gcra", func(t *testing.T) {
		try := func(args ...string) string {
			return serveVerb(t, asked(3, "x"), []int{200, 200, 429}, append([]string{"gcra", "--limit", "1", "--window", "1000h", "--capacity", "2", "--level", "2"}, args...)...)
		}
		text, r := try(), jsonOf[ratetest.GCRAReport](t, try("-o", "json"))
		m := regexp.MustCompile(`^(\d+) accepted and (\d+) limited \((\S+) %\) in \S+; (\d+) left, (\d+) lost to a full bucket; up to (\d+) under way at once\n$`).FindStringSubmatch(text)
		if want := fmt.Sprintf("[%d %d %.2f %d %.0f %d]", r.Accepted, r.Limited, 100*float64(r.Limited)/float64(r.Accepted+r.Limited), r.Left, r.Unused, r.Peak); m == nil || fmt.Sprint(m[1:]) != want {
			t.Errorf("%s, in the JSON %s", text, want)
		}
	})
}
