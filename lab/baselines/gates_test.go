package baselines

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Our rows beside the gates are one line for both limits where usage is known, and what a user gets.
const lineName, userName = "paceline-exact-strict", "paceline-bounded-unstated"

// gated plays prompts of 150 tokens, made at these seconds, through the document's two gates to a
// server with the very same limits.
func gated(requests, tokens int64, at ...float64) (sim.LLMTally, error) {
	return played(sim.LLMGates{}, requests, tokens, at...)
}

// lenient does the same with a server that refuses nothing, so that it shows what the gates do by themselves.
func lenient(requests int64, at ...float64) (sim.LLMTally, error) {
	return played(sim.LLMGates{Requests: requests}, 1_000_000, 1_000_000, at...)
}

func played(client sim.LLMGates, requests, tokens int64, at ...float64) (sim.LLMTally, error) {
	x := sim.LLM{Requests: requests, Tokens: tokens, Client: client, Seed: 1,
		Latency: latency.Constant(500 * time.Millisecond),
		Forward: latency.Uniform(5*time.Millisecond, 40*time.Millisecond), Back: latency.Constant(10 * time.Millisecond)}
	for _, s := range at {
		x.Work = append(x.Work, sim.Prompt{At: mono.Time(s * 1e9), Input: 60, Output: 90, MaxTokens: 90})
	}
	return x.Run()
}

// atOnce makes n prompts at instant 0.
func atOnce(n int) []float64 { return make([]float64, n) }

// gates is the document about two gates, one for requests and one for tokens, before a language model.
func gates(r *run, _ *Page) (Document, error) {
	const prompts, seeds = 1000, 2
	d := Document{Name: "a gate for language models",
		About: fmt.Sprintf("Each request passes two gates, one after the other: a sliding minute of sends, and a "+
			"sliding minute of the tokens of answers. If a gate is full, the request sleeps until the gate's oldest "+
			"entry leaves, and looks again. The document measures nothing: its figures are worked examples. Ours "+
			"are those examples, and %d prompts with %d seeds, in virtual time, "+
			"against a server with the same limits.", prompts, seeds)}
	examples := []func() (Claim, error){burstOfTen, waitsForOldest, waitsForThree, countsAndRates, slidingOrFixed,
		rollover, herd, configured, overtaking}
	for _, example := range examples {
		c, err := example()
		if err != nil {
			return d, err
		}
		d.Claims = append(d.Claims, c)
	}
	all, err := bench.RunPolicies(r.ctx, prompts, seeds, bench.LLMArrivals, nil, "seed-gates", "seed-gates-retried",
		lineName, userName)
	if err != nil {
		return d, err
	}
	llm := llmRuns{prompts, seeds, all}
	d.Claims = append(d.Claims, gateClaims(llm)...)
	d.Claims = append(d.Claims, waitShapes(llm)...)
	d.Claims = append(d.Claims, claim("time.time() is a monotonic", Refuted))
	return d, nil
}

func seconds(waits []time.Duration) (s []float64) {
	for _, w := range waits {
		s = append(s, w.Seconds())
	}
	return s
}

func burstOfTen() (Claim, error) {
	t, err := lenient(6, atOnce(10)...)
	w := seconds(t.Waits)
	slices.Sort(w)
	return claim("of ten at once", judge(w[5] == 0, near(w[6], 10, 0.1), near(w[7], 10, 0.1)),
		w[0], w[5], w[6], w[7]), err
}

func waitsForOldest() (Claim, error) {
	made := []float64{0, 10, 25, 35, 45, 55}
	alone, err := lenient(5, made...)
	if err != nil {
		return Claim{}, err
	}
	strict, err := gated(5, 1_000_000, made...)
	w, served := alone.Waits[5].Seconds(), strict.Waits[5].Seconds()
	return claim("with the oldest sent", judge(near(w, 5, 0.01)), w, served), err
}

// waitsForThree takes the document's two examples for one, as their sends are the same.
func waitsForThree() (Claim, error) {
	sends, err := window.NewLog(30, time.Minute)
	if err != nil {
		return Claim{}, err
	}
	const now = mono.Time(time.Hour)
	for _, s := range []int{55, 45, 30, 20, 10, 5, 2} {
		sends.Add(now.Add(-time.Duration(s) * time.Second))
	}
	var left []string
	free := -1
	for _, s := range []int{5, 15, 30} { // when the first three leave; one that is exactly a window old still counts
		n := sends.Count(now.Add(time.Duration(s)*time.Second + 1))
		left = append(left, fmt.Sprint(n))
		if n < 5 && free < 0 {
			free = s
		}
	}
	return claim("with 7 in the", judge(free > 0, free == 5), strings.Join(left, ", "), free), nil
}

