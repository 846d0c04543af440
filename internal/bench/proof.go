package bench

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/paceline-go/paceline/internal/cores"
	"github.com/paceline-go/paceline/sim"
)

// Proof is what `paceline bench proof -o json` prints. Fields are only ever added to.
type Proof struct {
	Servers     []ProofRow    `json:"servers"`
	Adversaries []ProofAttack `json:"adversaries"`
	Mutants     []ProofMutant `json:"mutants"`
	// Requests and Rejected are the sums over Servers and Adversaries.
	Requests    int     `json:"requests"`
	Rejected    int     `json:"rejected"`
	Interrupted bool    `json:"interrupted,omitempty"`
	Wall        float64 `json:"wall_seconds"`
}

// ProofRow is one kind of server over one path.
type ProofRow struct {
	Server           string  `json:"server"`
	Latency          string  `json:"latency"`
	Requests         int     `json:"requests"`
	Rejected         int     `json:"rejected"`
	FirstRejected    string  `json:"first_rejected,omitempty"`
	VirtualSeconds   float64 `json:"virtual_seconds"`
	PercentOfCeiling float64 `json:"percent_of_ceiling"`
	// Stationary is false for the laws without a mean, those that depend on time, and loads that end: the ceiling is one of
	// means, for a load that does not.
	Stationary bool `json:"stationary"`
	// FloorPercent is what PercentOfCeiling must not be under where the row is Stationary.
	FloorPercent float64 `json:"floor_percent"`
}

// held says that the row has the share that is promised of its kind.
func (r *ProofRow) held() bool { return !r.Stationary || r.PercentOfCeiling >= r.FloorPercent }

// ProofAttack is one kind of server and somebody who knows its state and picks every arrival: a sim.Adversary.
type ProofAttack struct {
	Server        string `json:"server"`
	Requests      int    `json:"requests"`
	Rejected      int    `json:"rejected"`
	FirstRejected string `json:"first_rejected,omitempty"`
	// TightPercent is of how many sends the server would have let nothing more pass, with all that was under way.
	TightPercent float64 `json:"tight_percent"`
}

// ProofMutant is a planted fault, and whether it was found out.
type ProofMutant struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	// Slow: found out by a share under the floor, and not because a server refused a request.
	Slow     bool   `json:"slow,omitempty"`
	Killed   bool   `json:"killed"`
	Latency  string `json:"latency,omitempty"` // over which path
	Requests int    `json:"requests"`          // sent until then, the whole run in which it was counted
}

// adversaries is how much of the requests theirs are: one in so many. Theirs are the dearest.
const adversaries = 5

// RunProof sends about that many requests in all: a fifth of them as an adversary likes, the others evenly over every kind of
// server and every path, on all cores. Then come the mutants, each until it is found out. progress, if not nil, is told of
// every row. If ctx ends, what there is by then is returned.
func RunProof(ctx context.Context, requests int, seed uint64, progress func(done, all int, p *Proof)) Proof {
	began := time.Now()
	kinds, paths, mutants := sim.ProofKinds(), sim.ProofPaths(), sim.Mutants()
	attacked := append(sim.ProofKinds(), sim.PromisedKinds()...)
	rows := len(kinds) * len(paths)
	perAttack := (requests/adversaries + len(attacked) - 1) / len(attacked)
	perRow := (requests - requests/adversaries + rows - 1) / rows
	p := Proof{Servers: make([]ProofRow, rows), Adversaries: make([]ProofAttack, len(attacked)), Mutants: make([]ProofMutant, len(mutants))}
	all := rows + len(attacked) + len(mutants)
	done := 0
	finished := make([]bool, all)
	stop := func() bool { return ctx.Err() != nil }
	_ = cores.OnAll(ctx, all, cores.Each(func(i int) (func(), error) { // none fails
		var keep func()
		switch {
		case i < len(attacked): // the longest first
			a := runAttack(attacked[i], perAttack, seed, stop)
			keep = func() { p.Adversaries[i], p.Requests, p.Rejected = a, p.Requests+a.Requests, p.Rejected+a.Rejected }
		case i < len(attacked)+rows:
			i := i - len(attacked)
			r := runProofRow(kinds[i/len(paths)], paths[i%len(paths)], perRow, seed, stop)
			keep = func() { p.Servers[i], p.Requests, p.Rejected = r, p.Requests+r.Requests, p.Rejected+r.Rejected }
		default:
			i := i - len(attacked) - rows
			m := runMutant(mutants[i], min(perRow, 1_000_000), seed, stop)
			keep = func() { p.Mutants[i] = m }
		}
		if stop() {
			return nil, nil // it was cut short
		}
		return func() {
			keep()
			finished[i] = true
			if done++; progress != nil {
				progress(done, all, &p)
			}
		}, nil
	}))
	p.Interrupted = done < all
	p.Adversaries = kept(p.Adversaries, finished[:len(attacked)])
	p.Servers = kept(p.Servers, finished[len(attacked):len(attacked)+rows])
	p.Mutants = kept(p.Mutants, finished[len(attacked)+rows:])
	p.Wall = time.Since(began).Seconds()
	return p
}

func kept[T any](all []T, keep []bool) []T {
	some := make([]T, 0, len(all))
	for i, v := range all {
		if keep[i] {
			some = append(some, v)
		}
	}
	return some
}

