package sim_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Pages quote figures of simulations, with the seed that gives them: so a seed is to give what it gave. Whoever changes a simulation on
// purpose writes the file anew, reads what became of each figure, and runs the pages' own again.
func TestSeedsGiveWhatTheyGave(t *testing.T) {
	race.Without(t) // one goroutine races with nobody
	if runtime.GOARCH != "amd64" {
		t.Skip("elsewhere a product and a sum may be rounded once")
	}
	var b strings.Builder
	proofFigures(&b)
	exchangeFigures(t, &b)
	promptFigures(t, &b)
	golden.Compare(t, "figures.golden", b.String())
}

// proofFigures has each kind of limit over each path, and against an adversary.
func proofFigures(b *strings.Builder) {
	for _, kind := range append(sim.ProofKinds(), sim.PromisedKinds()...) {
		for _, path := range sim.ProofPaths() {
			p := kind.New(5)
			p.Path, p.Lost, p.Idle, p.Aside, p.Costs, p.Requests, p.Seed = path.Path, path.Lost, path.Idle, path.Aside, path.Costs, 150, 5
			if p.Limiter.Ready(0, limit.Cost{limit.Requests: 7}) == limit.Never {
				p.Costs = nil
			}
			fmt.Fprintf(b, "%s, %s: %+v\n", kind.Name, path.Name, p.Run())
		}
		for _, path := range sim.ProofPaths()[3:5] {
			if kind.Ceiling == nil {
				continue
			}
			_, percent := kind.Prove(path, 150, 5, nil)
			fmt.Fprintf(b, "%s, %s: %.6g %% of what is possible\n", kind.Name, path.Name, percent)
		}
		for seed := range uint64(6) {
			fmt.Fprintf(b, "%s, attacked by %d: %+v\n", kind.Name, seed, kind.Attack(250, seed, nil))
		}
	}
	for _, m := range sim.Mutants() {
		if !m.Aimed && !m.Slow {
			path, sent := m.Find(300, 3, nil)
			fmt.Fprintf(b, "%s, %s: found after %d over %q\n", m.Kind, m.Name, sent, path)
		}
	}
}

func exchangeFigures(t *testing.T, b *strings.Builder) {
	for i, x := range []sim.Exchange{
		{Limiter: lease, Forward: lognormal, Back: lognormal, Nonce: sim.Ours},
		{Limiter: lease, Forward: uniform, Back: uniform, Nonce: sim.Timestamp, Workers: true, Poll: 10 * ms},
		{Limiter: bounded, Forward: uniform, Back: uniform, Generator: sim.Burst, Nonce: sim.Ours, InFlight: 3, Gap: 5 * ms},
		{Limiter: publishedBuffer(50 * ms), Forward: hostile, Back: uniform, Generator: sim.Saturating, Nonce: sim.Concatenated, Workers: true, Restart: 7 * time.Second},
		{Limiter: lease, Forward: hostile, Back: hostile, Generator: sim.Constant, Reserve: 100 * ms, Queue: queue.Config{MaxAttempts: 2}},
		{Limiter: func() limit.Limiter { return limit.MustRolling(30, time.Second) }, Forward: uniform, Back: lognormal, Nonce: sim.Ours, Restart: 5 * time.Second,
			Server: rule.ExchangeConfig{Keys: 3, Limit: 20, BanAfter: 50}, TTL: 2 * time.Second, Timeout: 500 * ms, Workers: true},
	} {
		x.Duration, x.Seed = 20*time.Second, 9
		sends, answers := time.Duration(0), time.Duration(0)
		x.OnSend = func(d time.Duration) { sends += d }
		x.OnAnswer = func(made, sent time.Duration) { answers += made + 3*sent }
		got, err := x.Run()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(b, "exchange %d: %+v, %v and %v\n", i+1, got, sends, answers)
	}
}

// promptFigures has each client of language models, at each kind of work.
func promptFigures(t *testing.T, b *strings.Builder) {
	for arrivals := range sim.LLMArrivals(4) {
		work := sim.LLMWork{Prompts: 150, Arrivals: arrivals, Seed: 4}.Make()
		for i, client := range []sim.LLMClient{
			sim.LLMLine{}, sim.LLMLine{Reserve: sim.Estimated, Fill: 8}, sim.LLMLine{Reserve: sim.Estimated, Quantile: 0.5, Seen: []float64{0.1, 0.5, 1}},
			sim.LLMGates{Again: true}, sim.LLMGates{Concurrency: 5, Attempts: 2}, sim.LLMBucket{}, sim.LLMBucket{Attempts: 2},
		} {
			x := sim.LLM{Work: work, Latency: latency.Lognormal(800*ms, 8*time.Second), Forward: uniform, Back: uniform, Client: client, Documented: i%2 == 0, Stated: i%3 == 0, Seed: 6}
			got := runLLM(t, x)
			waits := time.Duration(0)
			for k, w := range got.Waits {
				waits += w * time.Duration(1+k%3)
			}
			got.Waits = nil
			fmt.Fprintf(b, "%v prompts, client %d: %+v, waits of %v, %v at best\n", arrivals, i, got, waits, x.Ideal(func(k int) bool { return k%7 > 0 }))
		}
	}
	for outputs := range sim.LLMOutputs(4) {
		for _, speed := range []int64{20, 150} {
			l := must(limit.NewProduced(limit.ProducedConfig{Limit: 8000, Window: time.Minute, PerSecond: 100}))
			got, err := sim.LLMProduced{Limiter: l, Outputs: outputs, PerSecond: speed, Way: 30 * ms, Prompts: 60, Seed: 8}.Run()
			fmt.Fprintf(b, "%v outputs at %d a second: %+v %v\n", outputs, speed, got, err)
		}
	}
}
