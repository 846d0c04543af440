package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// What five keys are asked for in ten minutes, of which the end is not part.
func TestGeneratorsMakeWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		generator sim.Generator
		least     int
		most      int
		sentLate  bool
	}{
		{sim.Original, 57143 * 99 / 100, 57143 * 101 / 100, true}, // 600 s / 10.5 ms
		{sim.Burst, 200 * 20 * 5, 200 * 20 * 5, false},
		{sim.Constant, 300, 300, false},
	} {
		var latest time.Duration
		x := sim.Exchange{
			Limiter: lease, Forward: latency.Constant(5 * ms), Back: latency.Constant(5 * ms), Generator: c.generator,
			Duration: 600 * time.Second, Seed: 3, Queue: queue.Config{KeepDead: -1},
			OnSend: func(d time.Duration) { latest = max(latest, d) },
		}
		got, err := x.Run()
		if err != nil {
			t.Fatal(err)
		}
		if n := got.Counts.Submitted; n < c.least || n > c.most || (latest > 0) != c.sentLate {
			t.Errorf("%v: %d requests, want %d to %d; sent up to %v late", c.generator, n, c.least, c.most, latest)
		}
	}
	for d, want := range map[time.Duration]int{2 * time.Second: 1, 2*time.Second + 1: 2} {
		got, err := sim.Exchange{Limiter: lease, Generator: sim.Constant, Duration: d}.Run()
		if err != nil || got.Counts.Submitted != want {
			t.Errorf("one every 2 s, in %v: %d (%v), want %d", d, got.Counts.Submitted, err, want)
		}
	}
}

// A generator that waited for room begins its next interval when it has made its request, not when it wanted to.
func TestGeneratorsWaitForRoom(t *testing.T) {
	run := func(x sim.Exchange) (delays []time.Duration, got sim.Tally) {
		x.Server, x.TTL = rule.ExchangeConfig{Keys: 1, BanAfter: -1}, time.Hour
		x.OnSend = func(d time.Duration) { delays = append(delays, d) }
		got, err := x.Run()
		if err != nil {
			t.Fatal(err)
		}
		return delays, got
	}
	for _, workers := range []bool{false, true} {
		// One goes every 4500 ms and one may wait. Made at 0, 2, 4.5 (it was due at 4), 9 (6.5) and 13.5 (11), and submitted when due.
		delays, _ := run(sim.Exchange{
			Generator: sim.Constant, Workers: workers, Duration: 14 * time.Second, Queue: queue.Config{MaxLen: 1},
			Limiter: published(sim.PublishedConfig{Limit: 1, Window: 4499 * ms}),
		})
		want := []time.Duration{0, 2500 * ms, 5000 * ms, 7000 * ms}
		if workers { // made when there is room; a worker takes one from the queue and then waits: made at 0, 2, 4, 6, 9 (8), 13.5 (11)
			want = []time.Duration{0, 2500 * ms, 5000 * ms, 7500 * ms}
		}
		if !slices.Equal(delays, want) {
			t.Errorf("workers %v: sent after %v, want %v", workers, delays, want)
		}
		// One goes every 100 ms and five may wait: of the 20 made in a burst at 0 the last finds room at 1400 ms, and the
		// next burst is 3 s later.
		for d, want := range map[time.Duration]int{1400 * ms: 19, 1401 * ms: 20, 4400 * ms: 20, 4401 * ms: 26} {
			if workers {
				d -= 100 * ms // it holds one more
				want += want / 26
			}
			_, got := run(sim.Exchange{
				Generator: sim.Burst, Workers: workers, Duration: d - 1, Queue: queue.Config{MaxLen: 5},
				Limiter: published(sim.PublishedConfig{Limit: 1, Window: 99 * ms}),
			})
			if got.Counts.Submitted != want {
				t.Errorf("workers %v: %d made in %v, want %d", workers, got.Counts.Submitted, d, want)
			}
		}
	}
}

func TestSaturatingKeepsOneWaitingPerKey(t *testing.T) {
	got, err := sim.Exchange{Limiter: lease, Generator: sim.Saturating, Forward: uniform, Duration: 10 * time.Second}.Run()
	if err != nil || got.Counts.Waiting != 5 {
		t.Errorf("%+v (%v), want 5 waiting", got.Counts, err)
	}
}

func TestAtTheEndWhatIsInFlightStaysThere(t *testing.T) {
	x := sim.Exchange{Limiter: lease, Forward: latency.Constant(30 * ms), Back: latency.Constant(30 * ms), Generator: sim.Burst}
	for d, answered := range map[time.Duration]int{60*ms - 1: 0, 60 * ms: 100} {
		x.Duration = d
		got, err := x.Run()
		if err != nil || got.Successes != answered || got.Failures != 0 || got.Counts.InFlight != 100-answered || got.Lost != 0 {
			t.Errorf("after %v: %+v (%v), want %d answered and the others in flight", d, got, err, answered)
		}
	}
}

// A Dispatcher sleeps through new requests, as they are not its own waking: what counts is timers and ends of attempts.
func TestWakeUps(t *testing.T) {
	run := func(x sim.Exchange) sim.Tally {
		x.Forward, x.Back, x.TTL = latency.Constant(30*ms), latency.Constant(30*ms), time.Hour
		got, err := x.Run()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := run(sim.Exchange{Limiter: lease, Generator: sim.Constant, Duration: 60 * time.Second}); got.Sent != 30 || got.WakeUps != 30 {
		t.Errorf("%d wake-ups for %d requests that went at once, want 30 answers of 30", got.WakeUps, got.Sent)
	}
	// 20 of one burst, one every 101 ms, answered in between: 19 timers and 20 answers.
	got := run(sim.Exchange{
		Server: rule.ExchangeConfig{Keys: 1}, Limiter: published(sim.PublishedConfig{Limit: 1, Window: 100 * ms}), Generator: sim.Burst, Duration: 2900 * ms,
	})
	if got.Sent != 20 || got.WakeUps != 39 || got.Polls != 0 {
		t.Errorf("%d wake-ups and %d polls for %d requests, want 39, 0 and 20", got.WakeUps, got.Polls, got.Sent)
	}
}
