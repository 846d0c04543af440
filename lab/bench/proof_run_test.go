package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/bench"
)

// A kind is as good as the worst of its rows that have a ceiling.
func TestProofNamesWhatFellUnderItsFloor(t *testing.T) {
	p := bench.Proof{Servers: []bench.ProofRow{
		{Server: "rolling", Latency: "a", Requests: 10, Stationary: true, PercentOfCeiling: 99.9, FloorPercent: 99.5},
		{Server: "rolling", Latency: "b", Requests: 10, PercentOfCeiling: 12, FloorPercent: 99.5},
		{Server: "anchored", Latency: "a", Requests: 10, Stationary: true, PercentOfCeiling: 99.9, FloorPercent: 99.5},
		{Server: "anchored", Latency: "b", Requests: 10, Stationary: true, PercentOfCeiling: 96.95, FloorPercent: 99.5},
		{Server: "anchored", Latency: "c", Requests: 10, Stationary: true, PercentOfCeiling: 97, FloorPercent: 99.5},
		{Server: "weighted", Latency: "a", Requests: 10, Stationary: true, PercentOfCeiling: 94.2, FloorPercent: 94},
	}}
	if got, want := p.Failed(), `anchored: 96.95 % of the ceiling over "b", the floor is 99.5 %`; got != want {
		t.Errorf("failed: %s, want %s", got, want)
	}
	var text bytes.Buffer
	if err := p.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if want := strings.HasPrefix(line, "anchored "); strings.Contains(line, "UNDER") != want {
			t.Errorf("marked %v: %s", !want, line)
		}
	}
	if !strings.Contains(text.String(), "anchored  3      30        0         96.95      99.5   b: UNDER THE FLOOR") {
		t.Errorf("the table:\n%s", &text)
	}
}

func TestProofInShort(t *testing.T) {
	race.Without(t) // TestVirtual has simulations side by side
	p := bench.RunProof(context.Background(), 3000, 1, nil)
	if failed := p.Failed(); failed != "" {
		t.Error(failed)
	}
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(p); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Servers []map[string]any `json:"servers"`
		Mutants []map[string]any `json:"mutants"`
	}
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	for _, r := range back.Servers {
		if floor, _ := r["floor_percent"].(float64); floor < 94 {
			t.Fatalf("a row without a floor: %v", r)
		}
	}
	slow := 0
	for _, m := range back.Mutants {
		if m["slow"] == true {
			slow++
		}
	}
	if slow < 5 {
		t.Errorf("%d planted faults that a floor has to find", slow)
	}
}

// Where a run is over before a window is, there is no share of a ceiling: a limit of thousands takes a few requests at once.
func TestProofTooShortForACeiling(t *testing.T) {
	race.Without(t) // TestVirtual has simulations side by side
	p := bench.RunProof(t.Context(), 20_000, 1, nil)
	for _, r := range p.Servers {
		if r.PercentOfCeiling > 1000 {
			t.Errorf("%d requests in %v s are %v %% of a ceiling: %s over %s", r.Requests, r.VirtualSeconds, r.PercentOfCeiling, r.Server, r.Latency)
		}
	}
}