// slidingOrFixed puts a burst at the end of one minute and another at the beginning of the next.
func slidingOrFixed() (Claim, error) {
	sends, err := window.NewLog(60, time.Minute)
	if err != nil {
		return Claim{}, err
	}
	fixed, passed := map[mono.Time]int{}, 0
	const minute = mono.Time(time.Minute)
	for _, at := range []mono.Time{minute - mono.Time(time.Second), minute + mono.Time(time.Second)} {
		for range 30 {
			if fixed[at/minute] < 30 {
				fixed[at/minute]++
				passed++
			}
			sends.Add(at)
		}
	}
	counts := sends.Count(minute + mono.Time(time.Second))
	return claim("a sliding window is", judge(passed == 60 && counts == 60), passed, counts), nil
}

// countsAndRates computes the sums of the examples with counters of ours.
func countsAndRates() (Claim, error) {
	sends, err := window.NewLog(30, time.Minute)
	if err != nil {
		return Claim{}, err
	}
	tokens, err := window.NewRuns(time.Minute, 10)
	if err != nil {
		return Claim{}, err
	}
	const now = mono.Time(time.Hour)
	ago := func(s int) mono.Time { return now.Add(-time.Duration(s) * time.Second) }
	for _, s := range []int{55, 45, 30, 20, 10, 5, 2} {
		sends.Add(ago(s))
	}
	for _, e := range [][2]int{{50, 100}, {30, 200}, {10, 150}} {
		tokens.Add(ago(e[0]), int64(e[1]))
	}
	n, sum := sends.Count(now), tokens.Total(now)
	return claim("sends 55, 45, 30, 20, 10, 5", judge(n == 7, sum == 450), n, sum), nil
}

func rollover() (Claim, error) {
	sends, err := window.NewLog(30, time.Minute)
	if err != nil {
		return Claim{}, err
	}
	at := func(s int) mono.Time { return mono.Time(time.Duration(s) * time.Second) }
	var counts []int
	for range 3 {
		sends.Add(at(0))
	}
	counts = append(counts, sends.Count(at(0)))
	sends.Add(at(30))
	counts = append(counts, sends.Count(at(30)), sends.Count(at(61)))
	return claim("three sends by 0", judge(counts[0] == 3, counts[1] == 4, counts[2] == 3),
		counts[0], counts[1], counts[2]), nil
}

// herd has three clients wait for one place.
func herd() (Claim, error) {
	t, err := lenient(5, 0, 2, 4, 6, 8, 55, 55.1, 55.2)
	return claim("all who wait wake", judge(t.WakeUps == 6), t.WakeUps), err
}

// configured runs the three settings that the document recommends: at a server with those very
// limits, and at one with larger limits.
func configured() (Claim, error) {
	var rerun []string
	var exact, larger []int
	for _, c := range []struct {
		name             string
		requests, tokens int64
	}{{"10 and 1,000", 10, 1000}, {"30 and 10,000", 30, 10_000}, {"100 and 100,000", 100, 100_000}} {
		at := atOnce(5 * int(c.requests))
		own, err := gated(c.requests, c.tokens, at...)
		if err != nil {
			return Claim{}, err
		}
		other, err := played(sim.LLMGates{Requests: c.requests, Tokens: c.tokens}, 500, 30_000, at...)
		if err != nil {
			return Claim{}, err
		}
		rerun = append(rerun, fmt.Sprintf("%s: %d refused and %d lost of %d, and %d", c.name, own.Rejected, own.Lost,
			own.Prompts, other.Rejected))
		exact, larger = append(exact, own.Rejected), append(larger, other.Rejected)
	}
	return claim("10 requests and 1,000", judge(exact[0] == 0, larger[0] == 0 && larger[1] == 0),
		strings.Join(rerun, "; ")), nil
}

// llmRuns are runs of bench llm.
type llmRuns struct {
	prompts, seeds int
	all            []bench.LLMRuns
}

func (l *llmRuns) of(name, arrivals string) *bench.LLMRuns {
	i := slices.IndexFunc(l.all, func(r bench.LLMRuns) bool { return r.Row.Name == name && r.Row.Arrivals == arrivals })
	return &l.all[i]
}

