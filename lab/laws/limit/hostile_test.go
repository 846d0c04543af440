package limit_test

import (
	"slices"
	"testing"

	"github.com/paceline-go/paceline/lab/sim"
)

// hard are the paths over which the shares are the lowest.
var hard = map[string]bool{"0, or 3 s one time in fifty": true, "uniform 0–50 ms, 1 % of the answers lost": true, "two routes, 1 and 120 ms": true}

// Every kind of limit at its default settings, against a server that enforces it, over every hostile path: never refused,
// and close to all that the server gives. `paceline-lab proof` runs the same for longer.
func TestHostile(t *testing.T) {
	for _, kind := range sim.ProofKinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			for _, path := range sim.ProofPaths() {
				requests := 2500
				if testing.Short() && !hard[path.Name] {
					requests = 300 // of which no share can be told: they are little more than the beginning
				}
				tally, percent := kind.Prove(path, requests, 1, nil)
				if tally.Rejected > 0 {
					t.Errorf("%s: %d of %d refused; the first: %s", path.Name, tally.Rejected, tally.Requests, tally.First)
				}
				if path.Stationary && percent < kind.Floor {
					t.Errorf("%s: %.2f %% of the ceiling, want %v", path.Name, percent, kind.Floor)
				}
			}
		})
	}
}

// A slow request among the first, in four seeds of ten, made it Rolling for good.
func TestAnchoredWhoseFirstAreSlow(t *testing.T) {
	kinds, paths := sim.ProofKinds(), sim.ProofPaths()
	kind := kinds[slices.IndexFunc(kinds, func(k sim.ProofKind) bool { return k.Name == "message-anchored" })]
	path := paths[slices.IndexFunc(paths, func(p sim.ProofPath) bool { return p.Name == "0, or 3 s one time in fifty" })]
	for seed := range uint64(10) {
		if tally, percent := kind.Prove(path, 2500, seed, nil); tally.Rejected > 0 || percent < kind.Floor {
			t.Errorf("seed %d: %.2f %% of the ceiling, %d refused", seed, percent, tally.Rejected)
		}
	}
}

// A proof that cannot fail proves nothing.
func TestHostileFindsPlantedFaults(t *testing.T) {
	for i, m := range sim.Mutants() {
		if testing.Short() && i%5 > 0 {
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
