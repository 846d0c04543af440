package sim_test

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// prompts has each of those sizes at instant 0, all of it input.
func prompts(tokens ...int64) []sim.Prompt {
	work := make([]sim.Prompt, len(tokens))
	for i, n := range tokens {
		work[i].Input = n
	}
	return work
}

func same(n int, tokens int64) []sim.Prompt { return prompts(slices.Repeat([]int64{tokens}, n)...) }

func runLLM(t testing.TB, x sim.LLM) sim.LLMTally {
	t.Helper()
	got, err := x.Run()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestLLMIdeal(t *testing.T) {
	at := func(d time.Duration, p sim.Prompt) sim.Prompt { p.At = mono.Time(d); return p }
	const w = time.Minute
	for _, c := range []struct {
		name             string
		requests, tokens int64
		work             []sim.Prompt
		want             time.Duration
	}{
		{"nothing", 10, 100, nil, 0},
		{"one window", 10, 100, prompts(50, 50), 0},
		{"a token more", 10, 100, prompts(50, 51), w},
		{"requests bind", 2, 100, prompts(1, 1, 1, 1, 1), 2 * w},
		{"full windows", 10, 100, prompts(100, 100, 100), 2 * w},
		{"late work alone", 10, 100, []sim.Prompt{at(7*w, sim.Prompt{Input: 1})}, 7 * w},
		{"late work fills windows of its own", 10, 100, []sim.Prompt{{Input: 1}, at(3*w, sim.Prompt{Input: 60}), at(3*w, sim.Prompt{Input: 60})}, 4 * w},
		{"early work binds", 10, 100, []sim.Prompt{{Input: 100}, {Input: 100}, {Input: 100}, at(w, sim.Prompt{Input: 50})}, 3 * w},
	} {
		x := sim.LLM{Requests: c.requests, Tokens: c.tokens, Work: c.work}
		if got := x.Ideal(nil); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	x := sim.LLM{Tokens: 100, Work: prompts(100, 100, 100)}
	if got := x.Ideal(func(i int) bool { return i != 1 }); got != w {
		t.Errorf("of two windows of three: %v", got)
	}

	// The bound is close: first fit decreasing takes as many windows, or one more.
	for seed := range uint64(20) {
		x := sim.LLM{Work: sim.LLMWork{Seed: seed}.Make()}
		slices.SortFunc(x.Work, func(a, b sim.Prompt) int { return cmp.Compare(b.Tokens(), a.Tokens()) })
		var windows []int64
	next:
		for i := range x.Work {
			n := x.Work[i].Tokens()
			for k := range windows {
				if windows[k]+n <= 30_000 {
					windows[k] += n
					continue next
				}
			}
			windows = append(windows, n)
		}
		if packed := time.Duration(len(windows)-1) * time.Minute; packed < x.Ideal(nil) || packed > x.Ideal(nil)+time.Minute {
			t.Errorf("seed %d: %d windows, the bound is %v", seed, len(windows), x.Ideal(nil))
		}
	}
}

// Windows of 100 tokens and a minute, which the limiter takes for 60,007.1 ms; an answer comes after 10 s, of which the
// server works for 7. With its word for that, the window begins at 3 s; without, with the answer.
func TestLLMLineTimeline(t *testing.T) {
	const window, after = 60_007_100 * time.Microsecond, 10 * time.Second
	for _, c := range []struct {
		name     string
		line     sim.LLMLine
		stated   bool
		requests int64
		work     []sim.Prompt
		want     []time.Duration // when each is sent
	}{
		{"the first that has no room waits for the oldest", sim.LLMLine{}, false, 9, prompts(60, 40, 50),
			[]time.Duration{0, 0, after + window}},
		{"the server says when it arrived", sim.LLMLine{}, true, 9, prompts(60, 40, 50),
			[]time.Duration{0, 0, 3*time.Second + window}},
		{"requests bind", sim.LLMLine{}, false, 2, prompts(1, 1, 1),
			[]time.Duration{0, 0, after + window}},
		{"the large one holds up the small", sim.LLMLine{}, false, 9, prompts(60, 70, 30, 30),
			[]time.Duration{0, after + window, after + window, 2 * (after + window)}},
		// At 10 s the answer tells when the 70 may go, and that a 30 fits beside it.
		{"the small one goes ahead", sim.LLMLine{Fill: 4}, false, 9, prompts(60, 70, 30, 30),
			[]time.Duration{0, after + window, after, 2*after + window}},
		{"it would delay the large one", sim.LLMLine{Fill: 4}, false, 9, prompts(60, 71, 30),
			[]time.Duration{0, after + window, 2 * (after + window)}},
		{"the first that may", sim.LLMLine{Fill: 4}, false, 9, prompts(60, 70, 10, 30),
			[]time.Duration{0, after + window, after, 2*after + window}},
		{"too far down the line", sim.LLMLine{Fill: 1}, false, 9, prompts(60, 70, 31, 30),
			[]time.Duration{0, after + window, 2 * (after + window), 2*after + window}}, // next in line by then
		// 40 + 60 of 100 are reserved, 40 + 40 are used: the answer makes room.
		{"max_tokens are settled with what was used", sim.LLMLine{Reserve: sim.Bounded}, false, 9,
			[]sim.Prompt{{Input: 20, Output: 20, MaxTokens: 20}, {Input: 20, Output: 20, MaxTokens: 40}, {Input: 20}},
			[]time.Duration{0, 0, after}},
	} {
		got := runLLM(t, sim.LLM{
			Requests: c.requests, Tokens: 100, Work: c.work, Client: c.line, Stated: c.stated,
			Latency: latency.Constant(after), Forward: latency.Constant(time.Second), Back: latency.Constant(2 * time.Second),
		})
		if !slices.Equal(got.Waits, c.want) || got.Rejected != 0 || got.Lost != 0 {
			t.Errorf("%s: sent at %v with %d rejected, want %v", c.name, got.Waits, got.Rejected, c.want)
		}
	}
}

// Whatever sizes, arrivals, latencies and reservations: nothing is refused or lost, no window is over, and nobody is
// faster than the ideal. An estimate may be too low, so there it is only not lost.
func FuzzLLMLine(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(seed)
	}
	laws := []latency.Law{
		latency.Constant(0), latency.Uniform(0, 50*ms), latency.Lognormal(800*ms, 8*time.Second), latency.Bimodal(ms, 90*time.Second, 0.1),
		latency.Pareto(5*ms, 1.1),
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 7))
		law := func() latency.Law {
			for {
				// The tail of Pareto would take the run beyond what instants can tell.
				if l := laws[rng.IntN(len(laws))]; l != laws[4] || rng.IntN(4) == 0 {
					return l
				}
			}
		}
		x := sim.LLM{
			Work:     sim.LLMWork{Prompts: 1 + rng.IntN(150), Arrivals: sim.LLMArrivals(rng.IntN(4)), Load: 0.5 + rng.Float64(), Seed: seed}.Make(),
			Requests: 1 + rng.Int64N(60), Latency: law(), Forward: law(), Back: law(), Stated: rng.IntN(2) == 0, Seed: seed,
		}
		line := sim.LLMLine{Reserve: sim.Reserve(rng.IntN(3)), Fill: rng.IntN(3) * 10, Quantile: 0.05 + 0.9*rng.Float64()}
		x.Client = line
		got := runLLM(t, x)
		if got.Lost != 0 || got.Last.Sub(0) < x.Ideal(nil) {
			t.Errorf("%+v: %d lost, in %v of at least %v", line, got.Lost, got.Last, x.Ideal(nil))
		}
		if line.Reserve != sim.Estimated && (got.Rejected != 0 || got.Overruns != 0 || got.WorstRequests > x.Requests || got.WorstTokens > 30_000) {
			t.Errorf("%+v: %d rejected, %d overruns, worst windows %d of %d requests and %d tokens", line, got.Rejected, got.Overruns, got.WorstRequests, x.Requests, got.WorstTokens)
		}
	})
}

