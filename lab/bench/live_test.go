package bench

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/rule"
)

// inMemory serves h until the test ends, to connections that take dialling to be made.
func inMemory(t *testing.T, h http.Handler, dialling time.Duration) *http.Transport {
	listener := fakeconn.New()
	server := &http.Server{Handler: h}
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	transport := &http.Transport{
		MaxIdleConnsPerHost: liveInFlight,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(dialling)
			return listener.Dial(ctx, network, address)
		},
	}
	t.Cleanup(func() {
		time.Sleep(time.Second) // for requests on their way that nobody waits for
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return transport
}

// runInMemory runs the row's live client in virtual time.
func runInMemory(t *testing.T, row *Row, law latency.Law, length time.Duration) (*client, *ratetest.Exchange) {
	x := &row.Scenario
	names := []string{"key1", "key2", "key3", "key4", "key5"}[:x.Server.Keys]
	exchange, err := ratetest.NewExchange(ratetest.Config{Keys: names, Rule: x.Server, Before: law, After: law})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(row, x.Seed, length, names, "http://exchange", inMemory(t, exchange, 0))
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, exchange
}

func named(t *testing.T, name string, generator sim.Generator, nonce bool) Row {
	for _, r := range (Exchange{Latency: latency.Uniform(0, latencyMax)}).Rows() {
		if r.Name == name && r.Scenario.Generator == generator && r.Nonce() == nonce {
			return r
		}
	}
	t.Fatalf("no row %s/%v/%v", name, generator, nonce)
	return Row{}
}

// The live client in virtual time does what the simulated one does, instant for instant where latency is constant. It
// waits for the answers at its end, and there the two may differ by a few.
func TestLiveIsTheSimulation(t *testing.T) {
	const length = 20*time.Second + 500*time.Microsecond // not at the end of any interval
	law := latency.Constant(11 * time.Millisecond)
	for i, c := range []struct {
		name      string
		generator sim.Generator
		nonce     bool
		change    func(*sim.Exchange)
	}{
		{"original", sim.Original, true, nil},
		{"circular", sim.Original, false, func(x *sim.Exchange) { x.Server.BanAfter = -1 }},
		{"adaptive, as described", sim.Saturating, true, nil},
		{"lease", sim.Original, false, nil},
		{"lease", sim.Saturating, true, nil},
		{"load: burst", sim.Burst, false, nil},
		{"load: constant", sim.Constant, false, nil},
		{"queue: dlq", sim.Original, true, nil},
		{"queue: graveyard, backpressure", sim.Original, true, nil},
		{"queue: ours, backpressure", sim.Original, true, nil},
		{"queue: ours, backpressure", sim.Original, true, func(x *sim.Exchange) { x.Generator = sim.Burst; x.TTL = time.Minute }},
		{"queue: graveyard, backpressure", sim.Original, true, func(x *sim.Exchange) { x.Generator = sim.Burst; x.TTL = time.Minute }},
		// Each is sent six times, and none is waited for long enough.
		{"queue: graveyard", sim.Original, true, func(x *sim.Exchange) { x.Generator = sim.Constant; x.Timeout = 15 * time.Millisecond }},
		{"nonce: timestamp‖thread‖counter", sim.Saturating, true, func(x *sim.Exchange) { x.Restart = 5 * time.Second }},
		{"nonce: ours", sim.Saturating, true, func(x *sim.Exchange) { x.Restart = 5 * time.Second }},
	} {
		if race.Enabled && i%5 != 4 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			row := named(t, c.name, c.generator, c.nonce)
			x := &row.Scenario
			x.Server.AnyNonce = !c.nonce
			x.Forward, x.Back, x.Duration, x.Seed = law, law, length, 1
			if c.change != nil {
				c.change(x)
			}
			delay := newSamples()
			virtual := *x
			virtual.OnSend = func(d time.Duration) { record(delay.delay, d) }
			want, err := virtual.Run()
			if err != nil {
				t.Fatal(err)
			}
			live, exchange := runInMemory(t, &row, law, length)
			got := live.tally
			served := exchange.Report().Judge.Total
			got.Rejected, got.BadNonce = served[rule.Limited], served[rule.BadNonce]

			near := func(what string, got, want, slack int) {
				if got < want-slack || got > want+slack {
					t.Errorf("%s: %s: %d live, %d simulated", row.ID(), what, got, want)
				}
			}
			keys := x.Server.Keys
			near("made", live.requests, want.Counts.Submitted, keys)
			near("sent", got.Sent, want.Sent, 2*keys)
			near("answered", live.within, want.Successes, keys)
			near("bad nonces", got.BadNonce, want.BadNonce, 2*keys)
			near("refused", got.Rejected, want.Rejected, 2*keys)
			near("polls", got.Polls, want.Polls, max(2*keys, want.Polls/50))
			near("wake-ups", got.WakeUps, want.WakeUps, max(2*keys, want.WakeUps/50))
			near("delays", int(live.samples.delay.TotalCount()), int(delay.delay.TotalCount()), 2*keys)
			if x.Generator == sim.Saturating && !x.Workers {
				return // twice as many wait live, so that none is missing while the generator's goroutine wakes
			}
			a, b := quantiles(live.samples.delay), quantiles(delay.delay)
			if math.Abs(a.Mean-b.Mean) > 1+0.02*b.Mean || math.Abs(a.Max-b.Max) > 5+0.02*b.Max {
				t.Errorf("%s: delays %+v live, %+v simulated", row.ID(), a, b)
			}
		})
	}
}

