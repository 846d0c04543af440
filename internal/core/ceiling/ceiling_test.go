package ceiling_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/ceiling"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// TestCeilings plays 200,000 requests of each client. It compares them with the figures that the
// research measured or derived for 5 keys × 20/s and latencies of 0 to 50 ms each way.
func TestCeilings(t *testing.T) {
	const largest = 50 * time.Millisecond
	law := latency.Uniform(0, largest)
	for _, c := range []struct {
		name   string
		config ceiling.Config
		want   float64 // per second, 5 keys
	}{
		{"one in flight", ceiling.Config{Knowledge: ceiling.OneInFlight}, 91.0},
		{"answers", ceiling.Config{}, 95.15},
		{"largest latency", ceiling.Config{Knowledge: ceiling.LargestLatency, Largest: largest}, 95.91},
		{"largest latency, nonces in order", ceiling.Config{Knowledge: ceiling.LargestLatency, Largest: largest, Gap: largest + 10*time.Microsecond}, 95.37},
	} {
		client, err := ceiling.New(c.config)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		const n = 200_000
		var sent mono.Time
		for range n {
			sent, _ = client.Next(law.Draw(rng), law.Draw(rng))
		}
		got := 5 * (n - 20) / time.Duration(sent).Seconds() // the first 20 went out at once
		t.Logf("%s: %.2f/s", c.name, got)
		if math.Abs(got-c.want) > 0.002*c.want {
			t.Errorf("%s: %.2f/s, want %.2f", c.name, got, c.want)
		}
		if client.Requests() != n || client.At() < sent {
			t.Errorf("%s: %d requests, answered at %v", c.name, client.Requests(), client.At())
		}
	}
}