// Who has seen that answers use nothing reserves nothing for them: the second prompt is refused, goes to the end of the line
// again, and is served. Fewer than 20 answers teach nothing.
func TestLLMEstimate(t *testing.T) {
	x := sim.LLM{Tokens: 100, Work: slices.Repeat([]sim.Prompt{{Input: 10, Output: 60, MaxTokens: 60}}, 2)}
	for _, c := range []struct {
		seen               []float64
		rejected, overruns int
		most               int64
	}{
		{make([]float64, 30), 3, 2, 60}, // each refusal counts with the 10 that were reserved, and 70 + 3 × 10 is all there is
		{make([]float64, 18), 0, 0, 0},
		{append(make([]float64, 20), slices.Repeat([]float64{0.5}, 10)...), 1, 2, 30},
		{append(make([]float64, 29), 1), 1, 1, 60}, // one in thirty is above the quantile, and two of 31 are not
	} {
		x.Client = sim.LLMLine{Reserve: sim.Estimated, Seen: c.seen}
		got := runLLM(t, x)
		if got.Lost != 0 || got.Rejected != c.rejected || got.Overruns != c.overruns || got.Overrun != c.most || got.Waits[1] < time.Minute {
			t.Errorf("%d seen: %+v", len(c.seen), got)
		}
	}
}