// The round trip that a limiter is told begins with the write: neither a slow connection nor its own stall is part of it.
func TestRoundTripBeginsWithTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latency := latency.Constant(20 * time.Millisecond)
		exchange, err := ratetest.NewExchange(ratetest.Config{Before: latency, After: latency})
		if err != nil {
			t.Fatal(err)
		}
		row := named(t, "lease", sim.Original, true)
		c := newClient(&row, 1, time.Second, []string{"key1"}, "http://exchange", inMemory(t, exchange, 300*time.Millisecond))
		for i, took := range []time.Duration{340 * time.Millisecond, 40 * time.Millisecond} {
			began := time.Now()
			ans := c.send(t.Context(), 0, string('1'+rune(i)), 1)
			if ans.Result != limit.Accepted || ans.RTT != 40*time.Millisecond || time.Since(began) != took {
				t.Errorf("request %d: %v, a round trip of %v in %v, want 40ms in %v", i, ans.Result, ans.RTT, time.Since(began), took)
			}
		}
		// A transport that does not tell: not measured.
		c.http.Transport = answers{c.http.Transport}
		if ans := c.send(t.Context(), 0, "3", 1); ans.Result != limit.Accepted || ans.RTT != 0 {
			t.Errorf("%v, a round trip of %v that nobody measured", ans.Result, ans.RTT)
		}
	})
}

// answers hides from a transport who wants to be told.
type answers struct{ http.RoundTripper }

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return a.RoundTripper.RoundTrip(r.Clone(context.Background()))
}

// The workers of a live client number requests as those of a process that is replaced.
func TestLiveRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		row := named(t, "nonce: timestamp‖thread‖counter", sim.Saturating, true)
		row.Scenario.Restart = 2 * time.Second
		row.Scenario.Server.Keys = 1
		began := time.Now()
		_, exchange := runInMemory(t, &row, latency.Constant(5*time.Millisecond), 4500*time.Millisecond)
		process, counter := uint64(0), uint64(0)
		records := exchange.Records()
		for i, r := range records {
			sent := time.Duration(r.Received)
			if p := uint64(sent / row.Scenario.Restart); p != process {
				process, counter = p, 0
			}
			counter++
			if want := sim.ConcatenatedNonce(began.Add(sent).UnixMilli(), process, 0, counter); r.Nonce != want {
				t.Fatalf("request %d, at %v: nonce %s, want %s", i, sent, r.Nonce, want)
			}
		}
		if process != 2 || len(records) < 80 {
			t.Errorf("%d requests of %d processes", len(records), process+1)
		}
	})
}

// A live generator keeps to its schedule where it was merely late, and begins an interval anew where it waited for room.
func TestLiveGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		row := Row{Scenario: sim.Exchange{Generator: sim.Constant}}
		c := newClient(&row, 1, 0, nil, "", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var made []time.Duration
		c.generate(ctx, func(context.Context) (bool, error) {
			made = append(made, time.Since(c.began))
			switch len(made) {
			case 2:
				time.Sleep(500 * time.Millisecond) // late
			case 4:
				time.Sleep(5 * time.Second) // full
				return true, nil
			case 6:
				return false, pool.ErrFull // closed
			}
			return false, nil
		})
		want := []time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second, 13 * time.Second, 15 * time.Second}
		if !slices.Equal(made, want) || c.requests != len(want)-1 {
			t.Errorf("made at %v (%d), want %v", made, c.requests, want) // the last one was refused
		}

		// Nothing is made at the very end.
		c = newClient(&row, 1, 0, nil, "", nil)
		ctx, cancel = context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		c.generate(ctx, func(context.Context) (bool, error) { return false, nil })
		if took := time.Since(c.began); c.requests != 2 || took != 4*time.Second {
			t.Errorf("%d made in %v, want one at 0 and one at 2 s", c.requests, took)
		}
	})
}
