package sim_test

import (
	"slices"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/sim"
)

// Whoever knows the server's state and picks every arrival finds no request that it refuses, and drives every kind to where it
// has no room left. `paceline-lab proof` does the same for longer.
func TestAdversary(t *testing.T) {
	seeds, requests := uint64(12), 1500
	if testing.Short() {
		seeds, requests = 6, 300
	}
	for _, kind := range append(sim.ProofKinds(), sim.PromisedKinds()...) {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			tight := 0
			for seed := range seeds {
				tally := kind.Attack(requests, seed, nil)
				if tally.Rejected > 0 {
					t.Errorf("seed %d: %d of %d refused; the first: %s", seed, tally.Rejected, tally.Requests, tally.First)
				}
				if tally.Requests != requests {
					t.Errorf("seed %d: it ended after %d of %d requests", seed, tally.Requests, requests)
				}
				tight += tally.Tight
			}
			if tight == 0 && !testing.Short() {
				t.Error("it never came to the edge")
			}
		})
	}
}

// What the paths find, it finds as well, and sooner.
func TestAdversaryFindsPlantedFaults(t *testing.T) {
	for i, m := range sim.Mutants() {
		if m.Slow || testing.Short() && i%4 > 0 {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			m.Aimed = true
			if path, sent := m.Find(20_000, 1, nil); path == "" {
				t.Errorf("%d requests, and %q on %q was not found out", sent, m.Name, m.Kind)
			}
		})
	}
}

// Those that are said to take it do: no path finds them.
func TestPathsDoNotFindWhatIsAimed(t *testing.T) {
	need.LongOnly(t, "two million requests")
	promised := sim.PromisedKinds()
	n := 0
	for _, m := range sim.Mutants() {
		if !m.Aimed || slices.ContainsFunc(promised, func(k sim.ProofKind) bool { return k.Name == m.Kind }) {
			continue
		}
		n++
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			m.Aimed = false
			if path, _ := m.Find(500, 1, nil); path != "" {
				t.Errorf("found over %q", path)
			}
		})
	}
	if n < 4 {
		t.Errorf("%d faults take an adversary", n)
	}
}

func TestAdversaryIsRepeatable(t *testing.T) {
	kind := sim.ProofKinds()[0]
	a, b, c := kind.Attack(1000, 7, nil), kind.Attack(1000, 7, nil), kind.Attack(1000, 8, nil)
	if a != b || a == c {
		t.Errorf("%+v, then %+v; with another seed %+v", a, b, c)
	}
}
