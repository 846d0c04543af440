package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
)

func TestLLM(t *testing.T) {
	race.Without(t) // TestVirtual has simulations side by side
	run := func() bench.LLM {
		r, err := bench.RunLLM(context.Background(), 400, 2, bench.LLMArrivals, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Wall = 0
		return r
	}
	report := run()
	rows := map[string]bench.LLMRow{}
	for _, p := range report.Policies {
		rows[p.Name+"/"+p.Arrivals] = p
		ours := strings.HasPrefix(p.Name, "paceline-")
		if ours && !strings.HasPrefix(p.Name, "paceline-estimated") && (p.Rejected != 0 || !p.Documented && (p.WorstTokens > 100 || p.WorstRequests > 100) || p.OverrunPercent != 0) {
			t.Errorf("%s, %s: %+v", p.Name, p.Arrivals, p)
		}
		if ours && (p.Lost != 0 || p.PercentOfIdeal < 85 || p.PercentOfIdeal > 100.01 || p.WakeUpsPerAdmission > 2) {
			t.Errorf("%s, %s: %+v", p.Name, p.Arrivals, p)
		}
	}
	if failed := report.Failed(); failed != "" {
		t.Error(failed)
	}
	if len(rows) != len(report.Policies) || len(rows)%4 != 0 {
		t.Errorf("%d rows, %d names", len(report.Policies), len(rows))
	}
	for name, ok := range map[string]bool{
		"seed-gates loses":            rows["seed-gates/start"].Lost > 100 && rows["seed-gates/start"].WorstTokens > 500,
		"seed-gates-retried does not": rows["seed-gates-retried/start"].Lost == 0 && rows["seed-gates-retried/start"].Rejected > 1000,
		"the bucket overshoots":       rows["bucket-full/start"].WorstTokens > 120 && rows["bucket-full/start"].WorstTokens <= 210,
		"estimates fall short":        rows["paceline-estimated/start"].OverrunPercent > 0.5 && rows["paceline-estimated/start"].OverrunPercent < 20,
		"filled is overtaken":         rows["paceline-exact/start"].Overtaken > 0 && rows["paceline-exact-strict/start"].Overtaken == 0,
		"filled is quicker":           rows["paceline-exact-unstated/start"].Seconds < rows["paceline-exact-strict-unstated/start"].Seconds,
		"rows say what they are": rows["paceline-exact/start"].Filled == 64 && rows["paceline-exact-strict/start"].Filled == 0 &&
			rows["paceline-exact/start"].Stated && !rows["paceline-exact-unstated/start"].Stated,
		"what a user gets is first": report.Policies[0].Name == "paceline-bounded-unstated" && !report.Policies[0].Stated && !report.Policies[0].Documented,
		"the published loop is not refused by what is documented": rows["bucket-full-documented/start"].Documented &&
			rows["bucket-full-documented/start"].Rejected == 0 && rows["bucket-full-documented/start"].Lost == 0,
		"and slower than ours there": rows["bucket-full-documented/start"].Seconds > 1.15*rows["paceline-documented/start"].Seconds,
		"which uses the bucket":      rows["paceline-documented/start"].WorstTokens > 150 && rows["paceline-documented/start"].PercentOfIdeal > 97,
		"what is stated helps":       rows["paceline-exact/start"].Seconds < rows["paceline-exact-unstated/start"].Seconds,
	} {
		if !ok {
			t.Errorf("not so: %s", name)
		}
	}
	var a, b, text bytes.Buffer
	again := run()
	if err := json.NewEncoder(&a).Encode(report); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&b).Encode(again); err != nil || a.String() != b.String() {
		t.Errorf("the same seeds, other bytes (%v)", err)
	}
	var back map[string]any
	if err := json.Unmarshal(a.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	first := back["policies"].([]any)[0].(map[string]any)
	for field := range strings.FieldsSeq("name arrivals rejected lost seconds ideal_seconds percent_of_ideal worst_window_requests_percent " +
		"worst_window_tokens_percent wakeups_per_admission wait_ms overrun_percent filled stated") {
		if _, ok := first[field]; !ok {
			t.Errorf("no field %q in a policy", field)
		}
	}
	for _, field := range []string{"p50", "p99"} {
		if _, ok := first["wait_ms"].(map[string]any)[field]; !ok {
			t.Errorf("no field %q in wait_ms", field)
		}
	}
	if err := report.WriteText(&text); err != nil || !strings.Contains(text.String(), "\nseed-gates ") {
		t.Errorf("%v\n%s", err, &text)
	}
	report.Policies[len(report.Policies)-1].Rejected = 1
	if report.Failed() == "" {
		t.Error("a refusal passes")
	}
}

func TestLLMStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := bench.RunLLM(ctx, 10, 1, bench.LLMArrivals, nil); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

// What the simulator calls a line is a Gate: a goroutine per prompt that waits for a real one, with the same latencies,
// goes at the same nanosecond.
func TestLLMLineIsAGate(t *testing.T) {
	law := latency.Uniform(5*time.Millisecond, 40*time.Millisecond)
	for _, c := range []struct {
		arrivals sim.LLMArrivals
		fill     int
	}{{sim.AtOnce, 0}, {sim.Uniform, 0}, {sim.Mixed, 0}, {sim.AtOnce, 64}, {sim.Uniform, 8}, {sim.Mixed, 8}, {sim.Bursts, 1}} {
		x := sim.LLM{
			Work:    sim.LLMWork{Prompts: 300, Arrivals: c.arrivals, Seed: 4}.Make(),
			Latency: latency.Lognormal(800*time.Millisecond, 8*time.Second), Forward: law, Back: law, Stated: true,
			Client: sim.LLMLine{Reserve: sim.Bounded, Fill: c.fill}, Seed: 4,
		}
		want, err := x.Run()
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			rolling := func(n int64, u limit.Unit) limit.Limiter {
				r, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Minute, Unit: u})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			gate, err := paceline.NewGateWith(paceline.GateConfig{
				Limiter: limit.NewAll(rolling(500, limit.Requests), rolling(30_000, limit.Tokens)), Fill: c.fill,
			})
			if err != nil {
				t.Fatal(err)
			}
			start, got := time.Now(), make([]time.Duration, len(x.Work))
			var wg sync.WaitGroup
			for i, p := range x.Work {
				time.Sleep(time.Duration(p.At) - time.Since(start))
				wg.Go(func() {
					permit, err := gate.Wait(t.Context(), limit.Cost{limit.Requests: 1, limit.Tokens: p.Input + p.MaxTokens})
					if err != nil {
						t.Error(err)
						return
					}
					got[i] = time.Since(start) - time.Duration(p.At)
					trip := x.Trip(i, 1)
					time.Sleep(trip.Forward + trip.Work + trip.Back)
					permit.Settle(limit.Outcome{
						Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Tokens: p.Tokens()},
						ArrivedAgo: trip.Work.Truncate(time.Millisecond),
					})
				})
				synctest.Wait() // in this order
			}
			wg.Wait()
			for i := range got {
				if got[i] != want.Waits[i] {
					t.Fatalf("%v, Fill %d: prompt %d waits for %v at the gate, and %v in the simulator", c.arrivals, c.fill, i, got[i], want.Waits[i])
				}
			}
		})
	}
}
