package main

import (
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/lab/bench"
)

const proofLong = `Prove that a client with Paceline's limiters is never refused: every kind of limit that servers enforce, each over
paths that reorder, bunch, stall and jump, in virtual time, with the limiters at their default settings. A judge that
shares no code with them counts what it refuses.

Each kind has a floor, too: the share of all that any client could get from such a server that the limiter must have over
every path that has a ceiling. A limiter that sends nothing is never refused.

A fifth of the requests is an adversary's: it knows the state of the server, picks when every request arrives and when it
is answered, within what is promised, and has the limiter changed meanwhile.

Then it plants faults in the limiters, one by one, and has the same servers find them out, by a reject or by a share under
the floor: a proof that cannot fail proves nothing.

It ends with exit code 1 if a request was rejected, a kind fell under its floor, or a fault was not found.`

func newProof() *cobra.Command {
	var (
		requests = count(1e7)
		seed     uint64
		output   string
	)
	c := &cobra.Command{
		Use:   "proof",
		Short: "Every kind of limit under hostile latencies: rejects, floors, planted faults",
		Long:  proofLong,
		Example: `  paceline-lab proof
  paceline-lab proof --requests 1e8 -o json`,
		Args: cli.NoArguments,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) error {
			rows, told := cli.Computing(cmd.ErrOrStderr(), "rows")
			proof := bench.RunProof(cmd.Context(), int(requests), seed,
				func(done, all int, p *bench.Proof) { rows.Set(done, all, judged(p)...) })
			told()
			return printReport(cmd.OutOrStdout(), output, &proof, proof.WriteText, proof.Interrupted, proof.Failed())
		}),
	}
	f := c.Flags()
	f.Var(&requests, "requests", "how many requests are judged, over all rows: 1e8 takes some minutes")
	f.Uint64Var(&seed, "seed", 1, "seed of latencies, phases and costs")
	cli.OutputFlag(c, &output, "text", "json")
	return c
}

// judged shows what a proof has found so far.
func judged(p *bench.Proof) []screen.Part {
	color := screen.Green
	if p.Rejected > 0 {
		color = screen.Red
	}
	return []screen.Part{
		{Forms: []string{fmt.Sprintf("%d rejected", p.Rejected)}, Rank: 1, Keep: true, Color: color},
		{Forms: []string{fmt.Sprintf("%d requests judged", p.Requests), fmt.Sprintf("%d requests", p.Requests)}, Rank: 3},
	}
}

// count is a flag for a number of things, which may be written as 1e8.
type count int

func (c *count) String() string { return strconv.FormatFloat(float64(*c), 'g', -1, 64) }
func (c *count) Type() string   { return "count" }
func (c *count) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 1 || f > 1e12 || f != math.Trunc(f) {
		return fmt.Errorf("want a whole number from 1 to 1e12")
	}
	*c = count(f)
	return nil
}
