package bench_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// readTables reads what people read: each figure by the heading that begins in its column.
func readTables(t *testing.T, text string) map[string]map[string]string {
	t.Helper()
	gap := regexp.MustCompile(`  +`)
	rows := map[string]map[string]string{}
	for block := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		if len(lines) < 2 || !strings.Contains(lines[0], "  rate/s  ") {
			continue
		}
		heading := []rune(lines[0])
		var starts []int
		for i := range heading {
			if i == 0 || i > 1 && heading[i] != ' ' && heading[i-1] == ' ' && heading[i-2] == ' ' {
				starts = append(starts, i)
			}
		}
		names := gap.Split(strings.TrimRight(lines[0], " "), -1)
		for _, line := range lines[1:] {
			if none, ok := strings.CutPrefix(line, "  0 in every row: "); ok {
				for name := range strings.SplitSeq(none, ", ") {
					for _, row := range rows {
						if row["block"] == names[0] {
							row[name] = "0"
						}
					}
				}
				continue
			}
			cells, row := []rune(line), map[string]string{"block": names[0]}
			for i, at := range starts {
				end := len(cells)
				if i+1 < len(starts) {
					end = min(end, starts[i+1])
				}
				if at >= end || cells[at] == ' ' || at > 0 && cells[at-1] != ' ' {
					t.Fatalf("nothing begins below %q in\n%s\n%s", names[i], lines[0], line)
				}
				row[names[i]] = strings.TrimSpace(string(cells[at:end]))
			}
			rows[names[0]+"/"+row[names[0]]] = row
		}
	}
	return rows
}