// A head of the line that is overtaken goes when it was foreseen, and the line as a whole is quicker. Order alone decides:
// the first prompt of the line can go no later than without filling.
func TestLLMFillIsQuicker(t *testing.T) {
	var first, filled time.Duration
	for seed := range uint64(5) {
		x := sim.LLM{Work: sim.LLMWork{Prompts: 500, Seed: seed + 1}.Make(), Latency: latency.Constant(ms), Client: sim.LLMLine{}, Seed: seed}
		a := runLLM(t, x)
		x.Client = sim.LLMLine{Fill: 64}
		b := runLLM(t, x)
		if a.Overtaken != 0 || b.Overtaken == 0 || b.Overtaken > 60_000 {
			t.Errorf("seed %d: overtaken by %d tokens, and with filling by %d", seed, a.Overtaken, b.Overtaken)
		}
		first += a.Last.Sub(0)
		filled += b.Last.Sub(0)
	}
	if filled >= first {
		t.Errorf("first come, first served: %v; filled: %v", first, filled)
	}
}

// What others saw of the gates, at a server that lets everything pass: 400 tasks at once through a limit of 100, 20,000
// tokens through a limit of 1,000, and 19,000 wake-ups for 2,000 that wait at a limit of 100.
func TestLLMGatesAsSeen(t *testing.T) {
	for _, c := range []struct {
		name             string
		gates            sim.LLMGates
		work             []sim.Prompt
		requests, tokens int64 // in the fullest window
		wakeUps          int
	}{
		{"tasks", sim.LLMGates{Requests: 100, Concurrency: 50}, same(400, 1), 400, 400, 350},
		{"tokens", sim.LLMGates{Tokens: 1000}, same(400, 50), 400, 20_000, 0},
		{"wake-ups", sim.LLMGates{Requests: 100}, same(2000, 1), 200, 200, 19_000}, // two at the ends of a closed window
	} {
		got := runLLM(t, sim.LLM{Requests: 1 << 20, Tokens: 1 << 40, Work: c.work, Client: c.gates, Latency: latency.Constant(100 * ms)})
		if got.WorstRequests != c.requests || got.WorstTokens != c.tokens || got.WakeUps != c.wakeUps || got.Lost+got.Rejected != 0 {
			t.Errorf("%s: %d requests and %d tokens in a window, %d wake-ups, %d lost, %d rejected", c.name, got.WorstRequests, got.WorstTokens, got.WakeUps, got.Lost, got.Rejected)
		}
	}
}

// The gates one by one: sent at once, asleep until the oldest has left, refused twice and lost, or called again.
func TestLLMGatesTimeline(t *testing.T) {
	base := sim.LLM{Requests: 2, Tokens: 100, Latency: latency.Constant(10 * time.Second), Back: latency.Constant(time.Second)}
	const late = 100 * time.Microsecond
	lost := time.Duration(-1)
	for _, c := range []struct {
		name     string
		gates    sim.LLMGates
		work     []sim.Prompt
		want     []time.Duration
		rejected int
	}{
		// Both wake after a minute; the server, whose clock ticks in ms, still counts what arrived at 0, and takes it a second
		// after its refusal.
		{"requests", sim.LLMGates{}, prompts(1, 1, 1), []time.Duration{0, 0, time.Minute + late + 2*time.Second}, 1},
		// The third passes the gate, for nothing was received yet, is refused at 0 and 2 s, and lost.
		{"tokens", sim.LLMGates{}, prompts(60, 60), []time.Duration{0, lost}, 2},
		{"tokens, one attempt", sim.LLMGates{Attempts: 1}, prompts(60, 60), []time.Duration{0, lost}, 1},
		// Made after the answer at 10 s, it finds 100 tokens received, until 70 s.
		{"tokens received", sim.LLMGates{}, []sim.Prompt{{Input: 100}, {At: mono.Time(11 * time.Second), Input: 1}}, []time.Duration{0, 59*time.Second + late}, 0},
		// The call that failed was one of two requests, and is none now.
		{"a failure is uncounted", sim.LLMGates{}, append(prompts(60, 60), sim.Prompt{At: mono.Time(20 * time.Second), Input: 1}), []time.Duration{0, lost, 0}, 2},
		// Behind the gates: the second goes when the first is answered.
		{"one at a time", sim.LLMGates{Concurrency: 1}, prompts(1, 1), []time.Duration{0, 10 * time.Second}, 0},
	} {
		x := base
		x.Work, x.Client = c.work, c.gates
		got := runLLM(t, x)
		if !slices.Equal(got.Waits, c.want) || got.Rejected != c.rejected {
			t.Errorf("%s: sent at %v with %d rejected, want %v with %d", c.name, got.Waits, got.Rejected, c.want, c.rejected)
		}
	}
	x := base
	x.Work, x.Client = prompts(60, 60, 60), sim.LLMGates{Again: true}
	if got := runLLM(t, x); got.Lost != 0 || got.Last.Sub(0) < 2*time.Minute {
		t.Errorf("called again: %d lost, the last arrived at %v", got.Lost, got.Last)
	}
}

