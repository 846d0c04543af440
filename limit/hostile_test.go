package limit_test

import (
	"testing"

	"github.com/paceline-go/paceline/sim"
)

// Every kind of limit at its default settings, against a server that enforces it, over every hostile path: never refused,
// and close to all that the server gives. `paceline bench proof` runs the same for longer.
func TestHostile(t *testing.T) {
	for _, kind := range sim.ProofKinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			for _, path := range sim.ProofPaths() {
				for seed := range uint64(2) {
					tally, percent := kind.Prove(path, 2500, seed, nil)
					if tally.Rejected > 0 {
						t.Errorf("%s, seed %d: %d of %d refused; the first: %s", path.Name, seed, tally.Rejected, tally.Requests, tally.First)
					}
					if path.Stationary && percent < 93 {
						t.Errorf("%s, seed %d: %.2f %% of the ceiling", path.Name, seed, percent)
					}
				}
			}
		})
	}
}

// A proof that cannot fail proves nothing.
func TestHostileFindsPlantedFaults(t *testing.T) {
	for _, m := range sim.Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			if path, sent := m.Find(20_000, 1, nil); path == "" {
				t.Errorf("%d requests on every path, and %q on %q was not found out", sent, m.Name, m.Kind)
			}
		})
	}
}