func exchangeReport(t *testing.T, x bench.Exchange, choose func(bench.Row) bool) *bench.Report {
	t.Helper()
	var rows []bench.Row
	for _, r := range x.Rows() {
		if choose(r) {
			rows = append(rows, r)
		}
	}
	results, err := bench.Virtual(t.Context(), rows, x.Latency, 2, 70*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &bench.Report{Policies: results, Seeds: 2, Seconds: 70, Virtual: true, Exchange: x.String()}
}

// Each figure of the table stands under its heading, and all of it fits a terminal: once 12,329 expired requests stood under
// "bad nonce", on lines of 333 characters.
func TestFiguresStandUnderTheirHeadings(t *testing.T) {
	race.Without(t) // TestVirtual has these rows
	report := exchangeReport(t, bench.Exchange{Latency: law}, func(r bench.Row) bool { return r.Group != "keys" })
	var text bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	rows := readTables(t, text.String())
	if len(rows) != len(report.Policies)-2 { // two names of the generators are there twice, told apart by their nonces
		t.Errorf("%d rows of %d", len(rows), len(report.Policies))
	}
	some := map[string]bool{}
	for _, p := range report.Policies {
		block := p.Group
		if p.Group == "generators" {
			continue
		}
		if p.Group == "limiters" {
			block += ", " + p.Generator
			if p.Nonce {
				block += ", nonces"
			}
		}
		row := rows[block+"/"+p.Name]
		for name, want := range map[string]string{
			"rate/s": fmt.Sprintf("%.2f", p.Rate), "ceiling": fmt.Sprintf("%.1f%%", p.PercentOfCeiling), "in time": fmt.Sprintf("%.1f%%", p.InTimePercent),
			"429": strconv.Itoa(p.Rejected), "bad nonce": strconv.Itoa(p.BadNonce), "banned": strconv.Itoa(p.BannedKeys),
			"expired": strconv.Itoa(p.Expired), "dead": strconv.Itoa(p.Dead), "lost": strconv.Itoa(p.Lost),
		} {
			if row[name] != want {
				t.Errorf("%s, %s: %q stands under %q, want %s", block, p.Name, row[name], name, want)
			}
			if want != "0" {
				some[name] = true
			}
		}
	}
	for _, name := range []string{"429", "bad nonce", "banned", "expired", "dead"} {
		if !some[name] {
			t.Errorf("all of %q is 0: nothing was shown", name)
		}
	}
}

// What is set up is what runs: more or fewer keys, another limit, another time to live, no second try, no ban.
func TestExchangeOfOnesOwn(t *testing.T) {
	race.Without(t) // TestVirtual has these rows
	one := func(x bench.Exchange, id string) bench.Result {
		t.Helper()
		x.Latency = law
		p := exchangeReport(t, x, func(r bench.Row) bool { return r.ID() == id }).Policies
		if len(p) != 1 {
			t.Fatalf("%d rows are %q", len(p), id)
		}
		return p[0]
	}
	within := func(what string, got, least, most float64) {
		t.Helper()
		if got < least || got > most {
			t.Errorf("%s: %v, want %v to %v", what, got, least, most)
		}
	}
	// 20 in 1001 ms and a mean round trip of 50 ms, and each key's first 20 at once.
	for keys, rate := range map[int]float64{5: 95.2, 2: 38.1} {
		r := one(bench.Exchange{Keys: keys}, "lease/saturating")
		within(fmt.Sprintf("%d keys", keys), r.Rate, rate*0.99, rate*1.02)
		within("their ceiling", r.PercentOfCeiling, 99, 101)
	}
	r := one(bench.Exchange{Limit: 300, Window: 10 * time.Second}, "lease/saturating")
	within("300 per 10 s", r.Rate, 149, 172) // 149.2 in the long run, and the first 300 of each key
	within("their ceiling", r.PercentOfCeiling, 99, 101)

	banned, free := one(bench.Exchange{}, "circular/saturating"), one(bench.Exchange{BanAfter: -1}, "circular/saturating")
	if banned.BannedKeys == 0 || free.BannedKeys != 0 || free.Rate < 2*banned.Rate {
		t.Errorf("%d banned at %v/s, %d without a ban at %v/s", banned.BannedKeys, banned.Rate, free.BannedKeys, free.Rate)
	}
	within("refused of all, without a ban", 100*float64(free.Rejected)/float64(free.Successes+free.Failures), 2.6, 3.0)
	if once := one(bench.Exchange{BanAfter: 1}, "circular/saturating"); once.Rejected > 10 || once.BannedKeys != 10 {
		t.Errorf("a ban at the first refusal: %d refused, %d banned of two runs with 5 keys", once.Rejected, once.BannedKeys)
	}

	short, long := one(bench.Exchange{TTL: 200 * time.Millisecond}, "queue: drop/original/nonce"), one(bench.Exchange{TTL: 5 * time.Second}, "queue: drop/original/nonce")
	if short.Expired <= long.Expired || short.Latency.SinceMade.Max > 400 || long.Latency.SinceMade.P99 < 1000 {
		t.Errorf("expired: %d of a TTL of 200 ms, %d of 5 s; the oldest answers %v and %v ms", short.Expired, long.Expired, short.Latency.SinceMade.Max, long.Latency.SinceMade.Max)
	}
	grave, none := one(bench.Exchange{}, "queue: graveyard/original/nonce"), one(bench.Exchange{Retries: -1}, "queue: graveyard/original/nonce")
	if none.Dead <= grave.Dead || none.Queue != "dlq, retries: 0" || grave.Queue != "dlq, retries: 5" {
		t.Errorf("%d dead of %s, %d of %s", none.Dead, none.Queue, grave.Dead, grave.Queue)
	}
}

func TestExchangeCheck(t *testing.T) {
	ok := bench.Exchange{Latency: latency.Uniform(0, time.Millisecond)}
	if err := ok.Check(); err != nil {
		t.Errorf("the usual exchange: %v", err)
	}
	for want, spoil := range map[string]func(*bench.Exchange){
		"1000001 keys":  func(x *bench.Exchange) { x.Keys = 1_000_001 },
		"-1 requests":   func(x *bench.Exchange) { x.Limit = -1 },
		"window of 1µs": func(x *bench.Exchange) { x.Window = time.Microsecond },
		"1.5ms":         func(x *bench.Exchange) { x.Window = 1500 * time.Microsecond },
		"TTL of -1s":    func(x *bench.Exchange) { x.TTL = -time.Second },
	} {
		x := ok
		spoil(&x)
		if err := x.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
