package main

import (
	"errors"
	"io"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/bench"
)

func TestProofExits(t *testing.T) {
	for name, c := range map[string]struct {
		proof bench.Proof
		want  int // 0: nil
	}{
		"nothing to say":    {bench.Proof{Servers: []bench.ProofRow{{Stationary: true, PercentOfCeiling: 99.5, FloorPercent: 99.5}}}, 0},
		"under a floor":     {bench.Proof{Servers: []bench.ProofRow{{Stationary: true, PercentOfCeiling: 99.49, FloorPercent: 99.5}}}, cli.ExitFailure},
		"rejected":          {bench.Proof{Rejected: 1}, cli.ExitFailure},
		"a fault not found": {bench.Proof{Mutants: []bench.ProofMutant{{Killed: true}, {}}}, cli.ExitFailure},
		"interrupted":       {bench.Proof{Rejected: 1, Interrupted: true}, cli.ExitInterrupted},
	} {
		var e cli.Error
		switch err := printReport(io.Discard, "text", &c.proof, c.proof.WriteText, c.proof.Interrupted, c.proof.Failed()); {
		case c.want == 0 && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != 0 && (!errors.As(err, &e) || e.Code != c.want):
			t.Errorf("%s: %v, want exit code %d", name, err, c.want)
		}
	}
}