// gateClaims are claims about the gates as a whole.
func gateClaims(llm llmRuns) []Claim {
	row := func(name, arrivals string) bench.LLMRow { return llm.of(name, arrivals).Row }
	start, uniform, retried := row("seed-gates", "start"), row("seed-gates", "uniform"), row("seed-gates-retried", "start")
	ours := row(userName, "start")
	each := func(n int) float64 { return float64(n) / float64(llm.seeds) }
	prompts := fmt.Sprintf("500 requests and 30,000 tokens a minute, %d prompts", llm.prompts)
	return []Claim{{
		Claim: "limiting before sending prevents refusals by the provider (no figure)",
		Setup: prompts + ", at once and evenly spread",
		Rerun: fmt.Sprintf("at once %.0f refusals and %.0f prompts lost; spread %.0f and %.0f", each(start.Rejected),
			each(start.Lost), each(uniform.Rejected), each(uniform.Lost)),
		Verdict: judge(start.Rejected == 0, uniform.Rejected == 0), written: Refuted,
		Why: "Nothing is reserved: every request before the first answers passes the gate of tokens. With one " +
			"admission for both limits at once, no request is refused.",
	}, {
		Claim: "no window holds more sends than the limit, which bounds the memory",
		Setup: prompts + " at once, called again until answered",
		Rerun: fmt.Sprintf("in the fullest minute %.0f %% of the limit of requests arrive, and %.0f %% of that of tokens",
			retried.WorstRequests, retried.WorstTokens),
		Verdict: judge(retried.WorstRequests <= 100, retried.WorstTokens <= 100), written: Refuted,
		Why: "There are three causes. Attempts after a refusal do not pass the gates. Failed requests are taken out of " +
			"the window again. Tokens count only after the answer.",
	}, {
		Claim: "waiting costs little: locks are held briefly, nobody polls (no figure)",
		Setup: prompts + " at once, called again until answered",
		Rerun: fmt.Sprintf("%.0f attempts for %d prompts, %.1f wake-ups an attempt; one line needs %.0f and %.1f",
			each(retried.Sent), llm.prompts, retried.WakeUpsPerAdmission, each(ours.Sent), ours.WakeUpsPerAdmission),
		Verdict: judge(each(retried.Sent) < 2*float64(llm.prompts), retried.WakeUpsPerAdmission < 2), written: Refuted,
		Why: "The locks are brief. But many requests are woken or sent in vain.",
	}}
}

// waitShapes are claims about how long a client waits: at the document's gates, and in a line that
// keeps the same limits.
func waitShapes(llm llmRuns) (claims []Claim) {
	shape := func(x waitShape) string {
		if x.NoWait >= 90 {
			return fmt.Sprintf("%.0f %% do not wait", x.NoWait)
		}
		return fmt.Sprintf("%.2f from an exponential, a line explains %.1f %%", x.KS, 100*x.R2)
	}
	for _, c := range []struct {
		arrivals, claim, why string
		written              Verdict
	}{
		{"uniform", "arrivals that are spread evenly wait exponentially",
			"Below the limit almost no request waits. Where many wait, they wait for the end of a minute.", Refuted},
		{"start", "a burst waits as a straight line",
			"A line that keeps the limits lets a minute's worth go each minute. The gates let most of the burst through at once.", InPart},
		{"mixed", "a mixed load waits in between", "At the gates, the other two loads have no such forms.", InPart},
	} {
		theirs, line := shapeOf(llm.of("seed-gates", c.arrivals)), shapeOf(llm.of(lineName, c.arrivals))
		claims = append(claims, Claim{
			Claim: c.claim + " (no figure)",
			Setup: fmt.Sprintf("500 requests and 30,000 tokens a minute, %d prompts; an exponential is within 0.05, a line "+
				"explains 98 %%", llm.prompts),
			Rerun:   fmt.Sprintf("its gates: %s; one line for both limits: %s", shape(theirs), shape(line)),
			Verdict: judge(theirs.Confirmed, line.Confirmed), written: c.written, Why: c.why,
		})
	}
	return claims
}

// overtaking counts the clients that are served before others that came first.
func overtaking() (Claim, error) {
	var at []float64
	for i := range 100 {
		at = append(at, float64(i)/2)
	}
	overtaken := func(t sim.LLMTally) (n int) {
		for i := range at {
			for k := i + 1; k < len(at); k++ {
				if t.Waits[i] >= 0 && t.Waits[k] >= 0 && at[k]+t.Waits[k].Seconds() < at[i]+t.Waits[i].Seconds() {
					n++
					break
				}
			}
		}
		return n
	}
	alone, err := lenient(20, at...)
	if err != nil {
		return Claim{}, err
	}
	strict, err := gated(20, 1_000_000, at...)
	return claim("the order is not", judge(overtaken(strict) > 0), overtaken(strict), overtaken(alone)), err
}