// The full bucket: where refusals come late, the fullest minute has twice the limit, a window's tokens at once and as many
// again while it passes. Where they come at once it pauses.
func TestLLMBucketAsSeen(t *testing.T) {
	late := latency.Constant(10 * time.Minute)
	got := runLLM(t, sim.LLM{Work: same(2000, 100), Latency: late, Back: late, Client: sim.LLMBucket{}})
	if got.Rejected == 0 || got.WorstTokens < 59_000 || got.WorstTokens > 60_000 || got.WakeUps < 50*got.Sent {
		t.Errorf("the fullest minute has %d tokens; %d rejected, %d wake-ups for %d sent", got.WorstTokens, got.Rejected, got.WakeUps, got.Sent)
	}
	// 10 are left of 100, so 90 are there at 48 s, and refused. In the pause until 63 s 25 are refilled, and the rest by 102 s.
	got = runLLM(t, sim.LLM{Tokens: 100, Work: prompts(90, 90), Client: sim.LLMBucket{}})
	if got.Rejected != 1 || got.Waits[0] != 0 || got.Waits[1].Round(10*ms) != 102*time.Second {
		t.Errorf("sent at %v, %d rejected", got.Waits, got.Rejected)
	}
	// 20 are there at 6 s, and refused there and after each pause, at 21, 36 and 51 s, until the minute is over.
	got = runLLM(t, sim.LLM{Tokens: 100, Work: prompts(90, 20), Client: sim.LLMBucket{}})
	if got.Rejected != 4 || got.Waits[1].Round(10*ms) != 66*time.Second {
		t.Errorf("sent at %v, %d rejected", got.Waits, got.Rejected)
	}
	got = runLLM(t, sim.LLM{Tokens: 100, Work: prompts(90, 90), Client: sim.LLMBucket{Attempts: 1}})
	if got.Lost != 1 {
		t.Errorf("one attempt: %d lost", got.Lost)
	}
}

// The work is what was asked for: medians and 99th percentiles within a few percent, the same for the same seed.
func TestLLMWork(t *testing.T) {
	work := sim.LLMWork{Prompts: 40_000, Seed: 3}.Make()
	quantiles := func(of func(*sim.Prompt) int64) (median, p99 int64) {
		all := make([]int64, len(work))
		for i := range work {
			all[i] = of(&work[i])
		}
		slices.Sort(all)
		return all[len(all)/2], all[len(all)*99/100]
	}
	in50, in99 := quantiles(func(p *sim.Prompt) int64 { return p.Input })
	out50, out99 := quantiles(func(p *sim.Prompt) int64 { return p.Output })
	for _, c := range []struct{ got, want int64 }{{in50, 300}, {in99, 4000}, {out50, 150}, {out99, 1500}} {
		if c.got < c.want*94/100 || c.got > c.want*106/100 {
			t.Errorf("%d, want about %d", c.got, c.want)
		}
	}
	for _, p := range work {
		if p.MaxTokens < p.Output || p.MaxTokens > p.Output+p.Output/2 || p.Input+p.MaxTokens > 30_000 {
			t.Fatalf("%+v", p)
		}
	}
	for _, a := range []sim.LLMArrivals{sim.AtOnce, sim.Uniform, sim.Bursts, sim.Mixed} {
		work := sim.LLMWork{Prompts: 1000, Arrivals: a, Seed: 1}.Make()
		sum, instants := int64(0), map[mono.Time]int{}
		for _, p := range work {
			sum += p.Tokens()
			instants[p.At]++
		}
		span := time.Duration(float64(sum) / 30_000 / 0.9 * float64(time.Minute))
		last := work[len(work)-1].At.Sub(0)
		want := map[sim.LLMArrivals]struct {
			instants int
			last     time.Duration
		}{sim.AtOnce: {1, 0}, sim.Uniform: {1000, span}, sim.Bursts: {10, span * 9 / 10}, sim.Mixed: {510, span}}[a]
		if off := last - want.last; len(instants) != want.instants || off < -span/50 || off > ms {
			t.Errorf("%v: %d instants, the last %v; want %d and %v", a, len(instants), last, want.instants, want.last)
		}
		if again := (sim.LLMWork{Prompts: 1000, Arrivals: a, Seed: 1}).Make(); !slices.Equal(work, again) {
			t.Errorf("%v: the same seed, other prompts", a)
		}
	}
}