func runProofRow(kind sim.ProofKind, path sim.ProofPath, requests int, seed uint64, stop func() bool) ProofRow {
	tally, percent := kind.Prove(path, requests, seed, stop)
	return ProofRow{Server: kind.Name, Latency: path.Name, Requests: tally.Requests, Rejected: tally.Rejected, FirstRejected: tally.First,
		VirtualSeconds: tally.End.Sub(0).Seconds(), PercentOfCeiling: percent, Stationary: path.Stationary, FloorPercent: kind.Floor}
}

// runAttack has many adversaries, of a few thousand requests each: they differ in their costs, in limits that change, and in
// what they find out first.
func runAttack(kind sim.ProofKind, requests int, seed uint64, stop func() bool) ProofAttack {
	const each = 5000
	a := ProofAttack{Server: kind.Name}
	asked, tight := 0, 0
	for ; a.Requests < requests && !stop(); seed++ {
		t := kind.Attack(min(each, requests-a.Requests), seed, stop)
		a.Requests += t.Requests
		a.Rejected += t.Rejected
		asked += t.Asked
		tight += t.Tight
		if a.FirstRejected == "" && t.First != "" {
			a.FirstRejected = fmt.Sprintf("seed %d, %s", seed, t.First)
		}
	}
	a.TightPercent = 100 * float64(tight) / max(float64(asked), 1)
	return a
}

func runMutant(m sim.Mutant, requests int, seed uint64, stop func() bool) ProofMutant {
	found := ProofMutant{Name: m.Name, Server: m.Kind, Slow: m.Slow}
	found.Latency, found.Requests = m.Find(requests, seed, stop)
	found.Killed = found.Latency != ""
	return found
}

// Failed says in a line what a Proof did not show, or nothing.
func (p *Proof) Failed() string {
	var lines []string
	if p.Rejected > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d requests were rejected", p.Rejected, p.Requests))
	}
	for _, k := range p.kinds() {
		if !k.low.held() {
			lines = append(lines, fmt.Sprintf("%s: %.2f %% of the ceiling over %q, the floor is %v %%", k.Server, k.low.PercentOfCeiling, k.low.Latency, k.low.FloorPercent))
		}
	}
	for _, m := range p.Mutants {
		if !m.Killed {
			lines = append(lines, fmt.Sprintf("the mutant %q was not found out", m.Name))
		}
	}
	return strings.Join(lines, "; ")
}

// WriteJSON writes the proof.
func (p *Proof) WriteJSON(w io.Writer) error { return writeJSON(w, p) }

// proofKind sums up the rows of a kind of server.
type proofKind struct {
	ProofRow           // their sums
	low      *ProofRow // the stationary one with the lowest share; one without a share if there is none
	paths    int
}

// kinds returns them in order.
func (p *Proof) kinds() (kinds []proofKind) {
	for i := range p.Servers {
		r := &p.Servers[i]
		if n := len(kinds); n == 0 || kinds[n-1].Server != r.Server {
			kinds = append(kinds, proofKind{ProofRow: ProofRow{Server: r.Server, FloorPercent: r.FloorPercent}, low: &ProofRow{}})
		}
		k := &kinds[len(kinds)-1]
		k.Requests += r.Requests
		k.Rejected += r.Rejected
		k.paths++
		if r.Stationary && (!k.low.Stationary || r.PercentOfCeiling < k.low.PercentOfCeiling) {
			k.low = r
		}
	}
	return kinds
}

// WriteText writes a line per kind of server, what of the rows needs a look, and the mutants.
func (p *Proof) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "server\tpaths\trequests\trejected\t% of ceiling\tfloor\tlowest over\t")
	for _, k := range p.kinds() {
		percent := ""
		if k.low.Stationary {
			percent = fmt.Sprintf("%.2f", k.low.PercentOfCeiling)
		}
		where := k.low.Latency
		if !k.low.held() {
			where += "  UNDER THE FLOOR"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%v\t%s\t\n", k.Server, k.paths, k.Requests, k.Rejected, percent, k.FloorPercent, where)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range p.Servers {
		if r.FirstRejected != "" {
			fmt.Fprintf(w, "\nREJECTED: %s, %s: %d; first %s", r.Server, r.Latency, r.Rejected, r.FirstRejected)
		}
	}
	for _, a := range p.Adversaries {
		if a.FirstRejected != "" {
			fmt.Fprintf(w, "\nREJECTED: %s, an adversary: %d; first %s", a.Server, a.Rejected, a.FirstRejected)
		}
	}
	fmt.Fprint(w, "\nNot all paths have a ceiling: some have no mean or depend on time, and some loads end.\n\n")
	fmt.Fprintln(t, "against an adversary\trequests\trejected\tno room left after\t")
	for _, a := range p.Adversaries {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.0f %%\t\n", a.Server, a.Requests, a.Rejected, a.TightPercent)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(t, "planted fault\tserver\tfound over\t")
	killed := 0
	for _, m := range p.Mutants {
		by := "NOT FOUND"
		if m.Killed {
			killed++
			by = m.Latency
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t\n", m.Name, m.Server, by)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d requests judged, %d rejected; %d of %d planted faults found; in %.1f s\n", p.Requests, p.Rejected, killed, len(p.Mutants), p.Wall)
	return err
}
