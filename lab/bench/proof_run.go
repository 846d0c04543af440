package bench

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/lab/parallel"
	"github.com/paceline-go/paceline/lab/sim"
)

// Proof is what `paceline-lab proof -o json` prints. Fields are only ever added to.
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
	// Stationary is false for latencies that have no mean or change over time, and for loads that end.
	// The ceiling is computed from the mean latency, for a load that never ends.
	Stationary bool `json:"stationary"`
	// FloorPercent is the least PercentOfCeiling that is promised. It holds if the row is Stationary.
	FloorPercent float64 `json:"floor_percent"`
}

// held reports whether the row reaches the share that is promised for its kind.
func (r *ProofRow) held() bool { return !r.Stationary || r.PercentOfCeiling >= r.FloorPercent }

// ProofAttack is one kind of server under attack by a sim.Adversary, which knows the state of the
// server and chooses when requests arrive.
type ProofAttack struct {
	Server        string `json:"server"`
	Requests      int    `json:"requests"`
	Rejected      int    `json:"rejected"`
	FirstRejected string `json:"first_rejected,omitempty"`
	// TightPercent is after how many percent of the sends the server had no room left, if all that was
	// under way had arrived.
	TightPercent float64 `json:"tight_percent"`
}

// ProofMutant is a planted fault, and whether it was found.
type ProofMutant struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	// Slow says that it was found by a share below the floor, not because a server refused a request.
	Slow     bool   `json:"slow,omitempty"`
	Killed   bool   `json:"killed"`
	Latency  string `json:"latency,omitempty"` // the path over which it was found
	Requests int    `json:"requests"`          // how many were sent until then, with all of the run in which it was found
}

// adversaries says that one in so many requests is sent by adversaries. Their requests take the longest to compute.
const adversaries = 5

// RunProof sends about that many requests in all, on all cores. An adversary sends a fifth of them;
// the others are shared evenly by all kinds of servers and all paths. Then each mutant is run until
// it is found. progress, if not nil, is told of each row that is finished. If ctx ends, RunProof
// returns the rows that are finished by then.
func RunProof(ctx context.Context, requests int, seed uint64, progress func(done, all int, p *Proof)) Proof {
	began := time.Now()
	kinds, paths, mutants := sim.ProofKinds(), sim.ProofPaths(), sim.Mutants()
	attacked := append(sim.ProofKinds(), sim.PromisedKinds()...)
	rows := len(kinds) * len(paths)
	perAttack := (requests/adversaries + len(attacked) - 1) / len(attacked)
	perRow := (requests - requests/adversaries + rows - 1) / rows
	p := Proof{Servers: make([]ProofRow, rows), Adversaries: make([]ProofAttack, len(attacked)),
		Mutants: make([]ProofMutant, len(mutants))}
	all := rows + len(attacked) + len(mutants)
	done := 0
	finished := make([]bool, all)
	stop := func() bool { return ctx.Err() != nil }
	_ = parallel.OnAll(ctx, all, parallel.Each(func(i int) (func(), error) { // no job returns an error
		var keep func()
		switch {
		case i < len(attacked): // adversaries come first, since they take longest
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
	if tally.End.Sub(0) < kind.Window { // the run was shorter than a window, so there is no ceiling to compare with
		path.Stationary, percent = false, 0
	}
	return ProofRow{Server: kind.Name, Latency: path.Name, Requests: tally.Requests, Rejected: tally.Rejected,
		FirstRejected:  tally.First,
		VirtualSeconds: tally.End.Sub(0).Seconds(), PercentOfCeiling: percent, Stationary: path.Stationary,
		FloorPercent: kind.Floor}
}

// runAttack runs many adversaries with a few thousand requests each. They differ in the costs of
// requests, in whether limits change, and in what they try first.
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

// Failed says in one line what the proof failed to show. It returns "" if nothing failed.
func (p *Proof) Failed() string {
	var lines []string
	if p.Rejected > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d requests were rejected", p.Rejected, p.Requests))
	}
	for _, k := range p.kinds() {
		if !k.low.held() {
			lines = append(lines,
				fmt.Sprintf("%s: %.2f %% of the ceiling over %q, the floor is %v %%", k.Server, k.low.PercentOfCeiling,
					k.low.Latency, k.low.FloorPercent))
		}
	}
	for _, m := range p.Mutants {
		if !m.Killed {
			lines = append(lines, fmt.Sprintf("the mutant %q was not found out", m.Name))
		}
	}
	return strings.Join(lines, "; ")
}

// proofKind sums up the rows of a kind of server.
type proofKind struct {
	ProofRow           // the sums of its rows
	low      *ProofRow // the stationary row with the lowest share; if none is stationary, a row without a share
	paths    int
}

// kinds sums up the rows by kind of server, in the order in which kinds first appear.
func (p *Proof) kinds() (kinds []proofKind) {
	for i := range p.Servers {
		r := &p.Servers[i]
		if n := len(kinds); n == 0 || kinds[n-1].Server != r.Server {
			kinds = append(kinds,
				proofKind{ProofRow: ProofRow{Server: r.Server, FloorPercent: r.FloorPercent}, low: &ProofRow{}})
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

var proofKinds = []column[proofKind]{
	{"server", func(k *proofKind) string { return k.Server }},
	{"paths", func(k *proofKind) string { return strconv.Itoa(k.paths) }},
	{"requests", func(k *proofKind) string { return strconv.Itoa(k.Requests) }},
	{"rejected", func(k *proofKind) string { return strconv.Itoa(k.Rejected) }},
	{"% ceiling", func(k *proofKind) string {
		if !k.low.Stationary {
			return ""
		}
		return fixed(k.low.PercentOfCeiling, 2)
	}},
	{"floor", func(k *proofKind) string { return fmt.Sprint(k.FloorPercent) }},
	{"lowest over", func(k *proofKind) string {
		if !k.low.held() {
			return k.low.Latency + ": UNDER THE FLOOR"
		}
		return k.low.Latency
	}},
}

var proofAttacks = []column[ProofAttack]{
	{"against an adversary", func(a *ProofAttack) string { return a.Server }},
	{"requests", func(a *ProofAttack) string { return strconv.Itoa(a.Requests) }},
	{"rejected", func(a *ProofAttack) string { return strconv.Itoa(a.Rejected) }},
	{"no room left after", func(a *ProofAttack) string { return fixed(a.TightPercent, 0) + " %" }},
}

var proofMutants = []column[ProofMutant]{
	{"planted fault", func(m *ProofMutant) string { return m.Name }},
	{"server", func(m *ProofMutant) string { return m.Server }},
	{"found over", func(m *ProofMutant) string {
		if !m.Killed {
			return "NOT FOUND"
		}
		return m.Latency
	}},
}

// WriteText writes a line per kind of server, the rows that failed, and the mutants, within 100 columns.
func (p *Proof) WriteText(w io.Writer) error {
	if err := writeTable(w, proofKinds, p.kinds()); err != nil {
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
	if err := writeTable(w, proofAttacks, p.Adversaries); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := writeTable(w, proofMutants, p.Mutants); err != nil {
		return err
	}
	killed := 0
	for _, m := range p.Mutants {
		if m.Killed {
			killed++
		}
	}
	_, err := fmt.Fprintf(w, "\n%d requests judged, %d rejected; %d of %d planted faults found; in %.1f s\n", p.Requests,
		p.Rejected, killed, len(p.Mutants), p.Wall)
	return err
}
