package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/ratetest/latency"
)

var law = latency.Uniform(0, 50*time.Millisecond)

func TestRowsAreTellable(t *testing.T) {
	seen := map[string]int{}
	for _, r := range (bench.Exchange{Latency: law}).Rows() {
		seen[fmt.Sprintf("%s %s %v", r.Name, r.Scenario.Generator, r.Nonce())]++
	}
	for row, n := range seen {
		if n != 1 {
			t.Errorf("%d rows are %q", n, row)
		}
	}
	for _, name := range []string{"lease", "lease-bounded"} {
		for _, load := range []string{"original", "saturating"} {
			for _, nonce := range []bool{true, false} {
				if row := fmt.Sprintf("%s %s %v", name, load, nonce); seen[row] != 1 {
					t.Errorf("no row is %q", row)
				}
			}
		}
	}
}

func TestVirtual(t *testing.T) {
	rows, seeds := (bench.Exchange{Latency: law}).Rows(), 2
	if race.Enabled { // fewer, side by side as all of them
		rows, seeds = rows[:len(rows)/3], 1
	}
	run := func(rows []bench.Row) *bench.Report {
		results, err := bench.Virtual(context.Background(), rows, law, seeds, 20*time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		return &bench.Report{Policies: results, Seeds: seeds, Seconds: 20, Virtual: true, Latency: law.String()}
	}
	report := run(rows)
	if len(report.Policies) != len(rows) {
		t.Fatalf("%d results of %d rows", len(report.Policies), len(rows))
	}
	for _, p := range report.Policies {
		ours := strings.HasPrefix(p.Name, "lease") || p.Queue == "ours"
		switch {
		case p.Lost != 0:
			t.Errorf("%s/%s: %d lost", p.Name, p.Generator, p.Lost)
		case ours && (p.Rejected != 0 || p.BadNonce != 0 || p.BannedKeys != 0):
			t.Errorf("%s/%s: %d rejected, %d bad nonces, %d banned", p.Name, p.Generator, p.Rejected, p.BadNonce, p.BannedKeys)
		case ours && p.Generator == "saturating" && (p.PercentOfCeiling < 99 || p.PercentOfCeiling > 101):
			t.Errorf("%s/%s: %.2f %% of the ceiling", p.Name, p.Generator, p.PercentOfCeiling)
		case p.Name == "circular" && p.BannedKeys == 0:
			t.Errorf("the ring alone was not banned: %+v", p)
		}
	}
	var a, b, text bytes.Buffer
	if err := json.NewEncoder(&a).Encode(report); err != nil {
		t.Fatal(err)
	}
	var some []bench.Row
	first := *report
	first.Policies = nil
	for i := 0; i < len(rows); i += 4 {
		some, first.Policies = append(some, rows[i]), append(first.Policies, report.Policies[i])
	}
	var once bytes.Buffer
	if err := errors.Join(json.NewEncoder(&once).Encode(first), json.NewEncoder(&b).Encode(run(some))); err != nil {
		t.Fatal(err)
	}
	if once.String() != b.String() {
		t.Error("the same seeds, other bytes")
	}
	var back map[string]any
	if err := json.Unmarshal(a.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	for field := range strings.FieldsSeq("name generator nonce concurrency queue rate ceiling percent_of_ceiling successes failures rejected bad_nonce banned_keys expired dead lost latency_ms delay_ms") {
		if _, ok := back["policies"].([]any)[0].(map[string]any)[field]; !ok {
			t.Errorf("no field %q in a policy", field)
		}
	}
	if err := report.WriteText(&text); err != nil || !strings.Contains(text.String(), "published, live, elsewhere: original 74") {
		t.Errorf("%v\n%s", err, &text)
	}
}

func TestVirtualStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := bench.Virtual(ctx, (bench.Exchange{Latency: law}).Rows(), law, 1, time.Second, nil); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}