// TestCeilingIsAllowedAndTight: the exchange never refuses the client of a ceiling. It refuses one
// whose slots are free a little earlier, at some latencies.
func TestCeilingIsAllowedAndTight(t *testing.T) {
	for _, k := range []ceiling.Config{
		{Knowledge: ceiling.OneInFlight},
		{Knowledge: ceiling.Answers},
		{Knowledge: ceiling.LargestLatency, Largest: 50 * time.Millisecond},
	} {
		for _, early := range []bool{false, true} {
			k.Limit = 3
			if early {
				k.Tick = -1 // W⁺ = W: refused where an arrival comes exactly on the closed end
			}
			client, err := ceiling.New(k)
			if err != nil {
				t.Fatal(err)
			}
			// Slow there and fast back, then fast there: the worst that may follow.
			legs := []ceiling.Leg{{Forward: 50 * time.Millisecond}, {Back: 50 * time.Millisecond}, {}, {Forward: 20 * time.Millisecond}}
			rng := rand.New(rand.NewPCG(3, 4))
			type arrival struct{ at mono.Time }
			var arrivals []arrival
			for range 4000 {
				l := legs[rng.IntN(len(legs))]
				sent, _ := client.Next(l.Forward, l.Back)
				arrivals = append(arrivals, arrival{sent.Add(l.Forward)})
			}
			slices.SortStableFunc(arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
			x, err := rule.NewExchange(rule.ExchangeConfig{Keys: 1, Limit: 3, AnyNonce: true, BanAfter: -1})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range arrivals {
				x.Arrive(a.at, 0, 0)
			}
			if refused := x.Total().Limited; (refused > 0) != early {
				t.Errorf("%v, early %v: %d refused", k.Knowledge, early, refused)
			}
		}
	}
}

const ms = mono.Time(time.Millisecond)

// TestCeilingTimeline: two slots, window 1 s, latency by hand.
func TestCeilingTimeline(t *testing.T) {
	type request struct {
		forward, back  time.Duration
		sent, answered mono.Time
	}
	d := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, c := range []struct {
		config   ceiling.Config
		requests []request
	}{
		{ceiling.Config{}, []request{
			{d(30), d(20), 0, 50 * ms},
			{d(10), d(5), 0, 15 * ms},
			{d(1), d(1), 1016 * ms, 1018 * ms}, // 15 + 1001: the second slot is free first
			{d(0), d(0), 1051 * ms, 1051 * ms},
			{d(0), d(0), 2019 * ms, 2019 * ms},
		}},
		{ceiling.Config{Knowledge: ceiling.OneInFlight}, []request{
			{d(30), d(20), 0, 50 * ms},
			{d(10), d(5), 50 * ms, 65 * ms},
			{d(10), d(10), 1051 * ms, 1071 * ms},
			{d(0), d(0), 1071 * ms, 1071 * ms}, // its slot was free at 1066, but an answer was due
		}},
		{ceiling.Config{Knowledge: ceiling.LargestLatency, Largest: d(40), Gap: d(7)}, []request{
			{d(30), d(20), 0, 50 * ms},
			{d(10), d(5), 7 * ms, 22 * ms},
			{d(0), d(0), 1023 * ms, 1023 * ms}, // 22 + 1001
			{d(0), d(0), 1041 * ms, 1041 * ms}, // 40 + 1001
		}},
		{ceiling.Config{Gap: d(7)}, []request{
			{d(1), d(2), 0, 3 * ms},
			{d(1), d(1), 3 * ms, 5 * ms}, // nothing is in flight that it could overtake
			{d(9), d(0), 1004 * ms, 1013 * ms},
			{d(0), d(0), 1011 * ms, 1011 * ms},
		}},
	} {
		c.config.Limit = 2
		client, err := ceiling.New(c.config)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range c.requests {
			if sent, answered := client.Next(r.forward, r.back); sent != r.sent || answered != r.answered {
				t.Errorf("%v request %d: sent at %v, answered at %v; want %v, %v", c.config.Knowledge, i, sent, answered, r.sent, r.answered)
			}
		}
	}
}

// TestCeilingAtNeverFalls: where the latency is bounded a slot is free long before its answer is
// there, and answers come in another order than the sends.
func TestCeilingAtNeverFalls(t *testing.T) {
	c, err := ceiling.New(ceiling.Config{Knowledge: ceiling.LargestLatency, Largest: 10 * time.Millisecond, Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range []struct {
		forward, back time.Duration
		answered, at  mono.Time
	}{
		{10 * time.Millisecond, 3 * time.Second, 3010 * ms, 3010 * ms},
		{0, 5 * time.Millisecond, 5 * ms, 3010 * ms},
		{10 * time.Millisecond, time.Millisecond, 1017 * ms, 3010 * ms}, // sent at 5 + 1001
		{0, 2 * time.Second, 3011 * ms, 3011 * ms},                      // at 10 + 1001
	} {
		if _, answered := c.Next(r.forward, r.back); answered != r.answered || c.At() != r.at {
			t.Errorf("request %d: answered at %v, the latest at %v; want %v, %v", i, answered, c.At(), r.answered, r.at)
		}
	}
}

func TestMost(t *testing.T) {
	c := ceiling.Config{Limit: 2}
	legs := []ceiling.Leg{{Forward: 10 * time.Millisecond}} // a pair of requests each 1011 ms
	for d, want := range map[time.Duration]int{
		0: 0, 9 * time.Millisecond: 0, 10 * time.Millisecond: 2, 1020 * time.Millisecond: 2, 1021 * time.Millisecond: 4, 10 * 1011 * time.Millisecond: 20,
	} {
		if got, err := c.Most(d, legs); got != want || err != nil {
			t.Errorf("Most(%v) = %d, %v; want %d", d, got, err, want)
		}
	}
	if _, err := c.Most(time.Second, nil); err == nil {
		t.Error("a ceiling from no latencies")
	}
	if _, err := (ceiling.Config{Knowledge: 9}).Most(time.Second, legs); err == nil {
		t.Error("a ceiling of a client that cannot be")
	}
	// The legs of a run come in turn: the second answer takes 3 s.
	run := []ceiling.Leg{{Back: time.Second}, {Back: 3 * time.Second}, {Back: time.Second}}
	if got, err := c.Most(time.Second, run); got != 1 || err != nil {
		t.Errorf("Most(1s) of a run = %d, %v; want 1", got, err)
	}
}

func TestNewCeilingRefuses(t *testing.T) {
	for _, c := range []struct {
		config ceiling.Config
		why    string
	}{
		{ceiling.Config{Knowledge: 9}, "Knowledge: 9"},
		{ceiling.Config{Limit: -1}, "Limit -1"},
		{ceiling.Config{Window: -1}, "Window -1ns"},
		{ceiling.Config{Largest: time.Second}, "Largest 1s"},
		{ceiling.Config{Gap: -1}, "Gap -1ns"},
	} {
		if _, err := ceiling.New(c.config); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

func BenchmarkCeiling(b *testing.B) {
	c, err := ceiling.New(ceiling.Config{})
	if err != nil {
		b.Fatal(err)
	}
	law, rng := latency.Uniform(0, 50*time.Millisecond), rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		c.Next(law.Draw(rng), law.Draw(rng))
	}
}
