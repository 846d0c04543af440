package sim

import (
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Path draws the latencies of a request that is sent at now, there and back. Unlike those of a
// latency.Law they may depend on the time, and the way back may depend on the way there. They are
// never negative. The paths here have no state and do not allocate: share them freely, each user
// with random numbers of its own.
type Path interface {
	Draw(now mono.Time, rng *rand.Rand) (forward, back time.Duration)
}

// Asymmetric is a path with a law of its own for each way.
func Asymmetric(forward, back latency.Law) Path { return &lawful{forward, back} }

// Symmetric is a path with one law for both ways, each drawn on its own.
func Symmetric(law latency.Law) Path { return &lawful{law, law} }

type lawful struct{ forward, back latency.Law }

func (p *lawful) Draw(_ mono.Time, rng *rand.Rand) (forward, back time.Duration) {
	return p.forward.Draw(rng), p.back.Draw(rng)
}

// Capped is a path on which neither way takes longer than most.
func Capped(p Path, most time.Duration) Path { return &capped{p, most} }

type capped struct {
	path Path
	most time.Duration
}

func (p *capped) Draw(now mono.Time, rng *rand.Rand) (forward, back time.Duration) {
	forward, back = p.path.Draw(now, rng)
	return min(forward, p.most), min(back, p.most)
}

// Bunched is a path on which everything that would arrive within a period arrives together at its
// end, the next multiple of period: the server reads its sockets at these instants, or a machine on
// the way passes on what it has collected.
func Bunched(p Path, period time.Duration) Path { return &bunched{p, period} }

type bunched struct {
	path   Path
	period time.Duration
}

func (p *bunched) Draw(now mono.Time, rng *rand.Rand) (forward, back time.Duration) {
	forward, back = p.path.Draw(now, rng)
	if in := phase(now.Add(forward), p.period); in > 0 {
		forward += p.period - in
	}
	return forward, back
}

// Sawtooth is a path whose way there takes floor plus what is left of the period at the instant of
// sending, so that everything that is sent within a period arrives at one instant. The way back
// takes no time.
func Sawtooth(period, floor time.Duration) Path { return &sawtooth{period, floor} }

type sawtooth struct{ period, floor time.Duration }

func (p *sawtooth) Draw(now mono.Time, _ *rand.Rand) (forward, back time.Duration) {
	return p.floor + p.period - phase(now, p.period), 0
}

// Steps is a path that behaves like first for a while, then like second for as long, and so on. A
// request that is under way at a step keeps its latencies, and so may be overtaken.
func Steps(first, second Path, every time.Duration) Path { return &steps{first, second, every} }

type steps struct {
	first, second Path
	every         time.Duration
}

func (p *steps) Draw(now mono.Time, rng *rand.Rand) (forward, back time.Duration) {
	if phase(now, 2*p.every) < p.every {
		return p.first.Draw(now, rng)
	}
	return p.second.Draw(now, rng)
}

// Stalled is a path to a host that stands still for the first stall of every period: all answers
// that would come meanwhile come at the end of it. Requests arrive in time.
func Stalled(p Path, stall, every time.Duration) Path { return &stalled{p, stall, every} }

type stalled struct {
	path         Path
	stall, every time.Duration
}

func (p *stalled) Draw(now mono.Time, rng *rand.Rand) (forward, back time.Duration) {
	forward, back = p.path.Draw(now, rng)
	if in := phase(now.Add(forward).Add(back), p.every); in < p.stall {
		back += p.stall - in
	}
	return forward, back
}

// phase returns how long before t the last multiple of period was.
func phase(t mono.Time, period time.Duration) time.Duration {
	in := time.Duration(t) % period
	if in < 0 {
		in += period
	}
	return in
}

// NamedPath is a path with a name.
type NamedPath struct {
	Name string
	Path
	// Stationary says that its latencies do not depend on time, and have a mean that a sample finds,
	// so that ceilings can be computed from their distribution alone. Where they depend on time, even
	// periodically, what a client meets depends on when it sends: after waiting for an answer it does
	// not send at a random phase. A path on which most trips take as long as windows is not
	// stationary, either.
	Stationary bool
}

// HostilePaths returns the paths over which a client must send without ever being refused: steady
// ones to compare with, and for every way of guessing when a request arrives one that makes the
// guess wrong.
func HostilePaths() []NamedPath {
	const ms = time.Millisecond
	immediate := latency.Law{}
	wide := latency.Uniform(0, 100*ms)
	return []NamedPath{
		{"constant 20 ms", Symmetric(latency.Constant(20 * ms)), true},
		{"uniform 0–50 ms", Symmetric(latency.Uniform(0, 50*ms)), true},
		{"2 ms + exponential 20 ms", Symmetric(latency.Exponential(20*ms, 2*ms)), true},
		{"lognormal 10 ms, p99 100 ms", Symmetric(latency.Lognormal(10*ms, 100*ms)), true},
		{"0, or 3 s one time in fifty", Symmetric(latency.Bimodal(0, 3000*ms, 0.02)), true},
		{"Pareto 2 ms, 1.1, up to 60 s", Capped(Symmetric(latency.Pareto(2*ms, 1.1)), time.Minute), false},
		{"sawtooth of 1.7 s", Sawtooth(1700*ms, ms), false},
		{"bunches of 250 ms", Bunched(Symmetric(latency.Uniform(0, 5*ms)), 250*ms), false},
		{"slow there, answered at once", Asymmetric(wide, immediate), true},
		{"there at once, answered slowly", Asymmetric(immediate, wide), true},
		{"steps between 5 and 400 ms",
			Steps(Symmetric(latency.Constant(5*ms)), Symmetric(latency.Constant(400*ms)), 3300*ms), false},
		{"answers stalled for 700 ms", Stalled(Symmetric(latency.Uniform(0, 20*ms)), 700*ms, 5*time.Second), false},
		{"two routes, 1 and 120 ms", Symmetric(latency.Bimodal(ms, 120*ms, 0.5)), true},
		{"there within 2 s, answered at once", Asymmetric(latency.Uniform(0, 2*time.Second), immediate), false},
	}
}