func TestLLMIsRepeatable(t *testing.T) {
	for _, client := range []sim.LLMClient{sim.LLMLine{Reserve: sim.Estimated, Fill: 8}, sim.LLMGates{Again: true}, sim.LLMBucket{}} {
		x := sim.LLM{Work: sim.LLMWork{Prompts: 200, Seed: 1}.Make(), Latency: latency.Lognormal(800*ms, 8*time.Second), Client: client, Seed: 1}
		a, b := runLLM(t, x), runLLM(t, x)
		x.Seed = 2
		if c := runLLM(t, x); !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, c) {
			t.Errorf("%T: not the same for the same seed, or the same for another", client)
		}
	}
}

func TestLLMRefusesBadWork(t *testing.T) {
	line := sim.LLMLine{}
	for _, x := range []sim.LLM{
		{},
		{Client: line, Requests: -1},
		{Client: line, Tokens: -1},
		{Client: line, Window: -1},
		{Client: line, Work: prompts(30_001)},
		{Client: line, Work: prompts(-1)},
		{Client: line, Work: []sim.Prompt{{Output: 2, MaxTokens: 1}}},
		{Client: line, Work: []sim.Prompt{{Input: 30_000, MaxTokens: 1}}},
		{Client: line, Work: []sim.Prompt{{At: 1}, {At: 0}}},
		{Client: sim.LLMLine{Quantile: 1.5}},
		{Client: sim.LLMLine{Seen: []float64{1.5}}},
	} {
		if got, err := x.Run(); err == nil {
			t.Errorf("%+v: %+v", x, got)
		}
	}
}

// A server as OpenAI documents it has a bucket of tokens and counts the larger of input and MaxTokens: what a bucket of that rule lets
// through is served, in the shortest time that it can be, and who counts less than it does is refused.
func TestLLMDocumented(t *testing.T) {
	x := sim.LLM{Work: sim.LLMWork{Prompts: 300, Seed: 1}.Make(), Documented: true, Client: sim.LLMLine{Reserve: sim.AsDocumented, Fill: 64}, Seed: 1,
		Latency: latency.Uniform(time.Second, 3*time.Second), Forward: latency.Uniform(5*time.Millisecond, 40*time.Millisecond), Back: latency.Uniform(5*time.Millisecond, 40*time.Millisecond)}
	got, err := x.Run()
	if err != nil {
		t.Fatal(err)
	}
	var tokens int64
	for _, p := range x.Work {
		tokens += max(p.Input, p.MaxTokens)
	}
	ideal := time.Duration(float64(tokens-30_000) / 500 * float64(time.Second))
	if d := x.Ideal(nil) - ideal; d < -time.Millisecond || d > time.Millisecond {
		t.Errorf("the ideal is %v, expected %v", x.Ideal(nil), ideal)
	}
	if last := got.Last.Sub(0); got.Rejected != 0 || got.Lost != 0 || last < ideal || float64(last) > 1.01*float64(ideal) || got.Overruns != 0 {
		t.Errorf("%d refused, %d lost, %d overruns, in %v of %v", got.Rejected, got.Lost, got.Overruns, last, ideal)
	}
	for i := range x.Work {
		x.Work[i].Output = 0
	}
	x.Client = sim.LLMLine{Reserve: sim.Exact}
	if got, err = x.Run(); err != nil || got.Rejected == 0 {
		t.Errorf("%v; nobody is refused who counts what is used", err)
	}
}
