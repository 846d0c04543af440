package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
)

func published(c sim.PublishedConfig) func() limit.Limiter {
	return func() limit.Limiter { return sim.NewPublished(c) }
}

// One worker, 20 requests made at 0 with a second to live, and a round trip that takes exactly as long as told: when each
// was sent, how often its limiter was asked in vain, and what became of the rest.
func TestWorkerTimeline(t *testing.T) {
	one := func(window time.Duration) func() limit.Limiter {
		return published(sim.PublishedConfig{Limit: 1, Window: window})
	}
	for _, c := range []struct {
		name    string
		trip    time.Duration
		limiter func() limit.Limiter
		poll    time.Duration
		sent    []time.Duration
		polls   int
		inTime  int
	}{
		// Answered at 20 ms, ready at 101, asked every 7 ms from 20 on: at 104. The last wait begins at 956 and ends at
		// 1005, the first look at the clock after its deadline, and before 1037, when it would have been ready.
		{"polling", 20 * ms, one(100 * ms), 7 * ms, every(104*ms, 10), 9*12 + 7, 10},
		// Nothing rounds up: the next is ready 101 ms after the last; the one after 909 would be at 1010.
		{"sleeping", 20 * ms, one(100 * ms), 0, every(101*ms, 10), 9 + 1, 10},
		// Ready in the same instant as its patience ends: it goes, and is answered late.
		{"polling, the last moment", 20 * ms, one(999 * ms), ms, []time.Duration{0, 1000 * ms}, 980, 1},
		{"polling, a moment later", 20 * ms, one(1000 * ms), ms, []time.Duration{0}, 981, 1},
		{"sleeping, the last moment", 20 * ms, one(999 * ms), 0, []time.Duration{0, 1000 * ms}, 1, 1},
		{"sleeping, a moment later", 20 * ms, one(1000 * ms), 0, []time.Duration{0}, 1, 1},
		// Ready in the same instant as a poll: it goes at that one, and the eleventh in its last moment.
		{"on the grid", 20 * ms, one(99 * ms), 10 * ms, every(100*ms, 11), 10 * 8, 10},
		// Taken from the queue at the very end of its time to live: dropped, though its limiter would let it go. It was
		// answered in time, at the very end.
		{"taken at its deadline", time.Second, published(sim.PublishedConfig{Limit: 20, Window: time.Second}), ms, []time.Duration{0}, 0, 1},
		{"taken just before", time.Second - 1, published(sim.PublishedConfig{Limit: 20, Window: time.Second}), ms, []time.Duration{0, time.Second - 1}, 0, 1},
	} {
		var sent []time.Duration
		x := sim.Exchange{
			Server: rule.ExchangeConfig{Keys: 1, BanAfter: -1}, Generator: sim.Burst, Workers: true, Duration: 2500 * ms,
			Forward: latency.Constant(c.trip / 2), Back: latency.Constant(c.trip - c.trip/2),
			Limiter: c.limiter, Poll: c.poll, Queue: queue.Config{MaxAttempts: 1},
			OnSend: func(d time.Duration) { sent = append(sent, d) },
		}
		got, err := x.Run()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(sent, c.sent) {
			t.Errorf("%s: sent at %v, want %v", c.name, sent, c.sent)
		}
		if got.Polls != c.polls || got.WakeUps != c.polls+len(c.sent) {
			t.Errorf("%s: %d polls and %d wake-ups, want %d and the %d answers", c.name, got.Polls, got.WakeUps, c.polls, len(c.sent))
		}
		ended := got.Counts.Done + got.Counts.Expired + got.Counts.Dead
		if got.Successes != len(c.sent) || got.InTime != c.inTime || got.Rejected != 0 || ended != 20 || got.Lost != 0 {
			t.Errorf("%s: %d answered, %d in time, want %d and %d: %+v", c.name, got.Successes, got.InTime, len(c.sent), c.inTime, got)
		}
	}
}

func every(d time.Duration, n int) (at []time.Duration) {
	for i := range n {
		at = append(at, time.Duration(i)*d)
	}
	return at
}

// Five requests, one every 2 s, each with a round trip of 1200 ms that is waited for for 1000 ms.
func TestNobodyWaitsForLateAnswers(t *testing.T) {
	for _, workers := range []bool{false, true} {
		for _, forward := range []time.Duration{0, 600 * ms, 1000 * ms, 1200 * ms} {
			x := sim.Exchange{
				Forward: latency.Constant(forward), Back: latency.Constant(1200*ms - forward), Timeout: time.Second,
				Limiter: lease, Nonce: sim.Ours, Generator: sim.Constant, Workers: workers, Duration: 10 * time.Second,
				Queue: queue.Config{MaxAttempts: 1},
			}
			got, err := x.Run()
			if err != nil || got.Sent != 5 || got.Failures != 5 || got.WakeUps != 5 || got.Successes != 0 || got.Counts.Done != 0 || got.Counts.InFlight != 0 || got.Lost != 0 {
				t.Errorf("%v there, workers %v: %+v (%v), want 5 failures of 5, each of which woke it", forward, workers, got, err)
			}
			// As long as it is waited for, and no longer.
			x.Timeout = 1200 * ms
			if got, err := x.Run(); err != nil || got.Successes != 5 || got.Failures != 0 || got.Lost != 0 {
				t.Errorf("%v there, workers %v: %+v (%v), want 5 answers in the last moment", forward, workers, got, err)
			}
		}
	}
}

// A request that its worker gave up on before it was sent, and that the queue then renewed, is sent for the first time at
// its second attempt; one that was sent in vain is sent for the first time once.
func TestFirstSending(t *testing.T) {
	run := func(x sim.Exchange) (delays []time.Duration, got sim.Tally) {
		x.Server = rule.ExchangeConfig{Keys: 1, BanAfter: -1}
		x.OnSend = func(d time.Duration) { delays = append(delays, d) }
		got, err := x.Run()
		if err != nil {
			t.Fatal(err)
		}
		return delays, got
	}
	delays, _ := run(sim.Exchange{
		Workers: true, Generator: sim.Constant, Duration: 4 * time.Second, Limiter: published(sim.PublishedConfig{Limit: 1, Window: 3500 * ms}),
		Queue: queue.Config{OnExpiry: queue.Retry},
	})
	// The second is made at 2 s, given up when its worker wakes at 3501 ms, renewed, and sent then.
	if want := []time.Duration{0, 1501 * ms}; !slices.Equal(delays, want) {
		t.Errorf("renewed: first sent after %v, want %v", delays, want)
	}
	for _, workers := range []bool{false, true} {
		delays, got := run(sim.Exchange{
			Workers: workers, Generator: sim.Constant, Duration: 8 * time.Second, TTL: time.Hour, Limiter: lease,
			Forward: latency.Constant(600 * ms), Back: latency.Constant(600 * ms),
		})
		if got.Sent <= 4 || len(delays) > 4 || delays[0] != 0 {
			t.Errorf("workers %v: %d sendings of 4 requests, first ones after %v", workers, got.Sent, delays)
		}
	}
}
