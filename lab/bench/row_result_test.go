package bench_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// With 500 keys a second of the table is a run of 100 ms, in which a round trip of 120 ms is not answered.
func TestNothingCanBeAnswered(t *testing.T) {
	race.Without(t) // TestVirtual has these rows
	slow := latency.Constant(60 * time.Millisecond)
	results, err := bench.Virtual(context.Background(), (bench.Exchange{Latency: slow}).Rows(), slow, 1, time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	none := 0
	for _, r := range results {
		if r.Ceiling == 0 {
			none++
			if r.Rate != 0 || r.PercentOfCeiling != 0 {
				t.Errorf("%s: %v/s are %v %% of nothing", r.Name, r.Rate, r.PercentOfCeiling)
			}
		}
	}
	if none == 0 {
		t.Error("every row could be answered")
	}
	if err := json.NewEncoder(io.Discard).Encode(&bench.Report{Policies: results}); err != nil {
		t.Error(err)
	}
}

// A run that ends before its client is restarted says so.
func TestNoteOfRestarts(t *testing.T) {
	for length, want := range map[time.Duration]bool{60 * time.Second: true, 61 * time.Second: false} {
		var rows []bench.Row
		for _, r := range (bench.Exchange{Latency: law}).Rows() {
			if r.Group == "nonces" {
				rows = append(rows, r)
			}
		}
		results, err := bench.Virtual(context.Background(), rows, law, 1, length, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if strings.HasSuffix(r.Note, "not within this run") != want {
				t.Errorf("%s in %v: %q", r.Name, length, r.Note)
			}
		}
	}
}
