package limit_test

import (
	"testing"

	"github.com/paceline-go/paceline/internal/race"
	"github.com/paceline-go/paceline/sim"
)

// Every kind of limit at its default settings, against a server that enforces it, over every hostile path: never refused,
// and close to all that the server gives. `paceline bench proof` runs the same for longer.
func TestHostile(t *testing.T) {
	requests := 2500
	if race.Enabled {
		requests = 300
	}
	for _, kind := range sim.ProofKinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			for _, path := range sim.ProofPaths() {
				tally, percent := kind.Prove(path, requests, 1, nil)
				if tally.Rejected > 0 {
					t.Errorf("%s: %d of %d refused; the first: %s", path.Name, tally.Rejected, tally.Requests, tally.First)
				}
				if path.Stationary && percent < 93 {
					t.Errorf("%s: %.2f %% of the ceiling", path.Name, percent)
				}
			}
		})
	}
}

// A proof that cannot fail proves nothing.
func TestHostileFindsPlantedFaults(t *testing.T) {
	for i, m := range sim.Mutants() {
		if race.Enabled && i%5 > 0 {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			if path, sent := m.Find(20_000, 1, nil); path == "" {
				t.Errorf("%d requests on every path, and %q on %q was not found out", sent, m.Name, m.Kind)
			}
		})
	}
}
